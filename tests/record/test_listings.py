"""Listings over both databases: what a filter means, pages that lack and repeat no row, numbers that last."""

import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import sqlalchemy as sa
from hypothesis import strategies

from orchestrator.record import schema
from orchestrator.record.listings import Sought
from orchestrator.record.schema import NUMBERS, trial_column
from orchestrator.record.store import Store, Writer
from orchestrator.views.errors import InvalidFilterError, NotFoundError
from orchestrator.views.filters import DEEPEST, LONGEST, MOST_CONDITIONS, MOST_VALUES, conditions, parse
from orchestrator.views.runs import Finished
from orchestrator.views.trials import Listing
from tests.record.conftest import DATABASES, ON_BOTH
from tests.record.sample import claimed, fail, lease, result, run, started

HOSTILE = ["'; DROP TABLE trial; --", "%", "_", "/", "\\", '"', "a" * 200, "٣", "\u202e", "1e999", "nan"]


def listed(store: Store, where: str = "", sort: str = "trial", **more: Any) -> Listing:
    asked = {"metrics": (), "cursor": None, "limit": 100, "count": True} | more
    sought = Sought(parse(where), asked.pop("kind", "trials"), asked.pop("sweep", None))
    return store.listings.page(sought, sort, asked.pop("metrics"), asked.pop("cursor"), asked.pop("limit"), **asked)


def trials(store: Store, where: str, **more: Any) -> list[int]:
    return [row.trial for row in listed(store, where, **more).items]


@pytest.fixture(scope="module", params=DATABASES)
def two(
    request: pytest.FixtureRequest, migrated_url: Callable[[str, Path], str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Store]:
    """Two sweeps of four trials: of the first one trial failed, and the second keeps its axes at other places.

    Those who ask for it only read, and share it.
    """
    store = Store.open(migrated_url(request.param, tmp_path_factory.mktemp("two")))
    fence = lease(store)
    started(store, fence)
    for score in (0.5, 0.6, 0.7):
        run(store, fence, claimed(store, fence), score=score)
    fail(store, fence, claimed(store, fence))
    started(store, fence, "second", fresh=True, losses=("semihard", "contrastive"))
    run(store, fence, claimed(store, fence), score=0.9)
    yield store
    store.close()


FOUND = [
    ("", [1, 2, 3, 4, 5, 6, 7, 8]),
    ("loss:triplet", [1, 2]),
    ("loss:TRIPLET,contrastive", [1, 2, 7, 8]),
    ("loss~RIPL", [1, 2]),
    ("-loss:triplet seed:0", [3, 5, 7]),
    ("loss!=semihard", [1, 2, 7, 8]),
    ("map@r>.45", [2, 3, 5]),
    ("validation/map@r:0.5..0.6", [1, 2]),
    ("validation/map@r:0.6..", [2, 3, 5]),
    ("-map@r>.45 state:finished", [1]),
    ("state:failed,running", [4]),
    ("state:failed or map@r>=.8", [4, 5]),
    ("(loss:triplet or loss:semihard) sweep:1 score>0.5", [2, 3]),
    ("margin:.2 sweep>1", [5, 6, 7, 8]),
    ("seed:0 trip", [1]),
    ("second", [5, 6, 7, 8]),
    ("name~SAMPLE trip", [1, 2]),
    ("error~class", [4]),
    ("seconds<1h started>2026-01-01", [1, 2, 3, 5]),
    ("started>2090-01-01", []),
    ("ended:..2026-01-01", []),
    ("reused:no diverged:no trial:2..3", [2, 3]),
    ("note~x or tag:y", []),
    ('"loss":"triplet"', [1, 2]),
]


def test_filters_find(two: Store) -> None:
    pages = {where: listed(two, where) for where, _ in FOUND}
    assert {where: [row.trial for row in page.items] for where, page in pages.items()} == dict(FOUND)
    assert {where: page.total for where, page in pages.items()} == {where: len(found) for where, found in FOUND}


def test_candidates_are_means_of_their_trials(two: Store) -> None:
    page = listed(two, "sweep:1", "-map@r", kind="candidates", metrics=("map@r",))
    assert [(row.cell, row.trials, row.finished, row.state) for row in page.items] == [
        (1, 2, 1, "failed"), (0, 2, 2, "finished"),
    ]  # fmt: skip
    assert page.items[1].values["map@r"] == pytest.approx(0.45)
    assert page.items[1].deviations["score"] == pytest.approx(0.0707, abs=1e-4)
    assert page.items[1].labels == {"loss": "triplet", "loss.margin": "0.2"}
    assert trials(two, "trial:4 state:failed", kind="candidates") == [3]


def test_pages_have_every_row_once(two: Store) -> None:
    sorts = ["trial", "-map@r", "map@r", "loss", "-loss", "margin", "-started", "ended", "state"]
    for kind, sort in product(("trials", "candidates"), sorts):
        found: list[int] = []
        page = listed(two, "", sort, kind=kind, limit=3)
        while page.next_cursor:
            found += [row.trial for row in page.items]
            page = listed(two, "", sort, kind=kind, limit=3, cursor=page.next_cursor)
        found += [row.trial for row in page.items]
        assert found == trials(two, "", sort=sort, kind=kind), (kind, sort)
        assert sorted(found) == ([1, 2, 3, 4, 5, 6, 7, 8] if kind == "trials" else [1, 3, 5, 7]), (kind, sort)


WRONG = [
    ("los:x", "did you mean 'loss'?"),
    ("loss<3", "has labels and no numbers"),
    ("map@r:high", "compared with a number"),
    ("map@r~1", "has no parts"),
    ("state:finish", "did you mean 'finished'?"),
    ("state>finished", "is not compared by `>`"),
    ("started>yesterday", "a date in UTC"),
    ("trial:1.5", "a whole number"),
    ("sweep:99999999999", "a whole number"),
    ("diverged:maybe", "yes or no"),
    ("seconds<5weeks", "a time such as `5min`"),
    ("a)", "nothing opened"),
    ("(a", "nothing closes"),
    ("loss:", "a value is missing"),
    ("or", "a word or a condition is wanted"),
    ("--a", "the opposite of an opposite"),
    ('"a', "nothing closes"),
    ("a" * (LONGEST + 1), "at most 1,000"),
    ("a " * (MOST_CONDITIONS + 1), "more than 40 conditions"),
    ("(" * (DEEPEST + 1) + "a" + ")" * (DEEPEST + 1), "write it flatter"),
    ("loss:" + ",".join("a" * (MOST_VALUES + 1)), "at most 50"),
    ("map@r>1,2", "takes one value"),
    ("a\0b", "NUL"),
]


def test_wrong_filters_are_refused(two: Store) -> None:
    for where, said in WRONG:
        with pytest.raises(InvalidFilterError) as caught:
            listed(two, where)
        assert said in str(caught.value), where
        assert "at character" in caught.value.said, where


def test_a_candidate_has_no_seed_and_a_row_no_column_of_its_error(store: Store) -> None:
    started(store, lease(store))
    for wrong in ({"where": "seed:0", "kind": "candidates"}, {"sort": "error"}, {"metrics": ("loss",)}):
        with pytest.raises(InvalidFilterError):
            listed(store, **wrong)
    for cursor in ("abc", "W10", "WzEsIDJd" * 30, "W251bGwsIC0xXQ"):
        with pytest.raises(NotFoundError):
            listed(store, cursor=cursor)
    with pytest.raises(NotFoundError):
        listed(store, sweep=9)


def test_hostile_values_are_values(two: Store) -> None:
    for text in HOSTILE:
        quoted = text.replace("\\", "\\\\").replace('"', '\\"')
        assert trials(two, f'"{quoted}"') == []
        assert trials(two, f'loss:"{quoted}" or tag:"{quoted}" or note~"{quoted}" or error~"{quoted}"') == []
    assert len(trials(two, "")) == 8


@hypothesis.given(strategies.text(alphabet='ab:=<>!~(),-" or\\.1@/%', max_size=60))
@hypothesis.settings(max_examples=100)
def test_any_text_is_a_filter_or_told_what_is_wrong(text: str) -> None:
    with suppress(InvalidFilterError):
        assert all(0 <= one.at < len(text) for one in conditions(parse(text)))


def test_numbers_stay_where_sweeps_keep_them(two: Store) -> None:
    """Of each trial, what its columns say is what its labels and its result say."""
    with two.database.reading() as connection:
        rows = connection.execute(sa.select(trial_column)).all()
        places = {(row.sweep_id, row.key): (row.role, row.label, row.number) for row in rows}
        query = sa.select(schema.trial, schema.training.c.metrics, schema.cell.c.labels.label("cell_labels"))
        query = query.join(schema.training, schema.training.c.id == schema.trial.c.training_id)
        cells = sa.and_(schema.cell.c.sweep_id == schema.trial.c.sweep_id, schema.cell.c.cell == schema.trial.c.cell)
        for row in connection.execute(query.join(schema.cell, cells)).mappings():
            for key, label in (row["cell_labels"] | row["repeat_labels"]).items():
                assert row[f"label_{places[row['sweep_id'], key][1]}"] == label
            finished = row["state"] == "finished"
            for key, value in (row["metrics"] or {}).items():
                place = places.get((row["sweep_id"], key))
                assert place is not None or not finished
                assert not finished or row[f"number_{place[2]}"] == value


def test_metrics_beyond_the_places_are_kept_and_not_listed(store: Store, fence: int, writer: Writer) -> None:
    started(store, fence)
    chance = random.Random(1)
    metrics = {f"{mark}/test/m{at}": chance.random() for mark in ("last", "best") for at in range(NUMBERS)}
    order = claimed(store, fence)
    writer.events.write(Finished(order.attempt, result(metrics=metrics)))
    kept = [column.key for column in store.listings.columns(None) if column.role == "metric"]
    assert 80 < len(kept) <= NUMBERS
    assert all(key.startswith("best/test/") for key in kept)
    assert len(store.trials.get(1).metrics) == 2 * NUMBERS


@ON_BOTH
def test_a_candidate_has_the_very_number_of_its_axis(store: Store) -> None:
    """The mean of three times 0.2 is above it: a filter by the axis would miss the candidate."""
    started(store, lease(store), seeds=(0, 1, 2))
    for where in ("margin<=0.2", "margin:0.1..0.2 sweep:1", "-margin>0.2 -loss:nothing", "margin<=.2 or state:failed"):
        assert listed(store, where, "margin", kind="candidates").total, where
