"""Which cells of a table are compared with which, by which runs, and what a look before them has spent."""

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from orchestrator.publish.aggregate import Baselines, runs_of
from orchestrator.publish.tables.table_data import Column, LegendEntry, Table, TableCell, changed, places
from orchestrator.publish.verdicts.judge import CellVerdict, Evidence, Judged, QuerySpread, judge, spread
from orchestrator.publish.verdicts.significance import ANY, EXACT, MIN_PAIRS, Spending, planned
from orchestrator.spec.layouts import Covers, TableSpec, VerdictSpec
from orchestrator.views.evidence import CellVerdictView, VerdictsView
from orchestrator.views.runs import (
    Cell,
    CellSummary,
    Labels,
    QuerySource,
    QuerySums,
    SweepLook,
    SweepResults,
    TrialResult,
)
from orchestrator.views.states import TRIAL_ENDED, TrialState
from orchestrator.views.tables import printed

_NEAR: Final = 1e-3
"""How far the mean of scores may be off the metric: weights may be evaluated anew on another device."""
_LOST: Final = frozenset({"diverged", "failed"})
"""The statuses of a cell that cannot be judged."""


@dataclass(frozen=True, slots=True)
class QueryEvidence:
    """The per-query scores of trials, summed by class; caches each file that it reads."""

    source: QuerySource
    _known: dict[tuple[int, str], QuerySums | str] = field(default_factory=dict)

    def read(self, trials: Iterable[int], split: str) -> None:
        """Read the per-class sums of query scores of several trials at once, so that each file is opened once."""
        wanted = [one for one in dict.fromkeys(trials) if (one, split) not in self._known]
        if not wanted:
            return
        found, missing = self.source(wanted, split)
        for one in wanted:
            self._known[one, split] = found.get(one) or missing.get(one, f"trial {one} has no scores per query")

    def of(self, column: Column, runs: Sequence[tuple[TrialResult, TrialResult | None]]) -> QuerySpread | str:
        """The variance over queries of runs, or of their differences from baselines; or a text on why it is unknown."""
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

    def _unread(self, trials: Sequence[TrialResult], column: Column) -> str:
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
            problem = f"trials {first} and {other} were tested on other queries or another version of the data"
            return f"{problem}: they cannot be paired"
        return "" if trials else "no finished run"


def _without(column: Column) -> str:
    """Why a column has no scores per query; "" where it has."""
    _, split, metric = column.key.split("/", 2)
    if not column.over_queries:
        return f"{metric} is no mean over queries: only seeds can be covered"
    if split.endswith("_separated") or not split.startswith("test"):
        return f"scores per query are kept of test images, by the models that are judged together, not of {split}"
    return ""


def _unfit(its: QuerySums, one: TrialResult, key: str) -> str:
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


Judgeable = tuple[int, str | None, str]
"""A cell, its selection, and the result key of a metric."""
_DEFAULT: Final[Labels] = {"regularizer": "none"}


@dataclass(frozen=True, slots=True)
class CellPair:
    """A cell of a table and its baseline, compared by one metric."""

    column: Column
    cell: int
    baseline: int | None  # None where the sweep has no such cell
    evidence: Evidence
    stages: int = 0  # looks at these pairs on record, with the present look
    hours: float | None = None  # of training, for one more seed of both


def _baseline_labels(layout: TableSpec, results: SweepResults) -> Labels | None:
    """What the cells of a table are judged against; None where the layout does not say and there is no default."""
    against = (layout.verdicts and layout.verdicts.against) or layout.against
    if against:
        return against
    return _DEFAULT if any(_DEFAULT.items() <= cell.labels.items() for cell in results.cells) else None


def _cell_pairs(
    table: Table, results: SweepResults, layout: TableSpec, looks: Sequence[SweepLook]
) -> dict[Judgeable, CellPair]:
    """Every comparison that the table declares, each once, whether or not there are runs of it."""
    wanted = _baseline_labels(layout, results)
    if wanted is None:
        return {}
    verdict_spec = layout.verdicts or VerdictSpec()
    baselines = Baselines(results.cells, wanted)
    cells = {cell.index: cell for cell in results.cells}
    compared: dict[Judgeable, tuple[Column, Cell | None]] = {}
    for _, _, column, place in places(table.panels):
        named = not verdict_spec.metrics or column.name.rpartition(":")[2] in verdict_spec.metrics
        if not column.plain or column.better == "none" or not named or place.cell is None:
            continue
        cell = cells[place.cell]
        baseline = baselines.of(cell)
        is_baseline = baseline is cell or wanted.items() <= cell.labels.items()
        if (verdict_spec.of or {}).items() <= cell.labels.items() and not is_baseline:
            compared[place.cell, column.selection, column.key] = column, baseline
    candidates: dict[int, list[int]] = {}
    for one in results.candidates:
        candidates.setdefault(one.cell, []).append(one.index)

    def chosen(summary: CellSummary) -> int | None:
        """The candidate whose runs count: the selected candidate, or an only candidate even before it is complete."""
        its = candidates.get(summary.cell, [])
        return its[0] if summary.candidate is None and len(its) == 1 else summary.candidate

    summaries = (*table.summaries.values(), *table.tested.values())
    runs = runs_of(results, {(one.cell, at) for one in summaries if (at := chosen(one)) is not None})
    labels = ", ".join(f"{axis} {label}" for axis, label in wanted.items())
    queries = None if layout.covers == "seeds" else QueryEvidence(results.queries)
    pairs = {}
    for key, (column, baseline) in compared.items():
        if baseline is None:
            evidence = Evidence(obstacle=f"the sweep has no cell with {labels} to compare it with")
            pairs[key] = CellPair(column, key[0], None, evidence)
        else:
            sides = [table.summary(column, index) for index in (key[0], baseline.index)]
            its_runs = [runs.get((one.cell, chosen(one) or 0), []) for one in sides]
            pairs[key] = _pair(column, sides, its_runs, verdict_spec, looks, layout.covers, queries)
    return pairs


def _pair(
    column: Column,
    sides: Sequence[CellSummary],
    runs: Sequence[Sequence[TrialResult]],
    spec: VerdictSpec,
    looks: Sequence[SweepLook],
    covers: Covers,
    queries: QueryEvidence | None,
) -> CellPair:
    own, base = sides
    theirs = {frozenset(one.repeat_labels.items()): one for one in runs[1]}
    pairs = [(one, theirs[at]) for one in runs[0] if (at := frozenset(one.repeat_labels.items())) in theirs]
    valued = [
        pair
        for pair in pairs
        if all(math.isfinite(one.values.get(column.key, math.nan)) and not one.diverged for one in pair)
    ]
    edges = [one.position for one in looks if one.finished]
    staged = [bisect_right(edges, max(one.position for one in pair)) for pair in valued]
    # Of queries alone a first look takes one seed.
    spending, obstacle = _spending(pairs, staged, 1 if covers == "queries" else MIN_PAIRS, spec, edges)
    growing = {own.status, base.status} & {"partial", "missing"}
    if growing and not obstacle and (not pairs or (spec.looks == "planned" and len(set(staged)) < 2)):
        obstacle = "not finished: its candidates are still to be chosen"
    lost = [f"{who} {one.status}" for who, one in (("it", own), ("the baseline", base)) if one.status in _LOST]
    evidence = Evidence(
        differences=[one.values[column.key] - other.values[column.key] for one, other in valued],
        spending=spending,
        sign=1 if column.better == "higher" else -1,
        margin=None if spec.margin is None else spec.margin / column.scale,
        obstacle=next(iter(lost), obstacle),
        covers=covers,
    )
    if queries is not None and valued and not evidence.obstacle:
        found = queries.of(column, valued)
        evidence = replace(evidence, obstacle=found) if isinstance(found, str) else replace(evidence, spread=found)
    return CellPair(column, own.cell, base.cell, evidence, len(set(staged)), _hours(runs))


def _spending(
    pairs: Sequence[tuple[TrialResult, TrialResult]],
    staged: Sequence[int],
    least: int,
    spec: VerdictSpec,
    edges: Sequence[int],
) -> tuple[Spending, str]:
    """How the level may be spent, and why nothing can be said before a plan has ended."""
    first = min((bisect_right(edges, max(one.position, other.position)) for one, other in pairs), default=0)
    plan = [pair for pair in pairs if bisect_right(edges, max(one.position for one in pair)) == first]
    # Trained before the sweep was submitted. What is reused later changes nothing: the first look has spent its share.
    known = any(one.reused and other.reused for one, other in plan)
    if spec.looks == "any" or known:
        return ANY, ""
    states = {one.state for pair in plan for one in pair}
    if not states <= TRIAL_ENDED:
        done = sum(all(one.state in TRIAL_ENDED for one in pair) for pair in plan)
        return ANY, f"not finished: {done} of {len(plan)} planned seeds"
    if TrialState.CANCELLED in states:
        return ANY, f"its plan of {len(plan)} seeds was cut short: {len(staged)} were trained"
    return planned(sum(one == first for one in staged), least), ""


def _hours(runs: Sequence[Sequence[TrialResult]]) -> float | None:
    """Hours of training for one more seed of both cells; None where that is not known."""
    means = []
    for side in runs:
        seconds = [one.seconds for one in side if one.seconds]
        if not seconds:
            return None
        means.append(sum(seconds) / len(seconds))
    return sum(means) / 3600


SIGNS: Final[Mapping[Judged, str]] = {"better": "+", "worse": "−", "equivalent": "=", "no clear difference": "?"}
_MEANINGS: Final[Mapping[Judged, str]] = {
    "better": "better than the baseline",
    "worse": "worse than the baseline",
    "equivalent": "equivalent to the baseline",
    "no clear difference": "no clear difference from the baseline",
}
_MOST_SEEDS: Final = f"more than {EXACT} seeds"
_MORE_QUERIES: Final = "more test queries; seeds alone do not decide it"
_TESTS: Final[Mapping[Covers, str]] = {
    "seeds": "two-sided paired t-test by seed",
    "queries": "two-sided paired t-test query by query, clustered by class",
    "both": "two-sided t-test paired by seed and query, crossed, queries clustered by class",
}
_COVERED: Final[Mapping[Covers, str]] = {
    "queries": "It covers other test queries, of other such classes, for these very trainings: not other seeds.",
    "both": "It covers other seeds and other test queries, of other such classes.",
}


@dataclass(frozen=True, slots=True)
class JudgedTable:
    """A table with the comparisons of its cells with baselines, and their verdicts."""

    table: Table
    spec: VerdictSpec
    against: Labels
    pairs: Mapping[Judgeable, CellPair]
    verdicts: Mapping[Judgeable, CellVerdict]
    covers: Covers = "seeds"

    def shown(self, *, marks: bool) -> Table:
        """The table with each verdict as a word in its cell, or as a mark with a legend; the details explain them."""
        if not self.pairs:
            return self.table
        panels = changed(self.table.panels, lambda _, column, cell: self._cell(column, cell, marks))
        legend = self.table.legend
        if marks:
            words = {one.word for one in self.verdicts.values()}
            legend = (
                *legend,
                *(LegendEntry(SIGNS[word], meaning) for word, meaning in _MEANINGS.items() if word in words),
            )
        details = [*self.table.words.details, self.summary()]
        explained = replace(self.table.words, details=tuple(details))
        return replace(self.table, panels=panels, legend=legend, words=explained)

    def view(self, labels: Mapping[int, Labels]) -> VerdictsView:
        """The verdicts of the table without the table, as the API returns them; `labels` are the labels by cell."""
        return VerdictsView(
            sweep=self.table.sweep, table=self.table.name, against=dict(self.against), level=self.spec.level,
            margin=self.spec.margin, looks=self.spec.looks, covers=self.covers, summary=self.summary(),
            comparisons=[self._view(place, labels) for place in self.pairs],
        )  # fmt: skip

    def summary(self) -> str:
        """Sentences on the method of the verdicts: the test, its correction, the looks and the level they spent."""
        if not self.pairs:
            return "Nothing is judged: no cell has a baseline."
        named = ", ".join(f"{axis} {label}" for axis, label in self.against.items())
        count = len(self.pairs)
        lead = f"Verdicts against {named}: {_TESTS[self.covers]}, "
        within = f"at most {self.spec.level:g} for a wrong one among {count} comparison{'s' * (count > 1)}"
        words = [f"{lead}{within} (Holm), {self._design()}."]
        if self.spec.margin is not None:
            words.append(f"Equivalent: surely closer than {self.spec.margin:g} in the unit of the column.")
        if self.covers != "seeds":
            words.append(_COVERED[self.covers])
        return " ".join(words)

    def answer(self, labels: Mapping[int, Labels]) -> str:
        """A sentence on the best cell, its lead over its baseline and whether that may be noise; "" without results."""
        columns = [column for panel in self.table.panels for column in panel.columns]
        column = next((one for one in columns if one.plain and one.better != "none"), None)
        if column is None:
            return ""
        # Only of its column: other columns may be of other data sets.
        shown = [self.table.summary(column, cell) for its, _, cell in self.table.metric_cells() if its is column]
        known = {
            one.cell: one.metrics[column.key] for one in shown if one.status == "complete" and column.key in one.metrics
        }
        if not known:
            return ""
        sign = 1 if column.better == "higher" else -1
        best = max(known, key=lambda cell: sign * known[cell].mean)
        first = "Best" if self.table.complete == len(self.table.summaries) else "Best so far"
        named = {cell: " · ".join(its.values()) or "the only cell" for cell, its in labels.items()}
        lead = f"{first} by {column.title.rstrip(' ↑↓')}: {named[best]}, {column.text_of(known[best])}"
        place = (best, column.selection, column.key)
        pair, verdict = self.pairs.get(place), self.verdicts.get(place)
        if pair is None or verdict is None or pair.baseline is None:
            return f"{lead}."
        words = {
            "better": "better than its baseline", "worse": "worse than its baseline",
            "equivalent": "equivalent to its baseline", "no clear difference": "but its lead may be noise",
        }  # fmt: skip
        judged = words.get(verdict.word, verdict.reason)
        difference = printed(verdict.difference or 0.0, column.unit, column.decimals, signed=True)
        tested = sum(one.word != "untested" for one in self.verdicts.values())
        among = f", one of {tested} comparisons" if tested > 1 else ""  # which the verdict corrects for
        sample = f" (p = {verdict.p:.2g}{among})" if verdict.p is not None else ""
        return f"{lead}; {difference} against {named[pair.baseline]}, {judged}{sample}."

    def _design(self) -> str:
        tested = [place for place, one in self.verdicts.items() if one.word != "untested"]
        if not tested:
            return "none of which can be tested yet"
        spent = self.spec.level * max(self.verdicts[place].spent for place in tested)
        looks = max(self.pairs[place].stages for place in tested)
        if self.covers == "queries" and looks > 1:
            return f"each of {looks} looks on record a test of its own, {spent:.2g} of it spent"
        if all(self.pairs[place].evidence.spending == ANY for place in tested):
            return f"group-sequential, valid after looks at any time, {spent:.2g} of it spent"
        if looks < 2:
            return f"fixed plan, one look, {spent:.2g} of it spent"
        return f"group-sequential since seeds were added after a look, {looks} looks on record, {spent:.2g} of it spent"

    def _cell(self, column: Column, cell: TableCell, marks: bool) -> TableCell:
        place = (cell.cell or 0, column.selection, column.key)
        verdict = self.verdicts.get(place) if cell.cell is not None and column.plain else None
        if verdict is None:
            return cell
        if marks:
            return replace(cell, judged=SIGNS.get(verdict.word, ""))
        return replace(cell, verdict=verdict, verdict_summary=self._sentence(place))

    def _sentence(self, place: Judgeable) -> str:
        verdict = self.verdicts[place]
        if verdict.word == "untested":
            return f"untested: {verdict.reason}"
        return f"{verdict.word} ({_sample(verdict)}; {_difference(self.pairs[place].column, verdict)})"

    def _to_decide(self, place: Judgeable) -> str:
        """What would decide an open comparison: further seeds with their hours, or why none do."""
        pair, verdict = self.pairs[place], self.verdicts[place]
        if verdict.word != "no clear difference":
            return ""
        if verdict.more is None:
            return _beyond(verdict)
        hours = "" if pair.hours is None else f", {_hours_text(verdict.more * pair.hours)}"
        return f"about {verdict.more} more seed{'s' * (verdict.more > 1)}{hours}"

    def _view(self, place: Judgeable, labels: Mapping[int, Labels]) -> CellVerdictView:
        pair, found = self.pairs[place], self.verdicts[place]
        queries = found.spread
        hours = None if found.more is None or pair.hours is None else found.more * pair.hours
        return CellVerdictView(
            cell=pair.cell, labels=dict(labels[pair.cell]), baseline=pair.baseline, metric=pair.column.key,
            title=pair.column.title, word=found.word, summary=self._sentence(place), reason=found.reason,
            to_decide=self._to_decide(place), pairs=found.pairs,
            difference=found.difference, interval=list(found.interval) if found.interval else None,
            p=found.p, needs=found.needs, spent=found.spent, looks=pair.stages, more_seeds=found.more,
            more_hours=hours, covers=found.covers, queries=queries and queries.queries,
            classes=queries and queries.classes, error_seeds=queries and math.sqrt(queries.seeds),
            error_queries=queries and math.sqrt(queries.between),
        )  # fmt: skip


def judged(
    table: Table, results: SweepResults, looks: Sequence[SweepLook], covers: Covers | None = None
) -> JudgedTable:
    """Compares cells of the table as its spec declares and gives verdicts; `looks` are the recorded looks of the sweep.

    With `covers` they cover that in place of what the table's spec says.
    """
    layout = table.layout
    if covers is not None:
        layout = layout.model_copy(update={"covers": covers})
    verdict_spec = layout.verdicts or VerdictSpec()
    pairs = _cell_pairs(table, results, layout, looks)
    verdicts = judge({place: one.evidence for place, one in pairs.items()}, verdict_spec.level)
    return JudgedTable(table, verdict_spec, _baseline_labels(layout, results) or {}, pairs, verdicts, layout.covers)


def _sample(verdict: CellVerdict) -> str:
    """Of what it was judged."""
    seeds = f"{verdict.pairs} seed{'s' * (verdict.pairs != 1)}"
    found = verdict.spread
    return seeds if found is None else f"{seeds} x {found.queries:,} queries of {found.classes:,} classes"


def _difference(column: Column, verdict: CellVerdict) -> str:
    """The mean difference with its interval, in the unit of the column, and p."""
    numbers = (verdict.difference or 0.0, *(verdict.interval or ()))
    mean, *between = (printed(number, column.unit, column.decimals, signed=True) for number in numbers)
    within = f", between {between[0]} and {between[1]}" if between else ""
    bound = f", needs {verdict.needs:.2g}" if verdict.needs else ""
    return f"difference {mean}{within}; p = {verdict.p or 0:.2g}{bound}"


def _beyond(verdict: CellVerdict) -> str:
    """Why no number of seeds would decide it."""
    seeds_needed = verdict.seeds_needed
    if verdict.covers == "queries":
        return _MORE_QUERIES
    if seeds_needed is not None and seeds_needed.floor and replace(seeds_needed, floor=0.0).more() is not None:
        return _MORE_QUERIES
    return _MOST_SEEDS


def _hours_text(hours: float) -> str:
    return f"{hours:.2g} hours" if hours >= 0.1 else f"{max(1, round(hours * 60))} min"
