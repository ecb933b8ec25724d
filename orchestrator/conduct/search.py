"""The adaptive searches of all running sweeps: asks each open cell's study, plans what it suggests, tells it scores."""

import hashlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestrator.plan import grid
from orchestrator.plan.grid import Contents, Space
from orchestrator.plan.points import cells_of
from orchestrator.publish import aggregate
from orchestrator.record.searches import OpenCell, Suggested
from orchestrator.record.store import Store, Writer
from orchestrator.run.engine import Study, Values
from orchestrator.run.optuna import Answer, OptunaStudy, write_journal
from orchestrator.spec.axes import Search
from orchestrator.spec.spec import Spec
from orchestrator.views.errors import FOR_ALL, ConflictError, MetricsweepError, NotFoundError
from orchestrator.views.runs import Dimension
from workers.catalog import Catalog

log = logging.getLogger(__name__)

Make = Callable[[Search, Sequence[Dimension], int, bool], Study]
"""A study from the search, its dimensions, a seed, and whether higher scores are better."""


def _optuna(search: Search, dimensions: Sequence[Dimension], seed: int, higher: bool) -> Study:
    return OptunaStudy(search.name, dimensions, seed, higher=higher)


@dataclass(slots=True)
class _Cell:
    """A cell's study as far as it has come."""

    spec: Spec
    space: Space
    study: Study
    events: int  # questions and answers so far


class Searches:
    """Everything that is asked and told is recorded first, so that a study can be rebuilt after any crash."""

    def __init__(self, store: Store, writer: Writer, catalog: Catalog, make: Make = _optuna) -> None:
        self._store, self._writer, self._catalog, self._make = store, writer, catalog, make
        self._cells: dict[tuple[int, int], _Cell] = {}

    def advance(self) -> bool:
        """Take every search as far as it can go now; whether anything was added."""
        open_cells = self._store.searches.open_cells()
        for gone in self._cells.keys() - {(open_cell.sweep, open_cell.cell) for open_cell in open_cells}:
            del self._cells[gone]
        added, failed = False, set[int]()
        for open_cell in open_cells:
            if open_cell.sweep in failed:
                continue  # what would be added to it now would wait for ever
            try:
                added |= self._advance(open_cell)
            except FOR_ALL:
                # What was asked or told may not be recorded, and so did not happen: rebuild the study.
                self._cells.pop((open_cell.sweep, open_cell.cell), None)
                raise
            except Exception as error:
                # A recipe that cannot be, or a sampler's own trouble, which it would have at every turn, is that of
                # this sweep, not of those that search beside it.
                failed.add(open_cell.sweep)
                self._cells.pop((open_cell.sweep, open_cell.cell), None)
                log.exception("sweep %d: the search of cell %d cannot go on", open_cell.sweep, open_cell.cell)
                ours = isinstance(error, (MetricsweepError, ValueError, LookupError))
                said = str(error) if ours else f"{type(error).__name__}: {error}"
                self._writer.sweeps.fail(open_cell.sweep, f"the search of cell {open_cell.cell} cannot go on: {said}")
        return added

    def _advance(self, open_cell: OpenCell) -> bool:
        at = self._cells.get((open_cell.sweep, open_cell.cell)) or self._rebuild(open_cell)
        self._cells[open_cell.sweep, open_cell.cell] = at
        for ended in (suggested for suggested in open_cell.untold if suggested.ended):
            self._writer.searches.tell(open_cell.sweep, open_cell.cell, ended, at.events)
            at.study.tell(ended.index, ended.score, ended.pruned)
            at.events += 1
        going = sum(not suggested.ended for suggested in open_cell.untold)
        count = open_cell.candidates
        while going < at.spec.search.parallel and count < at.space.candidates:
            asked = at.study.ask()
            if asked is None:
                break
            self._add(open_cell, at, *asked)
            count, going = count + 1, going + 1
        # One that is trained again after it was told as failed or pruned may be the best: its end is waited for.
        over = not going and not self._store.trials.has_active(open_cell.sweep, open_cell.cell)
        if over:
            self._end(open_cell, at)
        return count > open_cell.candidates or over

    def _add(self, one: OpenCell, at: _Cell, number: int, values: Values) -> None:
        made = grid.candidate(at.spec, one.cell, number, values)
        trials = list(grid.trials(at.spec, self._catalog, made, self._contents(one.sweep)))
        self._writer.searches.add_candidate(one.sweep, made, values, at.events, trials)
        at.events += 1

    def _contents(self, sweep: int) -> Contents:
        return Contents.of(self._store.data.planned_content(sweep))

    def _end(self, one: OpenCell, at: _Cell) -> None:
        """The search is over: have its best candidate reproduced if asked for, and close the cell."""
        if at.spec.search.reproduce:
            self._reproduce(one, at)
        self._writer.searches.close_cell(one.sweep, one.cell)

    def _reproduce(self, one: OpenCell, at: _Cell) -> None:
        scored = [found for found in self._store.searches.suggestions(one.sweep, one.cell) if found.merit is not None]
        if not scored:
            return
        sign = 1 if higher(at.spec, self._catalog) else -1
        best = max(scored, key=lambda found: sign * (found.merit or 0.0))  # the first of equals
        made = grid.candidate(at.spec, one.cell, best.index, best.values)
        planned = list(grid.trials(at.spec, self._catalog, made, self._contents(one.sweep)))
        if best.trials == len(planned):  # else a conductor did so before it was killed
            self._writer.searches.add_trials(one.sweep, list(grid.reproductions(at.spec, self._catalog, planned)))

    def _rebuild(self, one: OpenCell) -> _Cell:
        spec = Spec.model_validate(self._store.sweeps.get(one.sweep).spec)
        space = grid.space(spec, one.cell)
        at = _Cell(spec, space, self._study(spec, space), 0)
        recorded = self._store.searches.suggestions(one.sweep, one.cell)
        at.events = len(recorded) + sum(found.told is not None for found in recorded)
        if not _replay(at.study, recorded):
            log.warning("sweep %d, cell %d: the search is rebuilt from its candidates alone", one.sweep, one.cell)
            at.study = self._study(spec, space)
            _learn(at.study, recorded)
        return at

    def _study(self, spec: Spec, space: Space) -> Study:
        # Cells that search alike must not all try the same values, and a cell must not depend on how many there are.
        text = f"{spec.search.seed}:{sorted(space.labels.items())}"
        seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") % 2**31
        return self._make(spec.search, space.dimensions, seed, higher(spec, self._catalog))


def export(store: Store, catalog: Catalog, sweep: int, cell: int, file: Path) -> int:
    """Write a cell's search as an Optuna journal, from the database alone; how many trials it has.

    Replaces the file. Raises NotFoundError, and ConflictError where the sweep tries a grid.
    """
    view = store.sweeps.get(sweep)
    spec = Spec.model_validate(view.spec)
    if not spec.search.adaptive:
        raise ConflictError(f"sweep {sweep} trains a grid: there is no study of it")
    cells = sum(1 for _ in cells_of(spec))
    if not 0 <= cell < cells:
        raise NotFoundError(f"sweep {sweep} has no cell {cell}; expected 0 to {cells - 1}")
    space = grid.space(spec, cell)
    labels = ", ".join(f"{axis}={label}" for axis, label in space.labels.items())
    study = f"{view.name}, sweep {sweep}, cell {cell}" + (f": {labels}" if labels else "")
    answers = [
        Answer(one.values, one.score, one.told is None and not one.ended, one.pruned)
        for one in store.searches.suggestions(sweep, cell)
    ]
    write_journal(file, study, space.dimensions, answers, higher=higher(spec, catalog))
    return len(answers)


def higher(spec: Spec, catalog: Catalog) -> bool:
    """Whether a higher score is better."""
    return aggregate.direction(spec.select.metric, catalog) == "higher"


def _replay(study: Study, recorded: Sequence[Suggested]) -> bool:
    """Ask and tell again in the recorded order; False as soon as a suggestion differs (another Optuna, say)."""
    events: list[tuple[int, Suggested, bool]] = [(one.asked, one, False) for one in recorded]
    events += [(one.told, one, True) for one in recorded if one.told is not None]
    for _, one, told in sorted(events, key=lambda event: event[0]):
        if told:
            study.tell(one.index, one.score, one.pruned)
        elif study.ask() != (one.index, dict(one.values)):
            return False
    return True


def _learn(study: Study, recorded: Sequence[Suggested]) -> None:
    for one in recorded:
        if one.told is None:
            study.ask(one.values)
        else:
            study.learn(one.values, one.score, one.pruned)
