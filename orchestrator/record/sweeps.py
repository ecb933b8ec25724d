"""Sweeps: how people see them, and their life as the conductor writes it."""

import uuid
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Final

import sqlalchemy as sa

from orchestrator.record import schema, trial_rows
from orchestrator.record.changes import mark_cell, mark_sweep, note
from orchestrator.record.columns import MAX_MESSAGE, UtcTime, storable
from orchestrator.record.database import (
    Access,
    Database,
    FencedAccess,
    absence,
    chunked,
    decode,
    encode,
    of_candidate,
    require_sweep,
)
from orchestrator.record.lease import extend
from orchestrator.record.progress import Headway, Headways
from orchestrator.record.requests import latest_requests, note_look
from orchestrator.record.schema import (
    attempt,
    candidate,
    cell,
    log,
    metric,
    past_attempt,
    project,
    resolution,
    training,
    trial,
)
from orchestrator.record.schema import tag as tags_table
from orchestrator.record.trainings import evaluation_failed, evaluation_left
from orchestrator.record.transitions import RETRIED_ALL, cancel_trials, prune_added, retry_trials
from orchestrator.record.trial_rows import TrialRows, insert
from orchestrator.record.trials import UNEXPANDED, WRITTEN, is_expanded, unexpanded
from orchestrator.spec.axes import Slot
from orchestrator.views.errors import ConflictError, NotFoundError
from orchestrator.views.pages import Page
from orchestrator.views.runs import Candidate, Cell, ChangeKind, Extension, PlannedTrial
from orchestrator.views.states import (
    SWEEP_ENDED,
    SWEEP_GOING,
    SWEEP_STEPS,
    TRIAL_ACTIVE,
    SweepState,
    TrialState,
    before,
)
from orchestrator.views.sweeps import (
    Counts,
    GridCandidate,
    GridCell,
    GridTrial,
    PartUse,
    Reuse,
    SweepSummary,
    SweepView,
    TrialProblem,
)


@dataclass(frozen=True, slots=True)
class Deletion:
    """What goes with a sweep beside its rows."""

    trainings: tuple[str, ...]  # uids: folders of the storage
    busy: bool  # whether one of the trainings is still being stopped, and writes into its folder meanwhile


def deletion(connection: sa.Connection, sweep: int) -> Deletion | None:
    """What only this sweep uses; none when there is no such sweep (any more); ConflictError while it goes on."""
    table = schema.sweep
    state = connection.execute(sa.select(table.c.state).where(table.c.id == sweep)).scalar_one_or_none()
    if state is None:
        return None
    if state not in SWEEP_ENDED:
        raise ConflictError(f"sweep {sweep} is {state}; cancel it before it is deleted")
    uids = connection.execute(sa.select(training.c.uid).where(training.c.id.in_(only_of(sweep)))).scalars()
    stopping = attempt.c.training_id.in_(only_of(sweep)), attempt.c.state == "running"
    busy = connection.execute(sa.select(attempt.c.id).where(*stopping).limit(1)).first() is not None
    return Deletion(tuple(uids), busy)


def only_of(sweep: int) -> sa.Select[tuple[int]]:
    """The ids of the trainings that trials of this sweep point to and of no other, with those that they replaced.

    With them go those that evaluate them, and those that they evaluate, where no other sweep shows these. One that is
    still evaluated stays: its file is what stands behind another one's numbers.
    """
    mine = sa.select(trial.c.training_id.label("id")).where(trial.c.sweep_id == sweep)
    to_be = sa.select(trial.c.evaluation_id).where(trial.c.sweep_id == sweep, trial.c.evaluation_id.is_not(None))
    its = mine.union(to_be).subquery()
    first = sa.select(training.c.id, training.c.source).join(its, its.c.id == training.c.id)
    alone = first.where(~_shown_elsewhere(sweep)).cte(recursive=True)
    kin = sa.or_(
        training.c.heir == alone.c.id, training.c.source == alone.c.id, training.c.id == alone.c.source
    )  # fmt: skip
    following = sa.select(training.c.id, training.c.source).join(alone, kin).where(~_shown_elsewhere(sweep))
    family = alone.union(following)
    other = training.alias("other_training")
    needed = sa.exists().where(other.c.source == family.c.id, other.c.id.not_in(sa.select(family.c.id)))
    return sa.select(family.c.id).where(~needed)


def _shown_elsewhere(sweep: int) -> sa.ColumnElement[bool]:
    """Whether a trial of another sweep points to a training, or is to."""
    other = trial.alias("other")
    points = sa.exists().where(other.c.training_id == training.c.id, other.c.sweep_id != sweep)
    return sa.or_(points, sa.exists().where(other.c.evaluation_id == training.c.id, other.c.sweep_id != sweep))


# Made once: pages ask them every few seconds.
_THEIRS: Final = trial.c.sweep_id.in_(sa.bindparam("sweeps", expanding=True))
_GROUPED: Final = (trial.c.sweep_id, trial.c.state, trial.c.reused, trial.c.diverged)
_COUNTS: Final = sa.select(*_GROUPED, sa.func.count().label("n")).where(_THEIRS).group_by(*_GROUPED)
_EACH: Final = sa.select(trial.c.sweep_id, sa.func.count().label("n")).where(_THEIRS).group_by(trial.c.sweep_id)
_EVALUATED: Final = {
    "evaluations": _EACH.where(evaluation_left()),
    "evaluations_failed": _EACH.where(evaluation_failed()),
}


def counts_of(connection: sa.Connection, sweeps: Sequence[int]) -> dict[int, Counts]:
    """Those of each of the sweeps."""
    by_sweep = {number: Counts() for number in sweeps}
    for row in connection.execute(_COUNTS, {"sweeps": sweeps}):
        counts = by_sweep[row.sweep_id]
        setattr(counts, row.state, getattr(counts, row.state) + row.n)
        counts.reused += row.n if row.reused else 0
        counts.diverged += row.n if row.diverged else 0
    for name, query in _EVALUATED.items():
        for row in connection.execute(query, {"sweeps": sweeps}):
            setattr(by_sweep[row.sweep_id], name, row.n)
    return by_sweep


def grid(connection: sa.Connection, sweep: int, most: int | None) -> list[GridCell]:
    """All of it; with `most`, the first cells alone, as far as they have so many trials together."""
    place = (trial.c.cell, trial.c.candidate, trial.c.repeat)
    trials = sa.select(*place, trial.c.id, trial.c.state, trial.c.diverged, trial.c.score)
    trials = trials.where(trial.c.sweep_id == sweep).order_by(*place).limit(most)
    squares: dict[tuple[int, int], list[GridTrial]] = defaultdict(list)
    scores: dict[tuple[int, int], list[float]] = defaultdict(list)
    count = 0
    for index, number, repeat, id_, state, diverged, score in connection.execute(trials).tuples():
        squares[index, number].append(GridTrial(id_, repeat, TrialState(state), diverged))
        if state == TrialState.FINISHED and score is not None:
            scores[index, number].append(score)
        count += 1
    cells = sa.select(cell.c.cell, cell.c.labels, cell.c.summary["candidate"].as_integer())
    cells = cells.where(cell.c.sweep_id == sweep).order_by(cell.c.cell)
    candidates = sa.select(candidate.c.cell, candidate.c.candidate, candidate.c.labels)
    candidates = candidates.where(candidate.c.sweep_id == sweep).order_by(candidate.c.cell, candidate.c.candidate)
    if count == most:  # the last candidate may be cut, too: it goes, and what is drawn has only whole ones
        end = max(squares)
        cells = cells.where(cell.c.cell <= end[0])
        candidates = candidates.where(sa.tuple_(candidate.c.cell, candidate.c.candidate) < sa.tuple_(*end))
    found: dict[int, GridCell] = {}
    selected: dict[int, int | None] = {}
    for index, labels, chosen in connection.execute(cells).tuples():
        found[index], selected[index] = GridCell(index, labels, []), chosen
    for index, number, labels in connection.execute(candidates).tuples():
        its, known = squares[index, number], scores[index, number]
        mean = sum(known) / len(known) if known else None
        found[index].candidates.append(GridCandidate(labels, its, selected[index] == number, mean))
    return list(found.values())


MAX_PROBLEMS: Final = 100
"""Failed and diverged trials that a sweep's page names."""


def _told() -> sa.Select[Any]:
    """Troubled trials with what their problems are told from."""
    new = training.alias()
    return (
        sa.select(
            trial.c.id, trial.c.state, trial.c.repeat_labels, trial.c.diverged, training.c.error,
            cell.c.labels.label("cell_labels"), candidate.c.labels.label("candidate_labels"),
            trial.c.evaluation_id, new.c.error.label("evaluation_error"), new.c.recipe["metrics"].label("metrics"),
        )
        .join(training, training.c.id == trial.c.training_id)
        .outerjoin(new, new.c.id == trial.c.evaluation_id)
        .join(cell, sa.and_(cell.c.sweep_id == trial.c.sweep_id, cell.c.cell == trial.c.cell))
        .join(candidate, of_candidate())
        .where(trial.c.id.in_(sa.bindparam("trials", expanding=True)))
        .order_by(trial.c.position)
        .limit(MAX_PROBLEMS)
    )  # fmt: skip


def _troubled() -> tuple[sa.Select[tuple[int]], ...]:
    """The first trials that failed, and the first that diverged: each by an index, however many others there are."""
    columns = sa.select(trial.c.id).where(trial.c.sweep_id == sa.bindparam("sweep")).limit(MAX_PROBLEMS)
    failed = columns.where(trial.c.state == TrialState.FAILED).order_by(trial.c.position)
    finished, in_order = trial.c.state == TrialState.FINISHED, trial.c.id
    diverged = [columns.where(finished, trial.c.reused == reused, trial.c.diverged) for reused in (False, True)]
    return failed, *(query.order_by(in_order) for query in (columns.where(evaluation_failed()), *diverged))


# Made once: pages ask them every few seconds.
_TOLD: Final = _told()
_TROUBLED: Final = _troubled()


def problems(connection: sa.Connection, sweep: int) -> list[TrialProblem]:
    """Those of one sweep, in the order of the plan, and so many at most."""
    troubled = [id_ for query in _TROUBLED for id_ in connection.execute(query, {"sweep": sweep}).scalars()]
    return [
        TrialProblem(
            trial=row.id,
            labels={**row.cell_labels, **row.candidate_labels, **row.repeat_labels},
            state=row.state,
            message=_trouble(row),
            log=f"/v1/trials/{row.id}/logs",
        )
        for row in (connection.execute(_TOLD, {"trials": troubled}) if troubled else ())
    ]


def _trouble(row: Any) -> str:
    if row.state == TrialState.FINISHED and not row.diverged:
        why = row.evaluation_error or "it was cancelled"
        return f"keeps its numbers, but {', '.join(row.metrics or ())} could not be evaluated: {why}"
    return "diverged: the loss became NaN" if row.diverged else row.error or "failed"


_LISTED = (
    "id", "uid", "name", "state", "created", "started", "ended", "total", "actor", "priority", "error", "notice",
    "spec",
)  # fmt: skip

# Made once, since the conductor asks them at every turn, and pages every few seconds.
_PROJECT = sa.select(project.c.name).where(project.c.id == schema.sweep.c.project_id).scalar_subquery().label("project")
_STATE = schema.sweep.c.state
_GOING = sa.select(schema.sweep.c.id).where(_STATE.in_(SWEEP_GOING)).order_by(schema.sweep.c.id)
_OPEN = sa.select(schema.sweep.c.id).where(_STATE.in_({*SWEEP_GOING, SweepState.QUEUED})).order_by(schema.sweep.c.id)
_ACTIVE = sa.select(schema.sweep.c.id).where(_STATE.in_([SweepState.QUEUED, SweepState.RUNNING])).limit(1)
_QUEUED = sa.select(schema.sweep.c.id, schema.sweep.c.uid, schema.sweep.c.spec, WRITTEN.label("written"))
_QUEUED = _QUEUED.where(_STATE == SweepState.QUEUED).order_by(schema.sweep.c.id)
_GOES_ON = sa.exists().where(
    trial.c.sweep_id == cell.c.sweep_id, trial.c.cell == cell.c.cell, trial.c.state.in_(TRIAL_ACTIVE)
)
_TO_SETTLE = sa.select(cell.c.sweep_id, cell.c.cell, cell.c.open).where(cell.c.settled.is_(None), ~_GOES_ON)
_TO_SETTLE = _TO_SETTLE.where(~sa.exists().where(schema.sweep.c.id == cell.c.sweep_id, UNEXPANDED))
_TO_SETTLE = _TO_SETTLE.order_by(cell.c.sweep_id, cell.c.cell)
_ITSELF = schema.sweep.c.id == sa.bindparam("sweep")
_WHOLE = sa.select(schema.sweep, _PROJECT).where(_ITSELF)
_TOTAL_OF_GOING = sa.select(schema.sweep.c.total).where(_ITSELF, _STATE.in_(SWEEP_GOING))
_ITS_TRIALS = trial.c.sweep_id == sa.bindparam("sweep")
_EVALUATION = training.alias()
_CHANGE = (
    sa.select(trial.c.state, sa.func.count(), sa.func.max(trial.c.ended), sa.func.max(trial.c.started))
    .where(_ITS_TRIALS)
    .group_by(trial.c.state)
    .order_by(trial.c.state),
    sa.select(sa.func.count(trial.c.evaluation_id), sa.func.sum(trial.c.training_id)).where(_ITS_TRIALS),
    sa.select(_EVALUATION.c.state, sa.func.count())  # one that fails changes nothing of its trial
    .where(_ITS_TRIALS, trial.c.evaluation_id == _EVALUATION.c.id)
    .group_by(_EVALUATION.c.state)
    .order_by(_EVALUATION.c.state),
    sa.select(_STATE, schema.sweep.c.spec).where(_ITSELF),
)
_TAGS = sa.select(tags_table.c.sweep_id, tags_table.c.tag).where(
    tags_table.c.kind == "sweep", tags_table.c.sweep_id.in_(sa.bindparam("sweeps", expanding=True))
)
_TAGS = _TAGS.order_by(tags_table.c.sweep_id, tags_table.c.tag)


@dataclass(frozen=True, slots=True)
class QueuedSweep:
    """A sweep of which not all trials have a row yet."""

    id: int
    uid: str
    spec: dict[str, Any]
    written: int = 0
    """Trials that have one: the first of the plan."""


class SweepReader(Access):
    """Reads sweeps."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._headways = Headways(database)

    def page(
        self,
        state: str | None = None,
        name: str | None = None,
        cursor: str | None = None,
        limit: int = 50,
        tag: str | None = None,
    ) -> Page[SweepSummary]:
        """Sweeps, newest first; `name` is a part of the name and `tag` a whole tag, in any case of letters."""
        table = schema.sweep
        query = (
            sa.select(*(table.c[column] for column in _LISTED), _PROJECT).order_by(table.c.id.desc()).limit(limit + 1)
        )
        if state is not None:
            query = query.where(table.c.state == state)
        if name is not None:
            query = query.where(table.c.name.icontains(name, autoescape=True))
        if tag is not None:
            query = query.where(table.c.id.in_(_tagged(tag)))
        if cursor is not None:
            query = query.where(table.c.id < decode(cursor))
        with self._database.reading() as connection:
            rows: Sequence[Any] = connection.execute(query).all()
            shown = rows[:limit]
            ids = [row.id for row in shown]
            counts, tags = _counts(connection, shown), _tags(connection, ids)
            headways = self._headways.of(connection, shown, counts)
            items = [
                SweepSummary(**_summary(row, counts[row.id], headways[row.id]), tags=tags.get(row.id, []))
                for row in shown
            ]
        return Page[SweepSummary](items=items, next_cursor=encode(shown[-1].id) if len(rows) > limit else None)

    def specs(self, limit: int) -> list[tuple[PartUse, dict[str, Any]]]:
        """The newest sweeps with their specs."""
        table = schema.sweep
        columns = (table.c.id, table.c.name, table.c.state, table.c.created, table.c.spec)
        query = sa.select(*columns).order_by(table.c.id.desc()).limit(limit)
        with self._database.reading() as connection:
            rows = connection.execute(query).all()
        return [(PartUse(id=row.id, name=row.name, state=row.state, created=row.created), row.spec) for row in rows]

    def get(self, sweep: int) -> SweepView:
        """One sweep whole; raises NotFoundError."""
        with self._database.reading() as connection:
            row = connection.execute(_WHOLE, {"sweep": sweep}).one_or_none()
            if row is None:
                raise NotFoundError(absence(connection, sweep))
            counts = _counts(connection, [row])
            summary = _summary(row, counts[sweep], self._headways.of(connection, [row], counts)[sweep])
            found, asked = problems(connection, sweep) if is_expanded(row) else [], latest_requests(connection, sweep)
            tags = _tags(connection, [sweep]).get(sweep, [])
            reuse = _reuse(connection, sweep) if counts[sweep].reused else None
        return SweepView(
            **summary, reuse=reuse, tags=tags, spec=row.spec, text=row.text, problems=found, requests=asked
        )

    def grid(self, sweep: int, most: int | None = None) -> list[GridCell]:
        """A sweep's cells with their candidates and trials; raises NotFoundError.

        With `most`, the first cells alone, as far as they have so many trials together; the last one may be cut.
        """
        with self._database.reading() as connection:
            require_sweep(connection, sweep)
            return [] if unexpanded(connection, sweep) else grid(connection, sweep, most)

    def change(self, sweep: int) -> str:
        """What differs once a trial of the sweep, or its evaluation, begins, ends, waits again or gives numbers."""
        with self._database.reading() as connection:
            parts = [connection.execute(query, {"sweep": sweep}).all() for query in _CHANGE]
        return sha256(repr(parts).encode()).hexdigest()

    def trials_of_going(self, sweep: int) -> int:
        """How many trials are planned in a sweep that goes on; 0 where it has ended, or is not there for who asks."""
        with self._database.reading() as connection:
            return int(connection.execute(_TOTAL_OF_GOING, {"sweep": sweep}).scalar_one_or_none() or 0)

    def cell_count(self, sweep: int) -> int:
        """How many cells a sweep has; none before it is expanded."""
        query = sa.select(sa.func.count()).select_from(cell).where(cell.c.sweep_id == sweep)
        with self._database.reading() as connection:
            return 0 if unexpanded(connection, sweep) else int(connection.execute(query).scalar_one())

    def deletion(self, sweep: int) -> Deletion | None:
        """What only this sweep uses; none when there is no such sweep (any more); ConflictError while it goes on."""
        with self._database.reading() as connection:
            return deletion(connection, sweep)

    def queued(self) -> list[QueuedSweep]:
        """Sweeps to expand, oldest first."""
        with self._database.reading() as connection:
            return [QueuedSweep(row.id, row.uid, row.spec, row.written) for row in connection.execute(_QUEUED)]

    def active(self) -> bool:
        """Whether any sweep is queued or running."""
        with self._database.reading() as connection:
            return connection.execute(_ACTIVE).first() is not None

    def going(self) -> list[int]:
        """Sweeps in which something may train."""
        with self._database.reading() as connection:
            return list(connection.execute(_GOING).scalars())

    def open(self) -> list[int]:
        """Sweeps that have not ended: queued, running and paused."""
        with self._database.reading() as connection:
            return list(connection.execute(_OPEN).scalars())

    def cells_to_settle(self) -> list[tuple[int, int]]:
        """(sweep, cell) of each cell whose trials have all ended and that has no summary yet."""
        with self._database.reading() as connection:
            rows = connection.execute(_TO_SETTLE).all()
        # Not asked of the database: SQLite would begin by those that are not open, the cells of a year.
        return [(row.sweep_id, row.cell) for row in rows if not row.open]


def _reuse(connection: sa.Connection, sweep: int) -> Reuse | None:
    """When the trainings ended that a sweep reuses."""
    reused, ended = sa.case((trial.c.reused, trial.c.training_id)), sa.case((trial.c.reused, training.c.ended))
    trainings, every = sa.func.count(sa.distinct(reused)), sa.func.count(sa.distinct(trial.c.training_id))
    query = sa.select(trainings, every, sa.func.min(ended), sa.func.max(ended))
    query = query.join(training, training.c.id == trial.c.training_id).where(trial.c.sweep_id == sweep)
    count, of, first, last = connection.execute(query).one()
    return Reuse(trainings=count, of=of, first=first, last=last) if first is not None else None


def _counts(connection: sa.Connection, rows: Sequence[sa.Row[Any]]) -> dict[int, Counts]:
    return {row.id: Counts() for row in rows} | counts_of(connection, [row.id for row in rows if is_expanded(row)])


def _summary(row: sa.Row[Any], counts: Counts, headway: Headway) -> dict[str, Any]:
    said: dict[str, Any] = {column: getattr(row, column) for column in _LISTED if column != "spec"}
    left = headway.left
    return said | {
        "project": row.project,
        "counts": counts,
        "steps": headway.steps,
        "eta_seconds": left and left.seconds,
        "eta_low_seconds": left and left.low,
        "eta_high_seconds": left and left.high,
        "tables": list(row.spec.get("tables") or {}),
        "figures": list(row.spec.get("figures") or {}),
    }


def _tagged(word: str) -> sa.Select[tuple[int]]:
    """The numbers of the sweeps that have a tag themselves, in any case of letters."""
    its = tags_table.c
    return sa.select(its.sweep_id).where(its.kind == "sweep", sa.func.lower(its.tag) == sa.func.lower(word))


def _tags(connection: sa.Connection, sweeps: Sequence[int]) -> dict[int, list[str]]:
    by_sweep: dict[int, list[str]] = defaultdict(list)
    for row in connection.execute(_TAGS, {"sweeps": sweeps}):
        by_sweep[row.sweep_id].append(row.tag)
    return dict(by_sweep)


class SweepRows:
    """Appends to what is written of a sweep; a `fresh` one shares no training but with itself."""

    def __init__(self, connection: sa.Connection, sweep: int, uid: uuid.UUID, fresh: bool) -> None:
        self._connection, self._sweep, self._uid, self._fresh = connection, sweep, uid, fresh

    def write(self, cells: Iterable[Cell], candidates: Sequence[Candidate], trials: Iterable[PlannedTrial]) -> None:
        """Write them in their order, which is that of the plan.

        Cells are open where the sweep has no candidates at all: a search adds them later.
        """
        sweep, position = self._sweep, sa.select(sa.func.coalesce(sa.func.max(trial.c.position), -1) + 1)
        first = self._connection.execute(position.where(trial.c.sweep_id == sweep)).scalar_one()
        later = first == 0 and not candidates
        insert(
            self._connection, cell,
            ({"sweep_id": sweep, "cell": one.index, "labels": dict(one.labels), "open": later} for one in cells),
        )  # fmt: skip
        insert(self._connection, candidate, rows_of(sweep, candidates))
        TrialRows(self._connection, sweep, self._uid, self._fresh, first, whole=True).write(trials)


def rows_of(sweep: int, added: Iterable[Candidate]) -> Iterable[dict[str, object]]:
    """Those of candidates."""
    return ({"sweep_id": sweep, "cell": one.cell, "candidate": one.index, "labels": dict(one.labels)} for one in added)


# Made once, since it is asked at every turn.
_ITS = trial.c.sweep_id == schema.sweep.c.id
_LEFT = (
    sa.exists().where(_ITS, trial.c.state.in_(TRIAL_ACTIVE)),
    sa.exists().where(cell.c.sweep_id == schema.sweep.c.id, cell.c.open),
    sa.exists().where(_ITS, evaluation_left()),
)
_UNSETTLED = (
    sa.select(schema.sweep.c.id)
    .where(schema.sweep.c.state == SweepState.RUNNING, *(~one for one in _LEFT))
    .order_by(schema.sweep.c.id)
)


class SweepWriter(FencedAccess):
    """Writes sweeps."""

    def prepare(
        self,
        sweep: int,
        cells: Sequence[Cell],
        candidates: Sequence[Candidate],
        trials: Sequence[PlannedTrial],
        fresh: bool,
    ) -> None:
        """Write the next rows of a queued sweep, which nobody is shown and nothing is begun of before it starts.

        Raises ConflictError once it is not queued any more.
        """
        table = schema.sweep
        with self._database.writing() as connection:
            mine = sa.select(table.c.uid).where(table.c.id == sweep, table.c.state == SweepState.QUEUED)
            uid = _queued(sweep, connection.execute(mine).scalar_one_or_none())
            SweepRows(connection, sweep, uid, fresh).write(cells, candidates, trials)
            extend(connection)

    def start(
        self,
        sweep: int,
        cells: Sequence[Cell],
        candidates: Sequence[Candidate],
        trials: Iterable[PlannedTrial],
        slot: Slot,
        fresh: bool,
    ) -> None:
        """Write the last rows of a queued sweep; finished trainings are reused at once unless it asks for fresh ones.

        Cells of a sweep without candidates are open: a search adds them later.
        """
        with self._database.writing() as connection:
            uid = _enter_running(connection, sweep, slot, datetime.now(UTC))
            SweepRows(connection, sweep, uid, fresh).write(cells, candidates, trials)
            mark_sweep(connection, sweep, SweepState.RUNNING)
            extend(connection)

    def extend(self, sweep: int, wider: Extension, by: int | None = None) -> None:
        """Write the added rows and let the sweep go on; finished trainings are reused at once.

        The request that it is done for, `by`, keeps where they begin and how many trials had finished by then.
        """
        table = schema.sweep
        with self._database.writing() as connection:
            require_sweep(connection, sweep)
            columns = (table.c.uid, table.c.state, table.c.started)
            row = connection.execute(sa.select(*columns).where(table.c.id == sweep)).one()
            if row.started is None:  # it ended before all of its trials were written: those that are wait as well
                retry_trials(connection, sweep, RETRIED_ALL, None, None)
            insert(
                connection, cell,
                ({"sweep_id": sweep, "cell": one.index, "labels": dict(one.labels)} for one in wider.cells),
            )  # fmt: skip
            insert(connection, candidate, rows_of(sweep, wider.candidates))
            position = sa.select(sa.func.coalesce(sa.func.max(trial.c.position), -1) + 1)
            first = connection.execute(position.where(trial.c.sweep_id == sweep)).scalar_one()
            if wider.trials and by is not None:
                note_look(connection, sweep, by, first)
            fresh = bool(wider.spec.get("fresh"))
            TrialRows(connection, sweep, uuid.UUID(row.uid), fresh, first).write(wider.trials)
            prune_added(connection, sweep, first)
            trial_rows.measure(connection, sweep, fresh, wider.measured)
            touched = sorted({one.cell for one in wider.trials})
            connection.execute(
                sa.update(cell)
                .where(cell.c.sweep_id == sweep, cell.c.cell.in_(touched))
                .values(summary=None, settled=None)
            )
            values: dict[str, Any] = {"text": wider.text, "spec": dict(wider.spec), "total": wider.total}
            values["started"] = row.started or datetime.now(UTC)
            if "slot" in wider.spec:  # which holds for all that waits and has no slot of its own
                values["slot"] = wider.spec["slot"]
            if not wider.spec.get("slots"):  # it takes back what some trials had of their own
                connection.execute(
                    sa.update(trial).where(trial.c.sweep_id == sweep, trial.c.slot.is_not(None)).values(slot=None)
                )
            if row.state in before(SWEEP_STEPS, SweepState.RUNNING) & SWEEP_ENDED:
                values |= {"state": SweepState.RUNNING, "ended": None, "error": None}
            connection.execute(sa.update(table).where(table.c.id == sweep).values(**values))
            for index in touched:
                mark_cell(connection, sweep, index)
            mark_sweep(connection, sweep)
            extend(connection)

    def pause(self, sweep: int) -> bool:
        """Start nothing more of a running sweep; what trains goes on to its end. Whether that changed anything."""
        return self._turn(sweep, SweepState.RUNNING, SweepState.PAUSED)

    def resume(self, sweep: int) -> bool:
        """Let a paused sweep take its turn again; whether that changed anything."""
        return self._turn(sweep, SweepState.PAUSED, SweepState.RUNNING)

    def prioritize(self, sweep: int, priority: int) -> None:
        """Set a sweep's priority; of what already trains nothing is stopped for it."""
        table = schema.sweep
        with self._database.writing() as connection:
            require_sweep(connection, sweep)
            connection.execute(sa.update(table).where(table.c.id == sweep).values(priority=priority))
            mark_sweep(connection, sweep)

    def _turn(self, sweep: int, old: SweepState, new: SweepState) -> bool:
        if old not in before(SWEEP_STEPS, new):
            raise ValueError(f"{new} does not follow {old}")
        table = schema.sweep
        with self._database.writing() as connection:
            require_sweep(connection, sweep)
            moving = sa.update(table).where(table.c.id == sweep, table.c.state == old)
            moved = connection.execute(moving.values(state=new)).rowcount == 1
            if moved:
                mark_sweep(connection, sweep, new)
            return moved

    def fail(self, sweep: int, message: str) -> None:
        """End a sweep that cannot be run, with the reason; its active trials are cancelled."""
        table = schema.sweep
        with self._database.writing() as connection:
            cancel_trials(connection, sweep)
            trial_rows.cancel(connection, sweep)
            connection.execute(sa.update(cell).where(cell.c.sweep_id == sweep, cell.c.open).values(open=False))
            failed = connection.execute(
                sa.update(table)
                .where(table.c.id == sweep, table.c.state.in_(before(SWEEP_STEPS, SweepState.FAILED)))
                .values(state=SweepState.FAILED, error=storable(message)[:MAX_MESSAGE], ended=datetime.now(UTC))
            )
            if failed.rowcount:
                mark_sweep(connection, sweep, SweepState.FAILED)

    def unsettled(self) -> list[int]:
        """Running sweeps whose trials, evaluations and searches have all ended; raises FencedError."""
        with self._database.holding() as connection:
            return list(connection.execute(_UNSETTLED).scalars())

    def delete(self, sweep: int, by: int | None = None, outcome: str = "deleted") -> None:
        """Delete an ended sweep's rows, and those of the trainings that no other sweep points to.

        Its requests stay, to say what became of them, without the specs that they carried; `by` is the one that is done
        with this. It keeps its outcome and, until the tracker has removed the sweep's experiment, the sweep's uid.
        Raises NotFoundError, and ConflictError for a sweep that goes on.
        """
        table = schema.sweep
        with self._database.writing() as connection:
            note(connection, ChangeKind.SWEEP, sweep, sweep)  # first: nobody remarks on what is just being deleted
            require_sweep(connection, sweep)
            head = sa.select(table.c.uid, table.c.mlflow_experiment)
            ended = head.where(table.c.id == sweep, table.c.state.in_(SWEEP_ENDED))
            row = connection.execute(ended.with_for_update()).first()
            if row is None:
                raise ConflictError(f"sweep {sweep} goes on; cancel it before it is deleted")
            alone = list(connection.execute(only_of(sweep)).scalars())
            requests = sa.update(schema.request).where(schema.request.c.sweep_id == sweep)
            connection.execute(requests.values(arguments=None))
            done = requests.where(schema.request.c.id == by, schema.request.c.applied.is_(None))
            shown = None if row.mlflow_experiment is None else {"uid": str(row.uid)}
            connection.execute(done.values(applied=datetime.now(UTC), outcome=outcome, arguments=shown))
            for rows in (
                schema.note, schema.tag, schema.trial_column, schema.outbox, trial,
                schema.candidate, schema.cell, schema.sweep_need, resolution,
            ):  # fmt: skip
                connection.execute(sa.delete(rows).where(rows.c.sweep_id == sweep))
            for chunk in chunked(alone, 1_000):
                attempts = sa.select(attempt.c.id).where(attempt.c.training_id.in_(chunk))
                connection.execute(_kept_use(chunk))
                for rows in (log, metric):
                    connection.execute(sa.delete(rows).where(rows.c.attempt_id.in_(attempts)))
                for rows in (schema.collected, attempt):
                    connection.execute(sa.delete(rows).where(rows.c.training_id.in_(chunk)))
                connection.execute(sa.delete(training).where(training.c.id.in_(chunk)))
            connection.execute(sa.delete(table).where(table.c.id == sweep))


def _enter_running(connection: sa.Connection, sweep: int, slot: Slot, now: datetime) -> uuid.UUID:
    table = schema.sweep
    uid = connection.execute(
        sa.update(table)
        .where(table.c.id == sweep, table.c.state == SweepState.QUEUED)
        .values(state=SweepState.RUNNING, started=now, slot=slot.model_dump(mode="json"))
        .returning(table.c.uid)
    ).scalar_one_or_none()
    return _queued(sweep, uid)


def _queued(sweep: int, uid: str | None) -> uuid.UUID:
    if uid is None:
        raise ConflictError(f"sweep {sweep} is not queued")
    return uuid.UUID(uid)


def _kept_use(trainings: Collection[Any]) -> sa.Insert:
    """What attempts that are deleted took of quotas stays counted: else whoever deletes has hours anew."""
    names = ("owner_id", "project_id", "cpus", "gpus", "begun", "ended")
    # One that never ended was a slot's until now; one without hours of anything is not counted anyway.
    ended = sa.func.coalesce(attempt.c.ended, sa.bindparam("now", datetime.now(UTC), UtcTime))
    columns = (*(attempt.c[name] for name in names[:-1]), ended)
    mine = (attempt.c.training_id.in_(trainings), attempt.c.begun.is_not(None), attempt.c.gpus.is_not(None))
    return sa.insert(past_attempt).from_select(names, sa.select(*columns).where(*mine))
