"""The pages of the catalog: every part has one, with its formula drawn, its defaults, and the sweeps that used it."""

from dashboards import catalog
from orchestrator.service.service import Service
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
