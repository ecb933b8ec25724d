"""Changes for event streams, and messages for the webhook."""

import uuid
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import sqlalchemy as sa

from orchestrator.record.columns import DatabaseSeconds, shortened
from orchestrator.record.database import Access, FencedAccess, insertion, require_sweep, trials_by_state
from orchestrator.record.schema import cell, change, delivery, outbox, request, sweep, training, trial
from orchestrator.views.operations import Delivery, DeliveryBacklog, DeliveryEvent
from orchestrator.views.runs import ChangeEvent, ChangeKind, ChangeSpan, ChangeView
from orchestrator.views.states import SWEEP_ENDED, TRIAL_ACTIVE, SweepState, TrialState

_OF_SWEEP = frozenset({ChangeKind.SWEEP, ChangeKind.NOTICE, ChangeKind.TRIALS})
_OF_TRIAL = frozenset({ChangeKind.TRIAL, ChangeKind.PROGRESS, ChangeKind.STALLED})


class ChangeReader(Access):
    """Reads the changes of sweeps, cells and trials that event streams send."""

    def newest(self) -> int:
        """The id of the latest change in the database, or 0."""
        with self._database.reading() as connection:
            return _bound(connection, sa.func.max)

    def after(self, position: int, most: int) -> ChangeSpan:
        """The latest `most` changes after the id `position`; of several changes of one entity, the last."""
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
            return ChangeSpan(since, newest, _described(connection, rows))

    def seen(self, sweeps: Collection[int]) -> frozenset[int]:
        """Those of the given sweeps that the caller may see, including deleted sweeps."""
        ids = list(sweeps)
        there = sa.select(sweep.c.id).where(sweep.c.id.in_(ids))
        query = there.union(sa.select(request.c.sweep_id).where(request.c.sweep_id.in_(ids)))
        with self._database.reading() as connection:
            return frozenset(connection.scalars(query)) if ids else frozenset()

    def require(self, number: int) -> None:
        """Raise NotFoundError unless the sweep exists and the caller may see it."""
        with self._database.reading() as connection:
            require_sweep(connection, number)


def _bound(connection: sa.Connection, which: Any) -> int:
    return int(connection.scalar(sa.select(which(change.c.id))) or 0)


def _described(connection: sa.Connection, rows: Sequence[sa.Row[Any]]) -> list[ChangeEvent]:
    sweeps = _entities(connection, _SWEEPS, {row.entity for row in rows if row.kind in _OF_SWEEP})
    trials = _entities(connection, _TRIALS, {row.entity for row in rows if row.kind in _OF_TRIAL})
    settled = _settled(connection, {row.sweep_id for row in rows if row.kind == ChangeKind.CELL})
    described = []
    for row in rows:
        values: dict[str, Any] = {"type": row.kind, "sweep": row.sweep_id}
        if row.kind in _OF_SWEEP:
            values |= {"url": f"/v1/sweeps/{row.sweep_id}", **sweeps.get(row.entity, {})}
        elif row.kind in _OF_TRIAL:
            values |= {"trial": row.entity, "url": f"/v1/trials/{row.entity}", **trials.get(row.entity, {})}
        elif row.kind == ChangeKind.CELL:
            url = f"/v1/sweeps/{row.sweep_id}/cells/{row.entity}"
            values |= {"cell": row.entity, "url": url, "settled": (row.sweep_id, row.entity) in settled}
        else:
            values |= {"request": row.entity, "url": f"/v1/requests/{row.entity}"}
        described.append(ChangeEvent(row.id, ChangeView(**values)))
    return described


_IDS: Final[sa.BindParameter[int]] = sa.bindparam("ids", expanding=True)
_SWEEPS: Final = sa.select(sweep.c.id, sweep.c.name, sweep.c.state, sweep.c.notice, sweep.c.error).where(
    sweep.c.id.in_(_IDS)
)
_TRIALS: Final = (
    sa.select(
        trial.c.id, trial.c.cell, trial.c.state, trial.c.diverged, training.c.step, training.c.total_steps,
        training.c.score,
    )
    .join(training, training.c.id == trial.c.training_id)
    .where(trial.c.id.in_(_IDS))
)  # fmt: skip


def _entities(connection: sa.Connection, query: sa.Select[Any], ids: Collection[int]) -> dict[int, dict[str, Any]]:
    rows = connection.execute(query, {"ids": list(ids)}).mappings() if ids else ()
    return {row["id"]: {name: value for name, value in row.items() if name != "id"} for row in rows}


def _settled(connection: sa.Connection, sweeps: Collection[int]) -> set[tuple[int, int]]:
    query = sa.select(cell.c.sweep_id, cell.c.cell).where(cell.c.sweep_id.in_(sweeps), cell.c.settled.is_not(None))
    return {(row.sweep_id, row.cell) for row in connection.execute(query)} if sweeps else set()


_FAR_SECONDS: Final = 7_200.0
"""Longer than any pause: a delivery due later is from before the database's clock was set back."""


class DeliveryReader(Access):
    """Reads the webhook messages that are queued, failed or given up."""

    def due(self, limit: int) -> list[Delivery]:
        """The webhook messages to send now, the longest waiting first."""
        now = DatabaseSeconds()
        due = sa.or_(delivery.c.next_try <= now, delivery.c.next_try > now + _FAR_SECONDS)
        query = sa.select(delivery, (now - delivery.c.created).label("age"))
        query = query.where(delivery.c.state == "waiting", due).order_by(delivery.c.next_try, delivery.c.id)
        return [
            Delivery(
                row.id, row.uid, DeliveryEvent(row.event), row.sweep_id, row.payload,
                datetime.fromtimestamp(row.created, UTC), row.tries, float(row.age),
            )
            for row in self._rows(query.limit(limit))
        ]  # fmt: skip

    def backlog(self) -> DeliveryBacklog:
        """The numbers of webhook messages that wait, have failed or were given up."""
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
            error = connection.scalar(last) if row.failing or row.given_up else None
        return DeliveryBacklog(row.waiting, max(0.0, float(row.age or 0.0)), row.failing, row.given_up, error)


MOST_NAMED: Final = 100
"""Changed trials that a transaction names for a sweep; if there are more, only the sweep is named."""
KEPT: Final = 20_000
"""Changes that are kept, for some minutes of a busy cluster."""

_CHANGE: Final = sa.insert(change)
_CAME_FURTHER: Final = _CHANGE.from_select(
    ["kind", "sweep_id", "entity"],
    sa.select(sa.literal(ChangeKind.PROGRESS.value), trial.c.sweep_id, trial.c.id).where(
        trial.c.training_id == sa.bindparam("mine"), trial.c.state.in_(TRIAL_ACTIVE)
    ),
).returning(change.c.sweep_id, change.c.entity)


def note(connection: sa.Connection, kind: ChangeKind, sweep: int, entity: int, state: str | None = None) -> None:
    """Record for the event streams that a sweep, cell, trial or request changed.

    `state`: the state that a sweep has entered.
    """
    row = {"kind": kind, "sweep_id": sweep, "entity": entity, "state": state}
    connection.execute(_CHANGE, [row])


def note_trials(connection: sa.Connection, rows: Iterable[tuple[int, int]]) -> None:
    """Record for the event streams that trials entered a state; `rows` are (sweep, trial)."""
    changed = list(dict.fromkeys(rows))
    many = {sweep for sweep, count in Counter(sweep for sweep, _ in changed).items() if count > MOST_NAMED}
    named = [(ChangeKind.TRIAL, sweep, one) for sweep, one in changed if sweep not in many]
    named += [(ChangeKind.TRIALS, sweep, sweep) for sweep in sorted(many)]
    if named:
        keys = ("kind", "sweep_id", "entity")
        connection.execute(_CHANGE, [dict(zip(keys, values, strict=True)) for values in named])


def note_progress(connection: sa.Connection, training_id: int) -> list[tuple[int, int]]:
    """Record for the event streams that a training progressed; returns its active trials as (sweep, trial)."""
    rows = connection.execute(_CAME_FURTHER, {"mine": training_id}).all()
    return [(row.sweep_id, row.entity) for row in rows]


def lock_changes(connection: sa.Connection) -> None:
    """Lock the table of changes until the transaction ends; a client's transaction calls it first."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("LOCK TABLE change IN EXCLUSIVE MODE")


class ChangeWriter(FencedAccess):
    """Deletes old changes, which no event stream reads any more."""

    def prune(self) -> None:
        """Delete all but the latest changes of the event streams."""
        newest = sa.select(sa.func.max(change.c.id)).scalar_subquery()
        with self._database.writing() as connection:
            connection.execute(sa.delete(change).where(change.c.id <= newest - KEPT))


QUIET_SECONDS: Final = 3_600.0
"""The least time between two messages that trainings of a sweep stall, or that it is blocked."""
_KEPT_SECONDS: Final = 7 * 86_400.0
"""How long deliveries are kept that succeeded or were given up."""
MOST_DETAIL: Final = 500


def queue_delivery_state(connection: sa.Connection, number: int, state: str) -> None:
    """Queue a webhook message if the new state ends the sweep."""
    if state in SWEEP_ENDED:
        _queue_delivery(connection, DeliveryEvent(f"sweep.{SweepState(state)}"), number, {})


def queue_delivery_stalled(connection: sa.Connection, trials: Iterable[tuple[int, int]], message: str) -> None:
    """Queue a webhook message about the first stalled trial of each sweep; `trials` are (sweep, trial)."""
    for number, stalled in dict(sorted(trials, reverse=True)).items():
        _queue_rare_delivery(
            connection, DeliveryEvent.STALLED, number, {"trial": stalled, "detail": message[:MOST_DETAIL]}
        )


def queue_delivery_blocked(connection: sa.Connection, number: int, notice: str) -> None:
    """Queue a webhook message with the reason why trials of a sweep wait."""
    _queue_rare_delivery(connection, DeliveryEvent.BLOCKED, number, {"detail": notice[:MOST_DETAIL]})


def _queue_rare_delivery(connection: sa.Connection, event: DeliveryEvent, number: int, more: dict[str, Any]) -> None:
    its = (delivery.c.sweep_id == number, delivery.c.event == event)
    lately = sa.select(delivery.c.id).where(*its, delivery.c.created > DatabaseSeconds() - QUIET_SECONDS)
    if connection.execute(lately.limit(1)).first() is None:
        _queue_delivery(connection, event, number, more)


def _queue_delivery(connection: sa.Connection, event: DeliveryEvent, number: int, more: dict[str, Any]) -> None:
    columns = (sweep.c.name, sweep.c.state, sweep.c.total)
    row = connection.execute(sa.select(*columns).where(sweep.c.id == number)).one()
    counts = {state.value: 0 for state in TrialState} | trials_by_state(connection, number)
    payload = {"sweep": number, "name": row.name, "state": row.state, "trials": row.total, "counts": counts, **more}
    values = {"uid": str(uuid.uuid4()), "event": event, "sweep_id": number, "payload": payload, "state": "waiting"}
    connection.execute(sa.insert(delivery), [values])


class DeliveryWriter(FencedAccess):
    """Records whether webhook messages were delivered."""

    def delivered(self, number: int) -> None:
        """Record that the webhook accepted a message."""
        self._settle(number, {"state": "delivered", "error": None})

    def give_up(self, number: int, error: str) -> None:
        """Record that a webhook message failed and is not tried again."""
        values = {"state": "given_up", "tries": delivery.c.tries + 1, "error": shortened(error)}
        self._settle(number, values)

    def postpone(self, number: int, error: str, seconds: float) -> None:
        """Record that a webhook message failed and is tried again in `seconds`."""
        later = {"next_try": DatabaseSeconds() + seconds, "tries": delivery.c.tries + 1, "error": shortened(error)}
        self._settle(number, later)

    def prune(self, wanted: bool) -> None:
        """Delete old webhook messages. If there is no webhook (not `wanted`), also the waiting messages."""
        old = sa.and_(delivery.c.state != "waiting", delivery.c.created < DatabaseSeconds() - _KEPT_SECONDS)
        gone = old if wanted else sa.or_(old, delivery.c.state == "waiting")
        with self._database.reading() as connection:
            if connection.execute(sa.select(delivery.c.id).where(gone).limit(1)).first() is None:
                return
        with self._database.writing() as connection:
            connection.execute(sa.delete(delivery).where(gone))

    def _settle(self, number: int, values: dict[str, Any]) -> None:
        with self._database.writing() as connection:
            connection.execute(sa.update(delivery).where(delivery.c.id == number).values(values))


REST_SECONDS: Final = 5.0
"""How long progress may wait before it is mirrored, so that several messages are sent to MLflow at once."""


def mark_sweep(connection: sa.Connection, sweep: int, state: str | None = None) -> None:
    """Mark a sweep as changed, for MLflow, event streams and the webhook; `state` is a newly entered state."""
    _mark(connection, "sweep", sweep, [sweep])
    note(connection, ChangeKind.SWEEP, sweep, sweep, state)
    if state is not None:
        queue_delivery_state(connection, sweep, state)


def mark_cell(connection: sa.Connection, sweep: int, index: int) -> None:
    """Mark a cell as changed, for MLflow and the event streams."""
    _mark(connection, "cell", sweep, [index])
    note(connection, ChangeKind.CELL, sweep, index)


def mark_whole(connection: sa.Connection, sweep: int, trials: list[int], cells: list[int]) -> None:
    """Mark the MLflow runs of a sweep, its cells and its trials as outdated; the sweep is sent last."""
    _mark(connection, "trial", sweep, trials)
    _mark(connection, "cell", sweep, cells)
    _mark(connection, "sweep", sweep, [sweep])


def mark_trials(connection: sa.Connection, rows: list[tuple[int, int]], rest: float = 0.0) -> None:
    """Mark the MLflow runs of trials, given as (sweep, trial), as outdated.

    They are sent after `rest` seconds at the earliest.
    """
    _upsert(connection, [{"kind": "trial", "sweep_id": sweep, "entity": trial} for sweep, trial in rows], rest)


def trials_changed(connection: sa.Connection, rows: list[tuple[int, int]]) -> None:
    """Mark trials, given as (sweep, trial), as changed, for MLflow and the event streams."""
    mark_trials(connection, rows)
    note_trials(connection, rows)


def _mark(connection: sa.Connection, kind: str, sweep: int, entities: Iterable[int]) -> None:
    _upsert(connection, [{"kind": kind, "sweep_id": sweep, "entity": entity} for entity in entities], 0.0)


def _upsert(connection: sa.Connection, rows: list[dict[str, object]], rest: float) -> None:
    if not rows:
        return
    # A mark that is being sent must survive if it is set again meanwhile, which its version shows.
    again: dict[str, object] = {"version": outbox.c.version + 1}
    inserting = insertion(connection, outbox)
    if rest:
        inserting = inserting.values({"next_try": DatabaseSeconds() + rest})
    else:  # due now, even if it was resting or had failed
        again["next_try"] = 0.0
    keys = ["kind", "sweep_id", "entity"]
    connection.execute(inserting.on_conflict_do_update(index_elements=keys, set_=again), rows)
