"""The page on which a sweep is submitted: checked while it is typed, completed, kept, and sent once."""

import pytest
from fastapi.testclient import TestClient
from playwright.sync_api import BrowserContext, Page, expect

from dashboards import catalog
from orchestrator.service.service import Service
from orchestrator.views.operations import DataFinding
from tests.conftest import ROOT
from tests.dashboards.markup import read
from tests.dashboards.specimens import NOW
from tests.dashboards.stage import SMALL_SPEC, Stage
from workers import catalog as catalogs

CATALOG = catalogs.load()
WRONG = SMALL_SPEC.replace("triplet", "tripplet")


def line_of(text: str, word: str) -> int:
    return next(number for number, line in enumerate(text.splitlines(), start=1) if word in line)


# Without scripts


def test_a_refused_spec_comes_back_with_its_problems_at_their_lines(http: TestClient, service: Service) -> None:
    answer = http.post("/submit", data={"spec": WRONG.replace("\n", "\r\n"), "key": "one"})
    page = read(answer.text)
    assert answer.status_code == 422
    assert f"line {line_of(WRONG, 'tripplet')}" in page.text
    assert "did you mean 'triplet'" in page.text
    assert "tripplet" in answer.text.partition("<textarea")[2].partition("</textarea>")[0]
    assert service.sweeps.page(None, None, None, 10).items == []


def test_one_key_submits_once_and_keeps_the_text(http: TestClient, service: Service) -> None:
    form = {"spec": SMALL_SPEC.replace("\n", "\r\n"), "key": "one", "priority": "3"}
    first, second = http.post("/submit", data=form), http.post("/submit", data=form)
    assert (first.status_code, second.status_code) == (303, 303)
    assert first.headers["Location"] == second.headers["Location"] == "/sweeps/1"
    kept = service.sweeps.get(1)
    assert (kept.text, kept.priority) == (SMALL_SPEC, 3)
    assert http.post("/submit", data={**form, "spec": SMALL_SPEC + "# more"}).status_code == 409


def test_another_sites_page_may_not_send_one(http: TestClient, service: Service) -> None:
    for path in ("/submit", "/submit/check"):
        answer = http.post(path, data={"spec": SMALL_SPEC, "key": "one"}, headers={"Origin": "http://evil.example"})
        assert answer.status_code == 403
    assert service.sweeps.page(None, None, None, 10).items == []


def test_a_check_says_counts_or_problems_and_stores_nothing(http: TestClient, service: Service) -> None:
    typed = {"Content-Type": "application/yaml"}
    good = http.post("/submit/check", content=SMALL_SPEC, headers=typed).json()
    assert good["problems"] == []
    assert "cells" in good["summary"][0]
    bad = http.post("/submit/check", content=WRONG, headers=typed).json()
    assert bad["problems"][0]["line"] == line_of(WRONG, "tripplet")
    broken = http.post("/submit/check", content="a: [1\nb: }", headers=typed).json()
    assert broken["problems"][0]["line"] == 2
    assert http.post("/submit/check", content="x" * (1024 * 1024 + 1), headers=typed).status_code == 413
    assert service.sweeps.page(None, None, None, 10).items == []


def test_a_sweep_is_cloned_by_its_text(http: TestClient, stage: Stage) -> None:
    sweep = stage.submit(SMALL_SPEC)
    page = http.get(f"/submit?sweep={sweep}").text
    assert "loss: [triplet" in page.partition("<textarea")[2]
    assert http.get("/submit?sweep=99").status_code == 404
    assert http.get("/submit?preset=../../secret").status_code == 404
    assert f"/submit?sweep={sweep}" in http.get(f"/sweeps/{sweep}", headers={"Accept": "text/html"}).text


# The gallery


def test_every_preset_is_in_the_gallery_with_what_it_needs() -> None:
    names = {path.relative_to(ROOT / "sweeps").with_suffix("").as_posix() for path in (ROOT / "sweeps").rglob("*.yaml")}
    shown = [preset for presets in catalog.shelves([], CATALOG).values() for preset, _ in presets]
    assert {preset.name for preset in shown} == names
    known = {entry.name for entry in CATALOG.of("dataset")}
    for preset in shown:
        assert preset.comment.get("What"), preset.name
        assert preset.comment.get("Size"), preset.name
        assert set(preset.data) <= known, preset.name
    tables = {preset.name: preset.data for preset in shown}
    assert tables["sec_t3"] == ("cars196", "cub200", "inshop", "sop")


def test_a_preset_says_which_data_the_nodes_have() -> None:
    found = [
        DataFinding(host="a", node="1", data=name, state=state, message="", inspected_at=NOW)
        for name, state in (("cub200", "ok"), ("cub200", "missing"), ("sop", "missing"))
    ]
    data = {preset.name: dict(data) for shelf in catalog.shelves(found, CATALOG).values() for preset, data in shelf}
    assert data["sec_t3"] == {
        "cub200": "here", "sop": "missing", "cars196": "not looked at yet", "inshop": "not looked at yet"
    }  # fmt: skip
    assert data["digits"] == {"digits": "comes along"}


# In Chromium


def opened(context: BrowserContext, text: str | None = None) -> Page:
    page = context.new_page()
    page.goto("/submit")
    if text is not None:
        page.get_by_label("The spec").fill(text)
    return page


@pytest.mark.browser
def test_problems_stand_at_their_lines_while_somebody_types(context: BrowserContext) -> None:
    page = opened(context)
    expect(page.get_by_role("status").first).to_contain_text("16 cells, 40 candidates, 200 trials")
    page.get_by_label("The spec").fill(WRONG)
    expect(page.locator("#verdict")).to_contain_text("problem")
    line = line_of(WRONG, "tripplet")
    expect(page.locator("#numbers b").first).to_contain_text(str(line))
    page.locator("#problems button").first.click()
    chosen = page.evaluate("(([a]) => a.value.slice(a.selectionStart, a.selectionEnd))([document.activeElement])")
    assert chosen == WRONG.splitlines()[line - 1]


@pytest.mark.browser
def test_words_of_the_catalog_are_completed_by_the_keyboard(context: BrowserContext) -> None:
    page = opened(context, "recipe:\n  dataset: digits\n  loss: {name: proxy_anchor}\ncompare:\n  ")
    spec, words = page.get_by_label("The spec"), page.get_by_role("listbox")

    def typed(text: str) -> None:
        spec.focus()
        page.keyboard.press("Control+End")
        page.keyboard.type(text)

    typed("regul")
    expect(words.get_by_role("option").first).to_have_text("regularizer")
    page.keyboard.press("Enter")
    typed("[sv")
    expect(words.get_by_role("option")).to_have_count(2)
    page.keyboard.press("ArrowDown")
    assert spec.get_attribute("aria-activedescendant") == "word-1"
    page.keyboard.press("Tab")
    assert spec.input_value().endswith("  regularizer: [svmax_unbounded")
    typed("]\nloss: [{name: proxy_anchor, al")
    expect(words).to_contain_text("default 32")
    page.keyboard.press("Enter")
    assert spec.input_value().endswith("{name: proxy_anchor, alpha: 32")
    page.keyboard.press("Control+Space")
    page.keyboard.press("Escape")
    expect(words).to_be_hidden()
    page.keyboard.press("Tab")  # the list is closed: Tab leaves the editor
    assert page.evaluate("document.activeElement.id") != "spec"


@pytest.mark.browser
def test_half_typed_text_survives_a_reload_and_is_sent_once(context: BrowserContext, service: Service) -> None:
    page = opened(context, SMALL_SPEC)
    page.reload()
    expect(page.get_by_label("The spec")).to_have_value(SMALL_SPEC)
    expect(page.locator("#origin")).to_contain_text("with your changes")
    page.get_by_role("button", name="Start the sweep").dblclick(no_wait_after=True)
    page.wait_for_url("**/sweeps/1")
    assert [one.id for one in service.sweeps.page(None, None, None, 10).items] == [1]
    page.goto("/submit")
    expect(page.get_by_label("The spec")).not_to_have_value(SMALL_SPEC)


BUSY_ONCE = """
const real = window.fetch;
window.calls = 0;
window.fetch = (url, given) => {
  if (!String(url).endsWith("/submit/check") || ++window.calls > 1) return real(url, given);
  return Promise.resolve(new Response("{}", { status: 503, headers: { "Retry-After": "7" } }));
};
"""


@pytest.mark.browser
def test_a_check_on_a_busy_server_is_repeated_after_its_delay(context: BrowserContext) -> None:
    page = context.new_page()
    page.clock.install()
    page.add_init_script(BUSY_ONCE)
    page.goto("/submit")
    page.clock.run_for(100)
    expect(page.locator("#verdict")).to_contain_text("is repeated in 7 s")
    page.clock.run_for(6_000)
    assert page.evaluate("window.calls") == 1
    page.clock.run_for(1_500)
    expect(page.locator("#verdict")).to_contain_text("200 trials")
