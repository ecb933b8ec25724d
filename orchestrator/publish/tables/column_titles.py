"""What the columns of metrics are called, so that neighbours can be told apart."""

from collections.abc import Sequence

from orchestrator.publish.labels import metric_better, metric_title
from orchestrator.spec.table import MetricColumn
from workers.catalog import Catalog


def column_titles(metrics: Sequence[MetricColumn], parts: Catalog) -> list[str]:
    """The heading of each: the spec's, else the catalog's, with the metric's name where another one's is the same."""
    titles = [_title(one, parts) if one.label is None else one.label for one in metrics]
    metrics_of: dict[str, set[str]] = {}
    for one, title in zip(metrics, titles, strict=True):
        metrics_of.setdefault(title, set()).add(one.metric)
    return [
        f"{title} ({one.metric})" if one.label is None and len(metrics_of[title]) > 1 else title
        for one, title in zip(metrics, titles, strict=True)
    ]


def _title(column: MetricColumn, parts: Catalog) -> str:
    title = metric_title(column.metric, parts) + (" ↓" if metric_better(column.metric, parts) == "lower" else "")
    for apart in (column.test_set, "separated" if column.separated else None):
        title += f" ({apart})" if apart else ""
    return title if column.delta is None else f"Δ{title}"
