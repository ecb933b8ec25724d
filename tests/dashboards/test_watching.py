"""Sweep, curves, cell and trial in Chromium while a sweep runs: they fill in, keep a zoom, fit and read well."""

from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.dashboards.stage import SPEC, Stage

pytestmark = pytest.mark.browser


def fill(stage: Stage) -> int:
    """A sweep in the middle."""
    sweep = stage.submit(SPEC)
    for number in range(20):
        if number in (4, 7):
            stage.fail(message=f"ValueError: class {number} has no images")
        else:
            stage.finish(diverged=number == 5)
    stage.start(0.5)
    stage.settle()
    return sweep


def shoot(page: Page, folder: Path, name: str) -> None:
    """A picture in either scheme and on a phone; nothing is wider than the window."""
    for scheme, width in (("light", 1280), ("dark", 1280), ("light", 420)):
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        page.wait_for_timeout(400)
        page.screenshot(path=folder / f"{name}-{width}-{scheme}.png", full_page=True)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name


def test_a_live_sweep_is_watched(context: BrowserContext, stage: Stage, tmp_path: Path) -> None:
    sweep = fill(stage)
    page = context.new_page()
    page.clock.install()
    page.goto(f"/sweeps/{sweep}?heat=state")
    expect(page.locator("#waits")).to_contain_text("wait for a slot: 1 train")
    expect(page.locator(".metricsweep-table td.state-failed").first).to_be_visible()
    assert page.locator("#problems .problem").count() == 2  # two that failed alike, and a divergence
    group = page.locator("details.group").first
    group.locator("summary").first.click()
    stage.finish()
    page.clock.run_for(3_100)
    expect(page.locator("#progress .tally")).to_contain_text("18 finished")
    expect(group).not_to_have_attribute("open", "")
    assert page.evaluate("location.search") == "?heat=state"
    page.get_by_role("link", name="by metric").click()
    expect(page.locator('.metricsweep-table td[class*="heat-"]').first).to_be_visible()
    page.clock.resume()
    shoot(page, tmp_path, "sweep")


def test_curves_stay_zoomed_while_points_come(context: BrowserContext, stage: Stage, tmp_path: Path) -> None:
    sweep = fill(stage)
    order = stage.start(0.3)
    page = context.new_page()
    page.clock.install()
    page.goto(f"/curves?sweep={sweep}&cells=0,1,2&by=trial&key=train/loss")
    lines = page.locator("#drawing svg .mark-line path")
    expect(lines.first).to_be_visible()
    zoomed = "() => document.querySelector('#drawing svg .role-axis-label').textContent"
    before = page.evaluate(zoomed)
    box = page.locator("#drawing svg").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 150)
    page.keyboard.down("Control")
    page.mouse.wheel(0, -600)
    page.keyboard.up("Control")
    page.wait_for_function(f"({zoomed})() !== {before!r}")
    within = page.evaluate(zoomed)
    stage.report(order, 4, 150)
    page.clock.run_for(3_100)
    expect(page.locator("#curves tbody")).to_contain_text("150")
    assert page.evaluate(zoomed) == within
    page.get_by_label("Smoothing").select_option("0.8")
    page.get_by_label("Scale", exact=True).select_option("log")
    page.get_by_label("over").select_option("seconds")
    page.get_by_role("button", name="Draw").click()
    expect(page.locator("#curves")).to_contain_text("debiased")
    expect(lines.first).to_be_visible()
    page.clock.resume()
    shoot(page, tmp_path, "curves")
