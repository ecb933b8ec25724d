"""The words around a table: what was averaged, what was selected by what, from how many, and what is missing."""

import math
from collections.abc import Iterator, Mapping
from typing import Final, get_args

from orchestrator.publish.labels import metric_entry, metric_title, metric_unit
from orchestrator.publish.optimism import optimism
from orchestrator.publish.select import direction
from orchestrator.publish.tables import frozen_backbones
from orchestrator.publish.tables.averaging import averaged, runs
from orchestrator.publish.tables.budget import budget
from orchestrator.publish.tables.column_titles import without_arrow
from orchestrator.publish.tables.entries import PARTIAL_SIGN, EntryWriter, mark_meaning
from orchestrator.publish.tables.facts import TableFacts, few, listed, lower
from orchestrator.publish.tables.layout import Placement
from orchestrator.publish.tables.runs import usual_count
from orchestrator.publish.tables.selections import words
from orchestrator.publish.tables.significance import meanings
from orchestrator.publish.tables.significance import words as tests
from orchestrator.publish.tables.table_data import MIXED_SIGN, SETTLED, LegendEntry, Mark
from orchestrator.views.printing import DECIMALS, decimals_of, printed

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
        _aged, _loud, frozen_backbones.words, averaged, _splits, _units, _rules, _tested, _selected, _selections,
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
        return f"{lead} cannot be told ({'; '.join(dict.fromkeys(one.reason for one in cells)) or 'no cells'})."
    unit = "number" if metric_unit(select.metric, parts) == "number" else facts.layout.unit
    decimals = facts.layout.decimals
    if decimals is None:
        decimals = DECIMALS if unit == "percent" else decimals_of(told, ())
    mean, low, high = (printed(one, unit, decimals, signed=True)
                       for one in (math.fsum(told) / len(told), min(told), max(told)))  # fmt: skip
    many = f"on the mean of {len(told)} cells, from {low} to {high}" if len(told) > 1 else "in one cell"
    left = f"; it cannot be told in {len(cells) - len(told)}" if len(cells) > len(told) else ""
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
