"""What a kind of figure draws from, and what it gives back: plots with their data, before they have a size."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from orchestrator.publish.figures.points import FigurePoint
from orchestrator.publish.labels import Names
from orchestrator.spec.figure import FigureSpec
from orchestrator.views.outcomes import SweepOutcomes
from orchestrator.views.planned import Labels
from workers.catalog import Catalog
from workers.contract import Select

Value = str | int | float | None
Arrays = Mapping[str, NDArray[Any]]
CurvePoints = Sequence[tuple[int, float | None]]


@dataclass(frozen=True, slots=True)
class Sources:
    """Where curves and files come from; asked only for the trials that a figure draws."""

    curves: Callable[[Sequence[int], Collection[str]], Mapping[int, Mapping[str, CurvePoints]]]
    """The curves of some keys, by trial."""
    arrays: Callable[[Sequence[int], str], tuple[Mapping[int, Arrays], Mapping[int, str]]]
    """The arrays of a data file by trial, and for each trial without them why that is."""
    pictures: Callable[[Sequence[int], str], tuple[Mapping[int, bytes], Mapping[int, str]]] = lambda *_: ({}, {})
    """The same of sheets of pictures, PNG files."""


@dataclass(frozen=True, slots=True)
class Sketch:
    """One figure of one sweep, ready to be drawn."""

    name: str
    outcomes: SweepOutcomes
    layout: FigureSpec
    parts: Catalog
    names: Names
    select: Select
    points: Sequence[FigurePoint]
    sources: Sources
    aged: str = ""  # which numbers are of older versions

    @property
    def drawn(self) -> list[FigurePoint]:
        """The points that have a selected candidate."""
        return [point for point in self.points if point.summary.candidate is not None]

    def domain(self, axis: str) -> list[str]:
        """The labels of an axis in the order of the spec, "" where it does not apply; those of missing points too."""
        return list(dict.fromkeys(point.labels.get(axis, "") for point in self.points))

    def printed(self, axis: str) -> dict[str, str]:
        """What is printed for each label of an axis; labels that would look alike keep their own spelling."""
        texts = {label: self.names.label(axis, label) for label in self.domain(axis)}
        seen = list(texts.values())
        return {label: text if seen.count(text) == 1 else label or text for label, text in texts.items()}

    def headed(self, axis: str) -> dict[str, str]:
        """The same as headings of panels, where a bare number needs the name of its axis."""
        texts = self.printed(axis)
        return {
            label: text if text != label else self.names.point((axis,), (label,))[0] for label, text in texts.items()
        }


@dataclass(frozen=True, slots=True)
class Datum:
    """One row of the data behind a figure."""

    labels: Labels  # by axis, as the spec writes them
    values: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class PanelGrid:
    """What a plot divides itself into, where that is not by the labels of the facet's axes."""

    columns: Sequence[str]
    rows: Sequence[str]
    side: int
    """Of each, in points."""


@dataclass(frozen=True, slots=True)
class Plot:
    """One quantity over its axes; a figure of several has one plot each."""

    quantity: str
    chart: Any
    """Layers without data and size, or what gives them for a panel's width and height; their fields are those of the
    data, and `colour`, `column` and `row`."""
    data: Sequence[Datum]
    title: str = ""  # over its panels
    square: bool = False
    tall: float = 0.0  # the height of a panel over its width, where the data gives it
    unlisted: Sequence[str] = ()  # fields of the data that are no values: they stay out of the CSV file
    least: tuple[int, int] = (0, 0)  # the smallest width and height of a panel, in points
    panels: PanelGrid | None = None  # of which each datum names its `column` and `row`


@dataclass(frozen=True, slots=True)
class FigureDrawing:
    """What a kind gives: its plots, what they show in words, and what they leave out."""

    plots: Sequence[Plot]
    said: str
    notes: Sequence[str] = ()
    series: Sequence[str] = ()  # the entries of the legend, where they are not the labels of the colour axis
