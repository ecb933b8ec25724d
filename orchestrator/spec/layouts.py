"""Tables and figures as a spec describes them, and imported rows."""

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, ClassVar, Final, Literal, get_args

from pydantic import Field, Tag

from orchestrator.spec.fields import (
    OR_NULL,
    PLAIN_OR_MAPPING,
    UNION,
    Label,
    Lenient,
    OneEach,
    Posted,
    Printed,
    Text,
    When,
    at_most,
    expected,
    printable,
    some,
)
from workers.catalog import listed
from workers.contract import TEST_SET

Unit = Literal["percent", "fraction", "number"]
Kind = Literal["line", "curves", "distribution", "scatter", "bars", "heatmap", "images", "best_of"]


class FigureSpec(Posted):
    """A figure in a spec; its axes are compare axes, or tune axes if every candidate is drawn."""

    if_missing: ClassVar = {"kind": f"is missing; expected one of {listed(get_args(Kind))}"}
    nouns: ClassVar = {"kind": "kind"}

    kind: Kind
    metric: Annotated[str | list[str] | None, expected("a metric or a list of metrics")] = None
    """A metric of cells, such as `recall@1`, or a curve, such as `train/norm_var`; several get a panel each."""
    data: str | None = None
    """A figure of the recipe whose data are drawn: `norms`, or `norms-train` for another split."""
    show: Annotated[list[str] | None, Field(min_length=1)] = None
    """The quantities of `data` that are drawn, such as `cos_ap`; `None` means all."""
    x: str | None = None
    y: str | None = None
    colour: str | None = None
    facet: Annotated[str | list[str] | None, expected("an axis or a list of two")] = None
    """The axis whose labels get a panel each; a second axis gives the rows of panels."""
    x_scale: Literal["linear", "log", "category"] | None = None
    """`None` means `linear` if all labels are numbers, else `category`."""
    y_scale: Literal["linear", "log"] = "linear"
    when: When = Field(default_factory=dict)
    """The labels of compare axes whose cells are drawn; an empty mapping means all."""
    error: Literal["std", "interval", "none"] = "std"
    """What error bars and bands show over repeats: the sample's deviation, or the 95 % interval of the mean."""
    reference: str | None = None
    """A metric that is marked by a line across each bar, such as a bound."""
    unit: Unit | None = None
    decimals: Annotated[int | None, Field(ge=0, le=6)] = None
    bins: Annotated[int | None, Field(ge=2, le=1000)] = None
    """The number of bins of histograms; `None` means as many as the data have."""
    moments: bool = False
    """Whether panels print the mean and the variance of their distributions."""
    windows: bool = False
    """Whether each window of `direction_variation` gets a panel; otherwise all are drawn together."""
    stages: Annotated[list[Annotated[int, Field(ge=0)]] | None, Field(min_length=1)] = None
    """The stages of `tsne_stages` or `heat_map_stages` that are drawn; `None` means all stages of the recipe."""
    labels: dict[str, dict[str, Printed]] = Field(default_factory=dict)
    """What is printed for the labels of an axis."""
    titles: dict[str, Text] = Field(default_factory=dict)
    """The names of axes and metrics in print."""
    title: Text | None = None
    caption: Annotated[str | None, Field(max_length=10_000)] = None

    @property
    def metrics(self) -> list[str]:
        """The metrics of the figure, as a list even if the spec names only one."""
        return _several(self.metric)

    @property
    def facets(self) -> list[str]:
        """The axes that divide the figure into panels, as a list even if the spec names only one."""
        return _several(self.facet)

    @property
    def axes(self) -> list[str]:
        """The distinct axes of the figure: those of position, colour and panels."""
        named = (self.x, self.y, self.colour, *self.facets)
        return list(dict.fromkeys(axis for axis in named if axis is not None))

    @property
    def column(self) -> str | None:
        """The axis whose labels are the columns of the grid of panels; None without panels."""
        return self.facets[0] if self.facets else None

    @property
    def row(self) -> str | None:
        """The axis whose labels are the rows of the grid of panels; None for a single row."""
        return self.facets[1] if len(self.facets) > 1 else None


def _several(value: str | list[str] | None) -> list[str]:
    return [] if value is None else [value] if isinstance(value, str) else value


QUANTITIES: Final[Mapping[str, tuple[str, ...]]] = {
    "norms": ("norms",),
    "cosines": ("cos_ap", "cos_an", "difference"),
    "direction_variation": ("direction_variation",),
}
"""The quantities in the data of each figure that shows distributions."""

DATA: Final[Mapping[str, tuple[str, ...]]] = {
    "line": ("spectrum",),
    "curves": ("norm_traces",),
    "distribution": tuple(QUANTITIES),
    "scatter": ("tsne", "unit_circle", "tsne_stages", "gradients"),
    "bars": (),
    "heatmap": ("heat_map", "heat_map_stages", "samples"),
    "images": ("panels", "feature_maps"),
    "best_of": (),
}
"""The figures of a recipe whose data each kind draws."""

STAGED: Final = ("tsne_stages", "heat_map_stages")
"""Those that look at stages of a training."""
ON_THE_WAY: Final = (*STAGED, "samples", "direction_variation", "norm_traces", "gradients")
"""Those that look at a training on its way, whichever weights it keeps."""

_EVERYWHERE: Final = ("kind", "facet", "when", "labels", "titles", "title", "caption")
_OF_CELLS: Final = ("metric", "x", "unit", "error")
FITTING: Final[Mapping[str, tuple[str, ...]]] = {
    "line": (*_EVERYWHERE, *_OF_CELLS, "data", "colour", "x_scale", "y_scale"),
    "curves": (*_EVERYWHERE, "metric", "data", "colour", "unit", "error", "y_scale"),
    "distribution": (*_EVERYWHERE, "data", "show", "colour", "bins", "moments", "windows"),
    "scatter": (*_EVERYWHERE, "data", "stages"),
    "bars": (*_EVERYWHERE, *_OF_CELLS, "colour", "reference"),
    "heatmap": (*_EVERYWHERE, "metric", "data", "x", "y", "unit", "decimals", "stages"),
    "images": (*_EVERYWHERE, "data"),
    "best_of": (*_EVERYWHERE, "colour", "unit", "y_scale"),
}
"""The fields that mean something for each kind."""


MOST_ROWS: Final = 100
"""Imported rows of a table."""
MOST_NUMBERS: Final = 500
"""Numbers of an imported row."""
LARGEST: Final = 1e12

Share = Literal["percent", "fraction"]
"""The unit of shares: 65.1 or 0.651."""


class ImportedNumber(Posted):
    """One number of an imported row: a metric's mean and, if known, its deviation and number of runs."""

    metric: Text
    split: Text = "test"
    """The split of the column that it belongs to."""
    of: dict[str, Label] = Field(default_factory=dict)
    """The labels of the column axes above it."""
    mean: Annotated[float, Field(ge=-LARGEST, le=LARGEST)]
    std: Annotated[float | None, Field(ge=0, le=LARGEST)] = None
    """The sample standard deviation (n - 1); `None` means unknown."""
    n: Annotated[int | None, Field(ge=1, le=1_000_000)] = None
    """The number of runs; `None` means unknown."""


class ImportedRow(Posted):
    """A table row of numbers that were not measured here, such as those of another paper."""

    label: Annotated[str, Field(min_length=1, max_length=200), printable(200)]
    """The printed name of the row."""
    source: Annotated[str, Field(min_length=1, max_length=500), printable(500)]
    """The source of its numbers, such as a citation."""
    unit: Share
    """The unit of shares such as recall; norms and singular values are plain numbers in any case."""
    against: OneEach | None = None
    """The labels of the row of this sweep that it is tested against; `None` means no test."""
    numbers: Annotated[
        list[Lenient[ImportedNumber]], Field(min_length=1, max_length=MOST_NUMBERS), at_most(MOST_NUMBERS, "numbers")
    ]


MOST_METRICS: Final = 200
"""Metrics of a table."""

Spread = Literal["std", "se", "ci95", "none"]
"""A spread: the sample standard deviation, the standard error, or half the 95 % Student-t interval."""
Center = Literal["mean", "median", "best"]
"""The statistic that is printed for the runs of a cell."""

Covers = Literal["seeds", "queries", "both"]
"""What an interval covers: other seeds, other test queries, or both."""

PLACE: Final = re.compile(r"\{([^{}]*)\}")
"""The place in a printed label for the label of another axis: `{regularizer.eta}`."""
DELTA: Final = "delta:"
"""The prefix of the key of a difference."""

TestSplit = Annotated[str, Field(pattern=rf"^test_{TEST_SET.pattern}$")]
"""The split of a further test set."""
Split = Annotated[
    Literal["test", "test_separated", "validation", "train"] | TestSplit,
    expected("'test', 'test_separated', 'validation', 'train', or 'test_' with the name of a test set"),
]

Decimals = Annotated[int, Field(ge=0, le=6)]


class MetricColumn(Posted):
    """A metric as a table column, with optional heading, unit and decimals of its own."""

    metric: Text
    split: Split = "test"
    """`test_separated` is the mean over the models of a cross-validation, where `test` is of their joined embeddings;
    `test_lfw` is a further test set of the data set."""
    label: Annotated[str | None, Field(max_length=100)] = None
    over: Annotated[str | None, Field(max_length=100)] = None
    """A heading above the column; neighbours with the same heading share it."""
    unit: Unit | None = None
    decimals: Decimals | None = None
    when: When = Field(default_factory=dict)
    """The labels of column axes under which the column appears; an empty mapping means everywhere."""
    delta: OneEach | None = None
    """Prints the difference from the cell with these labels and otherwise the same labels."""
    signed: bool = False
    """Whether positive numbers are printed with a plus sign."""

    @property
    def separated(self) -> bool:
        """Whether the column shows the mean over the models of a cross-validation, not their joined embeddings."""
        return self.split.endswith("_separated")

    @property
    def test_set(self) -> str | None:
        """The additional test set that the column is measured on, such as `lfw`; None for any other split."""
        split = self.split.removesuffix("_separated")
        return split.removeprefix("test_") if split.startswith("test_") else None

    @property
    def name(self) -> str:
        """The column's key in a table: the metric, prefixed by its test set and by `delta:` if it is a difference."""
        apart = ("separated" if self.separated else None, self.test_set)
        name = ":".join([*(one for one in apart if one), self.metric])
        return name if self.delta is None else f"{DELTA}{name}"

    def key(self, checkpoint: str) -> str:
        """The key of the column's metric in a training's result, such as `best/test/recall@1`."""
        return f"{checkpoint}/{self.split}/{self.metric}"


class QuotedRow(Posted):
    """A table row that is copied from a published table."""

    of: OneEach
    """The labels that identify it in that table."""
    label: Text
    """The printed name of the row."""
    bold: bool = False
    """Whether numbers that are bold in print are bold here."""


class Deviation(Posted):
    """The form of the standard deviations of a table, if it differs from the form of the means."""

    unit: Unit | None = None
    decimals: Decimals | None = None


class VerdictSpec(Posted):
    """Which cells of a table are tested against which baseline, by which metrics and at which level."""

    against: OneEach | None = None
    """The labels of the baseline; `None` means the table's `against`, else the regularizer `none`."""
    of: OneEach | None = None
    """The labels of the cells that are judged; `None` means all cells except baselines."""
    metrics: Annotated[list[Text], Field(max_length=MOST_METRICS)] = Field(default_factory=list)
    """The metrics that are judged; an empty list means every metric of the table that has a better direction."""
    margin: Annotated[float | None, Field(gt=0, le=1_000_000)] = None
    """The smallest difference of interest, in the unit of the column (percentage points for percent)."""
    level: Annotated[float, Field(gt=0, le=0.2)] = 0.05
    """The highest probability of at least one wrong verdict in the whole table."""
    looks: Literal["planned", "any"] = "planned"
    """When verdicts are given: `planned` after the plan and each extension has ended, `any` from three pairs on."""
    marks: bool = False
    """Whether printed formats show marks, explained in a legend."""


Column = Annotated[
    Annotated[Text, expected("a metric, or a mapping with `metric`"), Tag(f"{UNION}plain")]
    | Annotated[MetricColumn, Tag(f"{UNION}mapping")],
    PLAIN_OR_MAPPING,
]
"""A metric by its name, or with its own heading or form of number."""

_STD: Final = "true, false or a mapping with `decimals` and `unit`"


class TableSpec(Posted):
    """A table in a spec: its rows, columns and number formats; rows and columns name axes or fields of the recipe."""

    published: Text | None = None
    """The printed table of a paper with which the cells are compared."""
    quoted: Annotated[list[Lenient[QuotedRow]], at_most(100, "quoted rows")] = Field(
        default_factory=list, exclude_if=lambda value: not value
    )
    """Rows of the paper's table that are printed above the rows of this sweep."""
    imported: Annotated[list[Lenient[ImportedRow]], at_most(MOST_ROWS, "rows"), OR_NULL] = Field(
        default_factory=list, exclude_if=lambda value: not value
    )
    """Rows of other people's numbers that are printed above the rows of this sweep."""
    rows: Annotated[list[Text], Field(max_length=40)] = Field(default_factory=list)
    columns: Annotated[list[Text], Field(max_length=40)] = Field(default_factory=list)
    metrics: Annotated[list[Lenient[Column]], some("metric"), at_most(MOST_METRICS, "metrics"), OR_NULL] = Field(
        default_factory=list
    )
    """The metrics of the columns; an empty list means those that all data sets of the sweep declare."""
    unit: Unit = "percent"
    decimals: Decimals | None = None
    """Decimals of every number; `None` means two for percents, and for others as many as their deviations justify."""
    bold: Annotated[Literal["none"] | list[Text] | None, expected("'none' or a list of axes")] = None
    """The axes that span a block, whose best cell is bold; `None` means the column axes and the row axes before the
    last row axis with headings."""
    labels: dict[str, dict[str, Printed]] = Field(default_factory=dict)
    """Printed text for the labels of an axis; `{path}` inserts the label of the cell on another axis."""
    titles: dict[str, Text | None] = Field(default_factory=dict)
    """The headings of axes; null means that the labels of the axis get no heading."""
    arrows: bool = Field(default=False, exclude_if=lambda value: not value)
    """Whether every heading shows the better direction by ↑ or ↓; otherwise only ↓ is shown."""
    groups: Literal["always", "several"] = Field(default="always", exclude_if=lambda value: value == "always")
    """Whether a heading over all columns of the only panel is printed (`always`), or only named in the caption."""
    lead: Literal["name", "contents"] = Field(default="name", exclude_if=lambda value: value == "name")
    """What a generated caption begins with: the name of the sweep, or its metrics, data sets and rows."""
    show_tuned: bool = False
    std: Annotated[
        Annotated[bool, expected(_STD), Tag(f"{UNION}plain")] | Annotated[Deviation, Tag(f"{UNION}mapping")],
        PLAIN_OR_MAPPING,
    ] = True
    """Whether a spread is printed after each number, and in which form."""
    spread: Spread | None = None
    """The kind of spread; `None` means `std` after means, and no spread after medians and best values."""
    covers: Covers = Field(default="seeds", exclude_if=lambda value: value == "seeds")
    """What `se`, `ci95` and verdicts hold for: other seeds, other queries, or both."""
    center: Center = "mean"
    """What is printed for the runs of a cell; tests and verdicts use means in any case."""
    counts: Literal["differ", "always", "never"] = "differ"
    """When the number of runs is printed: where it `differ`s from the usual one, `always`, or `never`."""
    against: OneEach | None = None
    """The labels of the baseline with which every other cell is compared seed by seed."""
    test: Literal["t", "wilcoxon"] = "t"
    """The paired test of those comparisons."""
    verdicts: VerdictSpec | None = Field(default=None, exclude_if=lambda value: value is None)
    """The comparisons that are judged; `None` means every regularizer against `none`."""
    optimism: bool = Field(default=False, exclude_if=lambda value: not value)
    """Whether the caption states how optimistic the selection scores are."""
    missing: Annotated[str, Field(max_length=40)] = "–"
    """Printed where there will never be a number."""
    diverged: Annotated[str, Field(min_length=1, max_length=100)] = "diverged"
    """Printed for a cell whose candidates all diverged."""
    caption: Annotated[str | None, Field(max_length=10_000)] = None
    caption_detail: Literal["short", "full"] = Field(default="short", exclude_if=lambda value: value == "short")
    """`short` limits a caption to four sentences after its title and folds the rest; `full` prints everything."""
    selections: Annotated[list[Literal["validation", "test"]], Field(max_length=2)] = Field(default_factory=list)
    """The splits on which numbers are selected, side by side; an empty list means the split of `select`."""
    selection_gap: bool = False
    """Whether it also shows how much higher scores are when selected on test."""
    panels: Annotated[list[dict[str, list[str]]] | None, Field(max_length=200)] = None
    """The labels of column axes in each panel, from top to bottom; `None` means one panel with all."""

    @cached_property
    def metric_columns(self) -> tuple[MetricColumn, ...]:
        """The metrics of the table as columns; a bare metric name becomes a column with default settings."""
        return tuple(one if isinstance(one, MetricColumn) else MetricColumn(metric=one) for one in self.metrics)

    @cached_property
    def deviation(self) -> Deviation | None:
        """The number format of the table's standard deviations; None if none is printed."""
        if isinstance(self.std, Deviation):
            return self.std
        return Deviation() if self.std else None

    @property
    def shown_spread(self) -> Spread:
        """The kind of spread that the table prints after each mean."""
        if self.deviation is None:
            return "none"
        return self.spread or ("std" if self.center == "mean" else "none")

    @property
    def covers_queries(self) -> bool:
        """Whether the printed spread covers test queries; a standard deviation covers seeds alone."""
        return self.covers != "seeds" and self.shown_spread in {"se", "ci95"}
