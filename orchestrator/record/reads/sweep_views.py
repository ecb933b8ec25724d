"""What people see of sweeps: lists, one sweep with its problems, its grid, and the outcomes for its tables."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import sqlalchemy as sa

from orchestrator.record import schema
from orchestrator.record.database import Access
from orchestrator.record.existence import absence, require_sweep
from orchestrator.record.reads.cursors import decode, encode
from orchestrator.record.reads.request_views import latest_requests
from orchestrator.record.schema import candidate, cell, training, trial
from orchestrator.views.errors import NotFoundError
from orchestrator.views.lifecycle import SWEEP_GOING, TrialState
from orchestrator.views.pages import Page
from orchestrator.views.sweeps import Counts, GridCandidate, GridCell, GridTrial, SweepSummary, SweepView, TrialProblem

MAX_PROBLEMS: Final = 100
"""Failed and diverged trials that a sweep's page names."""
MOST_TIMED: Final = 1_000
"""Trainings, the last in the order of the plan, by whose length the time that is left is told."""

_LISTED = (
    "id", "uid", "name", "state", "created", "started", "ended", "total", "actor", "priority", "error", "notice",
    "spec",
)  # fmt: skip


class SweepViews(Access):
    """Reads sweeps."""

    def sweeps(
        self, state: str | None = None, name: str | None = None, cursor: str | None = None, limit: int = 50
    ) -> Page[SweepSummary]:
        """Sweeps, newest first; `name` is a part of the name, in any case of letters."""
        table = schema.sweep
        query = sa.select(*(table.c[column] for column in _LISTED)).order_by(table.c.id.desc()).limit(limit + 1)
        if state is not None:
            query = query.where(table.c.state == state)
        if name is not None:
            query = query.where(table.c.name.icontains(name, autoescape=True))
        if cursor is not None:
            query = query.where(table.c.id < decode(cursor))
        with self._database.reading() as connection:
            rows = connection.execute(query).all()
            shown = rows[:limit]
            ids = [row.id for row in shown]
            counts, etas = _counts(connection, ids), _etas(connection, ids)
        items = [SweepSummary(**_summary(row, counts, etas)) for row in shown]
        return Page[SweepSummary](items=items, next_cursor=encode(shown[-1].id) if len(rows) > limit else None)

    def sweep(self, sweep: int) -> SweepView:
        """One sweep whole; raises NotFoundError."""
        with self._database.reading() as connection:
            row = connection.execute(sa.select(schema.sweep).where(schema.sweep.c.id == sweep)).one_or_none()
            if row is None:
                raise NotFoundError(absence(connection, sweep))
            summary = _summary(row, _counts(connection, [sweep]), _etas(connection, [sweep]))
            problems, asked = _problems(connection, sweep), latest_requests(connection, sweep)
        return SweepView(**summary, spec=row.spec, text=row.text, problems=problems, requests=asked)

    def grid(self, sweep: int, most: int | None = None) -> list[GridCell]:
        """A sweep's cells with their candidates and trials; raises NotFoundError.

        With `most`, the first cells alone, as far as they have so many trials together; the last one may be cut.
        """
        with self._database.reading() as connection:
            require_sweep(connection, sweep)
            trials = connection.execute(_grid_trials(sweep).limit(most)).all()
            cells = sa.select(cell).where(cell.c.sweep_id == sweep).order_by(cell.c.cell)
            found = sa.select(candidate).where(candidate.c.sweep_id == sweep)
            found = found.order_by(candidate.c.cell, candidate.c.candidate)
            if most is not None and len(trials) == most:
                # The last candidate may be cut, too: it goes, and what is drawn has only whole ones.
                end = (trials[-1].cell, trials[-1].candidate)
                trials = [row for row in trials if (row.cell, row.candidate) < end]
                cells = cells.where(cell.c.cell <= end[0])
                found = found.where(sa.tuple_(candidate.c.cell, candidate.c.candidate) < sa.tuple_(*end))
            return _grid(connection.execute(cells).all(), connection.execute(found).all(), trials)

    def cell_count(self, sweep: int) -> int:
        """How many cells a sweep has; none before it is expanded."""
        query = sa.select(sa.func.count()).select_from(cell).where(cell.c.sweep_id == sweep)
        with self._database.reading() as connection:
            return int(connection.execute(query).scalar_one())


def _summary(row: sa.Row[Any], counts: Mapping[int, Counts], etas: Mapping[int, float]) -> dict[str, Any]:
    said: dict[str, Any] = {column: getattr(row, column) for column in _LISTED if column != "spec"}
    return said | {
        "counts": counts.get(row.id, Counts()),
        "eta_seconds": etas.get(row.id),
        "tables": list(row.spec.get("tables") or {}),
        "figures": list(row.spec.get("figures") or {}),
    }


def _counts(connection: sa.Connection, sweeps: Sequence[int]) -> dict[int, Counts]:
    grouped = (trial.c.sweep_id, trial.c.state, trial.c.reused, trial.c.diverged)
    query = sa.select(*grouped, sa.func.count().label("n")).where(trial.c.sweep_id.in_(sweeps)).group_by(*grouped)
    found: dict[int, Counts] = defaultdict(Counts)
    for row in connection.execute(query):
        counts = found[row.sweep_id]
        setattr(counts, row.state, getattr(counts, row.state) + row.n)
        counts.reused += row.n if row.reused else 0
        counts.diverged += row.n if row.diverged else 0
    return found


def _etas(connection: sa.Connection, sweeps: Sequence[int]) -> dict[int, float]:
    """Seconds until the last trial: the mean length of the trainings that this sweep ran, times what is left."""
    active = sa.select(schema.sweep.c.id).where(schema.sweep.c.id.in_(sweeps), schema.sweep.c.state.in_(SWEEP_GOING))
    found = {sweep: _eta(connection, sweep) for sweep in connection.execute(active).scalars()}
    return {sweep: eta for sweep, eta in found.items() if eta is not None}


def _eta(connection: sa.Connection, sweep: int) -> float | None:
    # The index (sweep, state, position) leads to the few rows that are read: a list must not read 100,000 of each.
    def of(state: TrialState) -> tuple[sa.ColumnElement[bool], ...]:
        return (trial.c.sweep_id == sweep, trial.c.state == state)

    lengths = sa.select(training.c.seconds).join(trial, trial.c.training_id == training.c.id)
    lengths = lengths.where(*of(TrialState.FINISHED), ~trial.c.reused).order_by(trial.c.position.desc())
    mean = connection.execute(sa.select(sa.func.avg(lengths.limit(MOST_TIMED).subquery().c.seconds))).scalar()
    if mean is None:
        return None
    share = sa.cast(training.c.step, sa.Float) / sa.func.nullif(training.c.total_steps, 0)
    going = sa.select(sa.func.count(), sa.func.sum(1.0 - sa.func.coalesce(share, 0.0))).select_from(trial)
    going = going.join(training, training.c.id == trial.c.training_id).where(*of(TrialState.RUNNING))
    running, left = connection.execute(going).one()
    waiting = connection.execute(
        sa.select(sa.func.count()).select_from(trial).where(*of(TrialState.WAITING))
    ).scalar_one()
    return float(mean) * (float(left or 0.0) + waiting) / max(1, running)


def _problems(connection: sa.Connection, sweep: int) -> list[TrialProblem]:
    query = (
        sa.select(
            trial.c.id, trial.c.state, trial.c.repeat_labels, trial.c.diverged, training.c.error,
            cell.c.labels.label("cell_labels"), candidate.c.labels.label("candidate_labels"),
        )
        .join(training, training.c.id == trial.c.training_id)
        .join(cell, sa.and_(cell.c.sweep_id == trial.c.sweep_id, cell.c.cell == trial.c.cell))
        .join(candidate, of_candidate())
        .where(trial.c.id.in_(_troubled(connection, sweep)))
        .order_by(trial.c.position)
        .limit(MAX_PROBLEMS)
    )  # fmt: skip
    return [
        TrialProblem(
            trial=row.id,
            labels={**row.cell_labels, **row.candidate_labels, **row.repeat_labels},
            state=row.state,
            message="diverged: the loss became NaN" if row.diverged else row.error or "failed",
            log=f"/v1/trials/{row.id}/logs",
        )
        for row in connection.execute(query)
    ]


def _troubled(connection: sa.Connection, sweep: int) -> list[int]:
    """The first trials that failed, and the first that diverged: each by an index, however many others there are."""
    columns = sa.select(trial.c.id).where(trial.c.sweep_id == sweep).limit(MAX_PROBLEMS)
    failed = columns.where(trial.c.state == TrialState.FAILED).order_by(trial.c.position)
    found = list(connection.execute(failed).scalars())
    for reused in (False, True):
        ended = (trial.c.state == TrialState.FINISHED, trial.c.reused == reused, trial.c.diverged)
        found += connection.execute(columns.where(*ended).order_by(trial.c.id)).scalars()
    return found


def of_candidate() -> sa.ColumnElement[bool]:
    """The join of a trial with its candidate."""
    return sa.and_(
        candidate.c.sweep_id == trial.c.sweep_id,
        candidate.c.cell == trial.c.cell,
        candidate.c.candidate == trial.c.candidate,
    )


def _grid_trials(sweep: int) -> sa.Select[Any]:
    columns = (trial.c.id, trial.c.cell, trial.c.candidate, trial.c.repeat, trial.c.state, trial.c.diverged)
    query = sa.select(*columns, training.c.score).join(training, training.c.id == trial.c.training_id)
    return query.where(trial.c.sweep_id == sweep).order_by(trial.c.cell, trial.c.candidate, trial.c.repeat)


def _grid(
    cells: Iterable[sa.Row[Any]], candidates: Iterable[sa.Row[Any]], trials: Iterable[sa.Row[Any]]
) -> list[GridCell]:
    squares: dict[tuple[int, int], list[GridTrial]] = defaultdict(list)
    scores: dict[tuple[int, int], list[float]] = defaultdict(list)
    for row in trials:
        place = (row.cell, row.candidate)
        squares[place].append(GridTrial(trial=row.id, repeat=row.repeat, state=row.state, diverged=row.diverged))
        if row.state == TrialState.FINISHED and row.score is not None:
            scores[place].append(row.score)
    by_index: dict[int, GridCell] = {}
    selected: dict[int, int | None] = {}
    for row in cells:
        by_index[row.cell] = GridCell(index=row.cell, labels=row.labels, candidates=[])
        selected[row.cell] = (row.summary or {}).get("candidate")
    for row in candidates:
        place = (row.cell, row.candidate)
        known = scores[place]
        by_index[row.cell].candidates.append(
            GridCandidate(
                labels=row.labels, selected=selected[row.cell] == row.candidate,
                score=sum(known) / len(known) if known else None, trials=squares[place],
            )
        )  # fmt: skip
    return list(by_index.values())
