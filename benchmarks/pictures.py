"""Takes the pictures of README from the sweep of `make demo`: its page and its table.

    make demo
    python -m benchmarks.pictures

Needs Chromium. Writes docs/images, each picture with so few colours that it stays below 150 KB.
"""

import argparse
import io
import os
import shutil
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from api.main import create_app
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from tests.served_app import served

IMAGES = Path(__file__).parents[1] / "docs" / "images"
MOST_BYTES = 150_000


def kept(picture: bytes, name: str) -> None:
    """Write the picture with as many colours as fit."""
    whole = Image.open(io.BytesIO(picture)).convert("RGB")
    for colours in (256, 128, 64, 32):
        target = io.BytesIO()
        whole.quantize(colours, dither=Image.Dither.NONE).save(target, "PNG", optimize=True)
        if target.tell() < MOST_BYTES:
            break
    (IMAGES / name).write_bytes(target.getvalue())
    print(f"{name}: {target.tell():,} bytes, {whole.width} x {whole.height}, {colours} colours")


def shot(page: Page, path: str, height: int, wanted: str) -> bytes:
    """The top of one page, once what is `wanted` is drawn."""
    page.set_viewport_size({"width": 1180, "height": height})
    page.goto(path)
    page.locator(wanted).first.wait_for()
    return page.screenshot()


def main() -> None:
    """Serve the home folder's database without a conductor, and look at it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--home", type=Path, default=Path(".metricsweep"))
    parser.add_argument("--sweep", type=int, default=1)
    asked = parser.parse_args()
    settings = Settings(home=asked.home)
    service = Service.open(settings)
    app = create_app(service, settings)
    chromium = os.environ.get("METRICSWEEP_TEST_CHROMIUM") or shutil.which("chromium")
    try:
        with served(app) as address, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            context = browser.new_context(base_url=address, color_scheme="light")
            context.request.post("/login", form={"code": app.state.access.codes.new()}, headers={"Origin": address})
            page = context.new_page()
            kept(shot(page, f"/sweeps/{asked.sweep}", 860, "table"), "page_sweep.png")
            kept(page.locator("figure.metricsweep-table table").first.screenshot(), "table_demo.png")
            browser.close()
    finally:
        service.close()


if __name__ == "__main__":
    main()
