"""What axes, choices and metrics are called in print: the catalog's labels, and Greek letters for hyper-parameters."""

from collections.abc import Mapping
from typing import Any, Protocol

from workers.contract import KINDS


class PartEntry(Protocol):
    """What publish reads of a catalog entry."""

    @property
    def label(self) -> str:
        """The part's name in print."""

    @property
    def facts(self) -> Mapping[str, Any]:
        """Literal facts of the part's kind; a metric's `better` and `unit`."""


class Parts(Protocol):
    """What publish asks of the catalog (`workers.catalog.Catalog`)."""

    def get(self, kind: str, name: str) -> PartEntry | None:
        """The entry of a part, if there is one."""


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


def choice_label(axis: str, label: str, parts: Parts) -> str:
    """A choice in print: a bare part name by its label in the catalog, anything else as the spec writes it."""
    entry = parts.get(axis, label) if axis in KINDS else None
    return entry.label if entry else label


def metric_entry(metric: str, parts: Parts) -> PartEntry | None:
    """The catalog entry of a metric named `file` or `file@k`."""
    return parts.get("metric", metric.partition("@")[0])


def metric_title(metric: str, parts: Parts) -> str:
    """A metric in print: `recall@1` -> R@1, `map@r` -> MAP@R."""
    name, _, cut = metric.partition("@")
    entry = metric_entry(metric, parts)
    label = entry.label if entry else name.replace("_", " ")
    return f"{label.partition('@')[0]}@{cut.upper()}" if cut else label


def metric_better(metric: str, parts: Parts) -> str:
    """`higher`, `lower` or `none`; `none` too for a metric that the catalog does not know."""
    entry = metric_entry(metric, parts)
    return str(entry.facts.get("better", "none")) if entry else "none"


def metric_unit(metric: str, parts: Parts) -> str | None:
    """`number` for a metric that is no share of anything (norms, singular values); none: the table decides."""
    entry = metric_entry(metric, parts)
    unit = entry.facts.get("unit") if entry else None
    return str(unit) if unit is not None else ("number" if metric_better(metric, parts) == "none" else None)
