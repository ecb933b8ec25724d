"""How optimistic it is to show the best of several candidates, and what a smaller search would have found."""

from pydantic import BaseModel


class CellOptimism(BaseModel):
    """The selection of one cell; shares are fractions, of the split that is selected by."""

    cell: int
    labels: dict[str, str]
    candidates: int
    """That finished in every repeat, and so competed."""
    runs: int
    """Repeats of each."""
    best: float | None
    """The mean score of the selected candidate."""
    held_out: float | None
    """The mean, over the repeats, of a repeat's score of the candidate that the others select."""
    optimism: float | None
    """By how much `best` is better than that; less than 0 by chance alone."""
    reason: str
    """Why there is no such number; else empty."""
    expected: list[float]
    """The expected best mean score of 1, 2, ... candidates drawn with replacement (Dodge et al. 2019)."""


class OptimismView(BaseModel):
    """The selections of a sweep."""

    sweep: int
    sweep_name: str
    key: str
    """What candidates are selected by: checkpoint/split/metric."""
    said: str
    cells: list[CellOptimism]
