"""What the test queries say of a table's cells and comparisons, or why they say nothing."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from orchestrator.publish.tables.table_data import Column
from orchestrator.publish.verdicts.boundary import LEAST
from orchestrator.publish.verdicts.judgement import Evidence, QuerySpread, spread
from orchestrator.spec.table import Covers
from orchestrator.views.outcomes import TrialOutcome
from orchestrator.views.query_sums import QuerySource, QuerySums

_NEAR: Final = 1e-3
"""By how much the mean of scores may be off the metric: weights may be evaluated anew on another device."""


@dataclass(frozen=True, slots=True)
class QueryEvidence:
    """The sums of trials, each read once."""

    source: QuerySource
    _known: dict[tuple[int, str], QuerySums | str] = field(default_factory=dict)

    def read(self, trials: Iterable[int], split: str) -> None:
        """Read those of some trials together."""
        wanted = [one for one in dict.fromkeys(trials) if (one, split) not in self._known]
        if not wanted:
            return
        found, missing = self.source(wanted, split)
        for one in wanted:
            self._known[one, split] = found.get(one) or missing.get(one, f"trial {one} has no scores per query")

    def of(self, column: Column, runs: Sequence[tuple[TrialOutcome, TrialOutcome | None]]) -> QuerySpread | str:
        """How the queries of some runs vary, or of differences to baselines; why nothing is known, where that is so."""
        trials = [one for pair in runs for one in pair if one is not None]
        if reason := _without(column) or self._unread(trials, column):
            return reason
        _, split, metric = column.key.split("/", 2)
        sums = {one.trial: its for one in trials if isinstance(its := self._known[one.trial, split], QuerySums)}
        rows = [
            sums[own.trial].sums[metric] - (0.0 if base is None else sums[base.trial].sums[metric])
            for own, base in runs
        ]
        try:
            return spread(rows, sums[trials[0].trial].counts)
        except ValueError as error:
            return str(error)

    def _unread(self, trials: Sequence[TrialOutcome], column: Column) -> str:
        """Why the scores of some trials cannot be taken together; "" where they can."""
        split = column.key.split("/", 2)[1]
        self.read((one.trial for one in trials), split)
        for trial in trials:
            its = self._known[trial.trial, split]
            if reason := its if isinstance(its, str) else _unfit(its, trial, column.key):
                return reason
        known = {one.trial: self._known[one.trial, split] for one in trials}
        alike = {trial: its.identity for trial, its in known.items() if isinstance(its, QuerySums)}
        first = trials[0].trial if trials else 0
        if other := next((trial for trial, its in alike.items() if its != alike[first]), None):
            said = f"trials {first} and {other} were tested on other queries or another version of the data"
            return f"{said}: they cannot be paired"
        return "" if trials else "no finished run"


@dataclass(frozen=True, slots=True)
class Queries:
    """How evidence comes to cover test queries."""

    covers: Covers
    evidence: QueryEvidence

    @property
    def least(self) -> int:
        """How many seeds a first look takes."""
        return 1 if self.covers == "queries" else LEAST

    def beside(self, found: Evidence, column: Column, pairs: Sequence[tuple[TrialOutcome, TrialOutcome]]) -> Evidence:
        """The same evidence with what its queries say, or with why it cannot be judged by them."""
        if found.obstacle or not pairs:
            return replace(found, covers=self.covers)
        known = self.evidence.of(column, pairs)
        if isinstance(known, str):
            return replace(found, covers=self.covers, obstacle=known)
        return replace(found, covers=self.covers, beside=known)


def _without(column: Column) -> str:
    """Why a column has no scores per query."""
    _, split, metric = column.key.split("/", 2)
    if not column.over_queries:
        return f"{metric} is no mean over queries: only seeds can be covered"
    if split.endswith("_separated") or not split.startswith("test"):
        return f"scores per query are kept of test images, by the models that are judged together, not of {split}"
    return ""


def _unfit(its: QuerySums, one: TrialOutcome, key: str) -> str:
    checkpoint, _, metric = key.split("/", 2)
    if its.checkpoint != checkpoint:
        return f"trial {one.trial} kept scores per query of its {its.checkpoint} weights, and this is of {checkpoint}"
    if metric not in its.sums:
        return f"trial {one.trial} kept no scores per query of {metric}"
    mean = float(its.sums[metric].sum() / its.counts.sum())
    if abs(mean - one.values[key]) > _NEAR:
        found = f"the scores per query of trial {one.trial} have the mean {mean:.4f}"
        return f"{found}, and its {metric} is {one.values[key]:.4f}: they do not belong together"
    return ""
