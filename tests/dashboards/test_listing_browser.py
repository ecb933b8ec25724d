"""Listings in Chromium: plots are drawn and linked with the rows, and a wrong filter stays beside what is wrong."""

import re
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
    page.set_viewport_size({"width": 718, "height": 1000})  # a page of A4
    page.emulate_media(media="print", color_scheme="dark")
    for left_out in ("header.site", ".crumbs", ".finder", ".tabs", ".pages", "tr[data-trial] input"):
        expect(page.locator(left_out).first).to_be_hidden()
    expect(page.locator("tr[data-trial]").first).to_be_visible()
    assert page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--text')") == "#1d2125"
    # Chromium makes what is printed smaller until it fits, to a half at the least.
    assert page.evaluate("document.documentElement.scrollWidth < 2 * innerWidth")
    page.screenshot(path=tmp_path / "print.png")


def test_ticked_rows_go_side_by_side(context: BrowserContext, sweep: int, tmp_path: Path) -> None:
    page = context.new_page()
    page.goto(f"/sweeps/{sweep}/trials?where=state:finished -state:diverged&sort=trial")
    boxes = page.locator("tr[data-trial] input")
    trials = [boxes.nth(at).get_attribute("value") for at in (0, 12)]
    for at in (0, 12):
        boxes.nth(at).check()
    page.get_by_role("button", name="Compare the chosen").click()
    expect(page).to_have_url(re.compile(rf"/compare\?trial={trials[0]}&trial={trials[1]}$"))
    table = page.get_by_role("table", name="What differs between the recipes of 2 trials")
    expect(table.locator("thead th a")).to_have_text([str(trial) for trial in trials])
    differing = table.locator("tbody").nth(1).locator("tr")
    expect(differing.locator("th").filter(has_text=re.compile("^regularizer"))).not_to_have_count(0)
    assert all(len(set(row.locator("td").all_inner_texts())) == 2 for row in differing.all())
    expect(table.locator("tbody").nth(2).get_by_role("row", name="best/test/map@r")).to_have_count(1)
    for width in (1280, 420):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), width
        page.screenshot(path=tmp_path / f"compare-{width}.png", full_page=True)
    page.get_by_role("link", name="Their curves").click()
    expect(page.locator("#drawing svg")).to_be_visible()
    page.goto("/compare?trial=1")
    expect(page.locator(".empty")).to_contain_text("takes two trials")


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


def test_ticked_cells_go_side_by_side_and_survive_a_refresh(
    context: BrowserContext, sweep: int, stage: Stage, tmp_path: Path
) -> None:
    page = context.new_page()
    page.goto(f"/sweeps/{sweep}")
    boxes = page.locator("article.cell input[type=checkbox]")
    expect(boxes).to_have_count(12)
    page.get_by_label("choose cell triplet · none").check()
    page.get_by_label("choose cell semihard · l2").check()
    finished = page.locator("#progress .tally li", has_text="finished").locator("b")
    before = int(finished.inner_text())
    stage.finish()
    expect(finished).to_have_text(str(before + 1))
    expect(page.locator("article.cell input:checked")).to_have_count(2)
    page.get_by_role("button", name="Compare the chosen cells").click()
    expect(page).to_have_url(re.compile(rf"/compare\?cell={sweep}(%2F|/)0&cell={sweep}(%2F|/)4$"))
    table = page.get_by_role("table", name="What differs between 2 cells")
    expect(table.get_by_role("row", name="loss").first).to_contain_text("semihard")
    expect(table.get_by_role("row", name="best/test/map@r")).to_contain_text("n = 3")
    page.get_by_label("Add a cell").fill(f"{sweep}/11")
    page.get_by_role("button", name="Add").click()
    expect(page.locator("table.compared thead th")).to_have_count(4)
    for width, scheme in ((1280, "light"), (1280, "dark"), (420, "light")):
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), width
        page.screenshot(path=tmp_path / f"cells-{width}-{scheme}.png", full_page=True)
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto(f"/sweeps/{sweep}")
    page.get_by_text("What it keeps on disk").click()
    expect(page.locator("#kept")).to_contain_text("nothing while the sweep goes on")
    page.screenshot(path=tmp_path / "storage.png", full_page=True)
    page.goto("/trials?where=state:finished -state:diverged&sort=trial")
    for at in (0, 1, 3):  # two of a cell, and one of the next
        page.locator("tr[data-trial] input").nth(at).check()
    page.get_by_role("button", name="Compare their cells").click()
    expect(page.locator("table.compared thead th")).to_have_count(3)
