"""The guide as it is served: whole, within its folder, and behind the login."""

import html
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from dashboards import catalog
from tests.conftest import ROOT


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
    monkeypatch.setattr(catalog, "FOLDER", site)
    for address in ("../secret.txt", "%2e%2e/secret.txt", "deep/../../secret.txt", "no.html", "%00", "a" * 9_000):
        assert http.get(f"/docs/guide/{address}").status_code == 404, address
    page = http.get("/docs/guide/deep/")
    assert page.headers["Content-Type"] == "text/html; charset=utf-8"
    assert "script-src 'self' 'sha256-" in page.headers["Content-Security-Policy"]
    assert page.headers["Cache-Control"] == "no-cache"
    monkeypatch.setattr(catalog, "FOLDER", tmp_path / "nothing")
    missing = http.get("/docs/guide/")
    assert (missing.status_code, "`make guide`" in missing.json()["detail"]) == (404, True)


def test_both_ask_for_a_login(http: TestClient) -> None:
    del http.headers["Authorization"]
    assert [http.get(path).status_code for path in ("/docs", "/docs/guide/")] == [401, 401]
