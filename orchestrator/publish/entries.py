"""One place of a table's body: the number, or the word that stands for it, and a line on where it comes from."""

from typing import Final

from orchestrator.lifecycle import SWEEP_ENDED
from orchestrator.publish.printing import printed
from orchestrator.publish.sheet import Column, Mark, TableCell
from orchestrator.trial import CellSummary

MARK_TEXT: Final[dict[Mark, str]] = {"pending": "…", "failed": "failed", "diverged": "diverged"}
"""What is printed in place of a number; a `partial` number is followed by a star instead."""
PARTIAL_SIGN: Final = "*"
ABSENT: Final = "–"


def cell_mark(summary: CellSummary) -> Mark | None:
    """The mark of a cell by how far it has come."""
    match summary.status:
        case "complete":
            return None
        case "failed" | "diverged":
            return summary.status
        case "partial" if summary.candidate is not None:
            return "partial"
        case _:
            return "pending"


def metric_cell(summary: CellSummary, column: Column, *, std: bool, state: str) -> TableCell:
    """A metric of the cell's selected candidate, mean and (if asked for) standard deviation."""
    mark = cell_mark(summary)
    if mark is not None and mark != "partial":
        return TableCell(MARK_TEXT[mark], mark=mark, note=mark_meaning(mark, state), cell=summary.cell)
    found = summary.metrics.get(column.key)
    if found is None:
        return TableCell(ABSENT, mark=mark, note=f"{column.key} was not computed in every repeat", cell=summary.cell)
    deviation = printed(found.std, column.unit, column.decimals) if std and found.std is not None else None
    return TableCell(
        text=printed(found.mean, column.unit, column.decimals),
        std=deviation,
        mark=mark,
        note=_provenance(summary, found.n),
        statistic=found,
        cell=summary.cell,
    )


def tuned_cell(summary: CellSummary, axis: str) -> TableCell:
    """The choice on a tune axis of the cell's selected candidate."""
    if summary.candidate is None:
        return TableCell("", cell=summary.cell)
    label = summary.labels.get(axis)
    if label is None:
        return TableCell(ABSENT, note=f"{axis} is not tuned here", cell=summary.cell)
    return TableCell(label, note=f"{axis}, best of {summary.candidates} candidates", cell=summary.cell)


def mark_meaning(mark: Mark, state: str) -> str:
    """What a mark says, in words; a sweep that has ended will not fill its gaps by itself."""
    match mark:
        case "pending":
            return "not run" if state in SWEEP_ENDED else "not finished yet"
        case "partial":
            return "provisional, the best of the candidates finished so far"
        case "failed":
            return "no candidate finished in every repeat"
        case "diverged":
            return "the loss became NaN in every candidate"


def _provenance(summary: CellSummary, n: int) -> str:
    repeats = "1 run" if n == 1 else f"mean of {n} runs"
    tuned = ", ".join(f"{axis} = {label}" for axis, label in summary.labels.items())
    chosen = f"; {tuned}, best of {summary.candidates}" if tuned else ""
    return repeats + chosen
