"""Which cells of a table are compared with which, by which runs, and what a look before them has spent."""

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from orchestrator.publish.aggregate import runs_of
from orchestrator.publish.tables.layout import Baselines, parse
from orchestrator.publish.tables.table_data import Column, LegendEntry, Panel, Table, TableCell, TableRow
from orchestrator.publish.verdicts.judge import CellVerdict, Evidence, Judged, QuerySpread, judge, spread
from orchestrator.publish.verdicts.significance import ANY, MIN_PAIRS, Spending, planned
from orchestrator.spec.layouts import Covers, TableSpec, VerdictSpec
from orchestrator.views.evidence import CellVerdictView, VerdictsView
from orchestrator.views.runs import CellSummary, Labels, QuerySource, QuerySums, SweepLook, SweepOutcomes, TrialOutcome
from orchestrator.views.states import TRIAL_ENDED, TrialState

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
        return 1 if self.covers == "queries" else MIN_PAIRS

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


Judgeable = tuple[int, str | None, str]
"""A cell, by what it is selected, and the result key of a metric."""
DEFAULT: Final[Labels] = {"regularizer": "none"}

_OBSTACLES: Final[Mapping[str, str]] = {"diverged": "diverged", "failed": "failed"}


@dataclass(frozen=True, slots=True)
class CellPair:
    """A cell beside its baseline by one metric."""

    column: Column
    cell: int
    baseline: int | None  # none: the sweep has no such cell
    evidence: Evidence
    stages: int = 0  # looks at these pairs that the record knows of, the present one too
    hours: float | None = None  # that one more seed of both takes


@dataclass(frozen=True, slots=True)
class JudgedBy:
    """What is judged, and by whose queries; none: by seeds alone."""

    spec: VerdictSpec
    queries: Queries | None


def baseline_labels(layout: TableSpec, outcomes: SweepOutcomes) -> Labels | None:
    """What the cells of a table are judged against; none where nothing is asked for and there is no default."""
    asked = (layout.verdicts and layout.verdicts.against) or layout.against
    if asked:
        return asked
    is_there = any(cell.labels.get("regularizer") == "none" for cell in outcomes.cells)
    return DEFAULT if is_there else None


def cell_pairs(
    table: Table, outcomes: SweepOutcomes, layout: TableSpec, looks: Sequence[SweepLook]
) -> dict[Judgeable, CellPair]:
    """Every comparison that the table declares, each once, whether or not there are runs of it.

    What they cover is the layout's `covers`.
    """
    wanted = baseline_labels(layout, outcomes)
    if wanted is None:
        return {}
    asked = layout.verdicts or VerdictSpec()
    baselines = Baselines(outcomes.cells, wanted)
    cells = {cell.index: cell for cell in outcomes.cells}
    places: dict[Judgeable, tuple[Column, int, int | None]] = {}
    for column, cell in _judged(table, asked):
        if cell.cell is None:
            continue
        labels = cells[cell.cell].labels
        if any(labels.get(axis) != label for axis, label in (asked.of or {}).items()):
            continue
        baseline = baselines.of(cells[cell.cell])
        if (baseline is None or baseline.index != cell.cell) and not wanted.items() <= labels.items():
            places[cell.cell, column.selection, column.key] = (
                column,
                cell.cell,
                None if baseline is None else baseline.index,
            )
    alone = {cell: only for cell, (only, *others) in _candidates(outcomes).items() if not others}
    summaries = (*table.summaries.values(), *table.tested.values())
    runs = runs_of(outcomes, {(one.cell, at) for one in summaries if (at := _chosen(one, alone)) is not None})
    said = ", ".join(f"{axis} {label}" for axis, label in wanted.items())
    queries = None if layout.covers == "seeds" else Queries(layout.covers, QueryEvidence(outcomes.queries))
    pairs = {}
    for place, (column, index, other) in places.items():
        if other is None:
            evidence = Evidence(obstacle=f"the sweep has no cell with {said} to compare it with")
            pairs[place] = CellPair(column, index, None, evidence)
        else:
            sides = [table.summary(column, one) for one in (index, other)]
            its_runs = [runs.get((one.cell, _chosen(one, alone) or 0), []) for one in sides]
            pairs[place] = _pair(column, sides, its_runs, JudgedBy(asked, queries), looks)
    return pairs


def _candidates(outcomes: SweepOutcomes) -> Mapping[int, list[int]]:
    found: dict[int, list[int]] = {}
    for one in outcomes.candidates:
        found.setdefault(one.cell, []).append(one.index)
    return found


def _chosen(summary: CellSummary, alone: Mapping[int, int]) -> int | None:
    """The candidate whose runs count: the selected one, or the only one that there is, before it is complete too."""
    return alone.get(summary.cell) if summary.candidate is None else summary.candidate


def _judged(table: Table, asked: VerdictSpec) -> Iterator[tuple[Column, TableCell]]:
    for panel in table.panels:
        for row in panel.rows:
            for column, cell in zip(panel.columns, row.cells, strict=True):
                plain = column.kind == "metric" and column.delta is None and column.better != "none"
                if plain and (not asked.metrics or column.name.rpartition(":")[2] in asked.metrics):
                    yield column, cell


def _pair(
    column: Column,
    sides: Sequence[CellSummary],
    runs: Sequence[Sequence[TrialOutcome]],
    wanted: JudgedBy,
    looks: Sequence[SweepLook],
) -> CellPair:
    own, base = sides
    asked = wanted.spec
    theirs = {frozenset(one.repeat_labels.items()): one for one in runs[1]}
    pairs = [(one, theirs[at]) for one in runs[0] if (at := frozenset(one.repeat_labels.items())) in theirs]
    valued = [
        pair
        for pair in pairs
        if all(math.isfinite(one.values.get(column.key, math.nan)) and not one.diverged for one in pair)
    ]
    edges = [one.position for one in looks if one.finished]
    staged = [bisect_right(edges, max(one.position for one in pair)) for pair in valued]
    least = MIN_PAIRS if wanted.queries is None else wanted.queries.least
    spending, obstacle = _spending(pairs, staged, least, asked, edges)
    growing = {own.status, base.status} & {"partial", "missing"}
    if growing and not obstacle and (not pairs or (asked.looks == "planned" and len(set(staged)) < 2)):
        obstacle = "not finished: its candidates are still to be chosen"
    evidence = Evidence(
        differences=[one.values[column.key] - other.values[column.key] for one, other in valued],
        spending=spending,
        sign=1 if column.better == "higher" else -1,
        margin=None if asked.margin is None else asked.margin / column.scale,
        obstacle=_status(own.status, "it") or _status(base.status, "the baseline") or obstacle,
    )
    if wanted.queries is not None:
        evidence = wanted.queries.beside(evidence, column, valued)
    return CellPair(column, own.cell, base.cell, evidence, len(set(staged)), _hours(runs))


def _status(status: str, who: str) -> str:
    return f"{who} {_OBSTACLES[status]}" if status in _OBSTACLES else ""


def _spending(
    pairs: Sequence[tuple[TrialOutcome, TrialOutcome]],
    staged: Sequence[int],
    least: int,
    asked: VerdictSpec,
    edges: Sequence[int],
) -> tuple[Spending, str]:
    """What may be spent, and why nothing can be said yet where a plan has not ended."""
    first = min((bisect_right(edges, max(one.position, other.position)) for one, other in pairs), default=0)
    plan = [pair for pair in pairs if bisect_right(edges, max(one.position for one in pair)) == first]
    # Trained before the sweep was submitted. What is reused later changes nothing: the first look has spent its share.
    known = any(one.reused and other.reused for one, other in plan)
    if asked.looks == "any" or known:
        return ANY, ""
    states = {one.state for pair in plan for one in pair}
    if not states <= TRIAL_ENDED:
        done = sum(all(one.state in TRIAL_ENDED for one in pair) for pair in plan)
        return ANY, f"not finished: {done} of {len(plan)} planned seeds"
    if TrialState.CANCELLED in states:
        return ANY, f"its plan of {len(plan)} seeds was cut short: {len(staged)} were trained"
    return planned(sum(one == first for one in staged), least), ""


def _hours(runs: Sequence[Sequence[TrialOutcome]]) -> float | None:
    """That one more seed takes, by what the runs of both took."""
    means = []
    for side in runs:
        seconds = [one.seconds for one in side if one.seconds]
        if not seconds:
            return None
        means.append(sum(seconds) / len(seconds))
    return sum(means) / 3600


SIGNS: Final[Mapping[Judged, str]] = {"better": "+", "worse": "−", "equivalent": "=", "unresolved": "?"}
_MOST_SEEDS: Final = "more seeds than anybody trains"
_MORE_QUERIES: Final = "more test queries than there are, whatever the seeds"
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
    """The comparisons of a table with their verdicts."""

    table: Table
    asked: VerdictSpec
    against: Labels
    pairs: Mapping[Judgeable, CellPair]
    verdicts: Mapping[Judgeable, CellVerdict]
    covers: Covers = "seeds"

    def shown(self, *, marks: bool) -> Table:
        """The table with a word in each judged cell, or a mark with a legend, and what its caption says of them."""
        if not self.pairs:
            return self.table
        panels = tuple(self._panel(panel, marks) for panel in self.table.panels)
        legend = self.table.legend
        if marks:
            words = {one.word for one in self.verdicts.values()}
            meanings = {word: self._meaning(word) for word in SIGNS if word in words}
            legend = (*legend, *(LegendEntry(SIGNS[word], said) for word, said in meanings.items()))
        caption = f"{self.table.caption} {self.said()}"
        if not marks and any(one.more for one in self.verdicts.values()):
            caption += " Unresolved (+k): about k more seeds would decide it four times of five."
        return replace(self.table, panels=panels, legend=legend, caption=caption)

    def view(self, labels: Mapping[int, Labels]) -> VerdictsView:
        """The verdicts by themselves; `labels` are those of the cells."""
        return VerdictsView(
            sweep=self.table.sweep, table=self.table.name, against=dict(self.against), level=self.asked.level,
            margin=self.asked.margin, looks=self.asked.looks, covers=self.covers, said=self.said(),
            comparisons=[self._view(place, labels) for place in self.pairs],
        )  # fmt: skip

    def said(self) -> str:
        """By what the verdicts are given: the test, the correction, the looks and what they spent."""
        if not self.pairs:
            return "Nothing is judged: no cell has a baseline."
        named = ", ".join(f"{axis} {label}" for axis, label in self.against.items())
        count = len(self.pairs)
        lead = f"Verdicts against {named}: {_TESTS[self.covers]}, "
        within = f"at most {self.asked.level:g} for a wrong one among {count} comparison{'s' * (count > 1)}"
        words = [f"{lead}{within} (Holm), {self._design()}."]
        if self.asked.margin is not None:
            words.append(f"Equivalent: surely closer than {self.asked.margin:g} in the unit of the column.")
        if self.covers != "seeds":
            words.append(_COVERED[self.covers])
        return " ".join(words)

    def _design(self) -> str:
        tested = [place for place, one in self.verdicts.items() if one.word != "untested"]
        if not tested:
            return "none of which can be tested yet"
        spent = self.asked.level * max(self.verdicts[place].spent for place in tested)
        looks = max(self.pairs[place].stages for place in tested)
        if self.covers == "queries" and looks > 1:
            return f"each of {looks} looks on record a test of its own, {spent:.2g} of it spent"
        if all(self.pairs[place].evidence.spending == ANY for place in tested):
            return f"group-sequential, valid after looks at any time, {spent:.2g} of it spent"
        if looks < 2:
            return f"fixed plan, one look, {spent:.2g} of it spent"
        return f"group-sequential since seeds were added after a look, {looks} looks on record, {spent:.2g} of it spent"

    def _meaning(self, word: Judged) -> str:
        if word == "unresolved":
            return "neither better nor worse nor equivalent so far"
        return f"{word} than the baseline" if word != "equivalent" else "equivalent to the baseline"

    def _panel(self, panel: Panel, marks: bool) -> Panel:
        def row(one: TableRow) -> TableRow:
            cells = (self._cell(*pair, marks) for pair in zip(panel.columns, one.cells, strict=True))
            return replace(one, cells=tuple(cells))

        return replace(panel, rows=tuple(row(one) for one in panel.rows))

    def _cell(self, column: Column, cell: TableCell, marks: bool) -> TableCell:
        plain = cell.cell is not None and column.kind == "metric" and column.delta is None
        place = (cell.cell or 0, column.selection, column.key)
        verdict = self.verdicts.get(place) if plain else None
        if verdict is None:
            return cell
        if marks:
            return replace(cell, judged=SIGNS.get(verdict.word, ""))
        return replace(cell, verdict=verdict, said=self._sentence(place))

    def _sentence(self, place: Judgeable) -> str:
        pair, verdict = self.pairs[place], self.verdicts[place]
        if verdict.word == "untested":
            return f"untested: {verdict.reason}"
        if verdict.word == "unresolved":
            return f"unresolved: {self._wanting(pair, verdict)}"
        return f"{verdict.word} ({_sample(verdict)}, p = {verdict.p or 0:.2g})"

    def _wanting(self, pair: CellPair, verdict: CellVerdict) -> str:
        if verdict.more is None:
            return _beyond(verdict)
        hours = "" if pair.hours is None else f", {_hours_text(verdict.more * pair.hours)}"
        return f"about {verdict.more} more seed{'s' * (verdict.more > 1)}{hours}"

    def _view(self, place: Judgeable, labels: Mapping[int, Labels]) -> CellVerdictView:
        pair, found = self.pairs[place], self.verdicts[place]
        queries = found.beside
        hours = None if found.more is None or pair.hours is None else found.more * pair.hours
        return CellVerdictView(
            cell=pair.cell, labels=dict(labels[pair.cell]), baseline=pair.baseline, metric=pair.column.key,
            title=pair.column.title, word=found.word, said=self._sentence(place), reason=found.reason,
            pairs=found.pairs, difference=found.difference, interval=list(found.interval) if found.interval else None,
            p=found.p, needs=found.needs, spent=found.spent, looks=pair.stages, more_seeds=found.more,
            more_hours=hours, covers=found.covers, queries=queries and queries.queries,
            classes=queries and queries.classes, error_seeds=queries and math.sqrt(queries.seeds),
            error_queries=queries and math.sqrt(queries.between),
        )  # fmt: skip


def judged(
    table: Table, outcomes: SweepOutcomes, looks: Sequence[SweepLook], covers: Covers | None = None
) -> JudgedTable:
    """The comparisons that the table's spec declares, with their verdicts; `looks` are its sweep's on record.

    With `covers` they cover that in place of what the table's spec says.
    """
    layout = parse(outcomes.spec, table.name)
    if covers is not None:
        layout = layout.model_copy(update={"covers": covers})
    asked = layout.verdicts or VerdictSpec()
    pairs = cell_pairs(table, outcomes, layout, looks)
    verdicts = judge({place: one.evidence for place, one in pairs.items()}, asked.level)
    return JudgedTable(table, asked, baseline_labels(layout, outcomes) or {}, pairs, verdicts, layout.covers)


def _sample(verdict: CellVerdict) -> str:
    """Of what it was judged."""
    seeds = f"{verdict.pairs} seed{'s' * (verdict.pairs != 1)}"
    found = verdict.beside
    return seeds if found is None else f"{seeds} x {found.queries:,} queries of {found.classes:,} classes"


def _beyond(verdict: CellVerdict) -> str:
    """Why no number of seeds would decide it."""
    prospect = verdict.prospect
    if verdict.covers == "queries":
        return _MORE_QUERIES
    if prospect is not None and prospect.floor and replace(prospect, floor=0.0).more() is not None:
        return _MORE_QUERIES
    return _MOST_SEEDS


def _hours_text(hours: float) -> str:
    return f"{hours:.2g} hours" if hours >= 0.1 else f"{max(1, round(hours * 60))} min"
