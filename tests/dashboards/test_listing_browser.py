"""Listings in Chromium: plots are drawn and linked with the rows, and a wrong filter stays beside what is wrong."""

from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, expect

from tests.dashboards.conftest import Watched
from tests.dashboards.stage import SPEC, Stage

pytestmark = pytest.mark.browser


@pytest.fixture
def sweep(stage: Stage) -> int:
    """A sweep in which a third of the trials have ended, one of them badly."""
    number = stage.submit(SPEC)
    for at in range(30):
        if at == 4:
            stage.fail()
        else:
            stage.finish(diverged=at == 5)
    return number


def test_plots_are_linked_with_the_rows(context: BrowserContext, sweep: int, tmp_path: Path) -> None:
    page = context.new_page()
    page.set_viewport_size({"width": 1280, "height": 1000})
    page.goto(f"/sweeps/{sweep}/trials?where=loss:triplet&sort=-score&plot=norms")
    expect(page.locator("#plot svg")).to_be_visible()
    points = page.locator("#plot svg .mark-symbol.role-mark path")
    assert points.count() == 19
    page.locator("tr[data-trial] input").first.check()
    expect(page.locator("#chosen")).to_have_text("1 chosen")
    expect(page.locator("#plot svg .mark-symbol.role-mark path[opacity='0.12']")).not_to_have_count(0)
    frame = page.locator("#plot svg").bounding_box()
    assert frame is not None
    page.mouse.move(frame["x"] + 70, frame["y"] + 10)
    page.mouse.down()
    page.mouse.move(frame["x"] + 560, frame["y"] + 290, steps=5)
    page.mouse.up()
    expect(page.locator("#plot-note")).to_contain_text("in the frame")
    assert page.locator("tr.framed").count() > 3
    assert page.locator("th[aria-sort=descending]").inner_text().startswith("score")
    for width, scheme in ((1280, "light"), (1280, "dark"), (420, "light")):
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        for plot in ("sensitivity", "parallel", "heat", "history", "distribution"):
            page.goto(f"/sweeps/{sweep}/trials?sort=-score&plot={plot}")
            expect(page.locator("#plot svg")).to_be_visible()
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (plot, width)
            page.screenshot(path=tmp_path / f"{plot}-{width}-{scheme}.png")


def test_a_wrong_filter_stays_beside_what_is_wrong(watched: Watched, sweep: int) -> None:
    page = watched.context.new_page()
    page.goto("/trials")
    page.get_by_label("Filter").fill("los:triplet <b>")
    page.get_by_label("Filter").press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("at character 13")
    expect(page.get_by_label("Filter")).to_have_value("los:triplet <b>")
    page.get_by_label("Filter").fill("loss:triplet state:failed")
    page.get_by_role("button", name="Find").click()
    expect(page.locator("tr[data-trial]")).to_have_count(1)
    assert len(watched.complaints) == 1  # of the status, which is the one of a wrong filter
    assert "422" in watched.complaints.pop()
