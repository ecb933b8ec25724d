"""What a spec asks of a figure: its kind, what it draws, and which axes give place and colour."""

from collections.abc import Mapping
from typing import Annotated, Final, Literal

from pydantic import Field

from workers.contract import Frozen

Kind = Literal["line", "curves", "distribution", "scatter", "bars", "heatmap"]

Text = Annotated[str, Field(max_length=200)]


class FigureSpec(Frozen):
    """A figure of a sweep; axes are compare axes, or tune axes where every candidate is to be seen."""

    kind: Kind
    metric: str | list[str] | None = None
    """Of cells, such as `recall@1`; of curves, such as `train/norm_var`. Several are drawn beside one another."""
    data: str | None = None
    """A figure of the recipe whose data files are drawn: `norms`, or `norms-train` of another split."""
    show: list[str] | None = Field(default=None, min_length=1)
    """Which of several quantities of `data` are drawn, such as `cos_ap`; none: all."""
    x: str | None = None
    y: str | None = None
    colour: str | None = None
    facet: str | list[str] | None = None
    """The axis of which each label has a panel of its own; of two the second gives the rows."""
    x_scale: Literal["linear", "log", "category"] | None = None
    """none: `linear` where all labels are numbers, else `category`."""
    y_scale: Literal["linear", "log"] = "linear"
    when: dict[str, list[str]] = Field(default_factory=dict)
    """The labels of compare axes of which cells are drawn; all are when empty."""
    error: Literal["std", "interval", "none"] = "std"
    """What error bars and bands show over repeats: the sample's deviation, or the 95 % interval of the mean."""
    reference: str | None = None
    """A metric that is marked across each bar, such as a bound."""
    unit: Literal["percent", "fraction", "number"] | None = None
    decimals: int | None = Field(default=None, ge=0, le=6)
    bins: int | None = Field(default=None, ge=2, le=1000)
    """The bins that histograms are drawn in; none: those of the files."""
    moments: bool = False
    """Whether mean and variance of distributions are written into the panels."""
    windows: bool = False
    """Whether each window of `direction_variation` has a panel of its own; else all are drawn together."""
    labels: dict[str, dict[str, Text]] = Field(default_factory=dict)
    """What is printed for the labels of an axis."""
    titles: dict[str, Text] = Field(default_factory=dict)
    """The names of axes and metrics in print."""
    title: Text | None = None
    caption: str | None = Field(default=None, max_length=10_000)


DATA: Final[Mapping[str, tuple[str, ...]]] = {
    "line": ("spectrum",),
    "curves": ("norm_traces",),
    "distribution": ("norms", "cosines", "direction_variation"),
    "scatter": ("tsne", "unit_circle"),
    "bars": (),
    "heatmap": ("heat_map",),
}
"""The figures of a recipe whose data each kind draws."""

QUANTITIES: Final[Mapping[str, tuple[str, ...]]] = {"cosines": ("cos_ap", "cos_an", "difference")}
"""What the data of a figure holds where that is more than one quantity."""

_EVERYWHERE: Final = ("kind", "facet", "when", "labels", "titles", "title", "caption")
_OF_CELLS: Final = ("metric", "x", "unit", "error")
FITTING: Final[Mapping[str, tuple[str, ...]]] = {
    "line": (*_EVERYWHERE, *_OF_CELLS, "data", "colour", "x_scale", "y_scale"),
    "curves": (*_EVERYWHERE, "metric", "data", "colour", "unit", "error", "y_scale"),
    "distribution": (*_EVERYWHERE, "data", "show", "colour", "bins", "moments", "windows"),
    "scatter": (*_EVERYWHERE, "data"),
    "bars": (*_EVERYWHERE, *_OF_CELLS, "colour", "reference"),
    "heatmap": (*_EVERYWHERE, "metric", "data", "x", "y", "unit", "decimals"),
}
"""The fields that mean something for each kind."""
