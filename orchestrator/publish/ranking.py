"""Which trials of a sweep are of the best candidates of their cells."""

from collections.abc import Iterable

from orchestrator.publish.select import Better
from orchestrator.views.sweeps import GridCell


def best_trials(cells: Iterable[GridCell], keep: int, better: Better) -> set[int]:
    """The trials of the `keep` best candidates of each cell by their mean score, and of the one that it shows."""
    sign = 1 if better == "higher" else -1
    kept: set[int] = set()
    for cell in cells:
        scored = [one for one in cell.candidates if one.score is not None]
        ranked = sorted(scored, key=lambda one: -sign * (one.score or 0.0))  # the first of equals stays first
        for candidate in [*ranked[:keep], *(one for one in cell.candidates if one.selected)]:
            kept.update(square.trial for square in candidate.trials)
    return kept
