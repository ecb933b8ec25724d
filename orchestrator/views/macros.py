"""The numbers of a table as a paper takes them in: one macro each, and what stands behind it."""

from typing import Literal

from pydantic import BaseModel


class MacroNumber(BaseModel):
    """One number of a table under the name of its macro; texts are as the table prints them."""

    name: str
    """Of the macro, without its backslash."""
    labels: dict[str, str]
    metric: str
    """As the spec names it."""
    split: str
    """On which it is measured."""
    selection: str
    """By which split it is selected, where the table shows two; else empty."""
    sweep: int
    cell: int
    value: str
    interval: str
    """95 % Student-t interval of the mean; a word where there is none."""
    std: str
    seeds: int
    """Runs that it is the mean of."""


class MacroRun(BaseModel):
    """One training behind a number."""

    trial: int
    labels: dict[str, str]
    """Of the repeat axes."""
    value: float | None
    """A share is a fraction."""
    fingerprint: str
    data_hash: str | None
    git_commit: str | None
    device: str | None
    versions: dict[str, str]
    seconds: float | None


class MacroSource(BaseModel):
    """What stands behind a number."""

    number: MacroNumber
    selected: dict[str, str]
    """The labels of the selected candidate."""
    candidates: int
    """How many competed."""
    runs: list[MacroRun]


class MacroAddress(BaseModel):
    """Of which table macros are, and with what they begin."""

    sweep: int
    uid: str
    table: str
    prefix: str


class MacrosView(MacroAddress):
    """A table as macros."""

    sweep_name: str
    caption: str
    numbers: list[MacroNumber]


class ChecklistAnswer(BaseModel):
    """A question of a reproducibility checklist with an answer drafted from the records."""

    question: str
    answer: str
    open: str
    """What the records do not know, and somebody has to add; else empty."""


class ChecklistView(BaseModel):
    """Answers for a sweep."""

    sweep: int
    sweep_name: str
    answers: list[ChecklistAnswer]


MacroFormat = Literal["latex", "json", "html"]
