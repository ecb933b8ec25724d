"""MLflow's own pages in Chromium, behind our gate: whole, without a complaint, and with nothing from elsewhere."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from orchestrator.conduct.broker import MlflowArtifacts
from orchestrator.record.mlflow.client import MlflowTracker
from orchestrator.record.mlflow.mirror import Mirror
from orchestrator.record.store import Store
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from tests.dashboards.conftest import PATIENCE, Watched
from tests.dashboards.stage import Stage
from tests.mlflow_server import TOKEN, Gate
from workers import catalog

pytestmark = pytest.mark.browser

# What its table grid finds old-fashioned, how fast WebGL is on this machine, and files that it shows from memory.
OF_ITS_OWN = ("AG Grid", "GL Driver Message", "blob:")


@pytest.fixture
def page(browser: Browser, gate: Gate) -> Iterator[Page]:
    """Logged in; the test fails when a request failed or the page complained."""
    context = browser.new_context(base_url=gate.address, viewport={"width": 1280, "height": 900})
    context.set_default_timeout(PATIENCE)
    watched = Watched(context, gate.address)
    context.on("response", lambda got: got.status < 400 or watched.complaints.append(f"{got.status} {got.url}"))
    opened = context.new_page()
    yield opened
    context.close()
    left = [said for said in watched.complaints if not any(word in said for word in OF_ITS_OWN)]
    assert len(left) <= 1, left
    assert all("script" in said and "blocked" in said for said in left), "the one in the file that was logged"


SPEC = """\
version: 1
name: opens-well
description: Which of two losses is better?
recipe: {dataset: digits, backbone: {name: small_cnn, width: 8}, iterations: 100,
  validation: {name: class_holdout, folds: 3, fold: 0},
  sampler: {name: balanced, classes: 4, per_class: 8}}
compare: {loss: [triplet, semihard], regularizer: [none, sec]}
tune: {regularizer.eta: [{values: [0.25, 0.5], when: {regularizer: sec}}]}
tables: {main: {rows: [loss, regularizer], metrics: [recall@1, map@r]}}
"""


@pytest.fixture
def sweep(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A sweep that has ended, with all its runs in MLflow."""
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", TOKEN)
    settings = Settings(home=gate.home)
    service, store = Service.open(settings), Store.open(settings.database)
    stage = Stage(service, store)
    made = stage.submit(SPEC)
    stage.finish(times=6)
    stage.settle()
    artifacts = MlflowArtifacts(store, catalog.load(), settings.storage)
    mirror = Mirror(store, stage.writer, lambda: MlflowTracker(gate.mlflow), artifacts.of, gate.address)
    while mirror.forward(100):
        pass
    assert store.outbox.lag() == 0
    yield made
    stage.writer.lease.release()
    store.close()
    service.close()


def test_the_best_of_a_sweep_is_two_clicks_away_and_its_pages_are_whole(page: Page, gate: Gate, sweep: int) -> None:
    page.set_viewport_size({"width": 1900, "height": 900})  # columns that are out of sight are not in the page
    page.goto(f"/login?next=/sweeps/{sweep}")
    page.get_by_label("Token").fill(TOKEN)
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("link", name="MLflow experiment").click()
    expect(page.get_by_role("link", name="·").first).to_be_visible()
    names = page.get_by_role("link", name="·").all_inner_texts()
    with gate.client() as client:
        cells = client.get(f"/v1/sweeps/{sweep}/grid").json()
        scores = {cell["index"]: client.get(f"/v1/sweeps/{sweep}/cells/{cell['index']}").json() for cell in cells}
    best = sorted(scores.values(), key=lambda cell: -max(one["score"] for one in cell["candidates"]))
    assert names == [" · ".join(cell["labels"].values()) for cell in best], "best first, and cells alone"
    for title in ("recall_at_1", "map_at_r", "best validation/map_at_r", "loss", "regularizer.eta"):
        expect(page.get_by_test_id(f"sort-header-{title}")).to_have_count(1)
    expect(page.get_by_text("Welcome to MLflow")).to_have_count(0)
    page.goto(f"{page.url}&compareRunsMode=CHART")
    charts = page.get_by_test_id("experiment-view-compare-runs-chart-area")
    for title in ("recall_at_1", "map_at_r", "train/loss"):
        expect(charts.get_by_text(title, exact=True)).to_be_visible()
    expect(charts.locator(".js-plotly-plot")).to_have_count(3)  # all other sections are closed
    page.go_back()
    page.get_by_role("link", name=names[0]).click()
    expect(page.get_by_text(f"Cell {best[0]['index']}")).to_be_visible()
    expect(page.get_by_text("recall_at_1 std")).to_have_count(0)  # a single seed has no deviation
    expect(page.get_by_text("digits (")).to_be_visible()
    shown = page.url
    run = shown.rpartition("/")[2]
    with gate.client() as client:
        info = client.get("/mlflow/api/2.0/mlflow/runs/get", params={"run_id": run}).json()["run"]["info"]
        place = info["artifact_uri"].removeprefix("mlflow-artifacts:/")
        file = b"<table><tr><td>91.2</td></tr></table><script>document.title = 'taken over'</script>"
        client.put(f"/mlflow/api/2.0/mlflow-artifacts/artifacts/{place}/own.html", content=file).raise_for_status()
    page.goto(f"{shown}/model-metrics")
    expect(page.locator(".js-plotly-plot").first).to_be_visible()
    page.goto(f"{shown}/artifacts")
    page.get_by_text("own.html").click()
    expect(page.frame_locator("iframe").get_by_text("91.2")).to_be_visible()
    assert page.title() != "taken over"
