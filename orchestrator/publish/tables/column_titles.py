"""What the columns of metrics are called, so that neighbours can be told apart."""

from collections.abc import Sequence
from typing import Final

from orchestrator.publish.labels import metric_better, metric_title
from orchestrator.spec.table import MetricColumn
from workers.catalog import Catalog

_ARROWS: Final = {"higher": " ↑", "lower": " ↓"}


def column_titles(metrics: Sequence[MetricColumn], parts: Catalog, *, arrows: bool = False) -> list[str]:
    """The heading of each: the spec's, else the catalog's, with the metric's name where another one's is the same.

    With `arrows` each says which way its metric is better, also where the heading is the spec's.
    """
    titles = [_title(column, parts) if column.label is None else column.label for column in metrics]
    metrics_of: dict[str, set[str]] = {}
    for column, title in zip(metrics, titles, strict=True):
        metrics_of.setdefault(title, set()).add(column.metric)
    told = [
        f"{title} ({column.metric})" if column.label is None and len(metrics_of[title]) > 1 else title
        for column, title in zip(metrics, titles, strict=True)
    ]
    return [_pointed(column, title, parts) for column, title in zip(metrics, told, strict=True)] if arrows else told


def without_arrow(title: str) -> str:
    """A heading as it stands in a sentence."""
    return title.removesuffix(_ARROWS["lower"]).removesuffix(_ARROWS["higher"])


def _pointed(column: MetricColumn, title: str, parts: Catalog) -> str:
    arrow = _ARROWS.get(metric_better(column.metric, parts), "")
    if not title or column.delta is not None or any(one.strip() in title for one in _ARROWS.values()):
        return title
    return title + arrow


def _title(column: MetricColumn, parts: Catalog) -> str:
    title = metric_title(column.metric, parts) + (" ↓" if metric_better(column.metric, parts) == "lower" else "")
    for apart in (column.test_set, "separated" if column.separated else None):
        title += f" ({apart})" if apart else ""
    return title if column.delta is None else f"Δ{title}"
