"""A sweep's cells with their candidates, trials and scores, as they are drawn."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa

from orchestrator.record.schema import candidate, cell, training, trial
from orchestrator.views.lifecycle import TrialState
from orchestrator.views.sweeps import GridCandidate, GridCell, GridTrial


def grid(connection: sa.Connection, sweep: int, most: int | None) -> list[GridCell]:
    """All of it; with `most`, the first cells alone, as far as they have so many trials together."""
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
