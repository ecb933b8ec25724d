"""Plots of a listing: which columns they draw where nobody says, and the process that says which axes matter."""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from orchestrator.publish import figures
from orchestrator.publish.labels import metric_better
from orchestrator.record.store import Store
from orchestrator.service.listings import ListingQueries, ListingWish
from orchestrator.views.errors import BusyError, ConflictError
from orchestrator.views.listings import ListedColumn
from workers.catalog import Catalog

Plot = Literal["scatter", "norms", "parallel", "sensitivity", "heat", "importance", "history", "distribution"]
MOST_SECONDS: Final = 40
"""That Optuna may take."""
MOST_COLUMNS: Final = 8
"""Of parallel coordinates."""


class PlotQueries:
    """Answers with Vega-Lite."""

    def __init__(self, store: Store, catalog: Catalog, listings: ListingQueries) -> None:
        self._store, self._catalog, self._listings = store, catalog, listings

    def draw(self, plot: Plot, wanted: ListingWish, x: str, y: str, colour: str) -> dict[str, Any]:
        """A plot; ConflictError where there is nothing that it could be drawn over, InvalidFilterError."""
        choice = _Choice(self._listings.columns(wanted.sweep), wanted)
        colour = colour or choice.colour
        if plot in ("scatter", "norms"):
            across = x or ("norm_var" if plot == "norms" else choice.number)
            upwards = y or ("recall@1" if plot == "norms" else choice.score)
            sought = wanted.sought(across, upwards, colour, path="plot")
            points = self._store.plots.points(sought, (across, upwards), colour)
            return figures.pages.scatter(points, across, upwards, colour)
        if plot == "distribution":
            number, colour = x or y or choice.score, colour if wanted.sweep else "sweep"
            points = self._store.plots.points(wanted.sought(number, colour, path="plot"), (number,), colour)
            return figures.pages.distribution(points, number, colour)
        if plot == "history":
            number = y or choice.score
            sought = wanted.sought(number, colour, "ended", path="plot")
            points = self._store.plots.history(sought, number, colour, higher=self._higher(number))
            return figures.pages.history(points, number, colour)
        if plot == "parallel":
            names = list(dict.fromkeys([*choice.axes, *([x] if x else []), y or choice.score]))[-MOST_COLUMNS:]
            points = self._store.plots.points(wanted.sought(*names, colour, path="plot"), names, colour)
            return figures.pages.parallel(points, names, colour)
        return self._means(plot, wanted, choice, (x, y, colour))

    def _means(self, plot: Plot, wanted: ListingWish, choice: "_Choice", said: tuple[str, str, str]) -> dict[str, Any]:
        x, y, colour = said
        if plot == "importance":
            return self._importance(wanted, choice, y or choice.score)
        if plot == "sensitivity":
            axis, number = x or choice.axis, y or choice.score
            points = self._store.plots.means(wanted.sought(axis, number, colour, path="plot"), (axis, colour), number)
            return figures.pages.sensitivity(points, axis, number, colour)
        axis, other = x or choice.axis, y or choice.other
        sought = wanted.sought(axis, other, choice.score, path="plot")
        points = self._store.plots.means(sought, (axis, other), choice.score)
        return figures.pages.heat(points, axis, other, choice.score)

    def _importance(self, wanted: ListingWish, choice: "_Choice", number: str) -> dict[str, Any]:
        candidates = ListingWish(wanted.where, "candidates", wanted.sweep)
        axes = choice.tuned
        points = self._store.plots.labelled(candidates.sought(number, *axes, path="plot"), number, axes)
        if len(points.rows) < 4:
            raise ConflictError(f"{len(points.rows)} candidates have `{number}`; importance needs four or more")
        columns = {axis: _typed([row[f"k{at}"] for row in points.rows]) for at, axis in enumerate(axes)}
        asked = {"axes": columns, "numbers": [row["v0"] for row in points.rows], "higher": self._higher(number)}
        shares = _importances(asked)
        of = f"{len(points.rows):,} of {points.total:,}"
        said = f"PED-ANOVA (Optuna) over the means of {of} candidates; it says what goes with it, not what causes it"
        return figures.pages.importance(shares, number, points.total, said)

    def _higher(self, number: str) -> bool:
        """Whether more of it is better."""
        if number in ("score", "seconds"):
            return number == "score"
        return metric_better(number.rpartition("/")[2], self._catalog) != "lower"


class _Choice:
    """What is drawn where nobody says."""

    def __init__(self, columns: Sequence[ListedColumn], wanted: ListingWish) -> None:
        own = [one for one in columns if wanted.of == "trials" or one.role != "repeat"]
        self.score = "score"
        self.axes = [one.name for one in own if one.role in ("compare", "tune") and one.numeric]
        self.tuned = [one.name for one in own if one.role in ("compare", "tune") and one.labelled]
        metrics = [one.name for one in own if one.role == "metric" and "/" not in one.name]
        self.number = (self.axes or [name for name in metrics if name != "score"] or ["seconds"])[0]
        self._labels = [one.name for one in own if one.labelled]
        compared = [one.name for one in own if one.role == "compare" and one.labelled]
        self.colour = (compared or ["sweep"])[0]

    @property
    def axis(self) -> str:
        """The axis that a sensitivity is shown of: the first that is tuned by number, else any."""
        if not self._labels:
            raise ConflictError("there is no axis to draw over: no trial here has labels")
        return (self.axes or self._labels)[0]

    @property
    def other(self) -> str:
        """Another one."""
        others = [name for name in self._labels if name != self.axis]
        if not others:
            raise ConflictError("there is one axis alone; a map takes two")
        return others[0]


def _typed(labels: Sequence[str | None]) -> list[float | str | None]:
    try:
        return [float(label) for label in labels]  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return list(labels)


def _importances(asked: Mapping[str, Any]) -> dict[str, float]:
    """In a process of its own: Optuna's libraries stay out of this one, and what takes too long is ended."""
    command = [sys.executable, "-P", "-m", "orchestrator.run.optuna.importance"]
    try:
        done = subprocess.run(  # noqa: S603 - our own module, its input as data
            command, input=json.dumps(asked), capture_output=True, text=True, timeout=MOST_SECONDS, check=True
        )
    except subprocess.TimeoutExpired:
        said = f"the importance was not computed within {MOST_SECONDS} seconds; try a narrower filter"
        raise BusyError(said) from None
    except subprocess.CalledProcessError as error:
        last = (error.stderr or "").strip().splitlines()[-1:] or ["no reason"]
        raise ConflictError(f"the importance cannot be computed: {last[0][:300]}") from error
    shares: dict[str, float] = json.loads(done.stdout)
    return shares
