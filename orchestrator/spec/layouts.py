"""Tables and figures as a spec describes them, and imported rows."""

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Final, Literal

from pydantic import Field

from orchestrator.spec.axes import Posted, Text, Unit, When, applies
from workers.contract import TEST_SET, Frozen

Kind = Literal["line", "curves", "distribution", "scatter", "bars", "heatmap", "images", "best_of"]


class FigureSpec(Frozen):
    """A figure of a sweep; axes are compare axes, or tune axes where every candidate is to be seen."""

    kind: Annotated[str, Posted(Kind)]
    metric: str | list[str] | None = None
    """Of cells, such as `recall@1`; of curves, such as `train/norm_var`. Several are drawn beside one another."""
    data: str | None = None
    """A figure of the recipe whose data files are drawn: `norms`, or `norms-train` of another split."""
    show: Annotated[list[str] | None, Posted(min_length=1)] = None
    """Which of several quantities of `data` are drawn, such as `cos_ap`; none: all."""
    x: str | None = None
    y: str | None = None
    colour: str | None = None
    facet: str | list[str] | None = None
    """The axis of which each label has a panel of its own; of two the second gives the rows."""
    x_scale: Literal["linear", "log", "category"] | None = None
    """none: `linear` where all labels are numbers, else `category`."""
    y_scale: Literal["linear", "log"] = "linear"
    when: When = Field(default_factory=dict)
    """The labels of compare axes of which cells are drawn; all are when empty."""
    error: Literal["std", "interval", "none"] = "std"
    """What error bars and bands show over repeats: the sample's deviation, or the 95 % interval of the mean."""
    reference: str | None = None
    """A metric that is marked across each bar, such as a bound."""
    unit: Unit | None = None
    decimals: Annotated[int | None, Posted(ge=0, le=6)] = None
    bins: Annotated[int | None, Posted(ge=2, le=1000)] = None
    """The bins that histograms are drawn in; none: those of the files."""
    moments: bool = False
    """Whether mean and variance of distributions are written into the panels."""
    windows: bool = False
    """Whether each window of `direction_variation` has a panel of its own; else all are drawn together."""
    stages: Annotated[list[Annotated[int, Posted(ge=0)]] | None, Posted(min_length=1)] = None
    """The stages of `tsne_stages` or `heat_map_stages` that are drawn, of those that the recipe names; none: all."""
    labels: dict[str, dict[str, Text]] = Field(default_factory=dict)
    """What is printed for the labels of an axis."""
    titles: dict[str, Text] = Field(default_factory=dict)
    """The names of axes and metrics in print."""
    title: Text | None = None
    caption: Annotated[str | None, Posted(max_length=10_000)] = None

    @property
    def metrics(self) -> list[str]:
        """What `metric` names."""
        return _several(self.metric)

    @property
    def facets(self) -> list[str]:
        """What `facet` names."""
        return _several(self.facet)

    @property
    def axes(self) -> list[str]:
        """The axes that give place and colour, each once."""
        named = (self.x, self.y, self.colour, *self.facets)
        return list(dict.fromkeys(axis for axis in named if axis is not None))

    @property
    def column(self) -> str | None:
        """The axis whose labels stand beside one another as panels."""
        return self.facets[0] if self.facets else None

    @property
    def row(self) -> str | None:
        """The axis whose labels stand below one another as panels."""
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
    "scatter": ("tsne", "unit_circle", "tsne_stages"),
    "bars": (),
    "heatmap": ("heat_map", "heat_map_stages", "samples"),
    "images": ("panels", "feature_maps"),
    "best_of": (),
}
"""The figures of a recipe whose data each kind draws."""

STAGED: Final = ("tsne_stages", "heat_map_stages")
"""Those that look at stages of a training."""
ON_THE_WAY: Final = (*STAGED, "samples", "direction_variation", "norm_traces")
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


MOST_METRICS: Final = 200
"""Metrics of a table."""

Spread = Literal["std", "se", "ci95", "none"]
"""What stands after a mean: the sample deviation, the standard error, or half the 95 % Student-t interval."""
Center = Literal["mean", "median", "best"]
"""What is printed for the runs of a cell."""

Covers = Literal["seeds", "queries", "both"]
"""What an interval covers: other seeds on these test queries, other queries of these trainings, or both."""

PLACE: Final = re.compile(r"\{([^{}]*)\}")
"""Where a printed label takes in the label of the cell on another axis: `{regularizer.eta}`."""
DELTA: Final = "delta:"
"""What stands before the metric of a difference."""

TestSplit = Annotated[str, Field(pattern=rf"^test_{TEST_SET.pattern}$")]
"""The split of a test set beside `test`."""

Decimals = Annotated[int, Posted(ge=0, le=6)]


class MetricColumn(Frozen):
    """A metric of a table, with its own heading or form of number."""

    metric: Text
    split: Annotated[str, Posted(Literal["test", "test_separated", "validation", "train"] | TestSplit)] = "test"
    """`test_separated`: the mean over the models of a cross-validation, where `test` is of all of them together;
    `test_lfw`: a test set that the data set has beside `test`."""
    label: Annotated[str | None, Posted(max_length=100)] = None
    over: Annotated[str | None, Posted(max_length=100)] = None
    """What stands above it, and above neighbours that say the same."""
    unit: Unit | None = None
    decimals: Decimals | None = None
    when: When = Field(default_factory=dict)
    """The labels of column axes under which this column stands; it stands everywhere when empty."""
    delta: Annotated[dict[str, str] | None, Posted(min_length=1)] = None
    """The difference to another cell in place of the value: to the one that has these labels, and the others alike."""
    signed: bool = False
    """Whether a number above zero is printed with its plus."""

    @property
    def separated(self) -> bool:
        """Whether it is the mean over the models of a cross-validation, not the metric of all of them together."""
        return self.split.endswith("_separated")

    @property
    def test_set(self) -> str | None:
        """The test set beside `test` that it is of."""
        split = self.split.removesuffix("_separated")
        return split.removeprefix("test_") if split.startswith("test_") else None

    @property
    def name(self) -> str:
        """What stands in the column: the metric or its difference to another cell. No paper has what is separated."""
        apart = ("separated" if self.separated else None, self.test_set)
        name = ":".join([*(one for one in apart if one), self.metric])
        return name if self.delta is None else f"{DELTA}{name}"

    def key(self, checkpoint: str) -> str:
        """The result key of the metric."""
        return f"{checkpoint}/{self.split}/{self.metric}"


class QuotedRow(Frozen):
    """A row of a printed table that nothing is trained for, printed among the others."""

    of: Annotated[dict[str, str], Posted(min_length=1)]
    """The labels that tell it from the other rows of that table."""
    label: Text
    """What stands beside it."""
    bold: bool = False
    """Whether what is bold in print is bold here."""


class Deviation(Frozen):
    """The form of the standard deviations of a table where it is not that of the means."""

    unit: Unit | None = None
    decimals: Decimals | None = None


class VerdictSpec(Frozen):
    """Which cells of a table are judged against which, and by what."""

    against: Annotated[dict[str, str] | None, Posted(min_length=1)] = None
    """The labels of the baseline, the others alike; none: the table's `against`, else the regularizer `none`."""
    of: Annotated[dict[str, str] | None, Posted(min_length=1)] = None
    """The labels of the cells that are judged; none: all but the baselines."""
    metrics: Annotated[list[Text], Posted(max_length=MOST_METRICS)] = Field(default_factory=list)
    """Of the table's metrics those that are judged; empty: all of which one value is better than another."""
    margin: Annotated[float | None, Posted(gt=0, le=1_000_000)] = None
    """The smallest difference of interest in the unit of the column: in points where it is in percent."""
    level: Annotated[float, Posted(gt=0, le=0.2)] = 0.05
    """How probable one wrong verdict or more may be in the whole table."""
    looks: Literal["planned", "any"] = "planned"
    """`planned`: once the plan has ended, and after every extension; `any`: whenever there are three pairs."""
    marks: bool = False
    """Whether formats for print show marks with a legend."""


class TableSpec(Frozen):
    """How cells are laid out; rows and columns name axes or fields of the recipe."""

    published: Text | None = None
    """The printed table that its cells are compared with."""
    quoted: Annotated[list[QuotedRow], Posted(max_length=100)] = Field(
        default_factory=list, exclude_if=lambda value: not value
    )
    """Rows of that table above the own ones, with the numbers that are printed there."""
    imported: Annotated[list[ImportedRow], Posted(max_length=MOST_ROWS)] = Field(
        default_factory=list, exclude_if=lambda value: not value
    )
    """Rows of other people's numbers above the own ones."""
    rows: Annotated[list[Text], Posted(max_length=40)] = Field(default_factory=list)
    columns: Annotated[list[Text], Posted(max_length=40)] = Field(default_factory=list)
    metrics: Annotated[list[Text | MetricColumn], Posted(max_length=MOST_METRICS)]
    unit: Unit = "percent"
    decimals: Decimals | None = None
    """Of every number; none: two of percents, and as many of other numbers as their deviations have digits for."""
    bold: Literal["none"] | list[Text] | None = None
    """The axes that span a block, of which the best is bold; none: the row axes before the last that has headings, and
    the column axes."""
    labels: dict[str, dict[str, Text]] = Field(default_factory=dict)
    """What is printed for the labels of an axis; `{path}` stands for the label of the cell on another axis."""
    titles: dict[str, Text | None] = Field(default_factory=dict)
    """The headings of axes; null: the axis tells rows or columns apart without headings of its own."""
    arrows: bool = Field(default=False, exclude_if=lambda value: not value)
    """Whether each metric's heading says which way is better, by ↑ or ↓; without it only ↓ stands, where that is so."""
    groups: Literal["always", "several"] = Field(default="always", exclude_if=lambda value: value == "always")
    """Whether a heading over all columns of a table's only panel stands (`always`), or is left to the caption."""
    lead: Literal["name", "contents"] = Field(default="name", exclude_if=lambda value: value == "name")
    """What a caption that the spec does not write begins with: the sweep's name, or metrics, data sets and rows."""
    show_tuned: bool = False
    std: bool | Deviation = True
    """Whether a spread stands after each number, and in which form."""
    spread: Spread | None = None
    """The sample deviation, the standard error or half the 95 % Student-t interval; none: `std` of a mean."""
    covers: Covers = Field(default="seeds", exclude_if=lambda value: value == "seeds")
    """What `se` and `ci95` behind a number cover, and verdicts."""
    center: Center = "mean"
    """What is printed for the runs of a cell; tests and verdicts take their means."""
    counts: Literal["differ", "always", "never"] = "differ"
    """Where the number of runs stands beside a number: where it is not the usual one, everywhere, or nowhere."""
    against: Annotated[dict[str, str] | None, Posted(min_length=1)] = None
    """The labels of the baseline with which every other cell is compared run by run."""
    test: Literal["t", "wilcoxon"] = "t"
    """The paired test of those comparisons."""
    verdicts: VerdictSpec | None = Field(default=None, exclude_if=lambda value: value is None)
    """What is judged; none: every regularizer against `none`, where words are shown."""
    optimism: bool = Field(default=False, exclude_if=lambda value: not value)
    """Whether the caption says how optimistic the scores are by which candidates were selected."""
    missing: Annotated[str, Posted(max_length=40)] = "–"
    """What is printed where there is no number and never will be."""
    diverged: Annotated[str, Posted(min_length=1, max_length=100)] = "diverged"
    """What is printed across the metrics of a cell whose every candidate diverged."""
    caption: Annotated[str | None, Posted(max_length=10_000)] = None
    selections: Annotated[list[Literal["validation", "test"]], Posted(max_length=2)] = Field(default_factory=list)
    """On which splits its numbers are selected, beside one another; empty: on the one that `select` says."""
    flattery: bool = False
    """Whether it also shows by how much selection on test is above that on validation."""
    panels: Annotated[list[dict[str, list[str]]] | None, Posted(max_length=200)] = None
    """The labels of column axes that stand in each panel, from top to bottom; none: one panel of all."""

    @cached_property
    def metric_columns(self) -> tuple[MetricColumn, ...]:
        """The metrics, each as a column."""
        return tuple(one if isinstance(one, MetricColumn) else MetricColumn(metric=one) for one in self.metrics)

    def metrics_at(self, labels: Mapping[str, str]) -> list[MetricColumn]:
        """The metrics under a point of the column axes."""
        return [column for column in self.metric_columns if applies(column.when, labels)]

    @property
    def deviation(self) -> Deviation | None:
        """The form of the spreads; none: there are none."""
        if isinstance(self.std, Deviation):
            return self.std
        return Deviation() if self.std else None

    @property
    def shown_spread(self) -> Spread:
        """What stands after a number; what is not the mean has nothing there unless asked for."""
        if self.deviation is None:
            return "none"
        return self.spread or ("std" if self.center == "mean" else "none")

    @property
    def covers_queries(self) -> bool:
        """Whether what stands after a number covers test queries: a standard deviation is of seeds alone."""
        return self.covers != "seeds" and self.shown_spread in {"se", "ci95"}
