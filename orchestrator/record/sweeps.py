"""Reads sweeps for clients, and writes them for the conductor."""

import uuid
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from orchestrator.record import schema, trial_rows
from orchestrator.record.changes import mark_sweep, note
from orchestrator.record.columns import UtcTime, shortened
from orchestrator.record.database import (
    Access,
    Database,
    FencedAccess,
    absence,
    chunked,
    next_cursor,
    page_after,
    require_sweep,
    with_labels,
)
from orchestrator.record.lease import extend
from orchestrator.record.progress import ProgressReader
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
from orchestrator.record.schema import sweep as sweeps
from orchestrator.record.schema import tag as tags_table
from orchestrator.record.trainings import ENDED_WITHOUT_RESULT, evaluation_failed, evaluation_left
from orchestrator.record.transitions import cancel_trials, prune_added, retry_trials
from orchestrator.record.trial_rows import TrialRows, insert
from orchestrator.record.trials import UNEXPANDED, WRITTEN, is_expanded, unexpanded
from orchestrator.spec.spec import Slot
from orchestrator.views.errors import ConflictError, NotFoundError
from orchestrator.views.pages import Page
from orchestrator.views.runs import Candidate, Cell, ChangeKind, Extension, Labels, PlannedTrial, Statistic
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
    """The trainings, with their files in the storage, that are deleted with a sweep in addition to its rows."""

    trainings: tuple[str, ...]  # uids: folders of the storage
    busy: bool  # whether one of the trainings is still being stopped, and writes into its folder


def _only_of(sweep: int) -> sa.Select[tuple[int]]:
    """The ids of the trainings that only trials of this sweep point to, with those that they replaced.

    Includes the trainings that evaluate them or that they evaluate, unless another sweep shows these. A training stays
    that another sweep's training evaluates: it needs the weights.
    """
    mine = sa.select(trial.c.training_id.label("id")).where(trial.c.sweep_id == sweep)
    to_be = sa.select(trial.c.evaluation_id).where(trial.c.sweep_id == sweep, trial.c.evaluation_id.is_not(None))
    its = mine.union(to_be).subquery()
    first = sa.select(training.c.id, training.c.source).join(its, its.c.id == training.c.id)
    alone = first.where(~_shown_elsewhere(sweep)).cte(recursive=True)
    kin = sa.or_(training.c.heir == alone.c.id, training.c.source == alone.c.id, training.c.id == alone.c.source)
    following = sa.select(training.c.id, training.c.source).join(alone, kin).where(~_shown_elsewhere(sweep))
    family = alone.union(following)
    other = training.alias("other_training")
    needed = sa.exists().where(other.c.source == family.c.id, other.c.id.not_in(sa.select(family.c.id)))
    return sa.select(family.c.id).where(~needed)


def _shown_elsewhere(sweep: int) -> sa.ColumnElement[bool]:
    """The condition that a trial of another sweep points to a training or will move to it."""
    other = trial.alias("other")
    points = sa.exists().where(other.c.training_id == training.c.id, other.c.sweep_id != sweep)
    return sa.or_(points, sa.exists().where(other.c.evaluation_id == training.c.id, other.c.sweep_id != sweep))


def _counts(connection: sa.Connection, rows: Sequence[sa.Row[Any]]) -> dict[int, Counts]:
    by_sweep = {row.id: Counts() for row in rows}
    theirs = trial.c.sweep_id.in_([row.id for row in rows if is_expanded(row)])
    grouped = (trial.c.sweep_id, trial.c.state, trial.c.reused, trial.c.diverged)
    for row in connection.execute(sa.select(*grouped, sa.func.count().label("n")).where(theirs).group_by(*grouped)):
        counts = by_sweep[row.sweep_id]
        setattr(counts, row.state, getattr(counts, row.state) + row.n)
        counts.reused += row.n if row.reused else 0
        counts.diverged += row.n if row.diverged else 0
    each = sa.select(trial.c.sweep_id, sa.func.count().label("n")).where(theirs).group_by(trial.c.sweep_id)
    for name, which in (("evaluations", evaluation_left()), ("evaluations_failed", evaluation_failed())):
        for row in connection.execute(each.where(which)):
            setattr(by_sweep[row.sweep_id], name, row.n)
    return by_sweep


def _grid(connection: sa.Connection, sweep: int, most: int | None) -> list[GridCell]:
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
    if count == most:  # the last candidate may be incomplete: leave it out
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


_MAX_PROBLEMS: Final = 100
"""Failed and diverged trials that a sweep's page names."""
_NEW: Final = training.alias()


def _problems(connection: sa.Connection, sweep: int) -> list[TrialProblem]:
    """The first trials that failed, whose evaluation failed, or that diverged: each query has an index."""
    columns = sa.select(trial.c.id).where(trial.c.sweep_id == sweep).limit(_MAX_PROBLEMS)
    failed = columns.where(trial.c.state == TrialState.FAILED).order_by(trial.c.position)
    finished = trial.c.state == TrialState.FINISHED
    diverged = [columns.where(finished, trial.c.reused == reused, trial.c.diverged) for reused in (False, True)]
    others = (query.order_by(trial.c.id) for query in (columns.where(evaluation_failed()), *diverged))
    troubled = [id_ for query in (failed, *others) for id_ in connection.scalars(query)]
    shown = with_labels(
        sa.select(
            trial.c.id, trial.c.state, trial.c.repeat_labels, trial.c.diverged, training.c.error,
            _NEW.c.error.label("evaluation_error"), _NEW.c.recipe["metrics"].label("metrics"),
        )
        .join(training, training.c.id == trial.c.training_id)
        .outerjoin(_NEW, _NEW.c.id == trial.c.evaluation_id)
        .where(trial.c.id.in_(troubled))
        .order_by(trial.c.position)
        .limit(_MAX_PROBLEMS)
    )  # fmt: skip
    return [
        TrialProblem(
            trial=row.id, labels={**row.cell_labels, **row.candidate_labels, **row.repeat_labels}, state=row.state,
            message=_trouble(row), log=f"/v1/trials/{row.id}/logs",
        )
        for row in connection.execute(shown)
    ]  # fmt: skip


def _trouble(row: Any) -> str:
    if row.state == TrialState.FINISHED and not row.diverged:
        why = row.evaluation_error or "it was cancelled"
        return f"keeps its numbers, but {', '.join(row.metrics or ())} could not be evaluated: {why}"
    return "diverged: the loss became NaN" if row.diverged else row.error or "failed"


_LISTED = (
    "id", "uid", "name", "state", "created", "started", "ended", "total", "actor", "priority", "error", "notice",
    "spec",
)  # fmt: skip

_PROJECT = sa.select(project.c.name).where(project.c.id == sweeps.c.project_id).scalar_subquery().label("project")


@dataclass(frozen=True, slots=True)
class QueuedSweep:
    """A submitted sweep whose trials are not all written yet."""

    id: int
    uid: str
    spec: dict[str, Any]
    written: int = 0
    """How many trials have a row: the first of the plan."""


class SweepReader(Access):
    """Reads sweeps for clients and the conductor."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._progress = ProgressReader(database)

    def page(
        self,
        state: str | None = None,
        name: str | None = None,
        cursor: str | None = None,
        limit: int = 50,
        tag: str | None = None,
    ) -> tuple[Page[SweepSummary], dict[int, dict[str, Any]]]:
        """A page of sweeps, newest first, and their stored specs by the sweep's number.

        `name` is a part of the sweep's name and `tag` a whole tag, both without regard to case.
        """
        its = tags_table.c
        columns = (sweeps.c[column] for column in _LISTED)
        query = page_after(sa.select(*columns, _PROJECT), sweeps.c.id, cursor, limit, newest=True)
        if state is not None:
            query = query.where(sweeps.c.state == state)
        if name is not None:
            query = query.where(sweeps.c.name.icontains(name, autoescape=True))
        if tag is not None:
            same = sa.func.lower(its.tag) == sa.func.lower(tag)
            query = query.where(sweeps.c.id.in_(sa.select(its.sweep_id).where(its.kind == "sweep", same)))
        with self._database.reading() as connection:
            rows: Sequence[Any] = connection.execute(query).all()
            shown = rows[:limit]
            ids = [row.id for row in shown]
            counts, tags = _counts(connection, shown), _tags(connection, ids)
            items = [
                SweepSummary(**self._summary(connection, row, counts[row.id]), tags=tags.get(row.id, []))
                for row in shown
            ]
        return Page(items=items, next_cursor=next_cursor(rows, limit)), {row.id: row.spec for row in shown}

    def named_before(self, numbers: Collection[int]) -> dict[int, int]:
        """The latest earlier sweep with the same name, for each sweep that has one."""
        former = sweeps.alias()
        same = sa.and_(former.c.name == sweeps.c.name, former.c.id < sweeps.c.id)
        latest = sa.select(sweeps.c.id, sa.func.max(former.c.id).label("former")).join(former, same)
        rows = self._rows(latest.where(sweeps.c.id.in_(numbers)).group_by(sweeps.c.id))
        return {row.id: row.former for row in rows}

    def specs_of(self, numbers: Collection[int]) -> dict[int, dict[str, Any]]:
        """The stored specs of sweeps, by the sweep's number."""
        query = sa.select(sweeps.c.id, sweeps.c.spec).where(sweeps.c.id.in_(numbers))
        return {row.id: row.spec for row in self._rows(query)}

    def settled(self, numbers: Collection[int]) -> dict[int, str]:
        """A stamp of each sweep that has settled cells, which changes when a cell is settled or reopened."""
        times = sa.func.count(cell.c.settled).label("n"), sa.func.max(cell.c.settled).label("last")
        query = sa.select(cell.c.sweep_id, *times).where(cell.c.sweep_id.in_(numbers)).group_by(cell.c.sweep_id)
        return {row.sweep_id: f"{row.n} {row.last}" for row in self._rows(query) if row.n}

    def best(self, sweep: int, key: str, alike: Sequence[str], *, higher: bool) -> tuple[int, Labels, Statistic] | None:
        """The cell of a sweep whose best candidate has the best mean of a result key; `None` if none has it.

        `key`: such as `best/test/recall@1`; `alike`: axes on which cells need the label of the sweep's first cell,
        such as `dataset`; `higher`: higher values are better.
        """
        found, first = cell.c.summary["metrics"][key], cell.alias()
        mean = found["mean"].as_float()
        its = sa.select(cell.c.cell, cell.c.labels, found.label("statistic")).where(
            cell.c.sweep_id == sweep, cell.c.summary.is_not(None), mean.is_not(None)
        )
        for axis in alike:
            label = sa.select(first.c.labels[axis].as_string()).where(first.c.sweep_id == sweep).order_by(first.c.cell)
            its = its.where(cell.c.labels[axis].as_string().is_not_distinct_from(label.limit(1).scalar_subquery()))
        rows = self._rows(its.order_by(mean.desc() if higher else mean, cell.c.cell).limit(1))
        return (rows[0].cell, rows[0].labels, Statistic(**rows[0].statistic)) if rows else None

    def specs(self, limit: int) -> list[tuple[PartUse, dict[str, Any]]]:
        """The newest `limit` sweeps with their specs."""
        columns = (sweeps.c.id, sweeps.c.name, sweeps.c.state, sweeps.c.created, sweeps.c.spec)
        rows = self._rows(sa.select(*columns).order_by(sweeps.c.id.desc()).limit(limit))
        return [(PartUse.model_validate(row, from_attributes=True), row.spec) for row in rows]

    def reproduces(self) -> bool:
        """Whether a table of any sweep names a published table."""
        return self._exists(sa.select(sweeps.c.id).where(sa.cast(sweeps.c.spec, sa.Text).contains('"published": "')))

    def get(self, sweep: int) -> SweepView:
        """The sweep with a number, with all details; raises NotFoundError."""
        with self._database.reading() as connection:
            row = connection.execute(sa.select(sweeps, _PROJECT).where(sweeps.c.id == sweep)).one_or_none()
            if row is None:
                raise NotFoundError(absence(connection, sweep))
            counts = _counts(connection, [row])
            summary = self._summary(connection, row, counts[sweep])
            found, asked = _problems(connection, sweep) if is_expanded(row) else [], latest_requests(connection, sweep)
            tags = _tags(connection, [sweep]).get(sweep, [])
            reuse = _reuse(connection, sweep) if counts[sweep].reused else None
        return SweepView(
            **summary, reuse=reuse, tags=tags, spec=row.spec, text=row.text, problems=found, requests=asked
        )

    def _summary(self, connection: sa.Connection, row: sa.Row[Any], counts: Counts) -> dict[str, Any]:
        values: dict[str, Any] = {column: getattr(row, column) for column in _LISTED if column != "spec"}
        steps, left = self._progress.of(connection, row, counts)
        return values | {
            "project": row.project, "counts": counts, "steps": steps, "eta_seconds": left and left.seconds,
            "eta_low_seconds": left and left.low, "eta_high_seconds": left and left.high,
            "tables": list(row.spec.get("tables") or {}), "figures": list(row.spec.get("figures") or {}),
        }  # fmt: skip

    def grid(self, sweep: int, most: int | None = None) -> list[GridCell]:
        """A sweep's cells with their candidates and trials; raises NotFoundError.

        With `most`, only the first cells with so many trials together; the last cell may be incomplete.
        """
        with self._database.reading() as connection:
            require_sweep(connection, sweep)
            return [] if unexpanded(connection, sweep) else _grid(connection, sweep, most)

    def change(self, sweep: int) -> str:
        """A hash of a sweep's results, which changes when a trial or evaluation changes its state or numbers."""
        its, evaluation = trial.c.sweep_id == sweep, training.alias()
        times = sa.func.max(trial.c.ended), sa.func.max(trial.c.started)
        queries = (
            sa.select(trial.c.state, sa.func.count(), *times).where(its).group_by("state").order_by("state"),
            sa.select(sa.func.count(trial.c.evaluation_id), sa.func.sum(trial.c.training_id)).where(its),
            sa.select(evaluation.c.state, sa.func.count())  # a failed evaluation does not change its trial
            .where(its, trial.c.evaluation_id == evaluation.c.id)
            .group_by(evaluation.c.state)
            .order_by(evaluation.c.state),
            sa.select(sweeps.c.state, sweeps.c.spec).where(sweeps.c.id == sweep),
        )
        with self._database.reading() as connection:
            parts = [connection.execute(query).all() for query in queries]
        return sha256(repr(parts).encode()).hexdigest()

    def trials_of_going(self, sweep: int) -> int:
        """The number of planned trials of a sweep; 0 if it has ended or the caller does not see it."""
        going = (sweeps.c.id == sweep, sweeps.c.state.in_(SWEEP_GOING))
        return int(self._scalar(sa.select(sweeps.c.total).where(*going)) or 0)

    def cell_count(self, sweep: int) -> int:
        """The number of cells of a sweep; 0 before its trials are written."""
        query = sa.select(sa.func.count()).select_from(cell).where(cell.c.sweep_id == sweep)
        with self._database.reading() as connection:
            return 0 if unexpanded(connection, sweep) else int(connection.execute(query).scalar_one())

    def deletion(self, sweep: int) -> Deletion | None:
        """The trainings that only this sweep uses, or `None` if there is no such sweep; raises ConflictError.

        ConflictError: the sweep has not ended.
        """
        with self._database.reading() as connection:
            state = connection.scalar(sa.select(sweeps.c.state).where(sweeps.c.id == sweep))
            if state is None:
                return None
            if state not in SWEEP_ENDED:
                raise ConflictError(f"sweep {sweep} is {state}; cancel it before it is deleted")
            uids = connection.scalars(sa.select(training.c.uid).where(training.c.id.in_(_only_of(sweep))))
            stopping = attempt.c.training_id.in_(_only_of(sweep)), attempt.c.state == "running"
            busy = connection.execute(sa.select(attempt.c.id).where(*stopping).limit(1)).first() is not None
            return Deletion(tuple(uids), busy)

    def queued(self) -> list[QueuedSweep]:
        """The submitted sweeps whose trials have to be written, oldest first."""
        query = sa.select(sweeps.c.id, sweeps.c.uid, sweeps.c.spec, WRITTEN.label("written"))
        query = query.where(sweeps.c.state == SweepState.QUEUED).order_by(sweeps.c.id)
        return [QueuedSweep(row.id, row.uid, row.spec, row.written) for row in self._rows(query)]

    def active(self) -> bool:
        """Whether any sweep is queued or running."""
        return self._exists(sa.select(sweeps.c.id).where(sweeps.c.state.in_([SweepState.QUEUED, SweepState.RUNNING])))

    def going(self, *, queued: bool = False) -> list[int]:
        """The running and paused sweeps, and the `queued`."""
        states = {*SWEEP_GOING, SweepState.QUEUED} if queued else SWEEP_GOING
        query = sa.select(sweeps.c.id).where(sweeps.c.state.in_(states)).order_by(sweeps.c.id)
        return [row.id for row in self._rows(query)]

    def cells_to_settle(self) -> list[tuple[int, int]]:
        """The cells, as (sweep, cell), whose trials have all ended and whose summary has to be computed."""
        goes_on = sa.exists().where(
            trial.c.sweep_id == cell.c.sweep_id, trial.c.cell == cell.c.cell, trial.c.state.in_(TRIAL_ACTIVE)
        )
        partly_written = sa.exists().where(sweeps.c.id == cell.c.sweep_id, UNEXPANDED)
        query = sa.select(cell.c.sweep_id, cell.c.cell, cell.c.open).order_by(cell.c.sweep_id, cell.c.cell)
        rows = self._rows(query.where(cell.c.settled.is_(None), ~goes_on, ~partly_written))
        # `open` is not in the query: SQLite would use its index, with the cells of a year.
        return [(row.sweep_id, row.cell) for row in rows if not row.open]


def _reuse(connection: sa.Connection, sweep: int) -> Reuse | None:
    """How many trainings a sweep reuses, and when they ended."""
    reused, ended = sa.case((trial.c.reused, trial.c.training_id)), sa.case((trial.c.reused, training.c.ended))
    trainings, every = sa.func.count(sa.distinct(reused)), sa.func.count(sa.distinct(trial.c.training_id))
    query = sa.select(trainings, every, sa.func.min(ended), sa.func.max(ended))
    query = query.join(training, training.c.id == trial.c.training_id).where(trial.c.sweep_id == sweep)
    count, of, first, last = connection.execute(query).one()
    return Reuse(trainings=count, of=of, first=first, last=last) if first is not None else None


def _tags(connection: sa.Connection, sweeps: Sequence[int]) -> dict[int, list[str]]:
    by_sweep: dict[int, list[str]] = defaultdict(list)
    its = tags_table.c
    query = sa.select(its.sweep_id, its.tag).where(its.kind == "sweep", its.sweep_id.in_(sweeps))
    for row in connection.execute(query.order_by(its.sweep_id, its.tag)):
        by_sweep[row.sweep_id].append(row.tag)
    return dict(by_sweep)


def _insert_plan(
    connection: sa.Connection, sweep: int, cells: Iterable[Cell], candidates: Iterable[Candidate], *, opened: bool
) -> None:
    """Insert cells and candidates; `opened` cells get further candidates from a search."""
    its = {"sweep_id": sweep, "open": opened}
    insert(connection, cell, ({**its, "cell": one.index, "labels": dict(one.labels)} for one in cells))
    its = {"sweep_id": sweep}
    rows = ({**its, "cell": one.cell, "candidate": one.index, "labels": dict(one.labels)} for one in candidates)
    insert(connection, candidate, rows)


class PlanRows(NamedTuple):
    """Cells, candidates and trials of a sweep's plan that are to be written, in order."""

    cells: Sequence[Cell]
    candidates: Sequence[Candidate]
    trials: Sequence[PlannedTrial]


class SweepWriter(FencedAccess):
    """Writes sweeps, as the conductor."""

    def prepare(self, sweep: int, rows: PlanRows, fresh: bool) -> None:
        """Write the next cells, candidates and trials of a queued sweep, which stay hidden until it starts.

        Raises ConflictError if it is not queued any more.
        """
        queued = sa.select(sweeps.c.uid).where(sweeps.c.id == sweep, sweeps.c.state == SweepState.QUEUED)
        with self._database.writing() as connection:
            self._write(connection, sweep, queued, rows, fresh)
            extend(connection)

    def start(self, sweep: int, rows: PlanRows, slot: Slot, fresh: bool) -> None:
        """Write the last trials of a queued sweep and start it.

        Finished trainings are reused unless it is `fresh`. The cells of a sweep without candidates are open: a search
        adds candidates. Raises ConflictError unless the sweep is queued.
        """
        entering = (
            sa.update(sweeps)
            .where(sweeps.c.id == sweep, sweeps.c.state == SweepState.QUEUED)
            .values(state=SweepState.RUNNING, started=datetime.now(UTC), slot=slot.model_dump(mode="json"))
            .returning(sweeps.c.uid)
        )
        with self._database.writing() as connection:
            self._write(connection, sweep, entering, rows, fresh)
            mark_sweep(connection, sweep, SweepState.RUNNING)
            extend(connection)

    def _write(self, connection: sa.Connection, sweep: int, queued: sa.Executable, rows: PlanRows, fresh: bool) -> None:
        """Append rows in the order of the plan; `queued` gives the uid of the queued sweep."""
        uid = connection.scalar(queued)
        if uid is None:
            raise ConflictError(f"sweep {sweep} cannot be started: it is not queued any more")
        trials = TrialRows(connection, sweep, uuid.UUID(uid), fresh, whole=True)
        opened = trials.position == 0 and not rows.candidates
        _insert_plan(connection, sweep, rows.cells, rows.candidates, opened=opened)
        trials.write(rows.trials)

    def extend(self, sweep: int, wider: Extension, by: int | None = None) -> None:
        """Write the added trials of an extended sweep and let the sweep continue; finished trainings are reused.

        The request `by` records the position of the first added trial, and how many trials had finished.
        """
        with self._database.writing() as connection:
            require_sweep(connection, sweep)
            columns = (sweeps.c.uid, sweeps.c.state, sweeps.c.started)
            row = connection.execute(sa.select(*columns).where(sweeps.c.id == sweep)).one()
            if row.started is None:  # it ended before all of its trials were written: the written trials wait
                retry_trials(connection, sweep, ENDED_WITHOUT_RESULT, None, None)
            _insert_plan(connection, sweep, wider.cells, wider.candidates, opened=False)
            fresh = bool(wider.spec.get("fresh"))
            rows = TrialRows(connection, sweep, uuid.UUID(row.uid), fresh)
            first = rows.position
            if wider.trials and by is not None:
                note_look(connection, sweep, by, first)
            rows.write(wider.trials)
            prune_added(connection, sweep, first)
            trial_rows.measure(connection, sweep, fresh, wider.measured)
            trial_rows.unsettle(connection, sweep, (planned.cell for planned in wider.trials))
            values: dict[str, Any] = {"text": wider.text, "spec": dict(wider.spec), "total": wider.total}
            values["started"] = row.started or datetime.now(UTC)
            if "slot" in wider.spec:  # for all waiting trials without their own slot
                values["slot"] = wider.spec["slot"]
            if not wider.spec.get("slots"):  # trials lose their own slots
                connection.execute(
                    sa.update(trial).where(trial.c.sweep_id == sweep, trial.c.slot.is_not(None)).values(slot=None)
                )
            if row.state in before(SWEEP_STEPS, SweepState.RUNNING) & SWEEP_ENDED:
                values |= {"state": SweepState.RUNNING, "ended": None, "error": None}
            connection.execute(sa.update(sweeps).where(sweeps.c.id == sweep).values(**values))
            mark_sweep(connection, sweep)
            extend(connection)

    def pause(self, sweep: int) -> bool:
        """Pause a running sweep, whose running trainings continue; False if the sweep was not running."""
        return self._turn(sweep, SweepState.RUNNING, SweepState.PAUSED)

    def resume(self, sweep: int) -> bool:
        """Let a paused sweep run; False if the sweep was not paused."""
        return self._turn(sweep, SweepState.PAUSED, SweepState.RUNNING)

    def prioritize(self, sweep: int, priority: int) -> None:
        """Set a sweep's priority; running trainings continue."""
        with self._database.writing() as connection:
            require_sweep(connection, sweep)
            connection.execute(sa.update(sweeps).where(sweeps.c.id == sweep).values(priority=priority))
            mark_sweep(connection, sweep)

    def _turn(self, sweep: int, old: SweepState, new: SweepState) -> bool:
        with self._database.writing() as connection:
            require_sweep(connection, sweep)
            moving = sa.update(sweeps).where(sweeps.c.id == sweep, sweeps.c.state == old)
            moved = connection.execute(moving.values(state=new)).rowcount == 1
            if moved:
                mark_sweep(connection, sweep, new)
            return moved

    def fail(self, sweep: int, message: str) -> None:
        """Set a sweep that cannot be run to failed, with the reason; its active trials are cancelled."""
        with self._database.writing() as connection:
            cancel_trials(connection, sweep)
            connection.execute(sa.update(cell).where(cell.c.sweep_id == sweep, cell.c.open).values(open=False))
            failed = connection.execute(
                sa.update(sweeps)
                .where(sweeps.c.id == sweep, sweeps.c.state.in_(before(SWEEP_STEPS, SweepState.FAILED)))
                .values(state=SweepState.FAILED, error=shortened(message), ended=datetime.now(UTC))
            )
            if failed.rowcount:
                mark_sweep(connection, sweep, SweepState.FAILED)

    def unsettled(self) -> list[int]:
        """Running sweeps whose trials, evaluations and searches have all ended; raises FencedError."""
        its = trial.c.sweep_id == sweeps.c.id
        left = (
            sa.exists().where(its, trial.c.state.in_(TRIAL_ACTIVE)),
            sa.exists().where(cell.c.sweep_id == sweeps.c.id, cell.c.open),
            sa.exists().where(its, evaluation_left()),
        )
        query = sa.select(sweeps.c.id).where(sweeps.c.state == SweepState.RUNNING, *(~one for one in left))
        with self._database.holding() as connection:
            return list(connection.scalars(query.order_by(sweeps.c.id)))

    def delete(self, sweep: int, by: int | None = None, outcome: str = "deleted") -> None:
        """Delete an ended sweep's rows, and those of the trainings that no other sweep points to.

        Its requests stay, without their specs. The request `by` is answered with the outcome; it keeps the sweep's uid
        until the tracker has removed the experiment. Raises NotFoundError, and ConflictError for a going sweep.
        """
        with self._database.writing() as connection:
            note(connection, ChangeKind.SWEEP, sweep, sweep)  # first, which locks out annotations
            require_sweep(connection, sweep)
            head = sa.select(sweeps.c.uid, sweeps.c.mlflow_experiment)
            ended = head.where(sweeps.c.id == sweep, sweeps.c.state.in_(SWEEP_ENDED))
            row = connection.execute(ended.with_for_update()).first()
            if row is None:
                raise ConflictError(f"sweep {sweep} has not ended; cancel it before it is deleted")
            alone = list(connection.scalars(_only_of(sweep)))
            requests = sa.update(schema.request).where(schema.request.c.sweep_id == sweep)
            connection.execute(requests.values(arguments=None))
            done = requests.where(schema.request.c.id == by, schema.request.c.applied.is_(None))
            shown = None if row.mlflow_experiment is None else {"uid": str(row.uid)}
            connection.execute(done.values(applied=datetime.now(UTC), outcome=outcome, arguments=shown))
            for rows in (
                schema.note, schema.tag, schema.trial_column, schema.outbox, trial,
                schema.candidate, schema.cell, schema.sweep_need, resolution, schema.share,
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
            connection.execute(sa.delete(sweeps).where(sweeps.c.id == sweep))


def _kept_use(trainings: Collection[Any]) -> sa.Insert:
    """Keeps the hours of deleted attempts, so that a deletion does not free hours of quotas."""
    names = ("owner_id", "project_id", "cpus", "gpus", "begun", "ended")
    # An attempt that never ended has held its slot until now.
    ended = sa.func.coalesce(attempt.c.ended, sa.bindparam("now", datetime.now(UTC), UtcTime))
    columns = (*(attempt.c[name] for name in names[:-1]), ended)
    mine = (attempt.c.training_id.in_(trainings), attempt.c.begun.is_not(None), attempt.c.gpus.is_not(None))
    return sa.insert(past_attempt).from_select(names, sa.select(*columns).where(*mine))
