"""How long pages of a sweep of 10,000 trials take in a browser: until they are drawn, and how many bytes they are.

    python -m benchmarks.large_pages [--trials 10000] [--rounds 3] [--pictures FOLDER]

The sweep is written as `benchmarks.trials_view` does, nothing is trained; 400 of its trials have curves of 200 points,
and its cells are settled. Each page is opened in Chromium anew, and is drawn once what it is there for is: its table,
or the drawing that a script makes. Bytes are what came over the wire, compressed, with scripts and styles that the
browser did not have yet. With `--pictures` each page is kept in light, dark, as a phone shows it, and as it is printed.
"""

import argparse
import json
import math
import os
import shutil
import statistics
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa
from playwright.sync_api import BrowserContext, Page, sync_playwright

from api.main import create_app
from benchmarks.trials_view import fill
from orchestrator.publish import select
from orchestrator.record import schema
from orchestrator.record.store import Store
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from orchestrator.views import events
from tests.served_app import served

PLOT: Final = "#plot svg"
DRAWING: Final = "#drawing svg"
PAGES: Final[dict[str, tuple[str, str]]] = {
    "sweeps": ("/", "main table"),
    "sweep": ("/sweeps/1", "main table"),
    "trials": ("/sweeps/1/trials?sort=-map@r", "tr[data-trial]"),
    "trials, filtered": ("/sweeps/1/trials?where=loss:triplet+eta<0.5+map@r>.6&sort=-recall@1", "tr[data-trial]"),
    "candidates": ("/sweeps/1/trials?of=candidates&sort=-map@r", "tr[data-trial]"),
    "plot: norms": ("/sweeps/1/trials?sort=-score&plot=norms", PLOT),
    "plot: parallel": ("/sweeps/1/trials?sort=-score&plot=parallel", PLOT),
    "plot: sensitivity": ("/sweeps/1/trials?sort=-score&plot=sensitivity", PLOT),
    "plot: heat": ("/sweeps/1/trials?sort=-score&plot=heat", PLOT),
    "plot: history": ("/sweeps/1/trials?sort=-score&plot=history", PLOT),
    "plot: distribution": ("/sweeps/1/trials?sort=-score&plot=distribution", PLOT),
    "plot: importance": ("/sweeps/1/trials?sort=-score&plot=importance", PLOT),
    "cell": ("/sweeps/1/cells/0", "main table"),
    "curves of 40 trials": ("/curves?trials=" + ",".join(str(at) for at in range(1, 41)), DRAWING),
    "curves of the cells": ("/curves?sweep=1", DRAWING),
    "trial": ("/trials/1", DRAWING),
    "catalog": ("/catalog", "main table"),
    "cluster": ("/cluster", "main"),
}
LOOKS: Final[dict[str, dict[str, Any]]] = {
    "light": {"color_scheme": "light"}, "dark": {"color_scheme": "dark"}, "phone": {"color_scheme": "light"},
}  # fmt: skip
CURVES: Final = 400
"""Trials that have such."""
PATIENCE: Final = 120_000


def lengthen(store: Store) -> None:
    """Give the first trainings curves, and every cell its summary."""
    steps = range(10, 2_001, 10)
    with store.database.writing() as connection:
        for number in range(1, CURVES + 1):
            curves = {
                key: [(step, scale * math.exp(-step / (300 + number))) for step in steps]
                for key, scale in (("train/loss", 1.0), ("train/norm_var", 0.03), ("validation/map@r", 0.4))
            }
            given = sa.update(schema.training).where(schema.training.c.id == number)
            connection.execute(given.values(result={"curves": curves}, step=2_000, total_steps=2_000))
    held = store.lease.held()
    assert held is not None, "by whoever filled the database"
    outcomes = store.outcomes.of(1)
    for sweep, cell in store.sweeps.cells_to_settle():
        summary = select.summarize(outcomes, cell, "higher")
        store.writer(held.fence).events.write(events.CellSettled(sweep, summary))


def opened(context: BrowserContext, path: str, wanted: str, rounds: int) -> dict[str, Any]:
    """Seconds until a page is drawn in a fresh tab, the median over the rounds, and its bytes on the first."""
    took, sizes = [], []
    for _ in range(rounds):
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        network = context.new_cdp_session(page)
        network.send("Network.enable")
        arrived: list[float] = []
        network.on("Network.loadingFinished", lambda said, arrived=arrived: arrived.append(said["encodedDataLength"]))
        began = time.monotonic()
        page.goto(path)
        page.locator(wanted).first.wait_for()
        took.append(time.monotonic() - began)
        sizes.append(sum(arrived))
        page.close()
    return {"seconds": round(statistics.median(took), 2), "kilobytes": round(sizes[0] / 1024)}


def pictured(context: BrowserContext, name: str, path: str, wanted: str, folder: Path) -> list[str]:
    """Keep pictures of a page; gives what of it lies beyond the window's edge."""
    page, found, stem = context.new_page(), [], name.replace(": ", "-").replace(" ", "_").replace(",", "")
    page.set_default_timeout(PATIENCE)
    for look, media in LOOKS.items():
        page.set_viewport_size({"width": 420 if look == "phone" else 1280, "height": 900})
        page.emulate_media(media="screen", **media)
        page.goto(path)
        page.locator(wanted).first.wait_for()
        page.screenshot(path=folder / f"{stem}-{look}.png")
        if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            found.append(f"{name} is wider than its window: {look}")
    printed(page, folder / f"{stem}-print")
    page.close()
    return found


def printed(page: Page, target: Path) -> None:
    """Keep how it is printed, as a PDF and as a picture of its top."""
    page.set_viewport_size({"width": 1280, "height": 1000})
    page.emulate_media(media="print")
    page.screenshot(path=target.with_suffix(".png"))
    page.pdf(path=target.with_suffix(".pdf"), prefer_css_page_size=True, format="A4")


def main() -> None:
    """Print what each page took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pictures", type=Path)
    chosen = parser.parse_args()
    with ExitStack() as stack:
        home = stack.enter_context(tempfile.TemporaryDirectory())
        settings = Settings(home=Path(home))
        service = Service.open(settings)
        stack.callback(service.close)
        store = Store.open(settings.database)
        stack.callback(store.close)
        trials = fill(store, chosen.trials)
        lengthen(store)
        app = create_app(service, settings)
        address = stack.enter_context(served(app))
        playwright = stack.enter_context(sync_playwright())
        chromium = os.environ.get("METRICSWEEP_TEST_CHROMIUM") or shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        stack.callback(browser.close)
        context = browser.new_context(base_url=address)
        context.request.get(f"/login?code={app.state.access.codes.new()}")
        facts: dict[str, Any] = {
            "trials": trials, "cores": os.cpu_count(), "load": round(os.getloadavg()[0], 1),
            "chromium": browser.version,
            "pages": {name: opened(context, *page, chosen.rounds) for name, page in PAGES.items()},
        }  # fmt: skip
        if chosen.pictures:
            chosen.pictures.mkdir(parents=True, exist_ok=True)
            facts["too wide"] = [
                said for name, page in PAGES.items() for said in pictured(context, name, *page, chosen.pictures)
            ]
        print(json.dumps(facts, indent=2))


if __name__ == "__main__":
    main()
