"""Stores adaptive searches and early stopping: suggestions, scores, and what rebuilds them after a restart."""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa

from orchestrator.record.changes import mark_sweep
from orchestrator.record.columns import number
from orchestrator.record.database import Access, FencedAccess, chunked, of_candidate
from orchestrator.record.schema import attempt, candidate, cell, metric, training, trial
from orchestrator.record.schema import sweep as sweeps
from orchestrator.record.trial_rows import TrialRows
from orchestrator.views.runs import Candidate, PlannedTrial
from orchestrator.views.states import TRIAL_ACTIVE, SweepState, TrialState

_CHUNK: Final = 500


@dataclass(frozen=True, slots=True)
class Competitor:
    """A trial with what early stopping compares: state, steps, score and training."""

    trial: int
    sweep: int
    cell: int
    candidate: int
    repeat: int
    training: int
    state: TrialState
    ended: datetime | None  # if reused, when its training ended
    spared: bool  # pruned and then retried: it is trained to the end
    total: int  # steps of its training
    score: float | None  # if it finished and did not diverge
    stamp: str = ""  # of its training's versions
    recipe: dict[str, Any] | None = None  # of the cell's first candidate only


@dataclass(frozen=True, slots=True)
class RecordedEvaluation:
    """A value of the selection metric that a training reported while it trained."""

    id: int  # in the order of recording
    training: int
    step: int
    value: float
    at: datetime


class PruningReader(Access):
    """Reads the trials and reported values from which early stopping decides."""

    def spec(self, sweep: int) -> dict[str, Any] | None:
        """The spec of a sweep that uses early stopping; `None` for any other sweep."""
        spec = self._scalar(sa.select(sweeps.c.spec).where(sweeps.c.id == sweep))
        return dict(spec) if spec.get("prune") else None

    def cells_under_way(self, sweep: int) -> list[int]:
        """The cells of a sweep in which some trials have begun and some have not ended."""
        active = sa.func.sum(sa.case((trial.c.state.in_(TRIAL_ACTIVE), 1), else_=0))
        begun = sa.func.sum(sa.case((trial.c.state != TrialState.WAITING, 1), else_=0))
        query = sa.select(trial.c.cell).where(trial.c.sweep_id == sweep).group_by(trial.c.cell)
        return [row.cell for row in self._rows(query.having(active > 0, begun > 0).order_by(trial.c.cell))]

    def competitors(self, sweep: int, cell: int) -> list[Competitor]:
        """The trials of a cell for early stopping, in order; those of its first candidate with their recipes."""
        here = (trial.c.sweep_id == sweep, trial.c.cell == cell)
        first = sa.case((trial.c.candidate == 0, training.c.recipe))
        return self._competitors(_competing().add_columns(first.label("recipe")).where(*here))

    def appended(self, sweep: int, position: int) -> list[Competitor]:
        """The trials of a sweep after the position `position` for early stopping, in order."""
        return self._competitors(_competing().where(trial.c.sweep_id == sweep, trial.c.position > position))

    def competitors_of(self, attempt_uid: str) -> list[Competitor]:
        """The trials of all sweeps that share the training of an attempt, for early stopping."""
        its = sa.select(attempt.c.training_id).where(attempt.c.uid == attempt_uid).scalar_subquery()
        return self._competitors(_competing().where(trial.c.training_id == its))

    def _competitors(self, query: sa.Select[Any]) -> list[Competitor]:
        return [_competitor(row) for row in self._rows(query.order_by(trial.c.sweep_id, trial.c.position))]

    def evaluations(self, trainings: Iterable[int], key: str) -> list[RecordedEvaluation]:
        """The values of the metric `key` that trainings reported, in order."""
        columns = (metric.c.id, attempt.c.training_id, metric.c.step, metric.c.value, metric.c.at)
        recorded: list[RecordedEvaluation] = []
        with self._database.reading() as connection:
            for chunk in chunked(dict.fromkeys(trainings), _CHUNK):
                query = (
                    sa.select(*columns)
                    .join(attempt, attempt.c.id == metric.c.attempt_id)
                    .where(attempt.c.training_id.in_(chunk), metric.c.key == key)
                )
                recorded += [
                    RecordedEvaluation(row.id, row.training_id, row.step, number(row.value), row.at)
                    for row in connection.execute(query)
                ]
        return sorted(recorded, key=lambda evaluation: evaluation.id)


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


_OPEN = (cell.c.open, sweeps.c.state == SweepState.RUNNING)
_OPEN_CELLS = (
    sa.select(cell.c.sweep_id, cell.c.cell, sa.func.count(candidate.c.candidate).label("candidates"))
    .join(sweeps, sweeps.c.id == cell.c.sweep_id)
    .outerjoin(candidate, sa.and_(candidate.c.sweep_id == cell.c.sweep_id, candidate.c.cell == cell.c.cell))
    .where(*_OPEN)
    .group_by(cell.c.sweep_id, cell.c.cell)
    .order_by(cell.c.sweep_id, cell.c.cell)
)


@dataclass(frozen=True, slots=True)
class Suggested:
    """A candidate that an adaptive search suggested.

    `suggest_event` and `score_event` number the events of its cell: its suggestion, and the report of its score.
    """

    index: int
    values: Mapping[str, str | float]
    suggest_event: int
    score_event: int | None
    score: float | None  # as the study got it; before that `mean`, or the score at which it was pruned
    mean: float | None  # over its repeats now; `None` if one failed or diverged
    trials: int
    ended: bool  # whether all its trials have
    pruned: int | None = None  # the evaluation after which it was pruned

    @property
    def merit(self) -> float | None:
        """The score that ranks a candidate in its search: as the study got it, or of a retry after it failed."""
        return self.mean if self.score is None or self.pruned is not None else self.score


@dataclass(frozen=True, slots=True)
class OpenCell:
    """A cell of a running sweep whose adaptive search may suggest more candidates."""

    sweep: int
    cell: int
    candidates: int  # suggested so far
    unscored: tuple[Suggested, ...]  # those whose score the study does not know yet


class SearchReader(Access):
    """Reads adaptive searches."""

    def open_cells(self) -> list[OpenCell]:
        """The cells of running sweeps whose adaptive search may suggest more candidates."""
        with self._database.reading() as connection:
            rows = connection.execute(_OPEN_CELLS).all()
            if not rows:
                return []
            asked: dict[tuple[int, int], list[Suggested]] = {(row.sweep_id, row.cell): [] for row in rows}
            its_cell = sa.and_(cell.c.sweep_id == candidate.c.sweep_id, cell.c.cell == candidate.c.cell)
            unscored = _suggested().where(candidate.c.score_event.is_(None), *_OPEN).join(cell, its_cell)
            for row in connection.execute(unscored.join(sweeps, sweeps.c.id == cell.c.sweep_id)):
                asked[row.sweep_id, row.cell].append(_read(row))
        return [OpenCell(row.sweep_id, row.cell, row.candidates, tuple(asked[row.sweep_id, row.cell])) for row in rows]

    def suggestions(self, sweep: int, cell: int) -> list[Suggested]:
        """All candidates of a cell's adaptive search in the order of their suggestion."""
        query = _suggested().where(candidate.c.sweep_id == sweep, candidate.c.cell == cell)
        return [_read(row) for row in self._rows(query)]


def _suggested() -> sa.Select[Any]:
    """Every candidate with the state of its trials, in the order of the suggestions."""
    ok = sa.and_(trial.c.state == TrialState.FINISHED, ~trial.c.diverged, training.c.score.is_not(None))
    return (
        sa.select(
            candidate.c.sweep_id, candidate.c.cell, candidate.c.candidate, candidate.c.suggested,
            candidate.c.suggest_event, candidate.c.score_event, candidate.c.score, candidate.c.pruned,
            sa.func.count(trial.c.id).label("trials"),
            sa.func.sum(sa.case((trial.c.state.in_(TRIAL_ACTIVE), 1), else_=0)).label("active"),
            sa.func.sum(sa.case((ok, 1), else_=0)).label("ok"),
            sa.func.avg(training.c.score).label("mean"),
        )
        .select_from(candidate.join(trial, of_candidate()).join(training, training.c.id == trial.c.training_id))
        .group_by(
            candidate.c.sweep_id, candidate.c.cell, candidate.c.candidate,
            candidate.c.suggest_event, candidate.c.score_event, candidate.c.score, candidate.c.pruned,
        )
        .order_by(candidate.c.sweep_id, candidate.c.cell, candidate.c.candidate)
    )  # fmt: skip


def _read(row: sa.Row[Any]) -> Suggested:
    mean = row.mean if row.ok == row.trials else None
    pruned = row.pruned
    if row.score_event is None and mean is not None:
        pruned = None  # it was retried and has finished since
    return Suggested(
        index=row.candidate, values=row.suggested or {},
        suggest_event=row.suggest_event or 0, score_event=row.score_event,
        score=mean if row.score_event is None and pruned is None else row.score, mean=mean, trials=row.trials,
        ended=not row.active, pruned=pruned,
    )  # fmt: skip


class SearchWriter(FencedAccess):
    """Writes the candidates and scores of adaptive searches."""

    def add_candidate(
        self,
        sweep: int,
        one: Candidate,
        values: Mapping[str, str | float],
        suggest_event: int,
        trials: Sequence[PlannedTrial],
    ) -> None:
        """Write a candidate that a search suggested, with its trials; finished trainings are reused.

        `suggest_event`: the number of the suggestion among the events of its cell.
        """
        row = {
            "sweep_id": sweep, "cell": one.cell, "candidate": one.index, "labels": dict(one.labels),
            "suggested": dict(values), "suggest_event": suggest_event,
        }  # fmt: skip
        with self._database.writing() as connection:
            connection.execute(sa.insert(candidate).values(row))
            self._append(connection, sweep, trials)

    def add_trials(self, sweep: int, trials: Sequence[PlannedTrial]) -> None:
        """Write more trials of candidates that a search suggested earlier."""
        with self._database.writing() as connection:
            self._append(connection, sweep, trials)

    def _append(self, connection: sa.Connection, sweep: int, trials: Sequence[PlannedTrial]) -> None:
        row = connection.execute(sa.select(sweeps.c.uid, sweeps.c.spec).where(sweeps.c.id == sweep)).one()
        TrialRows(connection, sweep, uuid.UUID(row.uid), bool(row.spec.get("fresh"))).write(trials)
        mark_sweep(connection, sweep)

    def record_score(self, sweep: int, cell: int, one: Suggested, score_event: int) -> None:
        """Record that the search's study got a candidate's score, as event number `score_event` of its cell."""
        which = (candidate.c.sweep_id == sweep, candidate.c.cell == cell, candidate.c.candidate == one.index)
        values = {"score_event": score_event, "score": one.score, "pruned": one.pruned}
        with self._database.writing() as connection:
            connection.execute(sa.update(candidate).where(*which, candidate.c.score_event.is_(None)).values(**values))

    def close_cell(self, sweep: int, index: int) -> None:
        """Record that the adaptive search of a cell suggests no more candidates."""
        which = (cell.c.sweep_id == sweep, cell.c.cell == index)
        with self._database.writing() as connection:
            connection.execute(sa.update(cell).where(*which).values(open=False))
