"""The pages of the catalog: every part has one, with its formula drawn, its defaults, and the sweeps that used it."""

from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, expect

from dashboards import catalog
from orchestrator.service.service import Service
from orchestrator.service.sweeps import named
from tests.dashboards.markup import read
from tests.dashboards.stage import SMALL_SPEC, SPEC, Stage
from workers import catalog as catalogs

CATALOG = catalogs.load()


@pytest.mark.parametrize("kind", sorted(catalog.KINDS))
def test_every_part_of_every_kind_has_a_page(kind: str) -> None:
    listed = read(catalog.catalog_page(CATALOG))
    addresses = {one["href"] for one in listed.having("a") if one.get("href", "").startswith(f"/catalog/{kind}/")}
    assert addresses == {f"/catalog/{kind}/{one.name}" for one in CATALOG.of(kind)}
    for entry in CATALOG.of(kind):
        page = read(catalog.part_page(entry, []))
        for one in entry.parameters:
            assert one.name in page.text
            assert not one.bounds or one.bounds in page.text
        assert "None of the newest 200." in page.text


def test_all_kinds_are_shown() -> None:
    assert {entry.kind for entry in CATALOG.entries} == set(catalog.KINDS)


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


def test_a_spec_that_is_not_understood_names_nothing() -> None:
    assert not named({}, "loss", "triplet")
    assert not named({"recipe": None, "tables": 3, "rules": None}, "metric", "nmi")


@pytest.mark.browser
@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 420)])
def test_a_formula_is_drawn(context: BrowserContext, stage: Stage, scheme: str, width: int, tmp_path: Path) -> None:
    sweep = stage.submit(SPEC)
    page = context.new_page()
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    page.goto("/catalog")
    page.screenshot(path=tmp_path / f"catalog-{scheme}.png")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.get_by_role("link", name="multi_similarity", exact=True).click()
    formula = page.locator(".formula math")
    expect(formula).to_be_visible()
    # A fraction that is drawn stands higher than a line of text; one that is not known would be a row of letters.
    assert page.evaluate("document.querySelector('.formula mfrac').getBoundingClientRect().height") > 25
    expect(page.locator("#parameters tr", has_text="epsilon")).to_contain_text("at least 0")
    expect(page.locator("#uses").get_by_role("link")).to_have_attribute("href", f"/sweeps/{sweep}")
    page.screenshot(path=tmp_path / f"part-{scheme}.png")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
