"""What of a file is to become rows of a table: which columns mean what, and in which unit."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from orchestrator.spec.imported import Share

Layout = Literal["summary", "wandb", "mlflow"]
"""A line a number, with mean, std and n; or a line a run, as W&B or MLflow export them."""


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """How a file is to be read."""

    layout: Layout
    unit: Share
    source: str
    rows: tuple[str, ...] = ()  # the columns whose texts are the label of a row
    label: str = ""  # that of the only row, where no column has one
    axes: Mapping[str, str] = field(default_factory=dict)  # by column axis of the table, the column of the file
    metrics: Mapping[str, str] = field(default_factory=dict)  # by metric of the table, what the file calls it
    renamed: Mapping[str, str] = field(default_factory=dict)  # by a text in an axis' column, the label that it means
    where: Mapping[str, str] = field(default_factory=dict)  # by column, the text of the lines that are taken
    columns: Mapping[str, str] = field(default_factory=dict)  # by `metric`, `mean`, `std`, `n`: the column of a summary
    seed: str = ""  # the column that tells runs of one number apart
    against: Mapping[str, str] | None = None  # the labels of the own row that they are tested against
