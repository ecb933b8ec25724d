"""What axes, choices and metrics are called in print: the catalog's labels, and Greek letters for hyper-parameters."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from orchestrator.spec.table import PLACE
from workers.catalog import Catalog, Entry
from workers.contract import KINDS

GREEK: Mapping[str, str] = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "eta": "η", "theta": "θ", "lambda": "λ",
    "mu": "μ", "rho": "ρ", "sigma": "σ", "tau": "τ", "omega": "ω",
}  # fmt: skip

_SHORT: Mapping[str, str] = {"lr": "lr"}


def axis_title(axis: str) -> str:
    """The heading of an axis: `loss` -> Loss, `regularizer.eta` -> η, `optimizer.weight_decay` -> Weight decay."""
    last = axis.rpartition(".")[2]
    if last in GREEK:
        return GREEK[last]
    words = last.replace("_", " ").strip()
    return _SHORT.get(last, words[:1].upper() + words[1:])


def choice_label(axis: str, label: str, parts: Catalog) -> str:
    """A choice in print: a bare part name by its label in the catalog, anything else as the spec writes it."""
    entry = parts.get(axis, label) if axis in KINDS else None
    return entry.label if entry else label


def metric_entry(metric: str, parts: Catalog) -> Entry | None:
    """The catalog entry of a metric named `file` or `file@k`."""
    return parts.get("metric", metric.partition("@")[0])


def metric_title(metric: str, parts: Catalog) -> str:
    """A metric in print: `recall@1` -> R@1, `map@r` -> MAP@R."""
    name, _, cut = metric.partition("@")
    entry = metric_entry(metric, parts)
    label = entry.label if entry else name.replace("_", " ")
    return f"{label.partition('@')[0]}@{cut.upper()}" if cut else label


def metric_better(metric: str, parts: Catalog) -> str:
    """`higher`, `lower` or `none`; `none` too for a metric that the catalog does not know."""
    entry = metric_entry(metric, parts)
    return str(entry.facts.get("better", "none")) if entry else "none"


def metric_over_queries(metric: str, parts: Catalog) -> bool:
    """Whether it is a mean over queries, of each of which trainings keep the score."""
    entry = metric_entry(metric, parts)
    return entry is not None and entry.facts.get("over") == "queries"


def metric_unit(metric: str, parts: Catalog) -> str | None:
    """`number` for a metric that is no share of anything (norms, singular values); none: the table decides."""
    entry = metric_entry(metric, parts)
    unit = entry.facts.get("unit") if entry else None
    return str(unit) if unit is not None else ("number" if metric_better(metric, parts) == "none" else None)


Fill = Callable[[str], str]
"""From the path in a template, such as `regularizer.eta`, to the text that takes its place."""

NO_LABEL: Final = "–"
"""What is printed where an axis does not apply."""
_ORDINAL: Final = "-+.0123456789"


@dataclass(frozen=True, slots=True)
class Names:
    """What one table calls axes and their labels: as its layout says, else as the catalog does."""

    parts: Catalog
    labels: Mapping[str, Mapping[str, str]]
    titles: Mapping[str, str | None]

    def heads(self, axis: str) -> bool:
        """Whether an axis has headings of its own; one whose title is null only tells rows or columns apart."""
        return self.titles.get(axis, "") is not None

    def title(self, axis: str) -> str:
        """The heading of an axis, which may be empty."""
        given = self.titles.get(axis)
        return axis_title(axis) if given is None else given

    def said(self, axis: str) -> str:
        """The name of an axis in running text, never empty."""
        return self.titles.get(axis) or axis_title(axis)

    def label(self, axis: str, label: str, fill: Fill | None = None) -> str:
        """A label in print, with what `fill` gives in the places of its template; "" is where the axis does not apply.

        Without `fill`, for running text, a template or an empty text is passed over for the catalog's label.
        """
        given = self.labels.get(axis, {}).get(label)
        if fill is None and given is not None and (not given or PLACE.search(given)):
            given = None
        if given is None:
            return choice_label(axis, label, self.parts) if label else NO_LABEL
        return given if fill is None else PLACE.sub(lambda found: fill(found[1]), given)

    def point(self, axes: Sequence[str], point: Sequence[str], fill: Fill | None = None) -> tuple[str, ...]:
        """The labels of a point of axes as headings over columns: a bare value gets the name of its axis."""
        printed = []
        for axis, label in zip(axes, point, strict=True):
            text = self.label(axis, label, fill)
            bare = axis not in KINDS and label[:1] in _ORDINAL and label not in self.labels.get(axis, {})
            title = self.title(axis) if fill else self.said(axis)
            printed.append(f"{title} = {text}" if bare and label and title else text)
        return tuple(printed)
