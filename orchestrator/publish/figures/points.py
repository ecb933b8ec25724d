"""The points of a figure: the selected candidate of each cell, or of each choice on the tune axes that are drawn."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from orchestrator.publish.aggregate import CandidateOutcome, by_cell
from orchestrator.publish.select import Better, selection, summary_of
from orchestrator.publish.tables.table_data import SETTLED
from orchestrator.spec.figure import FigureSpec
from orchestrator.spec.when import applies
from orchestrator.views.outcomes import CellSummary, SweepOutcomes, TrialOutcome
from orchestrator.views.planned import Labels


@dataclass(frozen=True, slots=True)
class FigurePoint:
    """One place of a figure: what competed there, and what was selected."""

    labels: Labels  # of the compare axes and of the tune axes that the figure names
    summary: CellSummary
    trials: tuple[TrialOutcome, ...]  # of the selected candidate, in the order of the repeats

    @property
    def settled(self) -> bool:
        """Whether nothing more comes unless it is retried."""
        return self.summary.status in SETTLED


def points(outcomes: SweepOutcomes, layout: FigureSpec, better: Better) -> list[FigurePoint]:
    """Every point in the order of the cells and of their candidates, those without a selected candidate too."""
    compared = {axis for cell in outcomes.cells for axis in cell.labels}
    tuned = [axis for axis in layout.axes if axis not in compared]
    key = selection(outcomes.spec).key
    candidates = by_cell(outcomes)
    trials: dict[tuple[int, int], list[TrialOutcome]] = defaultdict(list)
    for trial in outcomes.trials:
        trials[trial.cell, trial.candidate].append(trial)
    figure_points = []
    for cell in outcomes.cells:
        if not applies(layout.when, cell.labels):
            continue
        for labels, competing in _groups(candidates[cell.index], tuned):
            summary = summary_of(cell.index, competing, key, better)
            chosen = () if summary.candidate is None else trials[cell.index, summary.candidate]
            figure_points.append(FigurePoint({**cell.labels, **labels}, summary, tuple(chosen)))
    return figure_points


def _groups(
    candidates: Sequence[CandidateOutcome], tuned: Sequence[str]
) -> Iterator[tuple[Labels, list[CandidateOutcome]]]:
    """The candidates of a cell that share their labels on the axes `tuned`: all of them where none is drawn."""
    grouped: dict[tuple[str | None, ...], list[CandidateOutcome]] = defaultdict(list)
    for one in candidates:
        grouped[tuple(one.labels.get(axis) for axis in tuned)].append(one)
    for labels, competing in grouped.items():
        yield {axis: label for axis, label in zip(tuned, labels, strict=True) if label is not None}, competing
