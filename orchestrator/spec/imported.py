"""Rows of other people's numbers in a table: what they measured, of how many runs, and where it comes from."""

from typing import Annotated, Final, Literal

from pydantic import Field

from orchestrator.spec.posted import Posted, Text
from workers.contract import Frozen

MOST_ROWS: Final = 100
"""Imported rows of a table."""
MOST_NUMBERS: Final = 500
"""Numbers of an imported row."""
LARGEST: Final = 1e12

Share = Literal["percent", "fraction"]
"""How shares are written: 65.1 or 0.651."""


class ImportedNumber(Frozen):
    """One number of a row."""

    metric: Text
    split: Text = "test"
    """As of a column of the table."""
    of: dict[str, str] = Field(default_factory=dict)
    """The labels of the column axes under which it stands."""
    mean: Annotated[float, Posted(ge=-LARGEST, le=LARGEST)]
    std: Annotated[float | None, Posted(ge=0, le=LARGEST)] = None
    """The sample's deviation (n - 1); none: not given."""
    n: Annotated[int | None, Posted(ge=1, le=1_000_000)] = None
    """Runs behind it; none: not given."""


class ImportedRow(Frozen):
    """A row of numbers that nothing here was trained for."""

    label: Annotated[str, Posted(min_length=1, max_length=200)]
    """What stands beside it."""
    source: Annotated[str, Posted(min_length=1, max_length=500)]
    """Where its numbers come from."""
    unit: Share
    """How shares are written in it; norms and singular values are numbers anyway."""
    against: Annotated[dict[str, str] | None, Posted(min_length=1)] = None
    """The labels of the own row that it is tested against; none: it is not tested."""
    numbers: Annotated[list[ImportedNumber], Posted(min_length=1, max_length=MOST_NUMBERS)]
