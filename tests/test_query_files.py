"""Scores per query of a sweep over a real database: from the storage into words, pages and a bundle, and gone."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.service import tables
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from orchestrator.views.errors import InvalidSpecError
from tests.inline_conductor import conduct
from tests.test_conductor import spec

TABLE = {
    "rows": ["loss"], "columns": [], "metrics": ["recall@1", "map@r"], "spread": "ci95", "covers": "both",
    "verdicts": {"against": {"loss": "triplet"}},
}  # fmt: skip
CHANGES = {"tune": {}, "repeat": {"seed": [0, 1, 2, 3]}}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Service, Settings, int]]:
    given = Settings(
        home=tmp_path_factory.mktemp("queried"), engine="inline", train="tests.run.queried:train", lease_seconds=5
    )
    service = Service.open(given)
    number = service.submissions.submit(spec(tables={"main": TABLE}, **CHANGES)).id
    conduct(given)
    yield service, given, number
    service.close()


def test_they_come_from_the_storage_into_verdicts_and_tables(home: tuple[Service, Settings, int]) -> None:
    service, _, number = home
    found = service.tables.verdicts(number)
    one, other = found.comparisons
    assert (found.covers, one.word, one.pairs, one.queries, one.classes) == ("both", "better", 4, 300, 12)
    assert other.reason.endswith("kept no scores per query of map@r")
    assert service.tables.verdicts(number, covers="seeds").comparisons[0].queries is None
    page = service.tables.html(number, "main")
    assert "4 seeds x 300 queries of 12 classes" in page
    latex = service.tables.render(number, "main", "latex").content.decode()
    assert "half the 95 \\% Student-t interval over other seeds and other test queries" in latex


def test_a_bundle_makes_the_same_without_the_storage(home: tuple[Service, Settings, int], tmp_path: Path) -> None:
    service, settings, number = home
    with service.bundles.make(number) as made:
        (tmp_path / "a.zip").write_bytes(made.read())
    kept = sorted(settings.storage.glob("*/*/queries.npz"))
    assert len(kept) == 8
    hidden = [path.rename(path.with_suffix(".gone")) for path in kept]
    again = tables.rebuild(tmp_path / "a.zip")
    assert again.identical
    assert again.verdicts
    (one, _) = service.tables.verdicts(number).comparisons
    assert one.word == "untested"
    assert "is not in the storage any more" in one.reason
    for path in hidden:
        path.rename(path.with_suffix(".npz"))


def test_a_spec_that_covers_queries_needs_a_mean_over_them(home: tuple[Service, Settings, int]) -> None:
    service, _, _ = home
    for changes, said in (
        ({"metrics": ["nmi"]}, "needs a metric that is a mean over queries, such as 'recall@1'"),
        ({"covers": "classes"}, "covers"),
    ):
        with pytest.raises(InvalidSpecError) as error:
            service.submissions.submit(spec(tables={"main": {**TABLE, **changes}}, **CHANGES))
        assert any(said in f"{one.path} {one.message}" for one in error.value.problems)
