"""MLflow's own pages in Chromium, behind our gate: whole, without a complaint, and with nothing from elsewhere."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.dashboards.conftest import PATIENCE, Watched
from tests.mlflow_server import TOKEN, Gate, told

pytestmark = pytest.mark.browser

# What its table grid finds old-fashioned, how fast WebGL is on this machine, and files that it shows from memory.
OF_ITS_OWN = ("AG Grid", "GL Driver Message", "blob:")
KIND = {"key": "mlflow.experimentKind", "value": "custom_model_development"}


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


@pytest.fixture
def experiment(gate: Gate) -> tuple[str, str]:
    """An experiment with a run, and the run's id."""
    with gate.client() as client:
        made = told(client, "experiments/create", name="in the browser", tags=[KIND])["experiment_id"]
        run = told(client, "runs/create", experiment_id=made, run_name="triplet, eta 0.5", start_time=1)["run"]["info"]
        points = [{"key": "map_at_r", "value": step / 10, "timestamp": step, "step": step} for step in range(5)]
        told(client, "runs/log-batch", run_id=run["run_id"], metrics=points, params=[{"key": "eta", "value": "0.5"}])
        told(client, "runs/update", run_id=run["run_id"], status="FINISHED", end_time=2)
        place = run["artifact_uri"].removeprefix("mlflow-artifacts:/")
        table = b"<table><tr><td>NMI</td><td>91.2</td></tr></table><script>document.title = 'taken over'</script>"
        kept = f"/mlflow/api/2.0/mlflow-artifacts/artifacts/{place}"
        client.put(f"{kept}/table.html", content=table).raise_for_status()
        client.put(f"{kept}/tables/main.csv", content=b"loss,nmi\ntriplet,91.2\n").raise_for_status()
    return made, run["run_id"]


def test_the_pages_of_a_run_are_whole(page: Page, experiment: tuple[str, str], tmp_path: Path) -> None:
    made, run = experiment
    runs = f"/mlflow/#/experiments/{made}/runs"
    page.goto("/mlflow/")
    expect(page).to_have_url(re.compile("/login.next="))
    page.get_by_label("Token").fill(TOKEN)
    page.get_by_role("button", name="Log in").click()
    page.goto(runs)
    expect(page.get_by_role("link", name="triplet, eta 0.5")).to_be_visible()
    page.screenshot(path=tmp_path / "runs.png")
    page.goto(f"{runs}/{run}")
    expect(page.get_by_text("map_at_r").first).to_be_visible()
    page.screenshot(path=tmp_path / "run.png")
    page.goto(f"{runs}/{run}/model-metrics")
    expect(page.locator(".js-plotly-plot .scatterlayer").first).to_be_visible()
    page.screenshot(path=tmp_path / "curves.png")
    page.goto(f"{runs}/{run}/artifacts")
    page.get_by_text("table.html").click()
    expect(page.frame_locator("iframe").get_by_text("91.2")).to_be_visible()
    assert page.title() != "taken over"
    page.screenshot(path=tmp_path / "artifact.png")
