"""Adaptive searches of running sweeps: plans what each open cell's study suggests, and reports the scores to it."""

import hashlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestrator.plan import grid
from orchestrator.plan.grid import Contents, Space
from orchestrator.plan.points import cells_of
from orchestrator.publish import aggregate
from orchestrator.record.searches import OpenCell, Suggested
from orchestrator.record.store import Store, Writer
from orchestrator.run.engine import Values
from orchestrator.run.optuna import Answer, OptunaStudy, write_journal
from orchestrator.spec.spec import Spec
from orchestrator.views.errors import FATAL, ConflictError, NotFoundError, reason
from orchestrator.views.runs import Candidate, PlannedTrial
from workers.catalog import Catalog

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Cell:
    """A cell's study, in memory."""

    spec: Spec
    space: Space
    study: OptunaStudy
    events: int  # questions and answers so far


class Searches:
    """Runs adaptive searches. Suggestions and scores are recorded first, so that a study can be rebuilt."""

    def __init__(self, store: Store, writer: Writer, catalog: Catalog) -> None:
        self._store, self._writer, self._catalog = store, writer, catalog
        self._cells: dict[tuple[int, int], _Cell] = {}

    def advance(self) -> bool:
        """Advance every search as far as possible; true if trials were added or a search ended."""
        open_cells = self._store.searches.open_cells()
        for gone in self._cells.keys() - {(open_cell.sweep, open_cell.cell) for open_cell in open_cells}:
            del self._cells[gone]
        added, failed = False, set[int]()
        for open_cell in open_cells:
            if open_cell.sweep in failed:
                continue  # a trial that is added now would wait for ever
            try:
                added |= self._advance(open_cell)
            except Exception as error:
                # The last question or answer may not be recorded: rebuild the study.
                self._cells.pop((open_cell.sweep, open_cell.cell), None)
                if isinstance(error, FATAL):
                    raise
                # An impossible recipe or an error of the sampler would return at every tick; it fails this sweep only.
                failed.add(open_cell.sweep)
                log.exception("sweep %d: the search of cell %d cannot go on", open_cell.sweep, open_cell.cell)
                why = str(error) if isinstance(error, (ValueError, LookupError)) else reason(error)
                self._writer.sweeps.fail(open_cell.sweep, f"the search of cell {open_cell.cell} cannot go on: {why}")
        return added

    def _advance(self, open_cell: OpenCell) -> bool:
        at = self._cells.get((open_cell.sweep, open_cell.cell)) or self._rebuild(open_cell)
        self._cells[open_cell.sweep, open_cell.cell] = at
        for ended in (suggested for suggested in open_cell.unscored if suggested.ended):
            self._writer.searches.record_score(open_cell.sweep, open_cell.cell, ended, at.events)
            at.study.tell(ended.index, ended.score, ended.pruned)
            at.events += 1
        going = sum(not suggested.ended for suggested in open_cell.unscored)
        count = open_cell.candidates
        while going < at.spec.search.parallel and count < at.space.candidates:
            suggestion = at.study.ask()
            if suggestion is None:
                break
            number, values = suggestion
            candidate, trials = self._planned(open_cell, at, number, values)
            self._writer.searches.add_candidate(open_cell.sweep, candidate, values, at.events, trials)
            at.events += 1
            count, going = count + 1, going + 1
        # A retried candidate that the study counts as failed or pruned may still become the best: wait.
        over = not going and not self._store.trials.has_active(open_cell.sweep, open_cell.cell)
        if over:
            if at.spec.search.reproduce:
                self._reproduce(open_cell, at)
            self._writer.searches.close_cell(open_cell.sweep, open_cell.cell)
        return count > open_cell.candidates or over

    def _planned(
        self, open_cell: OpenCell, at: _Cell, number: int, values: Values
    ) -> tuple[Candidate, list[PlannedTrial]]:
        candidate = grid.candidate(at.spec, open_cell.cell, number, values)
        contents = Contents.of(self._store.data.planned_content(open_cell.sweep))
        return candidate, list(grid.trials(at.spec, self._catalog, candidate, contents))

    def _reproduce(self, open_cell: OpenCell, at: _Cell) -> None:
        """Add the repeats that reproduce the best candidate."""
        recorded = self._store.searches.suggestions(open_cell.sweep, open_cell.cell)
        scored = [suggested for suggested in recorded if suggested.merit is not None]
        if not scored:
            return
        sign = 1 if _higher(at.spec, self._catalog) else -1
        best = max(scored, key=lambda suggested: sign * (suggested.merit or 0.0))  # the first of equals
        _, planned = self._planned(open_cell, at, best.index, best.values)
        if best.trials == len(planned):  # otherwise a conductor did it before it was killed
            repeats = list(grid.reproductions(at.spec, self._catalog, planned))
            self._writer.searches.add_trials(open_cell.sweep, repeats)

    def _rebuild(self, open_cell: OpenCell) -> _Cell:
        spec = Spec.model_validate(self._store.sweeps.get(open_cell.sweep).spec)
        space = grid.space(spec, open_cell.cell)
        recorded = self._store.searches.suggestions(open_cell.sweep, open_cell.cell)
        events = len(recorded) + sum(suggested.score_event is not None for suggested in recorded)
        study = self._study(spec, space)
        if not _replay(study, recorded):
            at = f"sweep {open_cell.sweep}, cell {open_cell.cell}"
            log.warning("%s: the search is rebuilt from its candidates alone", at)
            study = self._study(spec, space)
            for suggested in recorded:
                if suggested.score_event is None:
                    study.ask(suggested.values)
                else:
                    study.learn(suggested.values, suggested.score, suggested.pruned)
        return _Cell(spec, space, study, events)

    def _study(self, spec: Spec, space: Space) -> OptunaStudy:
        # The seed depends on the cell's labels: cells try different values, whatever other cells the sweep has.
        text = f"{spec.search.seed}:{sorted(space.labels.items())}"
        seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") % 2**31
        return OptunaStudy(spec.search.name, space.dimensions, seed, higher=_higher(spec, self._catalog))


def export(store: Store, catalog: Catalog, sweep: int, cell: int, file: Path) -> int:
    """Write the search of a cell as an Optuna journal, from the database alone; returns its number of trials.

    Replaces the file. Raises NotFoundError, and ConflictError if the sweep tries a grid.
    """
    view = store.sweeps.get(sweep)
    spec = Spec.model_validate(view.spec)
    if not spec.search.adaptive:
        raise ConflictError(f"sweep {sweep} trains a grid; only an adaptive search has an Optuna study")
    cells = sum(1 for _ in cells_of(spec))
    if not 0 <= cell < cells:
        raise NotFoundError(f"sweep {sweep} has no cell {cell}; expected 0 to {cells - 1}")
    space = grid.space(spec, cell)
    labels = ", ".join(f"{axis}={label}" for axis, label in space.labels.items())
    study = f"{view.name}, sweep {sweep}, cell {cell}" + (f": {labels}" if labels else "")
    answers = [
        Answer(
            suggested.values, suggested.score, suggested.score_event is None and not suggested.ended, suggested.pruned
        )
        for suggested in store.searches.suggestions(sweep, cell)
    ]
    write_journal(file, study, space.dimensions, answers, higher=_higher(spec, catalog))
    return len(answers)


def _higher(spec: Spec, catalog: Catalog) -> bool:
    return aggregate.direction(spec.select.metric, catalog) == "higher"


def _replay(study: OptunaStudy, recorded: Sequence[Suggested]) -> bool:
    """Repeat suggestions and scores in the recorded order; False if a suggestion differs, as in another Optuna."""
    events: list[tuple[int, Suggested, bool]] = [(suggested.suggest_event, suggested, False) for suggested in recorded]
    events += [(suggested.score_event, suggested, True) for suggested in recorded if suggested.score_event is not None]
    for _, suggested, answered in sorted(events, key=lambda event: event[0]):
        if answered:
            study.tell(suggested.index, suggested.score, suggested.pruned)
        elif study.ask() != (suggested.index, dict(suggested.values)):
            return False
    return True
