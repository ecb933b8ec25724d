"""The numbers of a table as a paper takes them in: one macro each."""

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


MacroFormat = Literal["latex", "json"]
