"""The pages in Chromium: drawn under the policy in force, current without a reload, usable without scripts."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from fastapi import FastAPI
from playwright.sync_api import Browser, BrowserContext, Page, expect
from pydantic import SecretStr

from api.main import create_app
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from tests.dashboards.stage import DRAWN_SPEC, SMALL_SPEC, SPEC, Stage
from tests.served_app import served

pytestmark = pytest.mark.browser


@pytest.fixture
def busy(stage: Stage) -> int:
    """A sweep in the middle: some trials finished, one failed, one diverged, one runs."""
    sweep = stage.submit(SPEC)
    for number in range(12):
        if number == 4:
            stage.fail()
        else:
            stage.finish(diverged=number == 5)
    stage.start(0.5)
    stage.settle()
    return sweep


def tally(page: Page, kind: str) -> str:
    return page.locator("#progress .tally li", has_text=kind).inner_text()


@pytest.mark.parametrize("width", [1280, 420])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_fit_and_curves_are_drawn(
    context: BrowserContext, busy: int, width: int, scheme: str, tmp_path: Path
) -> None:
    page = context.new_page()
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    for path in ("/", f"/sweeps/{busy}", "/trials/1", "/trials/5", "/trials/6", "/trials/13", "/trials/40", "/login"):
        page.goto(path)
        drawn = path.startswith("/trials/") and path != "/trials/40"
        expect(page.locator("#drawing svg")).to_have_count(1 if drawn else 0)
        page.screenshot(path=tmp_path / f"{path.strip('/').replace('/', '-')}-{width}-{scheme}.png", full_page=True)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
    page.goto("/trials/1")
    assert page.locator("#drawing svg .mark-line path").count() == 7
    expect(page.locator("#last-values")).not_to_have_attribute("open", "")


def test_a_sweep_keeps_itself_current_and_a_person_undisturbed(
    context: BrowserContext, busy: int, stage: Stage
) -> None:
    page = context.new_page()
    page.clock.install()
    page.goto(f"/sweeps/{busy}")
    page.evaluate("window.kept = document.querySelector('#spec-posted')")
    page.locator("#spec-posted summary").click()
    page.locator("#cell-0 a.sq").first.focus()
    square = "document.activeElement.getBoundingClientRect().top"
    seen_at = page.evaluate(square)
    assert "10 finished" in " ".join(tally(page, "finished").split())
    stage.finish()
    stage.fail(message="OSError: another one")
    page.clock.run_for(3_100)
    expect(page.locator("#problems")).to_contain_text("OSError: another one")
    assert "11 finished" in " ".join(tally(page, "finished").split())
    assert page.evaluate("window.kept === document.querySelector('#spec-posted') && window.kept.open")
    assert page.evaluate("document.activeElement.closest('#cell-0') !== null")
    assert abs(page.evaluate(square) - seen_at) < 2  # though a problem more stands above


def test_a_page_that_shows_the_end_asks_no_more(context: BrowserContext, stage: Stage) -> None:
    sweep = stage.submit(SMALL_SPEC)
    page = context.new_page()
    page.clock.install()
    page.goto(f"/sweeps/{sweep}")
    for _ in range(4):
        stage.finish()
    stage.settle()
    page.clock.run_for(3_100)
    expect(page.locator(".heading .badge").first).to_have_text("finished")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.clock.run_for(120_000)
    page.goto("/")
    assert [url for url in asked if "/sweeps/" in url] == []


def test_a_running_trial_draws_its_new_points(context: BrowserContext, stage: Stage) -> None:
    stage.submit(SMALL_SPEC)
    order = stage.start(0.3)
    page = context.new_page()
    page.goto("/trials/1")
    line = page.locator("#drawing svg .mark-line path").first
    expect(line).to_be_visible()
    before = line.get_attribute("d")
    stage.report(order, 4, 40)
    expect(page.locator(".steps")).to_contain_text("step 40 of 100")
    expect(line).not_to_have_attribute("d", before or "")
    stage.finish(order)
    expect(page.locator("#metrics table")).to_contain_text("map@r")
    assert page.locator("#main[data-refresh]").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_sweep_draws_its_figures_and_the_last_of_them(
    context: BrowserContext, stage: Stage, scheme: str, tmp_path: Path
) -> None:
    sweep = stage.submit(DRAWN_SPEC)
    for _ in range(2):
        stage.finish()
    page = context.new_page()
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    page.set_viewport_size({"width": 420, "height": 900})
    page.clock.install()
    page.goto(f"/sweeps/{sweep}")
    for number, marks in ((1, ".mark-rect path"), (2, ".mark-line path")):
        page.locator(f"#figure-{number}").scroll_into_view_if_needed()
        expect(page.locator(f"#paper-{number} svg")).to_be_visible()
        assert page.locator(f"#paper-{number} svg {marks}").count() >= 1
    expect(page.locator("#paper-2 svg")).to_contain_text("Incomplete: 1 of 2 points are finished.")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for _ in range(2):
        stage.finish()
    stage.settle()
    page.clock.run_for(3_100)
    expect(page.locator(".heading .badge").first).to_have_text("finished")
    expect(page.locator("#paper-2 svg")).not_to_contain_text("Incomplete")
    page.screenshot(path=tmp_path / f"figures-{scheme}.png", full_page=True)


def test_a_person_cancels_and_retries(context: BrowserContext, busy: int, stage: Stage) -> None:
    page = context.new_page()
    page.set_viewport_size({"width": 420, "height": 800})
    page.goto(f"/sweeps/{busy}")
    expect(page.get_by_role("button", name="Cancel the sweep")).to_be_hidden()
    page.get_by_text("Cancel…").click()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.get_by_role("button", name="Cancel the sweep").click()
    expect(page.get_by_role("status")).to_contain_text("cancellation is asked for")
    stage.obey()
    stage.settle()
    expect(page.locator(".heading .badge").first).to_have_text("cancelled")
    expect(page.get_by_role("status")).to_be_hidden()
    page.get_by_text("Retry…").click()
    page.get_by_role("button", name="Retry the sweep").click()
    stage.obey()
    expect(page.locator(".heading .badge").first).to_have_text("running")


def test_one_trial_is_retried(context: BrowserContext, busy: int, stage: Stage) -> None:
    page = context.new_page()
    page.goto(f"/sweeps/{busy}")
    page.locator("#problems").get_by_role("link", name="trial 5", exact=True).click()
    expect(page.locator("#error")).to_contain_text('<script>alert("no such class")</script>')
    page.get_by_text("Retry…").click()
    page.get_by_role("button", name="Retry the trial").click()
    expect(page).to_have_url(page.url.partition("/trials")[0] + "/trials/5")
    stage.obey()
    expect(page.locator(".heading .badge").first).to_have_text("waiting")


def test_pages_work_without_scripts(
    browser: Browser, address: str, logged_in: Callable[[BrowserContext], BrowserContext], busy: int, stage: Stage
) -> None:
    context = logged_in(browser.new_context(base_url=address, java_script_enabled=False))
    page = context.new_page()
    page.goto("/trials/1")
    expect(page.locator("#last-values table")).to_be_visible()
    expect(page.locator("#curves")).to_contain_text("without it, here is where they end")
    page.goto("/?name=digits&state=running")
    page.get_by_role("link", name="sec-on-digits").click()
    assert page.locator("meta[http-equiv=refresh]").get_attribute("content") == "10"
    page.get_by_text("Cancel…").click()
    page.get_by_role("button", name="Cancel the sweep").click()
    assert [request.kind for request in stage.store.requests.pending()] == ["cancel"]
    context.close()


def test_a_person_logs_in_once_and_out(browser: Browser, service: Service, settings: Settings) -> None:
    guarded = settings.model_copy(update={"token": SecretStr("a-token-of-the-tests")})
    with served(create_app(service, guarded)) as address:
        context = browser.new_context(base_url=address)
        page = context.new_page()
        page.goto("/?name=x")
        page.get_by_label("Token").fill("wrong")
        page.get_by_role("button", name="Log in").click()
        expect(page.get_by_role("alert")).to_contain_text("not the token")
        page.get_by_label("Token").fill("a-token-of-the-tests")
        page.keyboard.press("Enter")
        expect(page).to_have_url(f"{address}/?name=x")
        expect(page.get_by_role("heading", name="Sweeps")).to_be_visible()
        page.get_by_role("button", name="Log out").click()
        expect(page).to_have_url(f"{address}/login")
        page.goto("/")
        expect(page).to_have_url(f"{address}/login?next=%2F")
        context.close()


def test_a_server_that_is_away_is_said(context: BrowserContext, busy: int) -> None:
    page = context.new_page()
    page.clock.install()
    page.goto(f"/sweeps/{busy}")
    page.evaluate("() => { window.fetch = () => Promise.reject(new TypeError('away')) }")
    page.clock.run_for(61_000)  # as long as a page waits of which its stream tells nothing
    expect(page.get_by_role("status")).to_contain_text("does not answer")
    expect(page.locator("#grid a.sq").first).to_be_visible()


def test_pages_of_a_browser_share_a_stream_and_show_what_it_tells(
    context: BrowserContext, busy: int, stage: Stage, application: FastAPI
) -> None:
    """No page asks before it is told; a hidden one has no stream, and looks once when it is seen again."""
    feed = application.state.feed
    pages = [context.new_page() for _ in range(3)]
    looks: list[str] = []
    for page in pages:
        page.on(
            "request",
            lambda request: request.resource_type == "fetch" and looks.append(request.url),
        )
        page.goto(f"/sweeps/{busy}")
        expect(page.locator("#main")).to_have_attribute("data-live", "")
    assert feed.streams == 1
    stage.writer.sweeps.prioritize(busy, 42)
    for page in pages:
        page.get_by_text("Priority…").click()
        expect(page.locator("#priority-value")).to_have_value("42")
    pages[0].locator("#priority-value").fill("17")  # half typed
    stage.finish()
    stage.writer.sweeps.prioritize(busy, 43)
    expect(pages[1].locator("#priority-value")).to_have_value("43")
    pages[0].bring_to_front()
    expect(pages[0].locator("#priority-value")).to_have_value("17")
    assert looks
    for page in pages:
        page.close()
    deadline = time.monotonic() + 120
    while feed.streams:
        assert time.monotonic() < deadline, "the last page has gone, its stream has not"
        time.sleep(0.05)


def test_where_there_are_no_streams_pages_poll(context: BrowserContext, busy: int, stage: Stage) -> None:
    page = context.new_page()
    page.add_init_script("delete window.SharedWorker")
    page.goto(f"/sweeps/{busy}")
    stage.writer.sweeps.prioritize(busy, 42)
    page.get_by_text("Priority…").click()
    expect(page.locator("#priority-value")).to_have_value("42")
    assert page.locator("#main").get_attribute("data-live") is None
