"""A table whose cells know whether they are better than their baselines, and what it says of that."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from orchestrator.publish.tables.evidence import CellPair, Judgeable, baseline_labels, cell_pairs
from orchestrator.publish.tables.layout import parse
from orchestrator.publish.tables.table_data import Column, LegendEntry, Panel, Table, TableCell, TableRow
from orchestrator.publish.verdicts.boundary import ANY
from orchestrator.publish.verdicts.judgement import CellVerdict, Judged, judge
from orchestrator.spec.table import Covers, VerdictSpec
from orchestrator.views.extension import SweepLook
from orchestrator.views.outcomes import SweepOutcomes
from orchestrator.views.planned import Labels
from orchestrator.views.verdicts import CellVerdictView, VerdictsView

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
        hours = "" if pair.hours is None else f", {_hours(verdict.more * pair.hours)}"
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


def _hours(hours: float) -> str:
    return f"{hours:.2g} hours" if hours >= 0.1 else f"{max(1, round(hours * 60))} min"
