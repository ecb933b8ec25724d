"""Listings and what else people see: what a filter means, pages that lack and repeat no row, counts, curves, logs."""

import math
import random
import statistics
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import sqlalchemy as sa
from hypothesis import strategies

from orchestrator.record import attempts, schema
from orchestrator.record.listings import RowQuery
from orchestrator.record.schema import NUMBERS, attempt, metric, trial_column
from orchestrator.record.store import Store, Writer
from orchestrator.views.errors import InvalidFilterError, NotFoundError
from orchestrator.views.filters import DEEPEST, LONGEST, MOST_CONDITIONS, MOST_VALUES, conditions, parse
from orchestrator.views.runs import Failed, Failure, Finished, Progressed, Started, SweepSettled
from orchestrator.views.trials import Listing
from tests.record.conftest import DATABASES, ON_BOTH
from tests.record.sample import claimed, fail, lease, new_sweep, progress, result, run, run_all, started

HOSTILE = ["'; DROP TABLE trial; --", "%", "_", "/", "\\", '"', "a" * 200, "٣", "\u202e", "1e999", "nan"]


def listed(store: Store, where: str = "", sort: str = "trial", **more: Any) -> Listing:
    asked = {"metrics": (), "cursor": None, "limit": 100, "count": True} | more
    sought = RowQuery(parse(where), asked.pop("kind", "trials"), asked.pop("sweep", None))
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
    assert trials(two, f"started<{listed(two).items[0].started:%Y-%m-%dT%H:%M:%S.%f}") == [], "the first had begun then"


def test_candidates_are_means_of_their_trials(two: Store) -> None:
    page = listed(two, "sweep:1", "-map@r", kind="candidates", metrics=("map@r",))
    assert [(row.cell, row.trials, row.finished, row.state) for row in page.items] == [
        (1, 2, 1, "failed"), (0, 2, 2, "finished"),
    ]  # fmt: skip
    assert page.items[1].values["map@r"] == pytest.approx(0.45)
    assert page.items[1].deviations["score"] == pytest.approx(0.0707, abs=1e-4)
    assert page.items[1].labels == {"loss": "triplet", "loss.margin": "0.2"}
    assert trials(two, "trial:4 state:failed", kind="candidates") == [3]


def test_groups_are_means_of_rows_with_a_label(two: Store) -> None:
    for where, kind in (("", "trials"), ("score>0.5", "trials"), ("", "candidates")):
        rows = listed(two, where, kind=kind, metrics=["map@r"]).items
        found = two.listings.groups(RowQuery(parse(where), kind), "loss", ["map@r"])
        assert [group.label for group in found] == sorted({row.labels["loss"] for row in rows})
        for group in found:
            those = [row for row in rows if row.labels["loss"] == group.label]
            assert group.rows == len(those)
            for name, mean in group.values.items():
                given = [row.score if name == "score" else row.values[name] for row in those]
                numbers = [number for number in given if number is not None]
                assert mean == (pytest.approx(statistics.mean(numbers)) if numbers else None), (where, kind, name)
                if len(numbers) > 1:
                    assert group.deviations[name] == pytest.approx(statistics.stdev(numbers))
    labels = [group.label for group in two.listings.groups(RowQuery(parse("")), "seed", [])]
    assert labels == ["0", "1"]
    with pytest.raises(InvalidFilterError, match="no column `los`"):
        two.listings.groups(RowQuery(parse("")), "los", [])


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
    ("map@r~1", "so `~` does not apply"),
    ("state:finish", "did you mean 'finished'?"),
    ("state>finished", "is not compared by `>`"),
    ("started>yesterday", "a date in UTC"),
    ("trial:1.5", "a whole number"),
    ("sweep:99999999999", "a whole number"),
    ("diverged:maybe", "takes `yes` or `no`"),
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
        assert "at character" in caught.value.detail, where


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
def test_any_text_is_a_filter_or_refused_with_a_reason(text: str) -> None:
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


@ON_BOTH
def test_sweeps_are_listed_by_a_part_of_their_name_in_any_case(store: Store) -> None:
    ids = [store.submissions.add_sweep(new_sweep(f"Table {number}")).id for number in range(5)]
    assert [one.id for one in store.sweeps.page(name="table 3")[0].items] == [ids[3]]
    assert store.sweeps.page(name="100%")[0].items == []
    summary = store.sweeps.page()[0].items[0]
    assert (summary.name, summary.total, summary.tables, summary.actor) == ("Table 4", 4, ["main"], "ann")
    assert summary.created.utcoffset() is not None


@ON_BOTH
def test_the_time_left_is_that_of_the_steps_left_in_the_slots_at_work(store: Store, fence: int, writer: Writer) -> None:
    sweep = started(store, fence, seeds=[0, 1])
    assert store.sweeps.get(sweep).eta_seconds is None
    run(store, fence, claimed(store, fence))
    with store.database.writing() as connection:  # long ago, so that the share of its time that a slot trains is none
        ago = datetime.now(UTC) - timedelta(hours=1)
        connection.execute(sa.update(attempt).values(started=ago, ended=ago + timedelta(seconds=8)))
    assert store.sweeps.get(sweep).eta_seconds == pytest.approx(3 * 8.0)
    half, _ = claimed(store, fence), claimed(store, fence)
    writer.events.write(Progressed(half.attempt, 1, progress(50)))
    view = store.sweeps.get(sweep)
    assert view.eta_seconds == pytest.approx(4.0 + 8.0)  # the one that waits begins when the half one ends
    assert view.eta_low_seconds is not None
    assert view.eta_high_seconds is not None
    assert view.eta_low_seconds < view.eta_seconds < view.eta_high_seconds
    assert [one.eta_seconds for one in store.sweeps.page()[0].items] == [view.eta_seconds]
    reused = started(store, fence, losses=["triplet"], seeds=[0])
    assert store.sweeps.get(reused).eta_seconds is None


@ON_BOTH
def test_what_runs_is_timed_from_its_first_number(store: Store, fence: int, writer: Writer) -> None:
    sweep = started(store, fence, losses=["triplet"], seeds=[0, 1])
    order = claimed(store, fence)
    writer.events.write(Progressed(order.attempt, 1, progress(10, metrics={"train/loss": 1.0})))
    assert store.sweeps.get(sweep).eta_seconds is None, "no step is timed yet"
    writer.events.write(Progressed(order.attempt, 2, progress(50, metrics={"train/loss": 0.5})))
    now = datetime.now(UTC)
    with store.database.writing() as connection:
        connection.execute(sa.update(attempt).values(started=now - timedelta(minutes=10)))
        connection.execute(sa.update(metric).values(at=now - timedelta(seconds=20)))
    assert store.sweeps.get(sweep).eta_seconds == pytest.approx((50 + 3 * 100) * 20 / 40, abs=2)


def test_progress_counts_steps(store: Store, fence: int, writer: Writer) -> None:
    sweep = started(store, fence, seeds=[0, 1])
    assert store.sweeps.get(sweep).steps.model_dump(exclude={"shares"}) == {
        "unit": "steps", "total": 400, "done": 0, "percent": 0,
    }  # fmt: skip
    run(store, fence, claimed(store, fence))
    half = claimed(store, fence)
    writer.events.write(Progressed(half.attempt, 1, progress(50)))
    running = store.sweeps.get(sweep).steps
    assert running.shares == {"finished": 100, "running": 50, "waiting": 250}
    assert (running.done, running.percent) == (150, 37)
    fail(store, fence, half)
    assert store.sweeps.get(sweep).steps.percent == 25
    writer.trials.cancel(sweep)
    ended = store.sweeps.get(sweep)
    assert ended.steps.shares == {"finished": 100, "failed": 100, "cancelled": 200}
    assert (ended.steps.done, ended.steps.percent, ended.counts.done) == (100, 25, 1)
    assert store.sweeps.page()[0].items[0].steps == ended.steps
    writer.trials.retry(sweep)
    run_all(store, fence)
    writer.events.write(SweepSettled(sweep))
    assert store.sweeps.get(sweep).steps.percent == 100


@ON_BOTH
def test_a_long_curve_is_thinned(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.record.attempts.MOST_POINTS", 20)
    monkeypatch.setattr("orchestrator.record.attempts.LOOK_EVERY", 10)
    fence = lease(store)
    sweep = started(store, fence, losses=["triplet"], seeds=[0])
    order, writer = claimed(store, fence), store.writer(fence)
    for step in range(1, 61):
        metrics = {"train/loss": 1.0 / step, "validation/map@r": step / 100}
        writer.events.write(Progressed(order.attempt, step, progress(step, metrics=metrics)))
    trial = store.trials.page(sweep).items[0].id
    curves = {curve.key: [step for step, _ in curve.points] for curve in store.curves.of(trial)}
    assert curves["validation/map@r"] == [*range(1, 61)]
    kept = curves["train/loss"]
    assert len(kept) <= 30
    assert (kept[0], kept[-1]) == (1, 60)
    assert max(after - before for before, after in pairwise(kept)) <= 12  # evenly: its first minutes stay
    clock = store.curves.clocks([trial])[trial]
    assert [step for step, _ in clock] == [0, *range(1, 61)]
    assert [second for _, second in clock] == sorted(second for _, second in clock)
    assert store.curves.keys([trial]) == ["train/loss", "validation/map@r"]


@ON_BOTH
def test_curves_come_from_reports_and_from_the_result(store: Store, fence: int, writer: Writer) -> None:
    sweep = started(store, fence, losses=["triplet"], seeds=[0])
    trial = store.trials.page(sweep).items[0].id
    first = claimed(store, fence)
    for seq, step in enumerate((10, 20), start=1):
        writer.events.write(Progressed(first.attempt, seq, progress(step, metrics={"train/loss": 3.0 - seq})))
    writer.events.write(Failed(first.attempt, Failure("infrastructure", "slot lost"), requeue=True))
    second = claimed(store, fence)
    writer.events.write(Progressed(second.attempt, 1, progress(20, metrics={"train/loss": 7.0, "train/lr": math.inf})))
    curves = {curve.key: curve.points for curve in store.curves.of(trial)}
    assert curves == {"train/loss": [(10, 2.0), (20, 7.0)], "train/lr": [(20, None)]}
    writer.events.write(Finished(second.attempt, result()))
    curves = {curve.key: curve.points for curve in store.curves.of(trial)}
    assert curves == {"train/loss": [(10, 1.0), (20, 0.5)], "train/lr": [(20, None)]}


def test_a_result_over_its_limit_keeps_the_curves_that_were_reported(store: Store, fence: int, writer: Writer) -> None:
    sweep = started(store, fence, losses=["triplet"], seeds=[0])
    order = claimed(store, fence)
    writer.events.write(Progressed(order.attempt, 1, progress(10, metrics={"train/loss": 2.0})))
    long = {"train/loss": [(step, step / 7) for step in range(60_000)]}
    writer.events.write(Finished(order.attempt, result(curves=long)))
    assert store.curves.of(store.trials.page(sweep).items[0].id)[0].points == [(10, 2.0)]


@ON_BOTH
def test_a_log_is_read_from_an_offset_over_all_attempts(store: Store, fence: int, writer: Writer) -> None:
    sweep = started(store, fence, losses=["triplet"], seeds=[0])
    trial = store.trials.page(sweep).items[0].id
    first = claimed(store, fence)
    writer.events.write(Started(first.attempt, "slot-0", "host-a"))
    writer.events.write(Progressed(first.attempt, 1, progress(1, log="größe 1\n")))
    view = store.logs.of(trial, 0)
    assert (view.text, view.next_offset, view.complete) == ("größe 1\n", 8, False)
    writer.events.write(Progressed(first.attempt, 2, progress(2, log="zwei\x00\n")))
    assert store.logs.of(trial, 4).text == "e 1\nzwei\n"
    assert store.logs.of(trial, 99).text == ""
    writer.events.write(Failed(first.attempt, Failure("infrastructure", "slot lost"), requeue=True))
    second = claimed(store, fence)
    writer.events.write(Progressed(second.attempt, 1, progress(2, log="drei\n")))
    writer.events.write(Finished(second.attempt, result()))
    view = store.logs.of(trial, view.next_offset)
    assert view.text == "zwei\n--- attempt 2 ---\ndrei\n"
    assert view.complete
    assert store.logs.of(trial, view.next_offset).complete


def test_a_log_stops_at_its_limit_with_a_note(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.record.attempts.MAX_LOG_BYTES", 10)
    monkeypatch.setattr(attempts, "MAX_LOG_PAGE", 7)
    fence = lease(store)
    sweep = started(store, fence, losses=["triplet"], seeds=[0])
    order = claimed(store, fence)
    for seq in range(1, 5):
        store.writer(fence).events.write(Progressed(order.attempt, seq, progress(seq, log="öabc")))
    trial, text, offset = store.trials.page(sweep).items[0].id, "", 0
    while page := store.logs.of(trial, offset).text:
        assert len(page) <= 7
        text, offset = text + page, offset + len(page)
    assert text == "öabcöabc\n[the log is cut here: it passed 10 MiB]\n"
