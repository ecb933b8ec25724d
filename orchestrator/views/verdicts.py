"""Whether cells are better than their baselines, as JSON and for the command line."""

from typing import Literal

from pydantic import BaseModel


class CellVerdictView(BaseModel):
    """One comparison of a table; differences are fractions, own - baseline."""

    cell: int
    labels: dict[str, str]
    baseline: int | None
    """None: the sweep has no such cell."""
    metric: str
    """The result key."""
    title: str
    """What stands above its column."""
    word: Literal["better", "worse", "equivalent", "unresolved", "untested"]
    said: str
    """The verdict in a sentence."""
    reason: str
    """Why it is untested."""
    pairs: int
    difference: float | None
    interval: list[float] | None
    """Of the difference: it holds for all comparisons of the table and all looks at once."""
    p: float | None
    """Of the paired t-test by itself, neither corrected nor sequential."""
    needs: float | None
    """Below which p has to be here, after correction and looks."""
    spent: float
    """The share of the error level that looks so far may have spent."""
    looks: int
    """Looks that the record knows of."""
    more_seeds: int | None
    """That would decide it four times of five, if difference and spread are what they seem."""
    more_hours: float | None
    """That these take on one slot, where durations are known."""
    covers: Literal["seeds", "queries", "both"] = "seeds"
    """What interval and word cover: other seeds, other test queries of these trainings, or both."""
    queries: int | None = None
    """Test queries that were paired, where it covers them."""
    classes: int | None = None
    """Classes of these, by which they are clustered."""
    error_seeds: float | None = None
    """The standard error of the difference from the seeds alone, where it covers queries."""
    error_queries: float | None = None
    """The same from the queries alone, for these trainings."""


class VerdictsView(BaseModel):
    """The verdicts of a table, all taken together."""

    sweep: int
    table: str
    against: dict[str, str]
    """The labels of the baselines; empty: nothing is compared."""
    level: float
    margin: float | None
    looks: Literal["planned", "any"]
    covers: Literal["seeds", "queries", "both"] = "seeds"
    said: str
    """By what they are given, how many looks there were and what they spent."""
    comparisons: list[CellVerdictView]
