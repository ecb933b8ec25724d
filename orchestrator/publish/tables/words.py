"""Third pass of a table, words: the caption, the notes and the legend that stand with its printed cells.

The sentences that the captions of figures have too come last.
"""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, get_args

from orchestrator.publish.aggregate import Age, Ages
from orchestrator.publish.papers import recipe_of
from orchestrator.publish.tables.layout import SELECTION_GAP, TESTED
from orchestrator.publish.tables.other_rows import Body, imported_legend, imported_notes, paper_legend, paper_notes
from orchestrator.publish.tables.select import Selection
from orchestrator.publish.tables.table_data import (
    ARROWS,
    DOUBT_SIGN,
    MIXED_SIGN,
    PARTIAL_SIGN,
    PENDING,
    SETTLED,
    Column,
    LegendEntry,
    Mark,
    Table,
    Words,
    mark_meaning,
    places,
)
from orchestrator.publish.verdicts.significance import (
    LEVEL,
    meanings,
)
from orchestrator.publish.verdicts.significance import words as tests
from orchestrator.spec.layouts import Spread, TableSpec
from orchestrator.views.runs import Cell, CellSummary, Labels, SweepResults
from orchestrator.views.tables import DECIMALS, decimals_of, printed
from workers.catalog import counted
from workers.contract import Select

_SPREADS: Final[Mapping[Spread, str]] = {
    "std": " ± standard deviation",
    "se": " ± standard error",
    "ci95": " ± half the 95 % Student-t interval",
    "none": "",
}
_STOPPING: Final[Mapping[str, str]] = {
    "median": "the median rule",
    "hyperband": "Hyperband",
    "asha": "asynchronous successive halving",
    "wilcoxon": "a signed-rank test over the repeats",
}
"""The rules of early stopping in print."""


def words(body: Body) -> Table:
    """Adds to a table's printed cells the title, caption, notes, legend and details."""
    selected, names = body.selected, body.selected.names
    aged = aged_sentence(selected.ages, lambda cell: _cell_name(body.selected, cell))
    against = (selected.layout.against or {}).items()
    baseline = ", ".join(f"{lower(names.axis_name(axis))} {names.label(axis, label)}" for axis, label in against)
    caption = _caption(body, aged, baseline)
    notes = _some(*caption.notes, *imported_notes(body), *paper_notes(body))
    return Table(
        name=selected.name,
        sweep=selected.results.sweep,
        sweep_name=selected.results.name,
        state=selected.results.state,
        layout=selected.layout,
        stub=body.stub,
        panels=body.others.panels,
        words=replace(caption, notes=notes),
        legend=legend(body, baseline),
        summaries=selected.summaries,
        tested=selected.tested,
        numbers=selected.numbers,
        published=selected.paper,
        ages=selected.ages.cells,
        aged=aged,
    )


def _caption(body: Body, aged: str, baseline: str) -> Words:
    """The words on own numbers; printed numbers stand under the title of their own table."""
    selected, layout = body.selected, body.selected.layout
    paper = selected.printed
    title = paper.title if paper else (layout.caption or "").strip() or _title(body)
    title = title if title[-1] in ".!?" else title + "."
    everywhere, full = _everywhere(body), layout.caption_detail == "full"
    if paper:
        printed_by = (
            everywhere,
            f"The numbers are those printed in {paper.cited}; none is our own.",
            _units(body),
            _bold(body),
        )
        return Words(title, _some(*printed_by), notes=_some(paper.note), full=full)
    twice, flattered = _selected_twice(selected)
    sentences = (
        everywhere,
        _averaged(body),
        _selected(selected),
        twice,
        _bold(body),
        *_optimism_warnings(selected),
        *_splits(body),
        _units(body),
        aged,
        _done(selected),
    )
    notes = (
        _unspread(body),
        _frozen(selected),
        *_skipped(selected),
        _optimistic(selected),
        *_ineligible(selected),
        *_undefined(body),
        *_mixed(body),
    )
    details = (*_rules(body), _tested(body, baseline), flattered, _stopped(selected), _budget(selected))
    return Words(title, _some(*sentences), notes=_some(*notes), details=_some(*details), full=full)


def _some(*sentences: str) -> tuple[str, ...]:
    """The sentences that are not empty."""
    return tuple(one for one in sentences if one)


def _metrics(body: Body) -> list[Column]:
    """The columns of metrics."""
    return [column for panel in body.own for column in panel.columns if column.kind == "metric"]


def _cell_name(selected: Selection, cell: int) -> str:
    """A cell by its labels, in print."""
    labels = next(one.labels for one in selected.results.cells if one.index == cell)
    return " / ".join(selected.names.label(axis, label) for axis, label in labels.items()) or "the only cell"


def _cell_names(selected: Selection, cells: Iterable[int]) -> str:
    return few([_cell_name(selected, cell) for cell in cells])


def without_arrow(title: str) -> str:
    """A heading without its arrow for the better direction, for use in a sentence."""
    return title.removesuffix(ARROWS["lower"]).removesuffix(ARROWS["higher"])


def lower(title: str) -> str:
    """A title for use within a sentence: `Loss` -> loss, but `SEC weight` and `η` stay."""
    return title.lower() if title[:1].isupper() and title[1:].islower() else title


def _averaged(body: Body) -> str:
    """What each number is, over which runs."""
    sizes = sorted({n for one in body.selected.summaries.values() if (n := runs(one))})
    spread = _spread(body.selected.layout) if any(cell.std for _, _, _, cell in places(body.own)) else ""
    lead = "Test metrics in percent" if _all_in_percent(body) else "Test metrics"
    what = f"{body.selected.layout.center}{spread}"
    if sizes == [1]:
        covered = spread if body.selected.layout.covers == "queries" else ""
        return f"{lead} of a single run ({repeats(body.selected.results, 1)}){covered}."
    reproduced = _reproduced(body.selected)
    if len(sizes) > 1:
        over = reproduced or "unequal numbers of repeats"
        return f"{lead}, {what} over {over}: {_unequal(body.selected, sizes)}."
    if reproduced:
        return f"{lead}, {what} over {reproduced}."
    planned = len({one.repeat for one in body.selected.results.trials})
    n = sizes[0] if sizes else planned
    return f"{lead}, {what} over {repeats(body.selected.results, n)}." if n else ""


def _unspread(body: Body) -> str:
    """Why some numbers have no spread that covers queries; "" where all have a spread."""
    why = dict.fromkeys(cell.unspread for _, _, _, cell in places(body.own) if cell.unspread)
    return f"No spread: {few(list(why), 2)}." if why else ""


def _spread(layout: TableSpec) -> str:
    """What stands after a number, and what it covers where that is not seeds alone."""
    if not layout.covers_queries:
        return _SPREADS[layout.shown_spread]
    what = "standard error" if layout.shown_spread == "se" else "half the 95 % Student-t interval"
    if layout.covers == "queries":
        return f" ± {what} over other test queries (clustered by class), of these trainings"
    return f" ± {what} over other seeds and other test queries (crossed, queries clustered by class)"


def runs(summary: CellSummary) -> int:
    """The number of runs that a cell's numbers average, including reproductions of the winner."""
    least = summary.score.n if summary.score else 0
    return max((found.n for found in summary.metrics.values()), default=least)


def _reproduced(selected: Selection) -> str:
    """`the best trial + 10 reproductions`: the winner of a search, trained again; "" where none was."""
    reproduced = int((selected.results.spec.get("search") or {}).get("reproduce") or 0)
    shown = [one for one in selected.summaries.values() if one.score] if reproduced else []
    # Candidates are compared by the trials that the search trained of each; an only candidate by all its trials.
    first = [one.score.n for one in shown if one.score and one.candidates > 1]
    trials = min(first, default=max(1, max((runs(one) for one in shown), default=0) - reproduced))
    again = sorted({more for one in shown if (more := runs(one) - trials) > 0})
    if not again:
        return ""
    best = "the best trial" if trials == 1 else f"the best candidate's {trials} trials"
    most = f"{again[-1]} reproduction" + ("s" if again[-1] > 1 else "")
    return f"{best} + " + (most if len(again) == 1 else f"{again[0]} to {most}")


def _unequal(selected: Selection, sizes: Sequence[int]) -> str:
    cells = {n: [one.cell for one in selected.summaries.values() if runs(one) == n] for n in sizes}
    most = max(sizes, key=lambda n: len(cells[n]))
    others = (f"n = {n} in {_cell_names(selected, cells[n])}" for n in sizes if n != most)
    return "; ".join((f"n = {most} in {len(cells[most])} cells", *others))


def _frozen(selected: Selection) -> str:
    """Which cells have a frozen backbone, and of which network the features are; "" where no cell has."""
    spec = selected.results.spec
    if not any(_network(backbone, selected) for backbone in _backbones(spec)):
        return ""
    found = {cell.index: _network(_of_cell(selected, cell), selected) for cell in selected.results.cells}
    networks = [*dict.fromkeys(name for name in found.values() if name)]
    if not networks:
        return ""
    of = f"frozen: head and loss are trained on features of {listed(networks)}"
    if all(found.values()):
        return f"The backbone is {of}."
    return f"In {_cell_names(selected, (cell for cell, name in found.items() if name))} the backbone is {of}."


def _skipped(selected: Selection) -> Iterator[str]:
    """How many damaged images the trainings of which cells left out."""
    found: dict[int, dict[int, None]] = {}  # the cells by the number of images
    for (cell, _), runs in selected.runs.items():
        for origin in {run.origin for run in runs if '"skipped":' in run.origin}:
            if number := json.loads(origin).get("skipped"):
                found.setdefault(number, {})[cell] = None
    for number, cells in sorted(found.items()):
        where = "" if len(cells) == len(selected.results.cells) else f" in {_cell_names(selected, cells)}"
        yield f"{counted(number, 'damaged image')} {'was' if number == 1 else 'were'} left out{where}."


def _network(backbone: Any, selected: Selection) -> str:
    """The network whose features a backbone takes, in print; "" where it takes images."""
    if not isinstance(backbone, Mapping):
        return ""
    entry = selected.names.parts.get("backbone", str(backbone.get("name")))
    if entry is None or entry.facts.get("reads") != "features":
        return ""
    of = backbone.get("of")
    if of is None:  # the sweeps of a comparison hold several, which its caption says
        return ""
    name = str(of.get("name") if isinstance(of, Mapping) else of)
    within = selected.names.parts.get("backbone", name)
    return within.label if within else name


def _backbones(spec: Mapping[str, Any]) -> Iterator[Any]:
    """All backbones that stand in a spec."""
    yield (spec.get("recipe") or {}).get("backbone")
    for role in ("compare", "tune"):
        for groups in (spec.get(role) or {}).values():
            yield from (choice["patch"].get("backbone") for group in groups for choice in group["choices"])
    yield from (rule["patch"].get("backbone") for rule in spec.get("rules") or ())


def _of_cell(selected: Selection, cell: Cell) -> Any:
    """The backbone of the candidate that a cell shows; where it shows no candidate, of the cell before tuning."""
    summary = selected.summaries.get(cell.index)
    return recipe_of(selected.results.spec, cell.labels, summary.labels if summary else None).get("backbone")


def _ineligible(selected: Selection) -> Iterator[str]:
    """Where candidates that did not finish could not be selected."""
    dropped = [
        cell for cell, candidates in selected.candidates.items()
        if selected.summaries[cell].candidate is not None
        and any(one.status in {"failed", "diverged", "cancelled"} for one in candidates)
    ]  # fmt: skip
    if dropped:
        where = _cell_names(selected, dropped)
        yield f"Some candidates did not finish ok in every repeat and were not eligible: {where}."


def _mixed(body: Body) -> Iterator[str]:
    """Which cells average runs that differ in more than their repeats, and in what."""
    cells: dict[str, dict[int, None]] = {}
    for _, _, _, entry in places(body.own):
        if entry.mixed and entry.cell is not None:
            cells.setdefault(entry.mixed, {})[entry.cell] = None
    for how, found in cells.items():
        yield f"The runs of {_cell_names(body.selected, found)} differ in more than their seeds ({how})."


def _undefined(body: Body) -> Iterator[str]:
    """Which metrics have no value in which cells, though all was trained."""
    summaries = body.selected.summaries
    titles: dict[tuple[str, bool, tuple[int, ...]], list[str]] = {}
    for column in _metrics(body):
        cells = tuple(cell for cell, summary in summaries.items() if column.key in summary.undefined)
        if cells:
            titles.setdefault((column.split, column.over_queries, cells), []).append(without_arrow(column.title))
    for (split, queries, cells), found in titles.items():
        where = _cell_names(body.selected, cells)
        named = listed([*dict.fromkeys(found)])
        verb = "has" if len(dict.fromkeys(found)) == 1 else "have"
        images = _images(split) if split in {"train", "validation", "test"} else f"images of the {_images(split)}"
        why = f": no class has two {images}, so that there is no query" if queries else ""
        yield f"{named} {verb} no value in {where}{why}."
    if none := [cell for cell, one in summaries.items() if one.candidate is None and one.undefined]:
        metric = body.selected.metric.title
        where = _cell_names(body.selected, none)
        yield f"No candidate can be selected in {where}: {metric} has no value in any of them."


def _title(body: Body) -> str:
    layout, name, rows = body.selected.layout, body.selected.results.name, body.rows
    points = [" / ".join(texts) for texts in body.points]
    where = f"on {few(points)}" if any(points) else ""
    if layout.lead == "name":
        return ": ".join(one for one in (name, f"{' × '.join(rows)} {where}".strip()) if one)
    titles = dict.fromkeys(title for column in _metrics(body) if (title := without_arrow(column.title)))
    shown = f"{few([*titles] or ['Numbers'], 6)} {where}".strip()
    return (f"{shown}, by {listed([lower(one) for one in rows])}" if rows else shown) + f" ({name})"


def _everywhere(body: Body) -> str:
    """What no heading says, since it would stand over all columns, and the spec's caption may not say."""
    selected = body.selected
    headed = selected.layout.groups == "always" or len(body.own) > 1
    if headed or not (selected.layout.caption or selected.printed):
        return ""
    alike = [texts[0] for texts in zip(*body.points, strict=True) if len(set(texts)) == 1 and texts[0]]
    return f"All on {' / '.join(alike)}." if alike else ""


def _optimism_warnings(selected: Selection) -> Iterator[str]:
    """Why the numbers are better than a new run would give."""
    yield test_split_warning(selected.rule, competing=any(one.candidates > 1 for one in selected.summaries.values()))
    if selected.layout.center == "best" and any(runs(one) > 1 for one in selected.summaries.values()):
        yield "Each number is the BEST of several runs and not their mean, so it is optimistic."


def _tested(body: Body, baseline: str) -> str:
    """What is compared with a baseline, and how; "" where the layout asks for no comparison."""
    noun = "seed" if {*(body.selected.results.spec.get("repeat") or {})} <= {"seed"} else "repeat"
    return tests(body.comparisons, body.selected.layout.test, baseline, noun) if baseline else ""


def _selected_twice(selected: Selection) -> tuple[str, str]:
    """What a caption says of the columns that are selected on the test split, and of their difference."""
    metric, layout = selected.metric.title, selected.layout
    if "test" not in layout.selections:
        return "", ""
    if "validation" not in layout.selections:
        return f"Best checkpoint and candidate chosen by {metric} on the TEST split, so the numbers are optimistic.", ""
    sentence = f"Under “{TESTED}” both are chosen by {metric} on the TEST split, so these numbers are optimistic."
    if not layout.selection_gap:
        return sentence, ""
    return (
        sentence,
        f"“{SELECTION_GAP}” is how much that flatters; both come from the same trainings on the same classes.",
    )


def _splits(body: Body) -> Iterator[str]:
    """Which columns are not of test images."""
    titles: dict[str, dict[str, None]] = {}
    for title, split in {one.title: one.split for one in _metrics(body) if "/test/" not in one.key}.items():
        titles.setdefault(split, {})[title] = None
    return (f"{listed([*found])} of {_images(split)}." for split, found in titles.items())


def _images(split: str) -> str:
    """What the images of a split are called."""
    whole = split.removesuffix("_separated")
    apart = "" if whole == split else " by each model of a training, averaged over its models"
    words = {"train": "training images", "validation": "validation images", "test": "test images"}
    return (words.get(whole) or f"test set {whole.removeprefix('test_')}") + apart


def _all_in_percent(body: Body) -> bool:
    return {one.unit for one in _metrics(body)} == {"percent"}


def _units(body: Body) -> str:
    """Which metrics are in percent, where the caption does not say that of all."""
    if _all_in_percent(body):
        return "In percent." if body.selected.printed else ""
    units = {one.title: one.unit for one in _metrics(body)}
    percent = [without_arrow(title) for title, unit in units.items() if unit == "percent"]
    return f"{listed(percent)} in percent." if percent else ""


def _rules(body: Body) -> Iterator[str]:
    """Which columns are of metrics whose title does not tell their rule, in the words of the metrics."""
    titles: dict[str, dict[str, None]] = {}
    for column in _metrics(body):
        if column.rule:
            titles.setdefault(column.rule, {})[without_arrow(column.title)] = None
    return (f"{listed([*found])} {rule}." for rule, found in titles.items())


def _selected(selected: Selection) -> str:
    if selected.layout.selections == ["test"]:
        return ""
    competing = any(one.candidates > 1 for one in selected.summaries.values())
    return chosen_by(selected.rule, selected.metric.title, "cell", competing=competing)


def _optimistic(selected: Selection) -> str:
    """By how much the scores of the selected candidates look better than they are, over the cells."""
    if not selected.layout.optimism:
        return ""
    cells, metric = selected.optimism, selected.metric.title
    known = [one.optimism for one in cells if one.optimism is not None]
    split = "test" if selected.rule.split == "last" else selected.rule.split
    lead = f"How optimistic the selected candidates' {metric} on the {split} split is, by leaving each repeat out:"
    if not known:
        return f"{lead} unknown ({'; '.join(dict.fromkeys(one.reason for one in cells)) or 'no cells'})."
    unit = "number" if selected.metric.unit == "number" else selected.layout.unit
    decimals = selected.layout.decimals
    if decimals is None:
        decimals = DECIMALS if unit == "percent" else decimals_of(known, ())
    mean, low, high = (printed(one, unit, decimals, signed=True)
                       for one in (math.fsum(known) / len(known), min(known), max(known)))  # fmt: skip
    many = f"on the mean of {len(known)} cells, from {low} to {high}" if len(known) > 1 else "in one cell"
    left = f"; it is unknown in {len(cells) - len(known)}" if len(cells) > len(known) else ""
    return f"{lead} {mean} {many}{left}."


def _stopped(selected: Selection) -> str:
    """By what candidates were stopped early, and how many were."""
    posted = selected.results.spec.get("prune") or {}
    rule = posted.get("name")
    if rule is None:
        return ""
    statuses = [one.status for candidates in selected.candidates.values() for one in candidates]
    split = "validation" if selected.rule.split == "validation" else "TEST"
    metric = selected.metric.title
    judged = f"judged by {metric} on the {split} split"
    count = f": {statuses.count('pruned')} of {len(statuses)}" if statuses else ""
    if rule == "race":
        error = f"the best one of a cell with probability {posted.get('level'):g} at most"
        return f"Candidates raced out by paired t-tests after each repeat, {error}, {judged}{count}."
    by = f"{_STOPPING.get(rule, rule)}, {judged}"
    return f"Hopeless candidates stopped early by {by}{count}."


def _budget(selected: Selection) -> str:
    cells = {cell.index: cell.labels for cell in selected.results.cells}
    counts = {one.cell: one.candidates for one in selected.summaries.values()}
    filled = bool((selected.results.spec.get("select") or {}).get("budget"))
    return budget(cells, counts, selected.names.label, filled=filled)


def _bold(body: Body) -> str:
    if body.block is None or not any(cell.bold for _, _, _, cell in places(body.own)):
        return ""
    selected, layout = body.selected, body.selected.layout
    varied = {axis for cell in selected.results.cells for axis in cell.labels}
    axes = [axis for axis in (*layout.rows, *layout.columns) if axis in body.block and axis in varied]
    best = "best" if selected.printed or layout.center == "best" else f"best {layout.center}"
    return (
        f"Bold: {best} per {listed([lower(selected.names.axis_name(axis)) for axis in axes])}."
        if axes
        else f"Bold: {best}."
    )


def _done(selected: Selection) -> str:
    total = len(selected.summaries)
    done = sum(one.status in SETTLED for one in selected.summaries.values())
    if not total:
        return f"No cells yet: the sweep is {selected.results.state}."
    return "" if done == total else f"Incomplete: {done} of {total} cells are finished."


# Legend


_DOUBT: Final = (
    "bold, but its lead over the next best may be noise: a two-sided paired t-test over the runs that both have, "
    f"Holm-corrected over the table, does not tell them apart at the level {LEVEL} (point at the number for the words)"
)


def legend(body: Body, baseline: str) -> tuple[LegendEntry, ...]:
    """The legend of a table: the marks that occur in it, with meanings; `baseline` describes the baseline cells."""
    own = list(_own_legend(body, baseline))
    known = {one.symbol for one in own}
    return (*own, *(one for one in (*imported_legend(body), *paper_legend(body)) if one.symbol not in known))


def _own_legend(body: Body, baseline: str) -> Iterator[LegendEntry]:
    """The marks of own numbers that occur, with their meaning; a paper's own words are left to it."""
    selected, cells = body.selected, [cell for _, _, _, cell in places(body.own)]
    if not selected.printed:
        occurring = {cell.mark for cell in cells}
        signs: Mapping[Mark, str] = {
            "pending": PENDING, "partial": PARTIAL_SIGN, "failed": "failed", "diverged": selected.layout.diverged
        }  # fmt: skip
        for mark in (one for one in get_args(Mark) if one in occurring):
            yield LegendEntry(signs[mark], mark_meaning(mark, selected.results.state))
        if body.comparisons:
            marks = meanings(body.comparisons, selected.layout.test, baseline)
            yield from (LegendEntry(sign, meaning) for sign, meaning in marks)
        if any(cell.mixed for cell in cells):
            yield LegendEntry(MIXED_SIGN, "runs with different data, code or versions of parts")
        if any(cell.count for cell in cells):
            usual = "" if selected.layout.counts == "always" else f", not {body.usual}"
            yield LegendEntry("(n)", f"of n runs{usual}")
    if any(cell.doubt for cell in cells):
        yield LegendEntry(DOUBT_SIGN, _DOUBT)


# Captions of tables and figures


def test_split_warning(rule: Select, *, competing: bool) -> str:
    """The warning that numbers were selected on the test split; "" if they were not."""
    if rule.split == "test":
        return "Selected on the TEST split, so the numbers are optimistic."
    if rule.split == "last" and competing:
        return "Candidates selected on the TEST split, so the numbers are optimistic."
    return ""


def chosen_by(rule: Select, metric: str, place: str, *, competing: bool) -> str:
    """A sentence on how checkpoints and competing candidates were selected; `place` is "cell" or "point"."""
    if rule.split == "last":
        by = f"; each {place}'s candidate chosen by mean {metric} on the test split" if competing else ""
        return f"Last checkpoint of each training{by}."
    what = "Best checkpoint of each training" + (f" and best candidate of each {place}" if competing else "")
    return f"{what} chosen by {metric} on the {rule.split} split."


_AGES: Final[Mapping[Age, str]] = {"older": "numbers of older versions", "mixed": "numbers of several versions"}


def aged_sentence(ages: Ages, name: Callable[[int], str]) -> str:
    """A sentence that lists cells with numbers of outdated versions; "" if no cell has any."""
    if not ages.cells:
        return ""
    what = listed(ages.changed)
    if ages.whole:
        return f"Numbers of older versions: {what}."
    found = {age: [name(cell) for cell, one in ages.cells.items() if one == age] for age in _AGES}
    where = "; ".join(f"{_AGES[age]} in {few(names)}" for age, names in found.items() if names)
    return f"Versions are MIXED, since numbers changed in {what}: {where}."


def budget(
    cells: Mapping[int, Labels], counts: Mapping[int, int], printed: Callable[[str, str], str], *, filled: bool = False
) -> str:
    """A sentence on how many candidates each cell has, by the axis that decides on it; "" if nothing was tuned.

    `cells` are the labels by cell, `counts` the candidates by cell, `printed` turns an axis and a label into text;
    `filled`: cells with fewer were filled up by learning rates.
    """
    sizes = sorted(set(counts.values()))
    if not sizes or sizes == [1]:
        return ""
    if len(sizes) == 1:
        how = ", with other learning rates where a cell had fewer" if filled else ""
        return f"Selection budget: {_candidates(sizes[0])} in every cell{how}."
    for axis in dict.fromkeys(axis for labels in cells.values() for axis in labels):
        by_label: dict[str, set[int]] = {}
        for cell, labels in cells.items():
            by_label.setdefault(labels.get(axis, ""), set()).add(counts[cell])
        if all(len(found) == 1 for found in by_label.values()):
            named: dict[int, list[str]] = {}
            for label, (size,) in by_label.items():
                named.setdefault(size, []).append(printed(axis, label) if label else f"no {axis}")
            (first, some), *others = named.items()
            more = "".join(f"; {size} for {', '.join(names)}" for size, names in others)
            return f"Selection budget: {_candidates(first)} for {', '.join(some)}{more}."
    return f"Selection budget: {sizes[0]} to {_candidates(sizes[-1])} a cell."


def _candidates(n: int) -> str:
    return "1 candidate" if n == 1 else f"{n} candidates"


def repeats(results: SweepResults, n: int | str) -> str:
    """The number `n` of runs in words, with the labels of the repeat axes: `3 seeds (0, 1, 2)`."""
    if not any(trial.repeat_labels for trial in results.trials):
        n = 1
    labels = repeat_labels(results)
    noun = next(iter(labels)) if len(labels) == 1 else "repeat"
    values = "; ".join(", ".join(shown) for shown in labels.values())
    return f"{noun} {values}" if n == 1 else f"{n} {noun}s ({values})"


def repeat_labels(results: SweepResults) -> dict[str, dict[str, None]]:
    """The labels of each repeat axis in order, or the recipe's seed if nothing is repeated."""
    labels: dict[str, dict[str, None]] = {}
    for trial in results.trials:
        for axis, label in trial.repeat_labels.items():
            labels.setdefault(axis, {})[label] = None
    return labels or {"seed": {str((results.spec.get("recipe") or {}).get("seed", 0)): None}}


def few(names: Sequence[str], most: int = 4) -> str:
    """The first few names in a sentence, and the number of further names."""
    return listed(names) if len(names) <= most else f"{', '.join(names[:most])} and {len(names) - most} more"


def listed(names: Sequence[str]) -> str:
    """Joins names for a sentence: `a, b and c`."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
