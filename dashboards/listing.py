"""The page of a listing: its table, the filter as it was typed, and addresses that keep all that was chosen."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import urlencode

from dashboards.rendering import render
from orchestrator.views.trials import Listed, ListedColumn, ListedRow, Listing

MOST_AXES: Final = 12
"""That have a column of their own; the labels of more stand together."""
DRAWINGS: Final = {
    "scatter": "Two columns",
    "norms": "Norm variance and R@1",
    "parallel": "Parallel coordinates",
    "sensitivity": "Sensitivity",
    "heat": "Two axes",
    "importance": "Importance",
    "history": "History",
    "distribution": "Distribution",
}
"""The plots beside a listing, by the names under which REST has them."""


@dataclass(frozen=True, slots=True)
class ListingAddress:
    """What the page was asked for, which its address says."""

    where: str = ""
    sort: str = "-trial"
    columns: tuple[str, ...] | None = None
    of: Listed = "trials"
    sweep: int | None = None
    cursor: str | None = None
    plot: str = ""
    x: str = ""
    y: str = ""
    colour: str = ""

    def of_sweep(self, sweep: int) -> "ListingAddress":
        """The same of one sweep alone."""
        return replace(self, sweep=sweep)

    @property
    def path(self) -> str:
        """The page's own path."""
        return "/trials" if self.sweep is None else f"/sweeps/{self.sweep}/trials"

    def kept(self, **changed: Any) -> str:
        """The address of the same page with something else; a cursor lasts for one order of one filter alone."""
        chosen: dict[str, Any] = {
            "where": self.where, "sort": self.sort, "of": self.of, "plot": self.plot, "x": self.x, "y": self.y,
            "colour": self.colour, "columns": None if self.columns is None else ",".join(self.columns),
        } | changed  # fmt: skip
        usual = {"sort": "-trial" if chosen["of"] == "trials" else "-score", "of": "trials"}
        said = {key: value for key, value in chosen.items() if value not in (None, "", usual.get(key))}
        if chosen["columns"] == "":
            said["columns"] = ""
        return f"{self.path}?{urlencode(said)}" if said else self.path

    def sorted_by(self, name: str) -> str:
        """The address of the rows sorted by a column: best first where that is likely, the other way the next time."""
        return self.kept(sort=name if self.sort == f"-{name}" else f"-{name}")

    def direction(self, name: str) -> str | None:
        """How a column is sorted, in ARIA's words."""
        return {name: "ascending", f"-{name}": "descending"}.get(self.sort)


def listing_page(
    asked: ListingAddress,
    listing: Listing | None,
    columns: Sequence[ListedColumn],
    *,
    sweep_name: str = "",
    problem: str = "",
) -> str:
    """The trials or candidates that were asked for; `problem` says what is wrong with the filter, which stays."""
    rows = listing.items if listing else []
    axes = _axes(rows, columns)
    names = {column.key: column.name for column in columns}
    own = [column for column in columns if asked.of == "trials" or column.role != "repeat"]
    numbers = [column.name for column in own if column.numeric]
    return render(
        "listing.html", None, asked=asked, listing=listing, rows=rows, sweep_name=sweep_name, problem=problem,
        axes=[(axis, names.get(axis, axis)) for axis in axes[:MOST_AXES]], further=axes[MOST_AXES:],
        metrics=[column for column in columns if column.role == "metric"],
        shown=list(listing.metrics) if listing else list(asked.columns or ()),
        drawings=DRAWINGS, plots=_plots(asked, numbers), numbers=["score", "seconds", *numbers],
        labels=[column.name for column in columns if column.labelled and column.role != "repeat"],
    )  # fmt: skip


def _axes(rows: Sequence[ListedRow], columns: Sequence[ListedColumn]) -> list[str]:
    """The axes that some row has, in the order of the columns."""
    there = dict.fromkeys(axis for row in rows for axis in row.labels)
    known = [column.key for column in columns if column.key in there]
    return [*known, *(axis for axis in there if axis not in known)]


def _plots(asked: ListingAddress, numbers: Sequence[str]) -> Mapping[str, str]:
    """The address from which a plot is fetched, by its name."""
    chosen: dict[str, Any] = {"where": asked.where, "of": asked.of, "sweep": asked.sweep}
    chosen |= {"x": asked.x, "y": asked.y, "colour": asked.colour}
    said = {key: value for key, value in chosen.items() if value not in (None, "")}
    return {name: f"/v1/plots/{name}?{urlencode(said)}" for name in DRAWINGS}
