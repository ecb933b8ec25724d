"""The pages in Chromium: accessible, drawn under the policy in force, current without a reload."""

import json
import re
import time
from html import unescape
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from fastapi import FastAPI
from playwright.sync_api import Browser, BrowserContext, Page, expect
from playwright.sync_api import TimeoutError as PageTimeout

from benchmarks.sweep_of import Shape, body
from dashboards import catalog, rendering
from orchestrator.host.identity import ensure_identity
from orchestrator.publish.formats import render
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from orchestrator.views.accounts import Role, Scope
from orchestrator.views.operations import Node, ProcessUsage, SlotReport
from orchestrator.views.pages import TagChange
from tests.dashboards.conftest import PATIENCE, Watched
from tests.dashboards.stage import DRAWN_SPEC, SMALL_SPEC, SPEC, Stage
from tests.inline_conductor import ran
from tests.publish import shapes
from workers.figures.arrays import packed

pytestmark = pytest.mark.browser

SIZES: Final = "target-size"
"""WCAG 2.2: a target is 24 pixels wide and high, or has as much room around it. Axe checks it only on request."""
ALL: Final[dict[str, Any]] = {"resultTypes": ["violations"], "rules": {SIZES: {"enabled": True}}}
COLOURS: Final = {**ALL, "runOnly": ["color-contrast"]}
ON_A_PHONE: Final = {**ALL, "runOnly": [SIZES]}
RUN: Final = "([theirs, options]) => axe.run({include: ['html'], exclude: [theirs]}, options)"
QUERIES: Final = packed({
    "query": np.arange(600), "class": np.arange(600) // 12, "predicted": np.arange(600) // 12 - np.arange(600) % 5 // 3,
    "checkpoint": np.array("best"), "data": np.array(""), "names": np.array([f"<b>Bird {n}</b>" for n in range(50)]),
})  # fmt: skip
"""The scores of 600 queries of 50 classes."""
FITS: Final = "() => document.documentElement.scrollWidth <= innerWidth"


@pytest.fixture
def sweep(stage: Stage) -> int:
    """A sweep in the middle: 17 trials finished, two failed, one diverged, one runs."""
    number = stage.submit(SPEC)
    for at in range(20):
        if at in (4, 7):
            stage.fail()
        else:
            stage.finish(diverged=at == 5)
    stage.start(0.5)
    stage.settle()
    return number


def occupy(stage: Stage) -> None:
    """A node with a slot that trains."""
    usage = ProcessUsage(
        memory_bytes=3 * 2**30, cpus=1.7, machine_memory_bytes=2**33, machine_memory_free_bytes=2**31, machine_cpus=4,
        machine_load=2.5,
    )  # fmt: skip
    attempt = stage.start(0.5).attempt
    stage.writer.capacity.note_nodes([Node("a" * 20, "lab-3", {"CPU": 4.0, "memory": 2.0**33})])
    name = f"slot:2:0:0:0a1b2c3d:{'a' * 12}:"
    stage.writer.capacity.note_slots([SlotReport(name, "a" * 12, "lab-3", {"CPU": 2.0}, attempt, usage)])


def fits(page: Page) -> bool:
    """Whether nothing is wider than the window, once figures have followed a change of its size."""
    try:
        page.wait_for_function(FITS, timeout=20_000)
    except PageTimeout:
        return False
    return True


class Viewer:
    """Looks at pages on a desk in light and dark, and on a phone, and notes in `wrong` what axe or a reader misses."""

    def __init__(self, context: BrowserContext) -> None:
        self.page, self.wrong = context.new_page(), list[Any]()

    def look(self, path: str, drawn: str = "", *, axe: bool = True, theirs: str = "#nothing") -> None:
        page = self.page
        page.set_viewport_size({"width": 1280, "height": 720})
        page.emulate_media(color_scheme="light")
        page.goto(path)
        if drawn:
            expect(page.locator(drawn).first).to_be_visible()
        if not fits(page):
            self.wrong.append((path, "is wider than a desk's window"))
        if axe:
            page.evaluate(Axe().axe_script)
        for scheme, width, options in (("light", 1280, ALL), ("dark", 1280, COLOURS), ("dark", 390, ON_A_PHONE)):
            page.emulate_media(color_scheme=scheme)
            page.set_viewport_size({"width": width, "height": 844})
            found = page.evaluate(RUN, [theirs, options])["violations"] if axe else []
            self.wrong.extend((path, scheme, one["id"], node["target"]) for one in found for node in one["nodes"])
        if not fits(page):
            self.wrong.append((path, "is wider than a phone"))


def test_pages_are_accessible_and_fit(
    context: BrowserContext, stage: Stage, sweep: int, site: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalog, "GUIDE_FOLDER", site)
    stage.service.annotations.put(("sweep", sweep, 0), "", TagChange(["paper", "wip"]), None)
    stage.resolve(sweep)
    stage.service.people.add_user("ada", Role.MEMBER, "main")
    for name in ("laptop", "desk"):
        token = stage.service.people.tokens.add("ada", name, Scope.READ, 30)
    stage.service.people.tokens.revoke(token.id)
    stage.store.shares.add(sweep, 30, "ada")
    occupy(stage)
    kept = stage.store.artifacts.of_trial(1)
    assert kept is not None
    (settings.storage / kept.folder).mkdir(parents=True)
    (settings.storage / kept.folder / "queries.npz").write_bytes(QUERIES)
    other = stage.submit(SMALL_SPEC)
    viewer = Viewer(context)
    for path in (
        "/", f"/sweeps/{sweep}", f"/sweeps/{sweep}/cells/0", f"/sweeps/{sweep}/storage", "/trials/40",
        f"/sweeps/{sweep}/statistics",
        f"/sweeps/{sweep}/extend?compare.loss[0]=contrastive&tune.regularizer.eta[0]=0.1&repeat.seed[0]=3",
        "/compare?trial=1&trial=5", f"/compare?cell={sweep}/0&cell={sweep}/4", f"/compare?sweep={sweep}&sweep={other}",
        "/submit?preset=digits", "/reproduction", "/reproduction/ISA?status=not+run", "/catalog",
        "/catalog/loss/triplet",
        "/cluster", "/people", "/tokens?user=ada", "/login", f"/sweeps/{sweep}/shares",
    ):  # fmt: skip
        viewer.look(path)
    viewer.look("/docs", ".opblock", theirs="#reference")
    viewer.look("/docs/guide/", theirs=".sidebar-drawer, .highlight, .announcement")
    for trial in (1, 5, 21):
        viewer.look(f"/trials/{trial}", "#drawing svg")
    viewer.look("/trials/1/classes", "#drawing svg")
    viewer.look(f"/curves?sweep={sweep}&key=train/loss&key=validation/map@r", "#drawing svg")
    for plot in ("parallel", "slice", "heat", "history", "distribution"):
        viewer.look(f"/sweeps/{sweep}/trials?sort=-score&plot={plot}", "#plot svg", axe=plot == "parallel")
    assert viewer.wrong == []


@pytest.mark.soak
def test_pages_of_10_000_trials_are_accessible_and_fit(
    context: BrowserContext, service: Service, settings: Settings
) -> None:
    """Of a sweep that runs, with 600 trials finished."""
    inline = settings.model_copy(update={"engine": "inline", "train": "benchmarks.instant:train", "mlflow_url": None})
    sweep = ran(service, inline, body(Shape(10, 100, 10)), orders=600)
    viewer = Viewer(context)
    for path in ("/", f"/sweeps/{sweep}", f"/sweeps/{sweep}/cells/0", f"/sweeps/{sweep}/extend"):
        viewer.look(path)
    viewer.look(f"/curves?sweep={sweep}&by=candidate", "#drawing svg")
    for plot in ("scatter", "heat", "slice", "parallel", "history", "distribution"):
        viewer.look(f"/sweeps/{sweep}/trials?sort=-score&plot={plot}", "#plot svg", axe=False)
    viewer.look(f"/trials?of=candidates&sort=-score&where=sweep:{sweep}&group=lr")
    assert viewer.wrong == []


def test_a_sweep_keeps_itself_current_and_a_person_undisturbed(
    context: BrowserContext, sweep: int, stage: Stage
) -> None:
    page = context.new_page()
    page.clock.install()
    page.goto(f"/sweeps/{sweep}?heat=state")
    expect(page.locator("#waits")).to_contain_text("wait for a slot: 1 train")
    expect(page.locator(".metricsweep-table td.state-failed").first).to_be_visible()
    assert page.locator("#problems .problem").count() == 2, "two that failed alike, and a divergence"
    page.get_by_label("choose cell triplet · none").check()
    page.evaluate("window.kept = document.querySelector('#spec-posted')")
    page.locator("#spec-posted summary").click()
    group = page.locator("details.group").first
    group.locator("summary").first.click()
    page.locator("#cell-11 a.sq").first.focus()
    square = "document.activeElement.getBoundingClientRect().top"
    seen_at = page.evaluate(square)
    stage.finish()
    stage.fail(message="OSError: another one")
    page.clock.run_for(3_100)
    expect(page.locator("#problems")).to_contain_text("OSError: another one")
    expect(page.locator("#progress .tally")).to_contain_text("18 finished")
    assert page.evaluate("window.kept === document.querySelector('#spec-posted') && window.kept.open")
    assert page.evaluate("document.activeElement.closest('#cell-11') !== null")
    assert abs(page.evaluate(square) - seen_at) < 2, "though another problem stands above"
    expect(group).not_to_have_attribute("open", "")
    expect(page.locator("article.cell input:checked")).to_have_count(1)
    assert page.evaluate("location.search") == "?heat=state"
    page.evaluate("() => { window.fetch = () => Promise.reject(new TypeError('away')) }")
    page.clock.run_for(61_000)  # a page looks by itself after a minute without a message of its stream
    expect(page.get_by_role("status")).to_contain_text("does not answer")
    expect(page.locator("#grid a.sq").last).to_be_visible()


def test_an_ended_sweep_has_its_last_figures_and_asks_no_more(context: BrowserContext, stage: Stage) -> None:
    sweep = stage.submit(DRAWN_SPEC)
    stage.finish(times=2)
    page = context.new_page()
    page.clock.install()
    page.goto(f"/sweeps/{sweep}")
    for number, marks in ((1, ".mark-rect path"), (2, ".mark-line path")):
        page.locator(f"#figure-{number}").scroll_into_view_if_needed()
        expect(page.locator(f"#paper-{number} svg")).to_be_visible()
        assert page.locator(f"#paper-{number} svg {marks}").count() >= 1
    expect(page.locator("#paper-2 svg")).to_contain_text("Incomplete: 1 of 2 points are finished.")
    stage.finish(times=2)
    stage.settle()
    page.clock.run_for(3_100)
    expect(page.locator(".heading .badge").first).to_have_text("finished")
    expect(page.locator("#paper-2 svg")).not_to_contain_text("Incomplete")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))

    def asks(milliseconds: int) -> bool:
        asked.clear()
        page.clock.run_for(milliseconds)
        page.wait_for_timeout(500)  # an answer on its way may cause another request
        return any("/sweeps/" in url for url in asked)

    # A change that comes late makes it refresh once more, on a busy machine several times; then it is quiet.
    assert not all(asks(120_000) for _ in range(6))
    page.goto("/login")
    assert [url for url in asked if "/sweeps/" in url] == []


def test_a_running_trial_draws_its_new_points(context: BrowserContext, stage: Stage) -> None:
    stage.submit(SMALL_SPEC)
    order = stage.start(0.3)
    page = context.new_page()
    page.goto("/trials/1")
    lines = page.locator("#drawing svg .mark-line path")
    expect(lines).to_have_count(7)
    expect(page.locator("#last-values")).not_to_have_attribute("open", "")
    before = lines.first.get_attribute("d")
    stage.report(order, 4, 40)
    expect(page.locator(".steps")).to_contain_text("step 40 of 100")
    expect(lines.first).not_to_have_attribute("d", before or "")
    stage.finish(order)
    expect(page.locator("#metrics table")).to_contain_text("map@r")
    assert page.locator("#main[data-refresh]").count() == 0


def test_a_person_cancels_and_retries(context: BrowserContext, sweep: int, stage: Stage) -> None:
    page = context.new_page()
    page.goto(f"/sweeps/{sweep}")
    expect(page.get_by_role("button", name="Cancel the sweep")).to_be_hidden()
    page.get_by_text("Cancel…").click()
    page.get_by_role("button", name="Cancel the sweep").click()
    expect(page.get_by_role("status")).to_contain_text("cancellation is requested")
    stage.obey()
    stage.settle()
    expect(page.locator(".heading .badge").first).to_have_text("cancelled")
    expect(page.get_by_role("status")).to_be_hidden()
    page.locator("#problems").get_by_role("link", name="trial 5", exact=True).click()
    expect(page.locator("#error")).to_contain_text('<script>alert("no such class")</script>')
    page.get_by_text("Retry…").click()
    page.get_by_role("button", name="Retry the trial").click()
    expect(page).to_have_url(re.compile("/trials/5$"))
    stage.obey()
    expect(page.locator(".heading .badge").first).to_have_text("waiting")


def test_a_person_logs_in_by_a_token_and_out_also_without_scripts(
    browser: Browser, url: str, settings: Settings, stage: Stage
) -> None:
    sweep = stage.submit(SMALL_SPEC)
    stage.finish()
    for scripts in (True, False):
        context = browser.new_context(base_url=url, java_script_enabled=scripts)
        page = context.new_page()
        page.goto("/?name=x")
        page.get_by_label("Token").fill("wrong")
        page.get_by_role("button", name="Log in").click()
        expect(page.get_by_role("alert")).to_contain_text("not the token")
        page.get_by_label("Token").fill(ensure_identity(settings.resolved_home).secret)
        page.keyboard.press("Enter")
        expect(page).to_have_url(f"{url}/?name=x")
        if not scripts:
            page.goto("/trials/1")
            expect(page.locator("#last-values table")).to_be_visible()
            page.goto(f"/sweeps/{sweep}")
            page.get_by_text("Cancel…").click()
            with page.expect_navigation():
                page.get_by_role("button", name="Cancel the sweep").click()
            assert [request.kind for request in stage.store.requests.pending()] == ["cancel"]
        page.get_by_role("button", name="Log out").click()
        expect(page).to_have_url(f"{url}/login")
        page.goto("/")
        expect(page).to_have_url(f"{url}/login?next=%2F")
        context.close()


def test_a_visitor_opens_a_shared_link(browser: Browser, context: BrowserContext, stage: Stage, url: str) -> None:
    """The owner makes the link on the sweep's page; the visitor's page keeps itself current and has no forms."""
    sweep = stage.submit(DRAWN_SPEC)
    stage.finish(times=2)
    page = context.new_page()
    page.goto(f"/sweeps/{sweep}")
    page.get_by_role("link", name="Share").click()
    page.get_by_role("button", name="Make it").click()
    link = page.locator("#secret").inner_text()
    theirs = browser.new_context()
    theirs.set_default_timeout(PATIENCE)
    watched, visitor = Watched(theirs, url), theirs.new_page()
    visitor.goto(link)
    assert visitor.url == f"{url}/sweeps/{sweep}"
    expect(visitor.locator("header.site")).to_contain_text("read-only view")
    expect(visitor.locator(".metricsweep-table").first).to_be_visible()
    expect(visitor.locator("#paper-1 svg")).to_be_visible()
    assert visitor.locator("form[method=post], details.ask").count() == 0
    done = visitor.locator("#progress .tally")
    before = done.inner_text()
    stage.finish()
    expect(done).not_to_have_text(before)
    visitor.get_by_role("link", name="Statistics").click()
    expect(visitor.locator("h1")).to_have_text("Statistics")
    for path in ("/trials/1", f"/sweeps/{sweep}/trials?plot=scatter", f"/curves?sweep={sweep}"):
        visitor.goto(f"{url}{path}")
        expect(visitor.locator(".drawing svg").first).to_be_visible()
    assert watched.complaints == []
    page.locator("details.ask summary").click()
    page.get_by_role("button", name="Revoke").click()
    expect(page.get_by_text("No links.")).to_be_visible()
    visitor.goto(f"{url}/sweeps/{sweep}")
    expect(visitor.locator("main")).to_contain_text("expired or was revoked")
    theirs.close()


def test_pages_of_a_browser_share_a_stream_and_show_what_it_tells(
    context: BrowserContext, stage: Stage, app: FastAPI
) -> None:
    """A page asks only after an event of its stream, and leaves a half-typed field alone."""
    sweep, streams = stage.submit(SMALL_SPEC), app.state.streams
    pages = [context.new_page() for _ in range(3)]
    looks: list[str] = []
    for page in pages:
        page.on("request", lambda request: request.resource_type == "fetch" and looks.append(request.url))
        page.goto(f"/sweeps/{sweep}")
        expect(page.locator("#main")).to_have_attribute("data-live", "")
    assert streams._open.total() == 1
    stage.writer.sweeps.prioritize(sweep, 42)
    for page in pages:
        page.get_by_text("Priority…").click()
        expect(page.locator("#priority-value")).to_have_value("42")
    pages[0].locator("#priority-value").fill("17")  # half typed
    stage.finish()
    stage.writer.sweeps.prioritize(sweep, 43)
    expect(pages[1].locator("#priority-value")).to_have_value("43")
    pages[0].bring_to_front()
    expect(pages[0].locator("#priority-value")).to_have_value("17")
    assert looks
    for page in pages:
        page.close()
    deadline = time.monotonic() + 120
    while streams._open:
        assert time.monotonic() < deadline, "the last page has gone, its stream has not"
        time.sleep(0.05)


def test_where_there_are_no_streams_pages_poll(context: BrowserContext, stage: Stage) -> None:
    sweep = stage.submit(SMALL_SPEC)
    page = context.new_page()
    page.add_init_script("delete window.SharedWorker")
    page.goto(f"/sweeps/{sweep}")
    stage.writer.sweeps.prioritize(sweep, 42)
    page.get_by_text("Priority…").click()
    expect(page.locator("#priority-value")).to_have_value("42")
    assert page.locator("#main").get_attribute("data-live") is None


def test_curves_stay_zoomed_while_points_come(context: BrowserContext, sweep: int, stage: Stage) -> None:
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
    bands = page.locator("#drawing svg .mark-area path")
    page.goto(f"/curves?sweep={sweep}&key=train/loss")
    expect(bands).not_to_have_count(0)
    page.get_by_text("Curves drawn:").click()
    page.get_by_role("checkbox", name="validation/map@r").check()
    page.get_by_label("Bands").select_option("hidden")
    page.get_by_role("button", name="Draw").click()
    expect(page.locator("#drawing svg .role-title-text")).to_have_text(["Loss", "MAP@R (validation)"])
    expect(bands).to_have_count(0)
    assert fits(page)


def test_a_view_is_its_address(context: BrowserContext, sweep: int) -> None:
    page = context.new_page()
    page.set_viewport_size({"width": 1900, "height": 900})
    page.goto(f"/sweeps/{sweep}/trials?sort=-score&limit=7")
    page.get_by_role("link", name="Slice").click()
    page.get_by_label("group by").select_option("regularizer")
    page.get_by_role("button", name="Draw").click()
    page.get_by_text("Metrics shown:").click()
    page.get_by_role("checkbox", name="nmi", exact=True).uncheck()
    page.get_by_role("button", name="Show").click()
    page.get_by_label("Filter").fill("regularizer:sec,l2")
    page.get_by_role("button", name="Find").click()
    page.get_by_label("metric").select_option("map@r")
    page.get_by_role("button", name="Draw").click()
    for _ in range(2):
        expect(page.locator("#plot svg")).to_contain_text("regularizer")
        expect(page.locator("#plot-note")).to_contain_text("map@r over eta")
        expect(page.locator("tr[data-trial]")).to_have_count(7)
        assert page.get_by_label("Filter").input_value() == "regularizer:sec,l2"
        assert not page.get_by_role("columnheader", name="nmi", exact=True).count()
        assert page.locator("table.found").evaluate("table => table.clientWidth") > 1800
        page.reload()


def test_plots_are_linked_with_the_rows_and_a_listing_is_printed(context: BrowserContext, sweep: int) -> None:
    page = context.new_page()
    page.set_viewport_size({"width": 1280, "height": 1000})
    page.goto(f"/sweeps/{sweep}/trials?where=loss:triplet&sort=-score&plot=norms")
    points = "#plot svg .mark-symbol.role-mark path:not([stroke='#8b939c'])"
    expect(page.locator(points)).to_have_count(17)
    page.locator("tr[data-trial] input").first.check()
    expect(page.locator("#chosen")).to_have_text("1 chosen")
    expect(page.locator(f"{points}[opacity='0.12']")).not_to_have_count(0)
    frame = page.locator("#plot svg").bounding_box()
    assert frame is not None
    page.mouse.move(frame["x"] + 70, frame["y"] + 10)
    page.mouse.down()
    page.mouse.move(frame["x"] + 560, frame["y"] + 290, steps=5)
    page.mouse.up()
    expect(page.locator("#plot-note")).to_contain_text("in the frame")
    assert page.locator("tr.framed").count() > 3
    assert page.locator("th[aria-sort=descending]").inner_text().startswith("score")
    page.set_viewport_size({"width": 718, "height": 1000})  # a page of A4
    page.emulate_media(media="print", color_scheme="dark")
    for left_out in ("header.site", ".crumbs", ".finder", ".tabs", ".pages", "tr[data-trial] input"):
        expect(page.locator(left_out).first).to_be_hidden()
    expect(page.locator("tr[data-trial]").first).to_be_visible()
    assert page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--text')") == "#1d2125"
    # Chromium makes what is printed smaller until it fits, to a half at the least.
    assert page.evaluate("document.documentElement.scrollWidth < 2 * innerWidth")


def test_ticked_rows_and_cells_go_side_by_side(context: BrowserContext, sweep: int) -> None:
    page = context.new_page()
    finished = f"/sweeps/{sweep}/trials?where=state:finished -state:diverged&sort=trial"
    for button, cells, rows in (("Compare the chosen", False, (0, 12)), ("Compare their cells", True, (0, 1, 3))):
        page.goto(finished)
        for at in rows:  # of the second three, two are of one cell
            page.locator("tr[data-trial] input").nth(at).check()
        page.get_by_role("button", name=button).click()
        expect(page.locator("table.compared thead th")).to_have_count(3)
        assert ("of=cells" in page.url) is cells
    page.goto(f"/sweeps/{sweep}")
    expect(page.locator("article.cell input[type=checkbox]")).to_have_count(12)
    page.get_by_label("choose cell triplet · none").check()
    page.get_by_label("choose cell semihard · l2").check()
    page.get_by_role("button", name="Compare the chosen cells").click()
    expect(page).to_have_url(re.compile(rf"/compare\?cell={sweep}(%2F|/)0&cell={sweep}(%2F|/)4$"))
    page.get_by_label("Add a cell").fill(f"{sweep}/11")
    page.get_by_role("button", name="Add").click()
    expect(page.locator("table.compared thead th")).to_have_count(4)


def test_a_formula_is_drawn(context: BrowserContext) -> None:
    page = context.new_page()
    page.goto("/catalog/loss/multi_similarity")
    expect(page.locator(".formula math")).to_be_visible()
    # A fraction that is drawn stands higher than a line of text; one that is not known would be a row of letters.
    assert page.evaluate("document.querySelector('.formula mfrac').getBoundingClientRect().height") > 25


def test_operations_are_tried(context: BrowserContext) -> None:
    page = context.new_page()
    page.goto("/docs")
    operation = page.locator("#operations-sweeps-sweeps_v1_sweeps_get")
    operation.get_by_role("button").first.click()
    operation.get_by_role("button", name="Execute").click()
    expect(operation.locator(".live-responses-table .response-col_status").last).to_contain_text("200")
    expect(page.get_by_role("link", name="API", exact=True)).to_have_attribute("href", "/docs")


def test_the_guide_is_read_and_searched(context: BrowserContext, site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog, "GUIDE_FOLDER", site)
    page = context.new_page()
    page.goto("/docs/guide")
    page.get_by_role("link", name="Statistics", exact=True).click()
    expect(page.get_by_role("heading", name="Statistics")).to_be_visible()
    page.get_by_label("Search").first.fill("spherical")
    page.keyboard.press("Enter")
    expect(page.locator("#search-results li").first).to_be_visible()
    page.goto("/docs/guide/reference/python.html")
    expect(page.locator("dt", has_text="metricsweep.connect")).to_be_visible()


def test_the_cluster_keeps_itself_current(context: BrowserContext, stage: Stage) -> None:
    stage.submit(SPEC)
    occupy(stage)
    stage.submit(SMALL_SPEC, begin=False)
    page = context.new_page()
    page.clock.install()
    page.goto("/cluster")
    expect(page.locator("#slots tbody tr")).to_have_count(1)
    expect(page.locator("#queue tbody tr")).to_have_count(2)
    stage.begin()
    page.clock.run_for(3_100)
    expect(page.locator("#queue tbody")).not_to_contain_text("takes its sweep up")
    page.get_by_role("navigation", name="Site").get_by_role("link", name="Cluster").focus()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement !== document.body")


READ = """() => [...document.querySelectorAll("table")].map((table) => {
  const box = (one) => one.getBoundingClientRect();
  const within = (inner, outer) => inner.left >= outer.left - 0.5 && inner.right <= outer.right + 0.5
    && inner.top >= outer.top - 0.5 && inner.bottom <= outer.bottom + 0.5;
  const overlap = (one, two) => one.right > two.left + 0.5 && two.right > one.left + 0.5;
  const bare = (one) => {
    const copy = one.cloneNode(true);
    copy.querySelectorAll("sup, .std").forEach((part) => part.remove());
    return copy.textContent.trim();
  };
  const beside = [...table.querySelectorAll("tbody th")];
  const over = [...table.querySelectorAll("thead th")];
  return [...table.querySelectorAll("tbody td")].map((cell) => {
    const outer = box(cell), x = outer.left + 5, y = (outer.top + outer.bottom) / 2;
    const rows = beside.filter((one) => box(one).top <= y && y <= box(one).bottom);
    const columns = over.filter((one) => box(one).left <= x && x <= box(one).right);
    const signs = [...cell.querySelectorAll("sup")];
    return {
      text: bare(cell),
      headings: rows.sort((a, b) => box(a).left - box(b).left).map((one) => one.textContent),
      titles: columns.sort((a, b) => box(a).top - box(b).top).map((one) => one.textContent),
      std: cell.querySelector(".std")?.textContent ?? null,
      bold: Boolean(cell.querySelector("strong")),
      signs: signs.map((one) => one.firstChild.textContent).join(""),
      outside: signs.some((one) => !within(box(one), outer)),
      overprinted: signs.some((one, at) => signs.slice(at + 1).some((two) => overlap(box(one), box(two)))),
    };
  });
})"""


def over(panel: dict, at: int) -> list[str]:
    """The headings above a column, its title last."""
    found = []
    for level in panel["groups"]:
        texts = [one["text"] for one in level for _ in range(one["span"])]
        found.append(texts[at])
    titles = [column["title"] for column in panel["columns"]]
    return [*found, titles[at]] if not panel["groups"] or any(titles) else found


def test_chromium_shows_each_number_with_its_row_and_column_headings(browser: Browser) -> None:
    style = (rendering.static("style.css") or b"").decode()
    page = browser.new_page()
    wrong: list[object] = []
    signs = set()
    for name, table in shapes.tables().items():
        page.set_content(f"<style>{style}</style><main>{render(table, 'html').content.decode()}</main>")
        expected = json.loads(render(table, "json").content)
        for panel, shown in zip(expected["panels"], page.evaluate(READ), strict=True):
            places = [
                (row["headings"], at, cell)
                for row in panel["rows"]
                for at, cell in enumerate(row["cells"])
                if cell["span"]
            ]
            assert len(places) == len(shown), name
            for (headings, at, cell), found in zip(places, shown, strict=True):
                text = cell["text"].replace("-", "−") if cell["value"] else cell["text"]
                std = f"±{cell['std_text']}" if cell["std_text"] else None
                wanted = (headings, over(panel, at), text, std, cell["bold"])
                read = tuple(found[key] for key in ("headings", "titles", "text", "std", "bold"))
                wrong += [(name, wanted, read)] if wanted != read else []
                wrong += [(name, headings, found)] if found["outside"] or found["overprinted"] else []
                signs.add(unescape(found["signs"]))
    page.close()
    assert wrong == []
    assert len({sign for sign in signs if len(sign) > 1}) > 2, signs
