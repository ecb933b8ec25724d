"""What is printed for several runs where it is not their mean: the median, or the best of them."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestrator.publish.aggregate import Place, run_values
from orchestrator.publish.labels import metric_better
from orchestrator.spec.table import Center
from orchestrator.views.outcomes import CellSummary, TrialOutcome
from workers.catalog import Catalog


@dataclass(frozen=True, slots=True)
class Centers:
    """Looks at the runs of selected candidates."""

    center: Center
    runs: Mapping[Place, Sequence[TrialOutcome]]  # of the selected candidates
    parts: Catalog

    def of(self, summary: CellSummary, key: str) -> float | None:
        """What stands for the result `key` in a cell, as a fraction; none where it has no runs of its own.

        A metric of which no value is better than another has no best one: its mean stands.
        """
        metric = summary.metrics.get(key)
        if metric is None or summary.candidate is None:
            return None
        values = list(run_values(self.runs.get((summary.cell, summary.candidate), ()), key).values())
        better = metric_better(key.split("/", 2)[-1], self.parts)
        if not values or self.center == "mean" or (self.center == "best" and better == "none"):
            return metric.mean
        if self.center == "median":
            return statistics.median(values)
        return max(values) if better == "higher" else min(values)
