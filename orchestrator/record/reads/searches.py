"""Adaptive searches: cells that are still open, and the candidates suggested in them with what those scored."""

from collections.abc import Mapping
from dataclasses import dataclass

import sqlalchemy as sa

from orchestrator.record import schema
from orchestrator.record.database import Access
from orchestrator.record.schema import candidate, cell, training, trial
from orchestrator.views.states import TRIAL_ACTIVE, SweepState, TrialState

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
