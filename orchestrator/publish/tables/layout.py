"""What a spec says of a table, and which cell stands at which row and column."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from orchestrator.views.errors import NotFoundError
from orchestrator.views.nearest import nearest
from orchestrator.views.outcomes import SweepOutcomes
from orchestrator.views.planned import Cell, Labels
from orchestrator.views.printing import Unit

Spread = Literal["std", "se", "ci95", "none"]
"""What stands after a mean: the sample deviation, the standard error, or half the 95 % Student-t interval."""
Center = Literal["mean", "median", "best"]
"""What is printed for the runs of a cell."""
Point = tuple[str, ...]
"""The labels of some axes, one an axis; "" where an axis does not apply."""


class _Tolerant(BaseModel):
    # The plan has checked the spec: what a later version adds to it is not for publish to refuse.
    model_config = ConfigDict(frozen=True, extra="ignore")


class MetricColumn(_Tolerant):
    """A metric of a table; in the spec also just its name."""

    metric: str
    split: str = "test"
    label: str | None = None
    unit: Unit | None = None
    decimals: int | None = None
    when: Mapping[str, tuple[str, ...]] = Field(default_factory=dict)
    """The labels of column axes under which this column stands; everywhere when empty."""
    delta: Mapping[str, str] | None = None
    """The labels that set apart the cell from which the difference is shown; none: the value itself."""
    signed: bool = False

    @property
    def name(self) -> str:
        """What stands in the column: the metric or its difference to another cell. No paper has what is separated."""
        name = f"separated:{self.metric}" if self.separated else self.metric
        return name if self.delta is None else f"delta:{name}"

    @property
    def separated(self) -> bool:
        """Whether it is the mean over the models of a cross-validation, not the metric of all of them together."""
        return self.split == "test_separated"

    def key(self, checkpoint: str) -> str:
        """The result key of the metric."""
        return f"{checkpoint}/{self.split}/{self.metric}"

    @model_validator(mode="before")
    @classmethod
    def _bare_name(cls, value: Any) -> Any:
        return {"metric": value} if isinstance(value, str) else value


class Deviation(_Tolerant):
    """The form of standard deviations; none: that of the means."""

    unit: Unit | None = None
    decimals: int | None = None


class TableLayout(_Tolerant):
    """One entry of a spec's `tables`."""

    published: str | None = None
    rows: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    metrics: tuple[MetricColumn, ...]
    unit: Unit = "percent"
    decimals: int = Field(default=2, ge=0)
    bold: Literal["none"] | tuple[str, ...] | None = None
    """The axes that span the block of which the best is bold; none: the row axes before the last that has headings."""
    labels: Mapping[str, Mapping[str, str]] = Field(default_factory=dict)
    titles: Mapping[str, str | None] = Field(default_factory=dict)
    show_tuned: bool = False
    std: Deviation | None = Deviation()
    spread: Spread | None = None
    center: Center = "mean"
    counts: Literal["differ", "always", "never"] = "differ"
    """In which cells the number of runs stands: where it is not the usual one, in all, or in none."""
    against: Mapping[str, str] | None = None
    """The labels of the baseline with which every other cell is compared run by run."""
    test: Literal["t", "wilcoxon"] = "t"
    missing: str = "–"
    diverged: str = "diverged"
    caption: str | None = None
    selections: tuple[Literal["validation", "test"], ...] = ()
    """On which splits its numbers are selected, each shown beside the others; empty: as the spec selects."""
    flattery: bool = False
    """Whether it shows by how much selection on test is above the honest one."""
    panels: tuple[Mapping[str, tuple[str, ...]], ...] | None = None
    """Which labels of the column axes stand in each panel, from top to bottom; none: one panel of all."""

    @field_validator("std", mode="before")
    @classmethod
    def _yes_or_no(cls, value: Any) -> Any:
        return {True: Deviation(), False: None}[value] if isinstance(value, bool) else value

    @property
    def shown_spread(self) -> Spread:
        """What stands after a number; what is not the mean has nothing there unless asked for."""
        if self.std is None:
            return "none"
        return self.spread or ("std" if self.center == "mean" else "none")

    def metrics_at(self, labels: Labels) -> list[MetricColumn]:
        """The metrics under a point of the column axes."""
        return [one for one in self.metrics if all(labels.get(axis) in wanted for axis, wanted in one.when.items())]


def parse(spec: Mapping[str, Any], name: str) -> TableLayout:
    """The layout of one of the spec's tables; NotFoundError names those there are."""
    tables = spec.get("tables") or {}
    if name not in tables:
        known = ", ".join(tables) or "none"
        raise NotFoundError(f"no table named '{name}'{nearest(name, tables)}; this sweep's tables: {known}")
    return TableLayout.model_validate(tables[name])


@dataclass(frozen=True, slots=True)
class Placement:
    """The points of the row axes and of the column axes in order, and the cell at each pair that has one."""

    row_axes: tuple[str, ...]
    column_axes: tuple[str, ...]
    rows: tuple[Point, ...]
    columns: tuple[Point, ...]
    cells: Mapping[tuple[Point, Point], Cell]


def place(outcomes: SweepOutcomes, layout: TableLayout) -> Placement:
    """Puts every cell of the sweep somewhere: a compare axis that the table does not name becomes a row axis."""
    named = (*layout.rows, *layout.columns)
    varied = dict.fromkeys(axis for cell in outcomes.cells for axis in cell.labels)
    row_axes = (*(axis for axis in varied if axis not in named), *layout.rows)
    fixed = {axis: fixed_label(outcomes.spec, axis) for axis in named}

    def point(labels: Labels, axes: Sequence[str]) -> Point:
        return tuple(labels.get(axis, "" if axis in varied else fixed[axis]) for axis in axes)

    cells = {(point(cell.labels, row_axes), point(cell.labels, layout.columns)): cell for cell in outcomes.cells}
    return Placement(
        row_axes=row_axes,
        column_axes=layout.columns,
        rows=_ordered(row for row, _ in cells),
        columns=_ordered(column for _, column in cells) or (point({}, layout.columns),),
        cells=cells,
    )


def panels(placement: Placement, layout: TableLayout) -> list[tuple[Point, ...]]:
    """The column points of each panel; a point that no panel wants gets a last one of its own."""
    if not layout.panels:
        return [placement.columns]
    left = list(placement.columns)
    found = []
    for wanted in layout.panels:
        points = tuple(one for one in left if _matches(one, placement.column_axes, wanted))
        left = [one for one in left if one not in points]
        found.append(points)
    return [points for points in (*found, tuple(left)) if points]


def fixed_label(spec: Mapping[str, Any], axis: str) -> str:
    """The value that the spec's base recipe holds at an axis that is not varied, as a label."""
    value: Any = spec.get("recipe") or {}
    for step in axis.split("."):
        value = value.get(step) if isinstance(value, Mapping) else None
    if isinstance(value, Mapping):
        value = value.get("name")
    return "" if value is None else str(value)


def _matches(point: Point, axes: Sequence[str], wanted: Mapping[str, Sequence[str]]) -> bool:
    labels = dict(zip(axes, point, strict=True))
    return all(labels.get(axis) in choices for axis, choices in wanted.items())


def _ordered(points: Iterable[Point]) -> tuple[Point, ...]:
    """Each point once, those that share their first labels together, in the order in which these labels occur."""
    seen = list(dict.fromkeys(points))
    first: dict[Point, int] = {}
    for at, point in enumerate(seen):
        for level in range(len(point)):
            first.setdefault(point[: level + 1], at)
    return tuple(sorted(seen, key=lambda point: [first[point[: level + 1]] for level in range(len(point))]))
