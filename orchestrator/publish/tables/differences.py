"""Which cell another is compared with: the one that differs from it in the labels that a column names."""

from collections.abc import Iterable

from orchestrator.views.planned import Cell, Labels


class Baselines:
    """The cells that hold the labels `wanted`, found by what else they share with another cell."""

    def __init__(self, cells: Iterable[Cell], wanted: Labels) -> None:
        self._wanted = wanted
        held = [cell for cell in cells if all(cell.labels.get(axis) == label for axis, label in wanted.items())]
        self._cells = {frozenset(cell.labels.items()): cell for cell in held}
        # An axis need not apply to them all: `none` has no eta. The one that shares most labels is meant.
        self._axes = sorted({tuple(cell.labels) for cell in held}, key=len, reverse=True)

    def of(self, cell: Cell) -> Cell | None:
        """The cell that `cell` is compared with, which may be itself; none where the sweep has none."""
        labels = {**cell.labels, **self._wanted}
        for axes in self._axes:
            if all(axis in labels for axis in axes):
                found = self._cells.get(frozenset((axis, labels[axis]) for axis in axes))
                if found:
                    return found
        return None
