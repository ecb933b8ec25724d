"""The pages of the catalog, and the guide as it is served."""

import html
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from dashboards import catalog
from orchestrator.service.service import Service
from tests.conftest import ROOT
from tests.dashboards.markup import read
from tests.dashboards.stage import SMALL_SPEC, SPEC, Stage
from workers import catalog as catalogs

CATALOG = catalogs.load()


def test_every_part_of_every_kind_has_a_page() -> None:
    assert {entry.kind for entry in CATALOG.entries} == set(catalog.HEADINGS)
    listed = {one.get("href", "") for one in read(catalog.catalog_page(CATALOG)).having("a")}
    addresses = {f"/catalog/{entry.kind}/{entry.name}" for entry in CATALOG.entries}
    assert {one for one in listed if one.count("/") == 3 and one.startswith("/catalog/")} == addresses
    for entry in CATALOG.entries:
        page = read(catalog.part_page(entry, []))
        for one in entry.parameters:
            assert one.name in page.text, entry.name
            assert not one.bounds or one.bounds in page.text, entry.name
        assert "None of the newest 200." in page.text


def test_a_hostile_text_of_an_own_part_is_escaped() -> None:
    entry = CATALOG.of("loss")[0].model_copy(update={"doc": "<script>`<b>`", "label": "<i>", "formula": None})
    assert "<script>`" not in catalog.part_page(entry, [])
    assert "<code>&lt;b&gt;</code>" in catalog.part_page(entry, [])


def test_sweeps_that_name_a_part_are_found(stage: Stage, service: Service) -> None:
    first, second = stage.submit(SPEC), stage.submit(SMALL_SPEC)
    used = {
        (kind, name): [one.id for one in service.sweeps.using(kind, name, 200)]
        for kind, name in (("regularizer", "l2"), ("dataset", "digits"), ("metric", "norm_var"), ("loss", "arcface"))
    }
    assert used["regularizer", "l2"] == [first]
    assert used["dataset", "digits"] == [second, first]
    assert used["metric", "norm_var"] == [first]
    assert used["loss", "arcface"] == []
    assert service.sweeps.using("dataset", "digits", 1)[0].id == second
    third = stage.submit(SMALL_SPEC.replace("[triplet,", "[{name: pml, of: {name: CircleLoss}},"))
    assert [one.id for one in service.sweeps.using("pml_loss", "CircleLoss", 200)] == [third]
    assert service.sweeps.using("pml_loss", "SupConLoss", 200) == []


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
    (site / "index.html").write_text("first")
    (site / "deep" / "index.html").write_text("<script>one()</script><p>text")
    monkeypatch.setattr(catalog, "GUIDE_FOLDER", site)
    for address in ("../secret.txt", "%2e%2e/secret.txt", "deep/../../secret.txt", "no.html", "%00", "a" * 9_000):
        assert http.get(f"/docs/guide/{address}").status_code == 404, address
    page = http.get("/docs/guide/deep/")
    assert page.headers["Content-Type"] == "text/html; charset=utf-8"
    assert "script-src 'self' 'sha256-" in page.headers["Content-Security-Policy"]
    assert page.headers["Cache-Control"] == "no-cache"
    monkeypatch.setattr(catalog, "GUIDE_FOLDER", tmp_path / "nothing")
    missing = http.get("/docs/guide/")
    assert (missing.status_code, "`make guide`" in missing.json()["detail"]) == (404, True)


def test_both_ask_for_a_login(http: TestClient) -> None:
    del http.headers["Authorization"]
    assert [http.get(path).status_code for path in ("/docs", "/docs/guide/")] == [401, 401]
