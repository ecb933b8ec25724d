"""The view of a sweep's runs that a link opens: its cells, best first, under the columns of its tables.

MLflow's page takes filter and order from the address, but columns only from a view that somebody shared, which it keeps
as a tag of the experiment. So ours is one of these.
"""

import json
from collections.abc import Iterator
from typing import Final

from orchestrator.record.mlflow.names import accepted, single
from orchestrator.record.tracker import Exhibit
from orchestrator.views.links import VIEW

VIEW_TAG: Final = f"mlflow.sharedViewState.{VIEW}"
_MOST_COLUMNS: Final = 24
"""Of a table of many data sets: more nobody reads beside one another, and the tag would be too long."""


def runs_view(exhibit: Exhibit) -> str:
    """The value of the tag."""
    order = _metric(exhibit.selected_by) if exhibit.selected_by else "attributes.start_time"
    return json.dumps(
        {
            "searchFilter": "tags.`metricsweep.kind` = 'cell'",
            "orderByKey": order,
            "orderByAsc": exhibit.better == "lower" or not exhibit.selected_by,
            "startTime": "ALL",
            "lifecycleFilter": "Active",
            "selectedColumns": list(dict.fromkeys(_columns(exhibit)))[:_MOST_COLUMNS],
        }
    )


def _columns(exhibit: Exhibit) -> Iterator[str]:
    yield from (f"params.`{accepted(axis)}`" for axis in exhibit.axes)
    if exhibit.selected_by:
        yield _metric(exhibit.selected_by)
    yield from map(_metric, exhibit.columns)


def _metric(key: str) -> str:
    return f"metrics.`{accepted(single(key))}`"
