"""The words around a table: what was averaged, what was selected by what, from how many, and what is missing."""

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, get_args

from orchestrator.publish.aggregate import CandidateOutcome, direction, optimism
from orchestrator.publish.labels import Names, metric_entry, metric_title, metric_unit
from orchestrator.publish.papers import PublishedTable, held_recipe
from orchestrator.publish.tables.cells import PARTIAL_SIGN, EntryWriter, mark_meaning, usual_count
from orchestrator.publish.tables.layout import Placement, without_arrow, words
from orchestrator.publish.tables.table_data import MIXED_SIGN, SETTLED, Age, LegendEntry, Mark, Panel, TableCell
from orchestrator.publish.verdicts.significance import Comparison, meanings
from orchestrator.publish.verdicts.significance import words as tests
from orchestrator.spec.layouts import Spread, TableSpec
from orchestrator.views.runs import Cell, CellSummary, Labels, SweepOutcomes
from orchestrator.views.states import TrialState
from orchestrator.views.tables import DECIMALS, decimals_of, printed
from workers.catalog import Catalog, Change, changes, parse_metric
from workers.contract import Select


def budget(
    cells: Mapping[int, Labels], counts: Mapping[int, int], printed: Callable[[str, str], str], *, filled: bool = False
) -> str:
    """One sentence, by the axis that decides the budget where one does; "" when nothing was tuned.

    `cells` are the labels by cell, `counts` the candidates by cell, `printed` turns an axis and a label into text;
    `filled`: cells with fewer were filled up by learning rates.
    """
    sizes = sorted(set(counts.values()))
    if not sizes or sizes == [1]:
        return ""
    if len(sizes) == 1:
        how = ", with other learning rates where a cell had fewer" if filled else ""
        return f"Selection budget: {_candidates(sizes[0])} in every cell{how}."
    axes = dict.fromkeys(axis for labels in cells.values() for axis in labels)
    for axis in axes:
        by_label = _by_label(axis, cells, counts)
        if all(len(found) == 1 for found in by_label.values()):
            return f"Selection budget: {_listed(axis, {k: min(v) for k, v in by_label.items()}, printed)}."
    return f"Selection budget: {sizes[0]} to {_candidates(sizes[-1])} a cell."


def _by_label(axis: str, cells: Mapping[int, Labels], counts: Mapping[int, int]) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {}
    for cell, labels in cells.items():
        found.setdefault(labels.get(axis, ""), set()).add(counts[cell])
    return found


def _listed(axis: str, sizes: Mapping[str, int], printed: Callable[[str, str], str]) -> str:
    names: dict[int, list[str]] = {}
    for label, size in sizes.items():
        names.setdefault(size, []).append(printed(axis, label) if label else f"no {axis}")
    (first, found), *others = names.items()
    return "; ".join(
        (f"{_candidates(first)} for {', '.join(found)}", *(f"{n} for {', '.join(labels)}" for n, labels in others))
    )


def _candidates(n: int) -> str:
    return "1 candidate" if n == 1 else f"{n} candidates"


@dataclass(frozen=True, slots=True)
class TableFacts:
    """What the words are made from."""

    outcomes: SweepOutcomes
    layout: TableSpec
    names: Names
    select: Select
    summaries: Mapping[int, CellSummary]
    panels: Sequence[Panel]
    block: frozenset[str] | None
    candidates: Mapping[int, Sequence[CandidateOutcome]]  # by cell
    published: PublishedTable | None = None  # whose numbers the table holds in place of the sweep's
    aged: str = ""  # which numbers are of older versions

    def entries(self) -> Iterable[TableCell]:
        """Every place of the body."""
        return (cell for panel in self.panels for row in panel.rows for cell in row.cells)

    def comparisons(self) -> list[Comparison]:
        """Each comparison with a baseline once."""
        return list({id(one): one for cell in self.entries() if (one := cell.comparison)}.values())

    @property
    def baseline(self) -> str:
        """The cells that others are compared with, in words; "" where the layout asks for none."""
        found = (f"{lower(self.names.said(axis))} {self.names.label(axis, label)}"
                 for axis, label in (self.layout.against or {}).items())  # fmt: skip
        return ", ".join(found)

    def cell_name(self, cell: int) -> str:
        """A cell by its labels, in print."""
        labels = next(one.labels for one in self.outcomes.cells if one.index == cell)
        return " / ".join(self.names.label(axis, label) for axis, label in labels.items()) or "the only cell"


def lower(title: str) -> str:
    """A title within a sentence: `Loss` -> loss, but `SEC weight` and `η` stay."""
    return title.lower() if title[:1].isupper() and title[1:].islower() else title


def few(names: Sequence[str], most: int = 4) -> str:
    """Some names in a sentence, and how many more there are."""
    return listed(names) if len(names) <= most else f"{', '.join(names[:most])} and {len(names) - most} more"


def listed(names: Sequence[str]) -> str:
    """Names in a sentence: `a, b and c`."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


WORDS: Final[Mapping[Age, str]] = {"older": "numbers of older versions", "mixed": "numbers of several versions"}


@dataclass(frozen=True)
class Ages:
    """Of the cells of a sweep, or of several in one table."""

    cells: Mapping[int, Age] = field(default_factory=dict)  # those whose numbers are all of today's versions have none
    changed: tuple[str, ...] = ()  # what has other numbers today, such as `metric 'map' (version 1, now 2)`
    whole: bool = False  # whether every cell that has numbers has older ones alone

    def said(self, name: Callable[[int], str]) -> str:
        """One sentence, with the cells by `name`; "" where all is of today."""
        if not self.cells:
            return ""
        what = listed(self.changed)
        if self.whole:
            return f"Numbers of older versions: {what}."
        found = {age: [name(cell) for cell, one in self.cells.items() if one == age] for age in WORDS}
        where = "; ".join(f"{WORDS[age]} in {few(names)}" for age, names in found.items() if names)
        return f"Versions are MIXED, since numbers changed in {what}: {where}."


def ages(outcomes: SweepOutcomes, keys: Collection[str], catalog: Catalog) -> Ages:
    """What is said of results that are shown, or selected by, under some keys such as `best/test/recall@1`."""
    shown = {f"metric {parse_metric(key.rpartition('/')[2])[0]!r}" for key in keys}
    known: dict[str, tuple[Change, ...]] = {}
    outdated: defaultdict[int, set[bool]] = defaultdict(set)
    for trial in outcomes.trials:
        if trial.state is TrialState.FINISHED:
            if trial.stamp not in known:
                its = changes(trial.stamp, catalog)
                known[trial.stamp] = tuple(
                    one for one in its if one.what in shown or not one.what.startswith("metric ")
                )
            outdated[trial.cell].add(bool(known[trial.stamp]))
    if not any(known.values()):
        return Ages()
    aged: dict[int, Age] = {
        cell: "mixed" if False in old else "older" for cell, old in sorted(outdated.items()) if True in old
    }
    changed = tuple(sorted({str(one) for some in known.values() for one in some}))
    return Ages(aged, changed, all(aged.get(cell) == "older" for cell in outdated))


_SPREADS: Final[Mapping[Spread, str]] = {
    "std": " ± standard deviation",
    "se": " ± standard error",
    "ci95": " ± half the 95 % Student-t interval",
    "none": "",
}


def averaged(facts: TableFacts) -> str:
    """What each number is, over which runs."""
    sizes = sorted({n for one in facts.summaries.values() if (n := runs(one))})
    spread = _spread(facts.layout) if any(cell.std for cell in facts.entries()) else ""
    what = f"{facts.layout.center}{spread}"
    without = _unspread(facts)
    if sizes == [1]:
        covered = spread if facts.layout.covers == "queries" else ""
        return f"Test metrics of a single run ({_repeats(facts, 1)}){covered}.{without}"
    reproduced = _reproduced(facts)
    if len(sizes) > 1:
        over = reproduced or "unequal numbers of repeats"
        return f"Test metrics, {what} over {over}: {_unequal(facts, sizes)}.{without}"
    if reproduced:
        return f"Test metrics, {what} over {reproduced}.{without}"
    planned = len({one.repeat for one in facts.outcomes.trials})
    n = sizes[0] if sizes else planned
    return f"Test metrics, {what} over {_repeats(facts, n)}.{without}" if n else ""


def _unspread(facts: TableFacts) -> str:
    """Which numbers have no spread, since none covers queries, and why; "" where all have one."""
    why = dict.fromkeys(cell.unspread for cell in facts.entries() if cell.unspread)
    return f" No spread: {few(list(why), 2)}." if why else ""


def _spread(layout: TableSpec) -> str:
    """What stands after a number, and what it covers where that is not seeds alone."""
    if not layout.covers_queries:
        return _SPREADS[layout.shown_spread]
    what = "standard error" if layout.shown_spread == "se" else "half the 95 % Student-t interval"
    if layout.covers == "queries":
        return f" ± {what} over other test queries (clustered by class), of these trainings"
    return f" ± {what} over other seeds and other test queries (crossed, queries clustered by class)"


def runs(summary: CellSummary) -> int:
    """Over how many runs a cell is averaged: a reproduced winner has more than it was selected by."""
    least = summary.score.n if summary.score else 0
    return max((found.n for found in summary.metrics.values()), default=least)


def _reproduced(facts: TableFacts) -> str:
    """`the best trial + 10 reproductions`: the winner of a search, trained again; "" where none was."""
    asked = int((facts.outcomes.spec.get("search") or {}).get("reproduce") or 0)
    shown = [one for one in facts.summaries.values() if one.score] if asked else []
    # What candidates are compared by is what the search trained of each; one alone is compared by all that it has.
    first = [one.score.n for one in shown if one.score and one.candidates > 1]
    trials = min(first, default=max(1, max((runs(one) for one in shown), default=0) - asked))
    again = sorted({more for one in shown if (more := runs(one) - trials) > 0})
    if not again:
        return ""
    best = "the best trial" if trials == 1 else f"the best candidate's {trials} trials"
    most = f"{again[-1]} reproduction" + ("s" if again[-1] > 1 else "")
    return f"{best} + " + (most if len(again) == 1 else f"{again[0]} to {most}")


def _repeats(facts: TableFacts, n: int) -> str:
    """`3 seeds (0, 1, 2)`: the labels of the repeat axes, or the recipe's seed where nothing is repeated."""
    labels: dict[str, dict[str, None]] = {}
    for trial in facts.outcomes.trials:
        for axis, label in trial.repeat_labels.items():
            labels.setdefault(axis, {})[label] = None
    if not labels:
        recipe = facts.outcomes.spec.get("recipe") or {}
        return f"seed {recipe.get('seed', 0)}"
    noun = next(iter(labels)) if len(labels) == 1 else "repeat"
    values = "; ".join(", ".join(shown) for shown in labels.values())
    return f"{noun} {values}" if n == 1 else f"{n} {noun}s ({values})"


def _unequal(facts: TableFacts, sizes: Sequence[int]) -> str:
    cells = {n: [one.cell for one in facts.summaries.values() if runs(one) == n] for n in sizes}
    most = max(sizes, key=lambda n: len(cells[n]))
    others = (f"n = {n} in {few([facts.cell_name(cell) for cell in cells[n]])}" for n in sizes if n != most)
    return "; ".join((f"n = {most} in {len(cells[most])} cells", *others))


def _frozen(facts: TableFacts) -> str:
    """Which cells have a frozen backbone, and of which network the features are; "" where none has one."""
    spec = facts.outcomes.spec
    if not any(_network(backbone, facts) for backbone in _backbones(spec)):
        return ""
    found = {cell.index: _network(_of_cell(facts, cell), facts) for cell in facts.outcomes.cells}
    networks = [*dict.fromkeys(name for name in found.values() if name)]
    if not networks:
        return ""
    of = f"frozen: head and loss are trained on features of {listed(networks)}"
    if all(found.values()):
        return f"The backbone is {of}."
    return f"In {few([facts.cell_name(cell) for cell, name in found.items() if name])} the backbone is {of}."


def _network(backbone: Any, facts: TableFacts) -> str:
    """The network whose features a backbone takes, in print; "" where it takes images."""
    if not isinstance(backbone, Mapping):
        return ""
    entry = facts.names.parts.get("backbone", str(backbone.get("name")))
    if entry is None or entry.facts.get("reads") != "features":
        return ""
    of = backbone.get("of")
    if of is None:  # the sweeps of a comparison hold several, which its caption says
        return ""
    name = str(of.get("name") if isinstance(of, Mapping) else of)
    within = facts.names.parts.get("backbone", name)
    return within.label if within else name


def _backbones(spec: Mapping[str, Any]) -> Iterator[Any]:
    """All backbones that stand in a spec."""
    yield (spec.get("recipe") or {}).get("backbone")
    for role in ("compare", "tune"):
        for groups in (spec.get(role) or {}).values():
            yield from (choice["patch"].get("backbone") for group in groups for choice in group["choices"])
    yield from (rule["patch"].get("backbone") for rule in spec.get("rules") or ())


def _of_cell(facts: TableFacts, cell: Cell) -> Any:
    """The backbone of the candidate that a cell shows, or of the cell before anything is tuned where it shows none."""
    summary = facts.summaries.get(cell.index)
    return held_recipe(facts.outcomes.spec, cell.labels, summary.labels if summary else None).get("backbone")


_STOPPING: Final[Mapping[str, str]] = {
    "median": "the median rule",
    "hyperband": "Hyperband",
    "asha": "asynchronous successive halving",
    "wilcoxon": "a signed-rank test over the repeats",
}
"""The rules of early stopping in print."""


def caption(facts: TableFacts, placement: Placement) -> str:
    """The spec's caption, or one made from the axes, followed by the facts that a reader needs to trust the numbers.

    Printed numbers stand under the title of their own table: a spec's caption tells of its own trainings.
    """
    own_title = (facts.layout.caption or "").strip() or _title(facts, placement)
    lead = facts.published.title if facts.published else own_title
    lead = lead if lead[-1] in ".!?" else lead + "."
    own = (
        _aged, _loud, _frozen, averaged, _splits, _units, _rules, _tested, _selected, _selections,
        _optimistic, _stopped, _budget, _bold, _done,
    )  # fmt: skip
    said = (say(facts) for say in ((_printed, _units, _bold) if facts.published else own))
    words = (_everywhere(facts, placement), *said)
    return " ".join((lead, *(one for one in words if one)))


def notes(facts: TableFacts) -> tuple[str, ...]:
    """Exceptions to what the caption says."""
    if facts.published:
        return (facts.published.note,) if facts.published.note else ()
    exceptions = []
    dropped = [
        cell for cell, candidates in facts.candidates.items()
        if facts.summaries[cell].candidate is not None
        and any(one.status in {"failed", "diverged", "cancelled"} for one in candidates)
    ]  # fmt: skip
    if dropped:
        where = few([facts.cell_name(cell) for cell in dropped])
        exceptions.append(f"Some candidates did not finish ok in every repeat and were not eligible: {where}.")
    return (*exceptions, *_undefined(facts), *_mixed(facts))


def _mixed(facts: TableFacts) -> Iterator[str]:
    """Which cells average runs that differ in more than their repeats, and in what."""
    cells: dict[str, dict[int, None]] = {}
    for entry in facts.entries():
        if entry.mixed and entry.cell is not None:
            cells.setdefault(entry.mixed, {})[entry.cell] = None
    for how, found in cells.items():
        yield f"The runs of {few([facts.cell_name(cell) for cell in found])} differ in more than their seeds ({how})."


def _undefined(facts: TableFacts) -> Iterator[str]:
    """Which metrics have no value in which cells, though all was trained."""
    titles: dict[tuple[str, bool, tuple[int, ...]], list[str]] = {}
    for column in (one for panel in facts.panels for one in panel.columns if one.kind == "metric"):
        cells = tuple(cell for cell, summary in facts.summaries.items() if column.key in summary.undefined)
        if cells:
            titles.setdefault((column.split, column.over_queries, cells), []).append(without_arrow(column.title))
    for (split, queries, cells), found in titles.items():
        where = few([facts.cell_name(cell) for cell in cells])
        named = listed([*dict.fromkeys(found)])
        verb = "has" if len(dict.fromkeys(found)) == 1 else "have"
        images = _images(split) if split in {"train", "validation", "test"} else f"images of the {_images(split)}"
        why = f": no class has two {images}, so that there is no query" if queries else ""
        yield f"{named} {verb} no value in {where}{why}."
    selected = [cell for cell, summary in facts.summaries.items() if summary.candidate is None and summary.undefined]
    if selected:
        metric = metric_title(facts.select.metric, facts.names.parts)
        where = few([facts.cell_name(cell) for cell in selected])
        yield f"No candidate can be selected in {where}: {metric} has no value in any of them."


def legend(facts: TableFacts) -> tuple[LegendEntry, ...]:
    """The marks that occur, with their meaning; a paper's own words are left to it."""
    if facts.published:
        return ()
    occurring = {cell.mark for cell in facts.entries()}
    words = EntryWriter.of(facts.layout, facts.outcomes.state).marks
    marks = (
        LegendEntry(words.get(mark, PARTIAL_SIGN), mark_meaning(mark, facts.outcomes.state))
        for mark in get_args(Mark)
        if mark in occurring
    )
    signs = (LegendEntry(*one) for one in meanings(facts.comparisons(), facts.layout.test, facts.baseline))
    counts = []
    if any(cell.count for cell in facts.entries()):
        usual = "" if facts.layout.counts == "always" else f", not {usual_count(facts.panels)}"
        counts = [LegendEntry("(n)", f"of n runs{usual}")]
    mixed = []
    if any(cell.mixed for cell in facts.entries()):
        mixed = [LegendEntry(MIXED_SIGN, "runs with different data, code or versions of parts")]
    return (*marks, *signs, *mixed, *counts)


def _title(facts: TableFacts, placement: Placement) -> str:
    rows = " × ".join(facts.names.said(axis) for axis in placement.row_axes if facts.names.heads(axis))
    axes = placement.column_axes
    points = [" / ".join(facts.names.point(axes, one)) for one in placement.columns]
    where = f"on {few(points)}" if any(points) else ""
    if facts.layout.lead == "name":
        return ": ".join(one for one in (facts.outcomes.name, f"{rows} {where}".strip()) if one)
    titles = [without_arrow(c.title) for panel in facts.panels for c in panel.columns if c.kind == "metric"]
    by = [lower(facts.names.said(axis)) for axis in placement.row_axes if facts.names.heads(axis)]
    shown = f"{few([*dict.fromkeys(one for one in titles if one)] or ['Numbers'], 6)} {where}".strip()
    return (f"{shown}, by {listed(by)}" if by else shown) + f" ({facts.outcomes.name})"


def _everywhere(facts: TableFacts, placement: Placement) -> str:
    """What no heading says, since it would stand over all columns, and a caption of the spec's own may not either."""
    if facts.layout.groups == "always" or len(facts.panels) > 1 or not (facts.layout.caption or facts.published):
        return ""
    points = [facts.names.point(placement.column_axes, one) for one in placement.columns]
    alike = [texts[0] for texts in zip(*points, strict=True) if len(set(texts)) == 1 and texts[0]]
    return f"All on {' / '.join(alike)}." if alike else ""


def _printed(facts: TableFacts) -> str:
    table = facts.published
    if table is None:
        return ""
    where = f"{table.id} ({table.citation})" if table.citation else table.id
    return f"The numbers are those printed in {where}; none is our own."


def _aged(facts: TableFacts) -> str:
    return facts.aged


def _loud(facts: TableFacts) -> str:
    chosen = any(one.candidates > 1 for one in facts.summaries.values())
    said = []
    if facts.select.split == "test":
        said.append("Selected on the TEST split, so the numbers are optimistic.")
    elif facts.select.split == "last" and chosen:
        said.append("Candidates selected on the TEST split, so the numbers are optimistic.")
    if facts.layout.center == "best" and any(runs(one) > 1 for one in facts.summaries.values()):
        said.append("Each number is the BEST of several runs and not their mean, so it is optimistic.")
    return " ".join(said)


def _tested(facts: TableFacts) -> str:
    """What is compared with a baseline, and how."""
    axes = {*(facts.outcomes.spec.get("repeat") or {})}
    noun = "seed" if axes <= {"seed"} else "repeat"
    return tests(facts.comparisons(), facts.layout.test, facts.baseline, noun) if facts.baseline else ""


def _splits(facts: TableFacts) -> str:
    """Which columns are not of test images."""
    columns = [c for panel in facts.panels for c in panel.columns if c.kind == "metric"]
    others = {c.title: c.split for c in columns if "/test/" not in c.key}
    found = {
        split: [title for title, one in others.items() if one == split] for split in dict.fromkeys(others.values())
    }
    return " ".join(f"{listed(titles)} of {_images(split)}." for split, titles in found.items())


def _images(split: str) -> str:
    """What the images of a split are called."""
    whole = split.removesuffix("_separated")
    apart = "" if whole == split else " by each model of a training, averaged over its models"
    words = {"train": "training images", "validation": "validation images", "test": "test images"}
    return (words.get(whole) or f"test set {whole.removeprefix('test_')}") + apart


def _units(facts: TableFacts) -> str:
    titles = {c.title: c.unit for panel in facts.panels for c in panel.columns if c.kind == "metric"}
    percent = [without_arrow(title) for title, unit in titles.items() if unit == "percent"]
    if not percent:
        return ""
    return "In percent." if len(percent) == len(titles) else f"{listed(percent)} in percent."


def _rules(facts: TableFacts) -> str:
    """Which columns are of metrics that go by a rule that their title does not tell, in the words of the metrics."""
    found: dict[str, list[str]] = {}
    for column in (c for panel in facts.panels for c in panel.columns if c.kind == "metric"):
        entry = metric_entry(column.name.rpartition(":")[2], facts.names.parts)
        if entry and (words := entry.facts.get("caption")):
            found.setdefault(str(words), []).append(without_arrow(column.title))
    return " ".join(f"{listed([*dict.fromkeys(titles)])} {words}." for words, titles in found.items())


def _selected(facts: TableFacts) -> str:
    if facts.layout.selections == ["test"]:
        return ""
    metric = metric_title(facts.select.metric, facts.names.parts)
    chosen = any(one.candidates > 1 for one in facts.summaries.values())
    if facts.select.split == "last":
        by = f"; each cell's candidate chosen by mean {metric} on the test split" if chosen else ""
        return f"Last checkpoint of each training{by}."
    what = "Best checkpoint of each training" + (" and best candidate of each cell" if chosen else "")
    return f"{what} chosen by {metric} on the {facts.select.split} split."


def _optimistic(facts: TableFacts) -> str:
    """By how much the scores of the selected candidates look better than they are, over the cells."""
    if not facts.layout.optimism:
        return ""
    select, parts = facts.select, facts.names.parts
    cells = optimism(facts.outcomes, direction(select.metric, parts)).cells
    told = [one.optimism for one in cells if one.optimism is not None]
    metric = metric_title(select.metric, parts)
    split = "test" if select.split == "last" else select.split
    lead = f"How optimistic the selected candidates' {metric} on the {split} split is, by leaving each repeat out:"
    if not told:
        return f"{lead} unknown ({'; '.join(dict.fromkeys(one.reason for one in cells)) or 'no cells'})."
    unit = "number" if metric_unit(select.metric, parts) == "number" else facts.layout.unit
    decimals = facts.layout.decimals
    if decimals is None:
        decimals = DECIMALS if unit == "percent" else decimals_of(told, ())
    mean, low, high = (printed(one, unit, decimals, signed=True)
                       for one in (math.fsum(told) / len(told), min(told), max(told)))  # fmt: skip
    many = f"on the mean of {len(told)} cells, from {low} to {high}" if len(told) > 1 else "in one cell"
    left = f"; it is unknown in {len(cells) - len(told)}" if len(cells) > len(told) else ""
    return f"{lead} {mean} {many}{left}."


def _selections(facts: TableFacts) -> str:
    return words(facts.layout, metric_title(facts.select.metric, facts.names.parts))


def _stopped(facts: TableFacts) -> str:
    """By what candidates were stopped early, and how many were."""
    posted = facts.outcomes.spec.get("prune") or {}
    rule = posted.get("name")
    if rule is None:
        return ""
    statuses = [one.status for candidates in facts.candidates.values() for one in candidates]
    split = "validation" if facts.select.split == "validation" else "TEST"
    metric = metric_title(facts.select.metric, facts.names.parts)
    judged = f"judged by {metric} on the {split} split"
    count = f": {statuses.count('pruned')} of {len(statuses)}" if statuses else ""
    if rule == "race":
        error = f"the best one of a cell with probability {posted.get('level'):g} at most"
        return f"Candidates raced out by paired t-tests after each repeat, {error}, {judged}{count}."
    by = f"{_STOPPING.get(rule, rule)}, {judged}"
    return f"Hopeless candidates stopped early by {by}{count}."


def _budget(facts: TableFacts) -> str:
    cells = {cell.index: cell.labels for cell in facts.outcomes.cells}
    counts = {one.cell: one.candidates for one in facts.summaries.values()}
    filled = bool((facts.outcomes.spec.get("select") or {}).get("budget"))
    return budget(cells, counts, facts.names.label, filled=filled)


def _bold(facts: TableFacts) -> str:
    if facts.block is None or not any(cell.bold for cell in facts.entries()):
        return ""
    varied = {axis for cell in facts.outcomes.cells for axis in cell.labels}
    axes = [axis for axis in (*facts.layout.rows, *facts.layout.columns) if axis in facts.block and axis in varied]
    best = "best" if facts.published or facts.layout.center == "best" else f"best {facts.layout.center}"
    return f"Bold: {best} per {listed([lower(facts.names.said(axis)) for axis in axes])}." if axes else f"Bold: {best}."


def _done(facts: TableFacts) -> str:
    total = len(facts.summaries)
    done = sum(one.status in SETTLED for one in facts.summaries.values())
    if not total:
        return f"No cells yet: the sweep is {facts.outcomes.state}."
    return "" if done == total else f"Incomplete: {done} of {total} cells are finished."
