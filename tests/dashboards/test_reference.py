"""What there is to read, in Chromium: the API's operations and the guide, drawn without any network."""

import html
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from playwright.sync_api import BrowserContext, expect

from dashboards import guide
from orchestrator.host.identity import made_for
from orchestrator.settings import Settings
from tests.conftest import ROOT


@pytest.fixture
def http(application: FastAPI, settings: Settings) -> TestClient:
    told = {"Authorization": f"Bearer {made_for(settings.resolved_home).secret}"}
    return TestClient(application, base_url="http://127.0.0.1:8787", headers=told)


@pytest.mark.browser
@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 420)])
def test_operations_are_drawn_and_tried(context: BrowserContext, scheme: str, width: int, tmp_path: Path) -> None:
    page = context.new_page()
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    page.goto("/docs")
    operation = page.locator("#operations-sweeps-sweeps_v1_sweeps_get")
    operation.get_by_role("button").first.click()
    operation.get_by_role("button", name="Execute").click()
    expect(operation.locator(".live-responses-table .response-col_status").last).to_contain_text("200")
    expect(page.get_by_role("link", name="API", exact=True)).to_have_attribute("href", "/docs")
    page.screenshot(path=tmp_path / f"docs-{scheme}.png")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.browser
def test_the_guide_is_read_and_searched(
    context: BrowserContext, site: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(guide, "FOLDER", site)
    page = context.new_page()
    page.goto("/docs/guide")
    page.get_by_role("link", name="Statistics", exact=True).click()
    expect(page.get_by_role("heading", name="Statistics")).to_be_visible()
    page.get_by_label("Search").first.fill("spherical")
    page.keyboard.press("Enter")
    expect(page.locator("#search-results li").first).to_be_visible()
    page.goto("/docs/guide/reference/python.html")
    expect(page.locator("dt", has_text="metricsweep.connect")).to_be_visible()
    page.screenshot(path=tmp_path / "guide.png")


def test_every_page_of_the_documentation_is_in_the_guide(site: Path) -> None:
    """Sphinx has pages of its own, such as `search`, which replace a page of ours with the same name."""
    wrong = []
    for page in (ROOT / "docs").rglob("*.md"):
        name = page.relative_to(ROOT / "docs").with_suffix(".html")
        title = page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
        if f"<h1>{html.escape(title, quote=False)}<" not in (site / name).read_text(encoding="utf-8"):
            wrong.append(str(name))
    assert not wrong


def test_only_files_of_the_guide_are_given(http: TestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = tmp_path / "site"
    (site / "deep").mkdir(parents=True)
    (tmp_path / "secret.txt").write_text("secret")
    (site / "deep" / "index.html").write_text("<script>one()</script><p>text")
    monkeypatch.setattr(guide, "FOLDER", site)
    for address in ("../secret.txt", "%2e%2e/secret.txt", "deep/../../secret.txt", "no.html", "%00", "a" * 9_000):
        assert http.get(f"/docs/guide/{address}").status_code == 404, address
    page = http.get("/docs/guide/deep/")
    assert page.headers["Content-Type"] == "text/html; charset=utf-8"
    assert "script-src 'self' 'sha256-" in page.headers["Content-Security-Policy"]
    assert page.headers["Cache-Control"] == "no-cache"


def test_where_no_guide_was_built_is_said_how_to(
    http: TestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guide, "FOLDER", tmp_path / "nothing")
    answer = http.get("/docs/guide/")
    assert answer.status_code == 404
    assert "`make guide`" in answer.json()["detail"]


@pytest.mark.parametrize("path", ["/docs", "/docs/guide/"])
def test_both_ask_for_a_login(application: FastAPI, path: str) -> None:
    answer = TestClient(application, base_url="http://127.0.0.1:8787").get(path, follow_redirects=False)
    assert answer.status_code == 401
