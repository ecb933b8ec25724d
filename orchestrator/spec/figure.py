"""What a spec asks of a figure: its kind, what it draws, and which axes give place and colour."""

from collections.abc import Mapping
from typing import Annotated, Final, Literal

from pydantic import Field

from orchestrator.spec.posted import Posted, Text
from orchestrator.spec.unit import Unit
from orchestrator.spec.when import When
from workers.contract import Frozen

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
