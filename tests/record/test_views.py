"""What people see: pages, counts, problems, trials, curves and logs."""

import math
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
import sqlalchemy as sa

from orchestrator.record import attempts
from orchestrator.record.schema import attempt, metric
from orchestrator.record.store import Store, Writer
from orchestrator.views.errors import NotFoundError
from orchestrator.views.runs import Failed, Failure, Finished, Progressed, Started, SweepSettled
from tests.record.conftest import ON_BOTH
from tests.record.sample import claimed, fail, lease, new_sweep, progress, result, run, run_all, started


@ON_BOTH
def test_sweeps_are_listed_newest_first_in_pages(store: Store, writer: Writer) -> None:
    ids = [store.submissions.add_sweep(new_sweep(f"Table {number}")).id for number in range(5)]
    page = store.sweeps.page(limit=2)
    assert [one.id for one in page.items] == [ids[4], ids[3]]
    page = store.sweeps.page(cursor=page.next_cursor, limit=2)
    assert [one.id for one in page.items] == [ids[2], ids[1]]
    page = store.sweeps.page(cursor=page.next_cursor, limit=2)
    assert [one.id for one in page.items] == [ids[0]]
    assert page.next_cursor is None
    assert [one.id for one in store.sweeps.page(name="table 3").items] == [ids[3]]
    assert store.sweeps.page(name="100%").items == []
    writer.trials.cancel(ids[0])
    assert [one.id for one in store.sweeps.page(state="cancelled").items] == [ids[0]]
    summary = store.sweeps.page().items[0]
    assert (summary.name, summary.total, summary.tables, summary.actor) == ("Table 4", 4, ["main"], "ann")
    assert summary.created.utcoffset() is not None
    with pytest.raises(NotFoundError, match="next_cursor"):
        store.sweeps.page(cursor="%%%")


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
    assert [one.eta_seconds for one in store.sweeps.page().items] == [view.eta_seconds]
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
    assert store.sweeps.page().items[0].steps == ended.steps
    writer.trials.retry(sweep)
    run_all(store, fence)
    writer.events.write(SweepSettled(sweep))
    assert store.sweeps.get(sweep).steps.percent == 100


@ON_BOTH
def test_a_long_curve_is_thinned(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.record.claims.MOST_POINTS", 20)
    monkeypatch.setattr("orchestrator.record.claims.LOOK_EVERY", 10)
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
    monkeypatch.setattr("orchestrator.record.claims.MAX_LOG_BYTES", 10)
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
