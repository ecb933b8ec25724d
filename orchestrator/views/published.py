"""What the outside sees of the papers' tables: which there are, and every number of one."""

from pydantic import BaseModel


class PublishedSummary(BaseModel):
    """A published table in a list."""

    id: str
    paper: str
    title: str
    axes: list[str]
    """The paths of a recipe that tell its rows and data sets apart."""
    metrics: list[str]
    count: int
    """How many numbers it has."""


class PublishedNumber(BaseModel):
    """One printed number."""

    labels: dict[str, str]
    """By axis; an axis that does not apply to its row is left out."""
    tuned: dict[str, str]
    """What the authors chose in that cell, as far as they say."""
    metric: str
    printed: str
    """The characters in the paper, in `unit`."""
    value: float | None
    """Shares as fractions; null where a word is printed."""
    std: float | None
    bold: bool | None
    """Null where it is not known."""
    unit: str
    std_unit: str
    source: str | None
    """Where the paper took it from; null for its own."""


class PublishedView(PublishedSummary):
    """One published table whole."""

    citation: str
    note: str
    conflicts: dict[str, str]
    """Contradictions in and between the papers that touch it."""
    numbers: list[PublishedNumber]
