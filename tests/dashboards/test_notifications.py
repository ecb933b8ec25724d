"""Notifications of the browser: offered quietly, asked for by a click, told of ends, stalls and hindrances alone."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Playwright, expect

from tests.dashboards.chromium import launched
from tests.dashboards.stage import SMALL_SPEC, Stage

pytestmark = pytest.mark.browser

KEPT = """
const Real = window.Notification;
window.told = [];
window.Notification = class extends Real {
  constructor(title, options) {
    super(title, options);
    window.told.push([title, options.body, options.tag]);
  }
};
"""
"""The real one, whose arguments are kept: what the desktop shows of it cannot be read."""


@pytest.fixture(scope="module")
def browser(playwright: Playwright) -> Iterator[Browser]:
    whole = launched(playwright, "chromium")
    yield whole
    whole.close()


@pytest.fixture
def sweep(stage: Stage) -> int:
    number = stage.submit(SMALL_SPEC)
    stage.start(0.5)
    return number


@pytest.fixture
def opened(context: BrowserContext) -> Callable[[str], Page]:
    def make(path: str) -> Page:
        page = context.new_page()
        page.add_init_script(KEPT)
        page.goto(path)
        expect(page.locator("#main")).to_have_attribute("data-live", "")
        return page

    return make


def told(page: Page, count: int) -> list[list[str]]:
    page.wait_for_function(
        "count => window.told.length >= count", arg=count, polling=250
    )  # frames stand still behind other pages
    found: list[list[str]] = page.evaluate("window.told")
    return found


def test_a_sweep_that_was_ticked_is_told_by_hidden_pages_too(
    context: BrowserContext, opened: Callable[[str], Page], stage: Stage, sweep: int
) -> None:
    context.grant_permissions(["notifications"])
    page, other = opened(f"/sweeps/{sweep}"), opened("/")
    page.get_by_text("Notify me…").focus()
    page.keyboard.press("Enter")
    page.get_by_label("this sweep").focus()
    page.keyboard.press("Space")
    expect(page.locator("#notify [role=status]")).to_contain_text("You are told")
    page.evaluate(
        "() => { Object.defineProperty(document, 'hidden', { get: () => true });"
        " document.dispatchEvent(new Event('visibilitychange')); }"
    )
    stage.writer.capacity.note_notices({sweep: "no node has 9 CPUs"})
    assert told(page, 1)[0][:2] == [f"Sweep {sweep} four-trials", "no node has 9 CPUs"]
    stage.writer.sweeps.prioritize(sweep, 3)  # no news
    stage.writer.sweeps.fail(sweep, "no")
    assert [said for _, said, _ in told(page, 2)] == ["no node has 9 CPUs", "failed"]
    assert page.evaluate("window.told")[1][2] == told(other, 2)[1][2], "one tag: the browser shows it once"
    page.reload()
    expect(page.get_by_label("this sweep")).to_be_checked()


def test_nobody_is_asked_before_a_click_and_a_refusal_is_said(
    opened: Callable[[str], Page], stage: Stage, sweep: int
) -> None:
    page = opened(f"/sweeps/{sweep}")
    page.evaluate("() => { Notification.requestPermission = async () => (window.asked = true, 'denied'); }")
    page.get_by_text("Notify me…").click()
    assert page.evaluate("window.asked") is None
    page.get_by_label("every sweep").click()
    expect(page.locator("#notify [role=status]")).to_contain_text("told not to show")
    expect(page.get_by_label("every sweep")).not_to_be_checked()
    stage.writer.sweeps.fail(sweep, "no")
    expect(page.locator("#main")).to_have_attribute("data-state", "failed")
    assert page.evaluate("window.told") == []
