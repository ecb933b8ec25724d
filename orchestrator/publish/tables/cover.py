"""What the spread behind a number covers where that is test queries, or these and seeds."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestrator.publish.aggregate import Place
from orchestrator.publish.tables.query_evidence import QueryEvidence
from orchestrator.publish.tables.table_data import Column
from orchestrator.publish.verdicts.judgement import QuerySpread, half_width
from orchestrator.spec.table import Covers, Spread
from orchestrator.views.outcomes import CellSummary, TrialOutcome


@dataclass(frozen=True, slots=True)
class Cover:
    """Looks at the runs of selected candidates query by query."""

    covers: Covers
    evidence: QueryEvidence
    runs: Mapping[Place, Sequence[TrialOutcome]]  # of the selected candidates

    def of(self, summary: CellSummary, column: Column) -> QuerySpread | str:
        """How the queries of a cell vary, or why that is not known."""
        runs = self.runs.get((summary.cell, summary.candidate or 0), ())
        valued = [one for one in runs if math.isfinite(one.values.get(column.key, math.nan)) and not one.diverged]
        return self.evidence.of(column, [(one, None) for one in valued])

    def width(self, found: QuerySpread, shown: Spread) -> float | None:
        """The standard error, or half the interval; none for both variances of a single run."""
        if shown == "ci95":
            return half_width(found, self.covers)
        if self.covers == "queries":
            return math.sqrt(found.between)
        return math.sqrt(found.both) if found.runs > 1 else None
