"""Changes for event streams, and deliveries to the webhook."""

import functools
import uuid
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import sqlalchemy as sa

from orchestrator.record.columns import MAX_MESSAGE, DatabaseSeconds, storable
from orchestrator.record.database import Access, FencedAccess, insertion_of, require_sweep
from orchestrator.record.schema import cell, change, delivery, outbox, request, sweep, training, trial
from orchestrator.views.operations import Delivery, DeliveryBacklog, DeliveryEvent
from orchestrator.views.runs import ChangeKind, ChangeSpan, ChangeView, Told
from orchestrator.views.states import SWEEP_ENDED, TRIAL_ACTIVE, SweepState, TrialState

_OF_SWEEP = frozenset({ChangeKind.SWEEP, ChangeKind.NOTICE, ChangeKind.TRIALS})
_OF_TRIAL = frozenset({ChangeKind.TRIAL, ChangeKind.PROGRESS, ChangeKind.STALLED})


class ChangeReader(Access):
    """Reads changes."""

    def newest(self) -> int:
        """The id of the latest change; 0: there was none yet."""
        with self._database.reading() as connection:
            return _bound(connection, sa.func.max)

    def after(self, position: int, most: int) -> ChangeSpan:
        """The changes after an id, the latest `most` of them; of several of one thing the last."""
        with self._database.reading() as connection:
            newest = _bound(connection, sa.func.max)
            if newest == position:
                return ChangeSpan(position, newest, [])
            since = max(0, _bound(connection, sa.func.min) - 1, newest - most)
            if position <= newest:
                since = max(position, since)
            query = sa.select(change).where(change.c.id > since, change.c.id <= newest).order_by(change.c.id)
            latest = {(row.kind, row.sweep_id, row.entity): row for row in connection.execute(query)}
            rows = sorted(latest.values(), key=lambda row: row.id)
            return ChangeSpan(since, newest, _told(connection, rows))

    def seen(self, sweeps: Collection[int]) -> frozenset[int]:
        """Those of the sweeps that the caller sees, also of those that were deleted."""
        ids = list(sweeps)
        there = sa.select(sweep.c.id).where(sweep.c.id.in_(ids))
        query = there.union(sa.select(request.c.sweep_id).where(request.c.sweep_id.in_(ids)))
        with self._database.reading() as connection:
            return frozenset(connection.execute(query).scalars()) if ids else frozenset()

    def require(self, number: int) -> None:
        """Raise NotFoundError unless there is such a sweep."""
        with self._database.reading() as connection:
            require_sweep(connection, number)


def _bound(connection: sa.Connection, which: Any) -> int:
    return int(connection.execute(sa.select(which(change.c.id))).scalar() or 0)


def _told(connection: sa.Connection, rows: Sequence[sa.Row[Any]]) -> list[Told]:
    by_kind: dict[str, set[int]] = defaultdict(set)
    for row in rows:
        by_kind[row.kind].add(row.entity)
    sweeps = _sweeps(connection, set[int]().union(*(by_kind[kind] for kind in _OF_SWEEP)))
    trials = _trials(connection, set[int]().union(*(by_kind[kind] for kind in _OF_TRIAL)))
    settled = _settled(connection, {row.sweep_id for row in rows if row.kind == ChangeKind.CELL})
    told = []
    for row in rows:
        said: dict[str, Any] = {"type": row.kind, "sweep": row.sweep_id}
        if row.kind in _OF_SWEEP:
            said |= {"url": f"/v1/sweeps/{row.sweep_id}", **sweeps.get(row.entity, {})}
        elif row.kind in _OF_TRIAL:
            said |= {"trial": row.entity, "url": f"/v1/trials/{row.entity}", **trials.get(row.entity, {})}
        elif row.kind == ChangeKind.CELL:
            url = f"/v1/sweeps/{row.sweep_id}/cells/{row.entity}"
            said |= {"cell": row.entity, "url": url, "settled": (row.sweep_id, row.entity) in settled}
        else:
            said |= {"request": row.entity, "url": f"/v1/requests/{row.entity}"}
        told.append(Told(row.id, ChangeView(**said)))
    return told


def _sweeps(connection: sa.Connection, wanted: Collection[int]) -> dict[int, dict[str, Any]]:
    columns = (sweep.c.id, sweep.c.name, sweep.c.state, sweep.c.notice, sweep.c.error)
    rows = connection.execute(sa.select(*columns).where(sweep.c.id.in_(wanted))) if wanted else ()
    return {row.id: {"name": row.name, "state": row.state, "notice": row.notice, "error": row.error} for row in rows}


def _trials(connection: sa.Connection, wanted: Collection[int]) -> dict[int, dict[str, Any]]:
    columns = (
        trial.c.id, trial.c.cell, trial.c.state, trial.c.diverged, training.c.step, training.c.total_steps,
        training.c.score,
    )  # fmt: skip
    query = sa.select(*columns).join(training, training.c.id == trial.c.training_id).where(trial.c.id.in_(wanted))
    rows = connection.execute(query) if wanted else ()
    keys = [column.name for column in columns if column is not trial.c.id]
    return {row.id: {key: getattr(row, key) for key in keys} for row in rows}


def _settled(connection: sa.Connection, sweeps: Collection[int]) -> set[tuple[int, int]]:
    query = sa.select(cell.c.sweep_id, cell.c.cell).where(cell.c.sweep_id.in_(sweeps), cell.c.settled.is_not(None))
    return {(row.sweep_id, row.cell) for row in connection.execute(query)} if sweeps else set()


FAR_SECONDS: Final = 7_200.0
"""Beyond any pause: what is due later than that is from before the database's clock was set back."""


class DeliveryReader(Access):
    """Reads deliveries."""

    def due(self, limit: int) -> list[Delivery]:
        """Those that are due, those first that wait longest."""
        now = DatabaseSeconds()
        due = sa.or_(delivery.c.next_try <= now, delivery.c.next_try > now + FAR_SECONDS)
        query = sa.select(delivery, (now - delivery.c.created).label("age"))
        query = query.where(delivery.c.state == "waiting", due).order_by(delivery.c.next_try, delivery.c.id)
        with self._database.reading() as connection:
            return [_of(row) for row in connection.execute(query.limit(limit))]

    def backlog(self) -> DeliveryBacklog:
        """What was not taken."""
        waits = delivery.c.state == "waiting"
        columns = (
            sa.func.count(sa.case((waits, 1))).label("waiting"),
            (DatabaseSeconds() - sa.func.min(sa.case((waits, delivery.c.created)))).label("age"),
            sa.func.count(sa.case((sa.and_(waits, delivery.c.tries > 0), 1))).label("failing"),
            sa.func.count(sa.case((delivery.c.state == "given_up", 1))).label("given_up"),
        )
        last = sa.select(delivery.c.error).where(delivery.c.error.is_not(None)).order_by(delivery.c.id.desc()).limit(1)
        with self._database.reading() as connection:
            row = connection.execute(sa.select(*columns)).one()
            error = connection.execute(last).scalar() if row.failing or row.given_up else None
        return DeliveryBacklog(row.waiting, max(0.0, float(row.age or 0.0)), row.failing, row.given_up, error)


def _of(row: sa.Row[tuple[object, ...]]) -> Delivery:
    at = datetime.fromtimestamp(row.created, UTC)
    event = DeliveryEvent(row.event)
    return Delivery(row.id, row.uid, event, row.sweep_id, row.said, at, row.tries, float(row.age))


MOST_NAMED: Final = 100
"""Trials of a sweep that one transaction names: of more it is said that many changed."""
KEPT: Final = 20_000
"""Changes that are kept: some minutes of a busy cluster. Who comes back later is told to look anew."""

# Made once, since every training tells of itself.
_CHANGE: Final = sa.insert(change)
_CAME_FURTHER: Final = _CHANGE.from_select(
    ["kind", "sweep_id", "entity"],
    sa.select(sa.literal(ChangeKind.PROGRESS.value), trial.c.sweep_id, trial.c.id).where(
        trial.c.training_id == sa.bindparam("mine"), trial.c.state.in_(TRIAL_ACTIVE)
    ),
).returning(change.c.sweep_id, change.c.entity)


def note(connection: sa.Connection, kind: ChangeKind, sweep: int, entity: int, state: str | None = None) -> None:
    """Note that one thing changed; of a sweep, which state it entered."""
    row = {"kind": kind, "sweep_id": sweep, "entity": entity, "state": state}
    connection.execute(_CHANGE, [row])


def note_trials(connection: sa.Connection, rows: Iterable[tuple[int, int]]) -> None:
    """Note that trials entered a state, given as (sweep, trial)."""
    changed = list(dict.fromkeys(rows))
    many = {sweep for sweep, count in Counter(sweep for sweep, _ in changed).items() if count > MOST_NAMED}
    named = [(ChangeKind.TRIAL, sweep, one) for sweep, one in changed if sweep not in many]
    named += [(ChangeKind.TRIALS, sweep, sweep) for sweep in sorted(many)]
    if named:
        keys = ("kind", "sweep_id", "entity")
        connection.execute(_CHANGE, [dict(zip(keys, values, strict=True)) for values in named])


def note_progress(connection: sa.Connection, training_id: int) -> list[tuple[int, int]]:
    """Note that the active trials of a training came further; gives them as (sweep, trial)."""
    rows = connection.execute(_CAME_FURTHER, {"mine": training_id}).all()
    return [(row.sweep_id, row.entity) for row in rows]


def note_stalled(connection: sa.Connection, rows: Iterable[tuple[int, int]]) -> None:
    """Note that trials, given as (sweep, trial), were silent for too long."""
    for number, stalled in rows:
        note(connection, ChangeKind.STALLED, number, stalled)


def alone(connection: sa.Connection) -> None:
    """Let nobody else note a change before this transaction, which is no conductor's, has ended; called first in it."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("LOCK TABLE change IN EXCLUSIVE MODE")


class ChangeWriter(FencedAccess):
    """Keeps the changes few."""

    def prune(self) -> None:
        """Forget all but the latest."""
        newest = sa.select(sa.func.max(change.c.id)).scalar_subquery()
        with self._database.writing() as connection:
            connection.execute(sa.delete(change).where(change.c.id <= newest - KEPT))


QUIET_SECONDS: Final = 3_600.0
"""Of one sweep that trainings stall, or that it is hindered, is told once in so long."""
KEPT_SECONDS: Final = 7 * 86_400.0
"""How long one sees what was delivered or given up."""
MOST_DETAIL: Final = 500


def tell_state(connection: sa.Connection, number: int, state: str) -> None:
    """Have told that a sweep has entered a state, if that ends it."""
    if state in SWEEP_ENDED:
        _tell(connection, DeliveryEvent(f"sweep.{SweepState(state)}"), number, {})


def tell_stalled(connection: sa.Connection, trials: Iterable[tuple[int, int]], message: str) -> None:
    """Have told that trials, given as (sweep, trial), were silent for too long; of each sweep the first."""
    for number, stalled in dict(sorted(trials, reverse=True)).items():
        _tell_at_times(connection, DeliveryEvent.STALLED, number, {"trial": stalled, "detail": message[:MOST_DETAIL]})


def tell_hindered(connection: sa.Connection, number: int, notice: str) -> None:
    """Have told why trials of a sweep wait."""
    _tell_at_times(connection, DeliveryEvent.HINDERED, number, {"detail": notice[:MOST_DETAIL]})


def _tell_at_times(connection: sa.Connection, event: DeliveryEvent, number: int, more: dict[str, Any]) -> None:
    its = (delivery.c.sweep_id == number, delivery.c.event == event)
    lately = sa.select(delivery.c.id).where(*its, delivery.c.created > DatabaseSeconds() - QUIET_SECONDS)
    if connection.execute(lately.limit(1)).first() is None:
        _tell(connection, event, number, more)


def _tell(connection: sa.Connection, event: DeliveryEvent, number: int, more: dict[str, Any]) -> None:
    columns = (sweep.c.name, sweep.c.state, sweep.c.total)
    row = connection.execute(sa.select(*columns).where(sweep.c.id == number)).one()
    by_state = sa.select(trial.c.state, sa.func.count().label("n")).where(trial.c.sweep_id == number)
    counted = {one.state: one.n for one in connection.execute(by_state.group_by(trial.c.state))}
    counts = {state.value: counted.get(state, 0) for state in TrialState}
    said = {"sweep": number, "name": row.name, "state": row.state, "trials": row.total, "counts": counts, **more}
    values = {"uid": str(uuid.uuid4()), "event": event, "sweep_id": number, "said": said, "state": "waiting"}
    connection.execute(sa.insert(delivery), [values])


class DeliveryWriter(FencedAccess):
    """Writes what became of deliveries."""

    def delivered(self, number: int) -> None:
        """The webhook has taken it."""
        self._settle(number, {"state": "delivered", "error": None})

    def give_up(self, number: int, error: str) -> None:
        """It is not tried again."""
        self._settle(number, {"state": "given_up", "tries": delivery.c.tries + 1, "error": _kept(error)})

    def postpone(self, number: int, error: str, seconds: float) -> None:
        """Try it again in `seconds`, and keep why."""
        later = {"next_try": DatabaseSeconds() + seconds, "tries": delivery.c.tries + 1, "error": _kept(error)}
        self._settle(number, later)

    def prune(self, wanted: bool) -> None:
        """Forget what was settled long ago; where no webhook is named (not `wanted`), also what waits."""
        old = sa.and_(delivery.c.state != "waiting", delivery.c.created < DatabaseSeconds() - KEPT_SECONDS)
        gone = old if wanted else sa.or_(old, delivery.c.state == "waiting")
        with self._database.reading() as connection:
            if connection.execute(sa.select(delivery.c.id).where(gone).limit(1)).first() is None:
                return
        with self._database.writing() as connection:
            connection.execute(sa.delete(delivery).where(gone))

    def _settle(self, number: int, values: dict[str, Any]) -> None:
        with self._database.writing() as connection:
            connection.execute(sa.update(delivery).where(delivery.c.id == number).values(values))


def _kept(error: str) -> str:
    return storable(error)[:MAX_MESSAGE]


REST_SECONDS: Final = 5.0
"""How long what a training says on its way may wait: MLflow is told of several messages at once, of a short training
once altogether."""
MAY_BE_SHOWN: Final = sa.or_(trial.c.started.is_not(None), trial.c.mlflow_run.is_not(None))
"""Whether the tracker may show a run of a trial: that of one which has begun may be on its way there, and is noted only
once it was told. Not for RETURNING: there SQLite 3.40 says so of every row."""


def mark_sweep(connection: sa.Connection, sweep: int, state: str | None = None) -> None:
    """Note that a sweep changed, and which state it entered by that."""
    _upsert(connection, [{"kind": "sweep", "sweep_id": sweep, "entity": sweep}], 0.0)
    note(connection, ChangeKind.SWEEP, sweep, sweep, state)
    if state is not None:
        tell_state(connection, sweep, state)


def mark_cell(connection: sa.Connection, sweep: int, index: int) -> None:
    """Note that a cell changed."""
    _upsert(connection, [{"kind": "cell", "sweep_id": sweep, "entity": index}], 0.0)
    note(connection, ChangeKind.CELL, sweep, index)


def mark_whole(connection: sa.Connection, sweep: int, trials: list[int], cells: list[int]) -> None:
    """Note that the tracker is to be told of all these, though none changed; the sweep comes last."""
    _upsert(connection, [{"kind": "trial", "sweep_id": sweep, "entity": trial} for trial in trials], 0.0)
    _upsert(connection, [{"kind": "cell", "sweep_id": sweep, "entity": cell} for cell in cells], 0.0)
    _upsert(connection, [{"kind": "sweep", "sweep_id": sweep, "entity": sweep}], 0.0)


def may_be_shown(row: sa.Row[Any]) -> bool:
    """`MAY_BE_SHOWN` of a row of trials that was read or returned."""
    return row.started is not None or row.mlflow_run is not None


def mark_trials(connection: sa.Connection, rows: list[tuple[int, int]], rest: float = 0.0) -> None:
    """Note that the runs of trials changed, given as (sweep, trial); they may rest for so many seconds first."""
    _upsert(connection, [{"kind": "trial", "sweep_id": sweep, "entity": trial} for sweep, trial in rows], rest)


def _upsert(connection: sa.Connection, rows: list[dict[str, object]], rest: float) -> None:
    if not rows:
        return
    connection.execute(_marking(connection.dialect.name, rest), rows)


@functools.cache
def _marking(dialect: str, rest: float) -> sa.Insert:
    """Made once for each of the few rests that there are: every training marks itself several times."""
    # A mark that is being sent just now must outlive the sending: its version tells.
    again: dict[str, object] = {"version": outbox.c.version + 1}
    inserting = insertion_of(dialect, outbox)
    if rest:
        inserting = inserting.values({"next_try": DatabaseSeconds() + rest})
    else:  # what rests is due now, and what failed is at once tried as it is now
        again["next_try"] = 0.0
    return inserting.on_conflict_do_update(index_elements=["kind", "sweep_id", "entity"], set_=again)
