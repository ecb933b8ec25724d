"""The trials of large sweeps that go on, kept between two readings: read anew are candidates in which one changed."""

import threading
from collections import OrderedDict, defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final

import sqlalchemy as sa

from orchestrator.record.reads import trial_outcomes
from orchestrator.record.schema import candidate, cell, training, trial
from orchestrator.views.outcomes import TrialOutcome
from orchestrator.views.planned import Candidate, Cell

MOST_TRIALS: Final = 50_000
"""Kept of all sweeps together: 2 to 3 KB each. A sweep that has more by itself is read whole each time."""
MANY: Final = 200
"""Candidates in which something changed from which on a sweep is read whole: it is one query in place of many."""

Place = tuple[int, int]
"""A cell, and a candidate of it."""


@dataclass(frozen=True, slots=True)
class ReadOutcomes:
    """What a sweep's tables are computed from, as it was read at one moment."""

    uid: str  # of the sweep: numbers are used again where another database takes this one's place
    cells: tuple[Cell, ...]
    candidates: tuple[Candidate, ...]
    trials: tuple[TrialOutcome, ...]
    seals: Mapping[Place, str]  # by candidate all of its trials' that may change


class KeptOutcomes:
    """Those of the sweeps that were asked for last; safe to share between threads."""

    def __init__(self, most: int = MOST_TRIALS) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._kept: OrderedDict[int, ReadOutcomes] = OrderedDict()

    def of(self, connection: sa.Connection, sweep: int, uid: str) -> ReadOutcomes:
        """What is known at the moment of this connection's transaction, of a sweep that the caller was shown in it."""
        with self._lock:
            known = self._kept.get(sweep)
        if known is None or known.uid != uid:
            known = ReadOutcomes(uid, (), (), (), {})
        now = _read(connection, sweep, known)
        with self._lock:
            self._kept.pop(sweep, None)
            if len(now.trials) <= self._most:
                self._kept[sweep] = now
            while sum(len(one.trials) for one in self._kept.values()) > self._most:
                self._kept.popitem(last=False)
        return now

    def forget(self, sweep: int) -> None:
        """Free what a sweep took that has ended."""
        with self._lock:
            self._kept.pop(sweep, None)


def _read(connection: sa.Connection, sweep: int, known: ReadOutcomes) -> ReadOutcomes:
    seals: dict[Place, str] = {}
    for row in connection.execute(_SEALS, {"sweep": sweep}):
        seals[row.cell, row.candidate] = row.seal
    changed = {place for place in seals.keys() | known.seals.keys() if seals.get(place) != known.seals.get(place)}
    trials = known.trials
    if len(changed) > MANY:
        trials = tuple(trial_outcomes.of_sweep(connection, sweep))
    elif changed:
        others = (one for one in trials if (one.cell, one.candidate) not in changed)
        trials = tuple(sorted((*others, *_again(connection, sweep, changed)), key=attrgetter("position")))
    cells, candidates = known.cells, known.candidates
    counts = connection.execute(_COUNTS, {"sweep": sweep}).one()  # they are added, and never changed or taken away
    if (counts.cells, counts.candidates) != (len(cells), len(candidates)):
        cells, candidates = planned(connection, sweep)
    return ReadOutcomes(known.uid, cells, candidates, trials, seals)


def _again(connection: sa.Connection, sweep: int, changed: Collection[Place]) -> Iterator[TrialOutcome]:
    by_cell: dict[int, list[int]] = defaultdict(list)
    for index, of_cell in changed:
        by_cell[index].append(of_cell)
    for index, candidates in by_cell.items():
        yield from trial_outcomes.of_candidates(connection, sweep, index, candidates)


def planned(
    connection: sa.Connection, sweep: int, only: Collection[int] | None = None
) -> tuple[tuple[Cell, ...], tuple[Candidate, ...]]:
    """A sweep's cells and their candidates in order; with `only`, these cells alone."""
    cells, candidates = _CELLS, _CANDIDATES
    if only is not None:
        cells, candidates = cells.where(cell.c.cell.in_(only)), candidates.where(candidate.c.cell.in_(only))
    its = {"sweep": sweep}
    return (
        tuple(Cell(one.cell, one.labels) for one in connection.execute(cells, its)),
        tuple(Candidate(one.cell, one.candidate, one.labels) for one in connection.execute(candidates, its)),
    )


# Made once: tables of what goes on are asked for every few seconds.
_SWEEP: Final[sa.BindParameter[int]] = sa.bindparam("sweep")
_CELLS: Final = sa.select(cell.c.cell, cell.c.labels).where(cell.c.sweep_id == _SWEEP).order_by(cell.c.cell)
_CANDIDATES: Final = (
    sa.select(candidate.c.cell, candidate.c.candidate, candidate.c.labels)
    .where(candidate.c.sweep_id == _SWEEP)
    .order_by(candidate.c.cell, candidate.c.candidate)
)
_COUNTS: Final = sa.select(
    sa.select(sa.func.count()).where(cell.c.sweep_id == _SWEEP).scalar_subquery().label("cells"),
    sa.select(sa.func.count()).where(candidate.c.sweep_id == _SWEEP).scalar_subquery().label("candidates"),
)


def _seals() -> sa.Select[Any]:
    """By candidate, in one text, all of its trials that may change: the database makes it faster than rows are read.

    What a finished training gave never changes; a trial takes other numbers by moving to another training.
    """
    new = training.alias()

    def text(value: sa.ColumnElement[Any]) -> sa.ColumnElement[str]:
        return sa.func.coalesce(sa.cast(value, sa.String), "")

    parts = (
        trial.c.id, trial.c.state, trial.c.training_id, trial.c.diverged, trial.c.reused, trial.c.evaluation_id,
        new.c.state,
    )  # fmt: skip
    said = text(parts[0])
    for part in parts[1:]:
        said = said + " " + text(part)
    return (
        sa.select(trial.c.cell, trial.c.candidate, sa.func.aggregate_strings(said, ",").label("seal"))
        .outerjoin(new, new.c.id == trial.c.evaluation_id)
        .where(trial.c.sweep_id == _SWEEP)
        .group_by(trial.c.cell, trial.c.candidate)
    )


_SEALS: Final = _seals()
