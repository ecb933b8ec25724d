"""Adaptive searches and early stopping: suggestions, scores, and what is replayed."""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa

from orchestrator.record import schema
from orchestrator.record.changes import mark_sweep
from orchestrator.record.columns import number
from orchestrator.record.database import Access, FencedAccess, chunked
from orchestrator.record.schema import attempt, candidate, cell, metric, training, trial
from orchestrator.record.trial_rows import TrialRows
from orchestrator.views.runs import Candidate, PlannedTrial
from orchestrator.views.states import TRIAL_ACTIVE, SweepState, TrialState

_CHUNK: Final = 500


@dataclass(frozen=True, slots=True)
class Competitor:
    """A trial as early stopping sees it."""

    trial: int
    sweep: int
    cell: int
    candidate: int
    repeat: int
    training: int
    state: TrialState
    ended: datetime | None  # of a reused one when it was trained: its peers were judged by that
    spared: bool  # pruned once and retried since: it is trained to its end
    total: int  # steps of its training
    score: float | None  # of a finished one; none where it diverged
    stamp: str = ""  # of its training's versions
    recipe: dict[str, Any] | None = None  # of the cell's first candidate only


@dataclass(frozen=True, slots=True)
class RecordedEvaluation:
    """A value of the selection metric that a training reported."""

    id: int  # in the order in which they were recorded
    training: int
    step: int
    value: float
    at: datetime


class PruningReader(Access):
    """Reads what competes."""

    def spec(self, sweep: int) -> dict[str, Any] | None:
        """The spec of a sweep that stops early; none for any other."""
        with self._database.reading() as connection:
            found = connection.execute(sa.select(schema.sweep.c.spec).where(schema.sweep.c.id == sweep)).scalar_one()
        return dict(found) if found.get("prune") else None

    def cells_under_way(self, sweep: int) -> list[int]:
        """Cells of which something has begun and something is still to come."""
        active = sa.func.sum(sa.case((trial.c.state.in_(TRIAL_ACTIVE), 1), else_=0))
        begun = sa.func.sum(sa.case((trial.c.state != TrialState.WAITING, 1), else_=0))
        query = sa.select(trial.c.cell).where(trial.c.sweep_id == sweep).group_by(trial.c.cell)
        with self._database.reading() as connection:
            return list(connection.execute(query.having(active > 0, begun > 0).order_by(trial.c.cell)).scalars())

    def competitors(self, sweep: int, cell: int) -> list[Competitor]:
        """The trials of a cell in order; those of its first candidate with their recipes."""
        here = (trial.c.sweep_id == sweep, trial.c.cell == cell)
        first = sa.case((trial.c.candidate == 0, training.c.recipe))
        return self._competitors(_competing().add_columns(first.label("recipe")).where(*here))

    def appended(self, sweep: int, position: int) -> list[Competitor]:
        """The trials of a sweep after a position, in order."""
        return self._competitors(_competing().where(trial.c.sweep_id == sweep, trial.c.position > position))

    def competitors_of(self, attempt_uid: str) -> list[Competitor]:
        """The trials, of any sweep, that share the training of an attempt."""
        its = sa.select(attempt.c.training_id).where(attempt.c.uid == attempt_uid).scalar_subquery()
        return self._competitors(_competing().where(trial.c.training_id == its))

    def _competitors(self, query: sa.Select[Any]) -> list[Competitor]:
        with self._database.reading() as connection:
            return [_competitor(row) for row in connection.execute(query.order_by(trial.c.sweep_id, trial.c.position))]

    def evaluations(self, trainings: Iterable[int], key: str, after: int = 0) -> list[RecordedEvaluation]:
        """What trainings reported under a key, beyond row `after`, in the order of the rows."""
        columns = (metric.c.id, attempt.c.training_id, metric.c.step, metric.c.value, metric.c.at)
        recorded: list[RecordedEvaluation] = []
        with self._database.reading() as connection:
            for chunk in chunked(dict.fromkeys(trainings), _CHUNK):
                query = (
                    sa.select(*columns)
                    .join(attempt, attempt.c.id == metric.c.attempt_id)
                    .where(attempt.c.training_id.in_(chunk), metric.c.key == key, metric.c.id > after)
                )
                recorded += [
                    RecordedEvaluation(row.id, row.training_id, row.step, number(row.value), row.at)
                    for row in connection.execute(query)
                ]
        return sorted(recorded, key=lambda one: one.id)


def _competing() -> sa.Select[Any]:
    return sa.select(
        trial.c.id, trial.c.sweep_id, trial.c.cell, trial.c.candidate, trial.c.repeat,
        sa.func.coalesce(training.c.source, trial.c.training_id).label("training_id"),
        trial.c.state, trial.c.ended, trial.c.reused, trial.c.diverged, trial.c.reason, training.c.total_steps,
        training.c.score, training.c.ended.label("trained"), training.c.stamp,
    ).join(training, training.c.id == trial.c.training_id)  # fmt: skip


def _competitor(row: sa.Row[Any]) -> Competitor:
    state = TrialState(row.state)
    ok = state is TrialState.FINISHED and not row.diverged
    return Competitor(
        trial=row.id, sweep=row.sweep_id, cell=row.cell, candidate=row.candidate, repeat=row.repeat,
        training=row.training_id, state=state, ended=row.trained if row.reused else row.ended,
        spared=row.reason is not None and state is not TrialState.PRUNED,
        total=row.total_steps, score=row.score if ok else None, stamp=row.stamp,
        recipe=row._mapping.get("recipe"),
    )  # fmt: skip


# Made once, since it is asked at every turn.
_OPEN = (cell.c.open, schema.sweep.c.state == SweepState.RUNNING)
_OPEN_CELLS = (
    sa.select(cell.c.sweep_id, cell.c.cell, sa.func.count(candidate.c.candidate).label("candidates"))
    .join(schema.sweep, schema.sweep.c.id == cell.c.sweep_id)
    .outerjoin(candidate, sa.and_(candidate.c.sweep_id == cell.c.sweep_id, candidate.c.cell == cell.c.cell))
    .where(*_OPEN)
    .group_by(cell.c.sweep_id, cell.c.cell)
    .order_by(cell.c.sweep_id, cell.c.cell)
)


@dataclass(frozen=True, slots=True)
class Suggested:
    """A candidate that a search suggested. `asked` and `told` number the events of its cell."""

    index: int
    values: Mapping[str, str | float]
    asked: int
    told: int | None
    score: float | None  # as told; before that `mean`, or of a pruned one what it had when it was
    mean: float | None  # over its repeats as they are now, none where one did not finish ok
    trials: int
    ended: bool  # whether all its trials have
    pruned: int | None = None  # the evaluation after which it was pruned

    @property
    def merit(self) -> float | None:
        """By what it ranks: as told, or what a retry has given it since it was told as failed or pruned."""
        return self.mean if self.score is None or self.pruned is not None else self.score


@dataclass(frozen=True, slots=True)
class OpenCell:
    """A cell of a running sweep whose search goes on."""

    sweep: int
    cell: int
    candidates: int  # suggested so far
    untold: tuple[Suggested, ...]  # those whose score the search does not know yet


class SearchReader(Access):
    """Reads searches."""

    def open_cells(self) -> list[OpenCell]:
        """Cells of running sweeps that may get further candidates."""
        with self._database.reading() as connection:
            rows = connection.execute(_OPEN_CELLS).all()
            if not rows:
                return []
            asked: dict[tuple[int, int], list[Suggested]] = {(row.sweep_id, row.cell): [] for row in rows}
            untold = _suggested().where(candidate.c.told.is_(None), *_OPEN)
            untold = untold.join(
                cell, sa.and_(cell.c.sweep_id == candidate.c.sweep_id, cell.c.cell == candidate.c.cell)
            )
            untold = untold.join(schema.sweep, schema.sweep.c.id == cell.c.sweep_id)
            for row in connection.execute(untold):
                asked[row.sweep_id, row.cell].append(_read(row))
        return [OpenCell(one.sweep_id, one.cell, one.candidates, tuple(asked[one.sweep_id, one.cell])) for one in rows]

    def suggestions(self, sweep: int, cell: int) -> list[Suggested]:
        """All candidates of a cell in the order in which they were suggested."""
        query = _suggested().where(candidate.c.sweep_id == sweep, candidate.c.cell == cell)
        with self._database.reading() as connection:
            return [_read(row) for row in connection.execute(query)]


def _suggested() -> sa.Select[tuple[object, ...]]:
    """Every candidate with how its trials stand, in the order of the suggestions."""
    of_it = sa.and_(
        trial.c.sweep_id == candidate.c.sweep_id,
        trial.c.cell == candidate.c.cell,
        trial.c.candidate == candidate.c.candidate,
    )
    ok = sa.and_(trial.c.state == TrialState.FINISHED, ~trial.c.diverged, training.c.score.is_not(None))
    return (
        sa.select(
            candidate.c.sweep_id, candidate.c.cell, candidate.c.candidate, candidate.c.suggested, candidate.c.asked,
            candidate.c.told, candidate.c.score, candidate.c.pruned,
            sa.func.count(trial.c.id).label("trials"),
            sa.func.sum(sa.case((trial.c.state.in_(TRIAL_ACTIVE), 1), else_=0)).label("active"),
            sa.func.sum(sa.case((ok, 1), else_=0)).label("ok"),
            sa.func.avg(training.c.score).label("mean"),
        )
        .select_from(candidate.join(trial, of_it).join(training, training.c.id == trial.c.training_id))
        .group_by(
            candidate.c.sweep_id, candidate.c.cell, candidate.c.candidate, candidate.c.asked, candidate.c.told,
            candidate.c.score, candidate.c.pruned,
        )
        .order_by(candidate.c.sweep_id, candidate.c.cell, candidate.c.candidate)
    )  # fmt: skip


def _read(row: sa.Row[tuple[object, ...]]) -> Suggested:
    fields = row._mapping
    mean = fields["mean"] if fields["ok"] == fields["trials"] else None
    told, pruned = fields["told"], fields["pruned"]
    if told is None and mean is not None:
        pruned = None  # it was retried, and finished, before the search heard of it
    return Suggested(
        index=fields["candidate"],
        values=fields["suggested"] or {},
        asked=fields["asked"] or 0,
        told=told,
        score=mean if told is None and pruned is None else fields["score"],
        mean=mean,
        trials=fields["trials"],
        ended=not fields["active"],
        pruned=pruned,
    )


class SearchWriter(FencedAccess):
    """Writes searches."""

    def add_candidate(
        self,
        sweep: int,
        one: Candidate,
        values: Mapping[str, str | float],
        asked: int,
        trials: Sequence[PlannedTrial],
    ) -> None:
        """Write a suggested candidate with its trials; a training that is known is not run again."""
        with self._database.writing() as connection:
            connection.execute(
                sa.insert(candidate).values(
                    sweep_id=sweep, cell=one.cell, candidate=one.index, labels=dict(one.labels),
                    suggested=dict(values), asked=asked,
                )
            )  # fmt: skip
            self._append(connection, sweep, trials)

    def add_trials(self, sweep: int, trials: Sequence[PlannedTrial]) -> None:
        """Write further trials of candidates that exist."""
        with self._database.writing() as connection:
            self._append(connection, sweep, trials)

    def _append(self, connection: sa.Connection, sweep: int, trials: Sequence[PlannedTrial]) -> None:
        table = schema.sweep
        row = connection.execute(sa.select(table.c.uid, table.c.spec).where(table.c.id == sweep)).one()
        position = sa.select(sa.func.coalesce(sa.func.max(trial.c.position), -1) + 1).where(trial.c.sweep_id == sweep)
        rows = TrialRows(
            connection, sweep, uuid.UUID(row.uid), bool(row.spec.get("fresh")),
            first=connection.execute(position).scalar_one(),
        )  # fmt: skip
        rows.write(trials)
        mark_sweep(connection, sweep)

    def tell(self, sweep: int, cell: int, one: Suggested, told: int) -> None:
        """Note that the search was told what became of a candidate, as its event number `told`."""
        which = (candidate.c.sweep_id == sweep, candidate.c.cell == cell, candidate.c.candidate == one.index)
        values = {"told": told, "score": one.score, "pruned": one.pruned}
        with self._database.writing() as connection:
            connection.execute(sa.update(candidate).where(*which, candidate.c.told.is_(None)).values(**values))

    def close_cell(self, sweep: int, index: int) -> None:
        """Note that no candidate follows in a cell."""
        which = (cell.c.sweep_id == sweep, cell.c.cell == index)
        with self._database.writing() as connection:
            connection.execute(sa.update(cell).where(*which).values(open=False))
