"""Selection's own noise: by how much the best of several candidates looks better than it is."""

import math
from collections.abc import Mapping, Sequence
from typing import Final

from orchestrator.publish.aggregate import CandidateOutcome, Repeat, by_cell, run_values, runs_of
from orchestrator.publish.select import Better, selection
from orchestrator.views.evidence import CellOptimism, OptimismView
from orchestrator.views.runs import Cell, SweepOutcomes

_SAID: Final = (
    "Of the score that candidates are selected by ({key}): each repeat is left out in turn, the others select, and the "
    "one left out judges (nested resampling over repeats). The expected best of n is that of n candidates drawn with "
    "replacement from those of the cell (Dodge et al., EMNLP 2019)."
)
MOST_DRAWN: Final = 1_000
"""Up to how many draws the expected best is told."""
_Runs = Mapping[Repeat, float]


def optimism(outcomes: SweepOutcomes, better: Better) -> OptimismView:
    """How optimistic the selection of each cell is; a cell where nothing can be said has the reason."""
    key = selection(outcomes.spec).key
    competing = {
        cell: [one for one in candidates if one.status == "complete" and key in one.scores]
        for cell, candidates in by_cell(outcomes).items()
    }
    runs = runs_of(outcomes, {(cell, one.index) for cell, those in competing.items() for one in those})
    sign = 1 if better == "higher" else -1
    cells = []
    for cell in outcomes.cells:
        its_runs = [run_values(runs[cell.index, one.index], key) for one in competing[cell.index]]
        cells.append(_cell(cell, competing[cell.index], its_runs, sign))
    said = _SAID.format(key=key)
    return OptimismView(sweep=outcomes.sweep, sweep_name=outcomes.name, key=key, said=said, cells=cells)


def _cell(cell: Cell, candidates: Sequence[CandidateOutcome], runs: Sequence[_Runs], sign: int) -> CellOptimism:
    shared = sorted(set.intersection(*(set(one) for one in runs)) if runs else (), key=sorted)
    scores = [[sign * one[repeat] for repeat in shared] for one in runs]
    means = [math.fsum(one) / len(one) for one in scores if one]
    best = max(means, default=None)
    held = _held_out(scores) if len(scores) > 1 and len(shared) > 1 else None
    return CellOptimism(
        cell=cell.index, labels=dict(cell.labels), candidates=len(candidates), runs=len(shared),
        best=None if best is None else sign * best, held_out=None if held is None else sign * held,
        optimism=None if best is None or held is None else best - held, reason=_reason(len(scores), len(shared)),
        expected=[sign * one for one in expected_best(means)],
    )  # fmt: skip


def _reason(candidates: int, repeats: int) -> str:
    if not candidates:
        return "no candidate has finished in every repeat with a score"
    if candidates == 1:
        return "one candidate, so that none was selected from several"
    if not repeats:
        return "no repeat that all candidates share"
    return "one repeat: with it left out, none selects" if repeats == 1 else ""


def _held_out(scores: Sequence[Sequence[float]]) -> float:
    """The mean score of a repeat by the candidate that the other repeats select; the first of equals."""
    judged = []
    for left in range(len(scores[0])):
        others = [math.fsum(value for at, value in enumerate(one) if at != left) for one in scores]
        judged.append(scores[others.index(max(others))][left])
    return math.fsum(judged) / len(judged)


def expected_best(means: Sequence[float]) -> list[float]:
    """The expected largest of 1, 2, ... of these numbers, drawn with replacement: as often as there are, or 1,000."""
    ordered, count = sorted(means), len(means)
    return [
        math.fsum(one * ((at / count) ** n - ((at - 1) / count) ** n) for at, one in enumerate(ordered, 1))
        for n in range(1, min(count, MOST_DRAWN) + 1)
    ]
