"""A sweep is expanded in pieces: other processes continue after a crash, and no reader takes a part for the whole."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from orchestrator.conduct import expansion
from orchestrator.conduct.broker import Tick
from orchestrator.plan import grid
from orchestrator.plan.grid import Plan
from orchestrator.record import schema
from orchestrator.record.listings import RowQuery
from orchestrator.record.store import Store, Writer
from orchestrator.record.sweeps import PlanRows, SweepWriter
from orchestrator.run.inline import Inline
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from orchestrator.spec.spec import Spec
from orchestrator.views.errors import ConflictError, FencedError, UnavailableError
from orchestrator.views.filters import parse
from orchestrator.views.operations import WaitReason
from orchestrator.views.runs import Cell
from tests.inline_conductor import Killed, conduct, ran, workplace
from tests.test_conductor import spec
from workers import catalog as catalogs

WIDE: dict[str, Any] = {"repeat": {"seed": [0, 1, 2]}}
"""Two cells of two candidates of three seeds: four pieces of three trials."""
TRIALS = 12
PIECES = 4
Rows = dict[str, list[tuple[Any, ...]]]
Whole = Callable[[bytes], Rows]


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each turn writes three trials of a sweep."""
    monkeypatch.setattr(expansion, "PIECE", 3)
    monkeypatch.setattr(expansion, "TURN", 3)
    monkeypatch.setattr(expansion, "BREATH_SECONDS", 0.0)


@dataclass
class Turns:
    """A conductor without an engine, whose turns a test takes."""

    store: Store
    writer: Writer
    tick: Tick

    def take(self, count: int = 1) -> None:
        for _ in range(count):
            self.tick.do(finalize=True)


@pytest.fixture
def turns(settings: Settings, service: Service) -> Turns:
    return turning(settings, service.store)


def turning(settings: Settings, store: Store) -> Turns:
    fence = store.lease.acquire("test", 60.0)
    if fence is None:
        with_lease_over(store)
        fence = store.lease.acquire("another", 60.0)
    assert fence is not None
    writer = store.writer(fence)
    return Turns(store, writer, Tick(settings, store, writer, Inline(workplace(settings)), catalogs.load(), None))


def written(store: Store, sweep: int) -> Rows:
    """Its rows, but for ids and times."""
    trial, training = schema.trial, schema.training
    places = [column for column in trial.columns if column.name.startswith(("label_", "number_"))]
    columns = (
        trial.c.cell, trial.c.candidate, trial.c.repeat, trial.c.position, trial.c.repeat_labels, trial.c.state,
        trial.c.reused, training.c.fingerprint, training.c.generation, training.c.state, *places,
    )  # fmt: skip
    queries = {
        "cells": sa.select(schema.cell.c.cell, schema.cell.c.labels, schema.cell.c.open)
        .where(schema.cell.c.sweep_id == sweep)
        .order_by(schema.cell.c.cell),
        "candidates": sa.select(schema.candidate.c.cell, schema.candidate.c.candidate, schema.candidate.c.labels)
        .where(schema.candidate.c.sweep_id == sweep)
        .order_by(schema.candidate.c.cell, schema.candidate.c.candidate),
        "trials": sa.select(*columns)
        .join(training, training.c.id == trial.c.training_id)
        .where(trial.c.sweep_id == sweep)
        .order_by(trial.c.position),
        "needs": sa.text(f"SELECT need FROM sweep_need WHERE sweep_id = {sweep} ORDER BY need"),
        "columns": sa.text(f"SELECT key, role, label, number FROM trial_column WHERE sweep_id = {sweep} ORDER BY key"),
    }
    with store.database.reading() as connection:
        return {name: [tuple(row) for row in connection.execute(query)] for name, query in queries.items()}


def rows(store: Store, sweep: int) -> int:
    return len(written(store, sweep)["trials"])


@pytest.fixture
def whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Whole:
    """What the rows of a sweep are that is written at once."""

    def expanded(body: bytes) -> Rows:
        settings = Settings(home=tmp_path / "whole", engine="inline")
        service = Service.open(settings)
        sweep = service.submissions.submit(body).id
        with monkeypatch.context() as usual:
            usual.setattr(expansion, "PIECE", 1_000)
            turning(settings, service.store).take()
        found = written(service.store, sweep)
        service.close()
        return found

    return expanded


BODIES = {
    "grid": spec(**WIDE),
    "many cells": spec(
        compare={"embedding": [*range(1, 10)]}, tune={}, repeat={},
        tables={"main": {"rows": ["embedding"], "columns": [], "metrics": ["map@r"]}},
    ),
    "a subset": spec(**WIDE, without={"loss": ["triplet"], "optimizer.lr": ["0.001"]}),
    "a search": spec(**WIDE, search={"name": "random", "trials": 2}),
    "fresh": spec(**WIDE, fresh=True),
}  # fmt: skip


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_the_rows_are_those_of_a_sweep_that_is_written_at_once(
    turns: Turns, service: Service, whole: Whole, body: bytes
) -> None:
    sweep = service.submissions.submit(body).id
    taken = 0
    while service.sweeps.get(sweep).state == "queued":
        turns.take()
        taken += 1
    found = written(turns.store, sweep)
    assert taken == max(1, -(-len(found["trials"]) // 3)) or "search" in body.decode()
    wanted = whole(body)
    if "search" in body.decode():  # which has added its first candidates since
        found, wanted = {"cells": found["cells"]}, {"cells": wanted["cells"]}
    assert found == wanted


@pytest.mark.parametrize(("piece", "committed"), [(0, False), (0, True), (2, False), (3, True)])
def test_the_next_conductor_continues_after_a_crash(
    service: Service, settings: Settings, whole: Whole, monkeypatch: pytest.MonkeyPatch,
    piece: int, committed: bool,
) -> None:  # fmt: skip
    """It dies before a piece's transaction, or after it."""
    sweep = service.submissions.submit(spec(**WIDE)).id
    left = iter(range(piece))

    def dying(write: Callable[..., None]) -> Callable[..., None]:
        def write_or_die(*given: Any) -> None:
            last = next(left, None) is None
            if not last or committed:
                write(*given)
            if last:
                raise Killed

        return write_or_die

    store = service.store
    with monkeypatch.context() as deadly:
        for name in ("prepare", "start"):
            deadly.setattr(SweepWriter, name, dying(getattr(SweepWriter, name)))
        with pytest.raises(Killed):
            turning(settings, store).take(PIECES)
    assert rows(store, sweep) == 3 * (piece + committed)
    turning(settings, store).take(PIECES)
    assert service.sweeps.get(sweep).state == "running"
    assert written(store, sweep) == whole(spec(**WIDE))
    with_lease_over(store)
    conduct(settings)
    assert service.sweeps.get(sweep).counts.finished == TRIALS


def with_lease_over(store: Store) -> None:
    with store.database.writing() as connection:
        connection.execute(sa.update(schema.lease).values(until=0.0))


def test_who_has_lost_the_lease_writes_no_further_piece(turns: Turns, service: Service, settings: Settings) -> None:
    sweep = service.submissions.submit(spec(**WIDE)).id
    turns.take()
    other = turning(settings, turns.store)
    with pytest.raises(FencedError):
        turns.tick._expansion.advance(turns.store.sweeps.queued())
    assert rows(turns.store, sweep) == 3
    other.take(PIECES)
    assert (rows(turns.store, sweep), service.sweeps.get(sweep).state) == (TRIALS, "running")


def test_nothing_takes_a_part_for_the_whole(turns: Turns, service: Service, settings: Settings) -> None:
    """Its first cell is known: all of its trials have ended as soon as they are written."""
    with_lease_over(service.store)
    ran(service, settings, spec(**WIDE, compare={"loss": ["triplet"]}))
    sweep = service.submissions.submit(spec(**WIDE, name="wider")).id
    now = turning(settings, turns.store)
    for turn in range(1, PIECES):
        now.take()
        assert rows(now.store, sweep) == 3 * turn
        found = service.sweeps.get(sweep)
        assert (found.state, found.started, found.counts.total) == ("queued", None, 0)
        assert (found.steps.done, found.steps.percent, found.eta_seconds) == (0, 0, None)
        assert now.store.sweeps.page()[0].items[0].counts.total == 0
        assert service.sweeps.grid(sweep) == []
        assert service.store.sweeps.cell_count(sweep) == 0
        assert service.store.trials.page(sweep, None, None, None, 100).items == []
        results = now.store.trial_results.of(sweep)
        assert (results.cells, results.candidates, results.trials) == ((), (), ())
        assert list(now.store.trial_results.provenance(sweep)) == []
        assert now.writer.claims.next() is None
        assert [one for one in now.store.sweeps.cells_to_settle() if one[0] == sweep] == []
        (waiting,) = now.store.cluster.queue(None)
        assert waiting.waiting == {WaitReason.EXPANSION: TRIALS}
        with pytest.raises(ConflictError, match="are not all written yet"):
            service.commands.extend(sweep, spec(repeat={"seed": [0, 1, 2, 3]}))
        with pytest.raises(ConflictError, match="cancel it before it is deleted"):
            service.commands.delete(sweep, "wider")
    now.take()
    found = service.sweeps.get(sweep)
    assert (found.state, found.counts.finished, found.counts.waiting) == ("running", 6, 6)
    assert len(service.sweeps.grid(sweep)) == 2


@pytest.mark.parametrize(("kind", "known", "cancelled"), [("trials", 4, True), ("candidates", 2, False)])
def test_no_listing_plot_or_gauge_counts_a_part(
    turns: Turns, service: Service, settings: Settings, kind: Any, known: int, cancelled: bool
) -> None:
    """Of a sweep whose first trials are another one's, of which one failed."""
    with_lease_over(service.store)
    whole = ran(service, settings, spec(compare={"loss": ["triplet"]}, repeat={"seed": [0, 1]}))
    part = service.submissions.submit(spec(**WIDE, name="wider")).id
    now = turning(settings, turns.store)
    now.take(2)
    if cancelled:
        service.commands.cancel(part)
        now.take()
    assert rows(now.store, part) == (9 if cancelled else 6)
    with now.store.database.writing() as connection:
        connection.execute(sa.update(schema.trial).where(schema.trial.c.sweep_id == part).values(state="failed"))
    for sweep, where, count in ((None, "", known), (None, "state:failed", 0), (part, "", 0), (whole, "", known)):
        sought = RowQuery(parse(where), kind, sweep)
        page = now.store.listings.page(sought, "-trial", (), None, 100, count=True)
        assert (page.total, {row.sweep for row in page.items}) == (count, {whole} if count else set())
        drawn = RowQuery(parse(where), kind, sweep, names=("optimizer.lr",))
        assert now.store.plots.points(drawn, ["optimizer.lr"]).total == count
    assert now.store.gauges.read(None).trials == {"finished": 4}
    assert service.sweeps.get(part).problems == []


def test_a_training_that_others_share_may_end_between_two_pieces(
    turns: Turns, service: Service, settings: Settings
) -> None:
    large, small = (
        service.submissions.submit(spec(**WIDE)).id,
        service.submissions.submit(spec(name="small", compare={}, tune={"optimizer.lr": [0.001]}, repeat={})).id,
    )
    turns.take()  # one piece of each: the small one, which is behind, does not wait for the large one
    assert [service.sweeps.get(one).state for one in (large, small)] == ["queued", "running"]
    with_lease_over(service.store)
    conduct(settings)  # which trains the small one and goes on with the large one
    assert service.sweeps.get(small).state == service.sweeps.get(large).state == "finished"
    counts = service.sweeps.get(large).counts
    assert (counts.finished, counts.total) == (TRIALS, TRIALS)


def test_a_cancellation_takes_effect_between_two_pieces(turns: Turns, service: Service, settings: Settings) -> None:
    sweep = service.submissions.submit(spec(**WIDE)).id
    turns.take(2)
    asked = service.commands.cancel(sweep)
    turns.take()  # the third piece, and the request
    assert service.sweeps.get(sweep).state == "cancelled"
    assert service.store.requests.get(asked.id).state == "done"
    turns.take(2)
    assert rows(turns.store, sweep) == 9
    found = service.sweeps.get(sweep)
    assert (found.counts.total, found.steps.done, service.sweeps.grid(sweep)) == (0, 0, [])
    assert turns.store.sweeps.cells_to_settle() == []


def cancelled_in_the_middle(turns: Turns, service: Service) -> int:
    """A sweep of which two pieces were written before it was cancelled."""
    sweep = service.submissions.submit(spec(**WIDE)).id
    turns.take()
    service.commands.cancel(sweep)
    turns.take()
    return sweep


def test_what_was_cancelled_in_the_middle_is_expanded_to_its_end_if_it_is_retried(
    turns: Turns, service: Service, settings: Settings, whole: Whole
) -> None:
    sweep = cancelled_in_the_middle(turns, service)
    service.commands.retry(sweep, what="failed")
    turns.take()
    assert (service.sweeps.get(sweep).state, rows(turns.store, sweep)) == ("queued", 6)
    turns.take(PIECES)
    assert written(turns.store, sweep) == whole(spec(**WIDE))
    with_lease_over(service.store)
    conduct(settings)
    assert service.sweeps.get(sweep).counts.finished == TRIALS


def test_what_was_cancelled_in_the_middle_is_deleted_whole(turns: Turns, service: Service) -> None:
    sweep = cancelled_in_the_middle(turns, service)
    service.commands.delete(sweep, "rates")
    turns.take()
    with turns.store.database.reading() as connection:
        for table in ("sweep", "cell", "candidate", "trial", "training", "sweep_need", "trial_column"):
            assert connection.execute(sa.text(f"SELECT count(*) FROM {table}")).scalar_one() == 0, table


def test_other_requests_wait_until_there_are_trials(turns: Turns, service: Service, settings: Settings) -> None:
    sweep = service.submissions.submit(spec(**WIDE)).id
    turns.take()
    asked = [
        service.commands.pause(sweep), service.commands.retry(sweep), service.commands.prioritize(sweep, 7),
        service.commands.mirror(sweep),
    ]  # fmt: skip
    turns.take()
    assert [service.store.requests.get(one.id).state for one in asked] == ["waiting", "waiting", "done", "waiting"]
    assert service.sweeps.get(sweep).priority == 7
    turns.take(2)
    assert service.sweeps.get(sweep).state == "paused", "before anything of it could be begun"
    assert service.store.requests.get(asked[0].id).outcome == "paused"
    assert service.sweeps.get(sweep).counts.waiting == TRIALS


def test_requests_before_a_cancellation_do_not_revive_the_sweep(turns: Turns, service: Service) -> None:
    sweep = service.submissions.submit(spec(**WIDE)).id
    turns.take()
    paused, again = service.commands.pause(sweep), service.commands.retry(sweep, "ada")
    cancelled = service.commands.cancel(sweep, "bob")
    turns.take()
    assert service.sweeps.get(sweep).state == "cancelled"
    turns.take(PIECES)
    assert (service.sweeps.get(sweep).state, rows(turns.store, sweep)) == ("cancelled", 6)
    for one in (paused, again):
        found = service.store.requests.get(one.id)
        message = f"sweep {sweep} was cancelled meanwhile, as bob asked (request {cancelled.id})"
        assert (found.state, (found.outcome or "").split(";")[0]) == ("refused", message)


def test_a_fresh_sweep_trains_a_recipe_once_in_whichever_piece_it_stands(turns: Turns, service: Service) -> None:
    """The same trainings in two cells, each a piece; another fresh sweep comes between them."""
    service.submissions.submit(spec(compare={}))
    turns.take(2)
    fresh, other = (service.submissions.submit(spec(compare={}, fresh=True, name=name)).id for name in ("one", "two"))
    spec_of = Spec.model_validate(service.sweeps.get(fresh).spec)
    plan = grid.expand(spec_of, catalogs.load())
    writer, trials = turns.writer.sweeps, list(plan.trials())
    writer.prepare(fresh, PlanRows([Cell(0, {})], plan.candidates, trials), True)
    writer.start(other, PlanRows([Cell(0, {})], plan.candidates, trials), spec_of.slot, True)
    again = [replace(one, cell=1) for one in trials]
    candidates = [replace(one, cell=1) for one in plan.candidates]
    writer.start(fresh, PlanRows([Cell(1, {"loss": "again"})], candidates, again), spec_of.slot, True)
    generations = [[row[8] for row in written(turns.store, sweep)["trials"]] for sweep in (1, fresh, other)]
    assert generations == [[1] * 4, [2] * 8, [3] * 4]


def test_a_plan_that_another_release_would_have_made_otherwise_fails_with_the_reason(
    turns: Turns, service: Service, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep = service.submissions.submit(spec(**WIDE)).id
    turns.take()
    expand = grid.expand

    def otherwise(*given: Any) -> Plan:
        plan = expand(*given)
        return replace(plan, candidates=[replace(one, labels={"optimizer.lr": "1"}) for one in plan.candidates])

    monkeypatch.setattr(expansion.grid, "expand", otherwise)  # type: ignore[attr-defined]
    turning(settings, turns.store).take()
    found = service.sweeps.get(sweep)
    assert found.state == "failed"
    assert (found.error or "").startswith("cannot be expanded: another release began to write its trials")
    assert rows(turns.store, sweep) == 3


def test_a_piece_committed_without_an_answer_is_not_written_twice(
    turns: Turns, service: Service, whole: Whole, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep = service.submissions.submit(spec(**WIDE)).id
    prepare = SweepWriter.prepare

    def unheard(*given: Any) -> None:
        prepare(*given)
        raise UnavailableError("the database cannot be used: lost")

    turns.take()
    with monkeypatch.context() as lost:
        lost.setattr(SweepWriter, "prepare", unheard)
        with pytest.raises(UnavailableError):
            turns.take()
    turns.take(PIECES)
    assert written(turns.store, sweep) == whole(spec(**WIDE))


def test_requests_before_a_retry_of_a_half_expanded_sweep_are_refused(turns: Turns, service: Service) -> None:
    sweep = cancelled_in_the_middle(turns, service)
    asked = [
        service.commands.retry(sweep), service.commands.extend(sweep, spec(repeat={"seed": [0, 1, 2, 3]})),
        service.commands.pause(sweep), service.commands.cancel(sweep), service.commands.retry(sweep),
    ]  # fmt: skip
    turns.take()
    assert service.sweeps.get(sweep).state == "queued"
    turns.take(PIECES)
    found = service.sweeps.get(sweep)
    assert (found.state, found.counts.waiting) == ("running", TRIALS)
    expected = ["done", "refused", "refused", "done", "done"]
    assert [service.store.requests.get(request.id).state for request in asked] == expected
