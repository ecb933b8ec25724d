"""The words around a table: what was averaged, what was selected by what, from how many, and what is missing."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

from orchestrator.publish.aggregate import by_cell
from orchestrator.publish.budget import budget
from orchestrator.publish.entries import PARTIAL_SIGN, Writer, mark_meaning
from orchestrator.publish.labels import Names, metric_title
from orchestrator.publish.layout import Placement, TableLayout
from orchestrator.publish.published import PublishedTable
from orchestrator.publish.selections import words
from orchestrator.publish.sheet import SETTLED, LegendEntry, Mark, Panel, TableCell
from orchestrator.trial import CellSummary, SweepOutcomes
from workers.contract import Select


@dataclass(frozen=True, slots=True)
class Facts:
    """What the words are made from."""

    outcomes: SweepOutcomes
    layout: TableLayout
    names: Names
    select: Select
    summaries: Mapping[int, CellSummary]
    panels: Sequence[Panel]
    block: frozenset[str] | None
    published: PublishedTable | None = None  # whose numbers the table holds in place of the sweep's

    def entries(self) -> Iterable[TableCell]:
        """Every place of the body."""
        return (cell for panel in self.panels for row in panel.rows for cell in row.cells)


def caption(facts: Facts, placement: Placement) -> str:
    """The spec's caption, or one made from the axes, followed by the facts that a reader needs to trust the numbers."""
    printed = facts.published.title if facts.published else ""
    lead = (facts.layout.caption or "").strip() or printed or _title(facts, placement)
    lead = lead if lead[-1] in ".!?" else lead + "."
    own = (_loud, _averaged, _splits, _units, _selected, _selections, _budget, _bold, _done)
    words = (say(facts) for say in ((_printed, _units, _bold) if facts.published else own))
    return " ".join((lead, *(one for one in words if one)))


def notes(facts: Facts) -> tuple[str, ...]:
    """Exceptions to what the caption says."""
    if facts.published:
        return (facts.published.note,) if facts.published.note else ()
    found = []
    dropped = [
        cell for cell, candidates in by_cell(facts.outcomes).items()
        if facts.summaries[cell].candidate is not None
        and any(one.status in {"failed", "diverged", "cancelled", "pruned"} for one in candidates)
    ]  # fmt: skip
    if dropped:
        where = _few([_cell_name(facts, cell) for cell in dropped])
        found.append(f"Some candidates did not finish ok in every repeat and were not eligible: {where}.")
    return tuple(found)


def legend(facts: Facts) -> tuple[LegendEntry, ...]:
    """The marks that occur, with their meaning; a paper's own words are left to it."""
    if facts.published:
        return ()
    found = {cell.mark for cell in facts.entries()}
    words = Writer.of(facts.layout, facts.outcomes.state).marks
    return tuple(
        LegendEntry(words.get(mark, PARTIAL_SIGN), mark_meaning(mark, facts.outcomes.state))
        for mark in get_args(Mark)
        if mark in found
    )


def _title(facts: Facts, placement: Placement) -> str:
    rows = " × ".join(facts.names.said(axis) for axis in placement.row_axes if facts.names.heads(axis))
    axes = placement.column_axes
    points = [" / ".join(facts.names.point(axes, one)) for one in placement.columns]
    where = f"on {_few(points)}" if any(points) else ""
    return ": ".join(one for one in (facts.outcomes.name, f"{rows} {where}".strip()) if one)


def _printed(facts: Facts) -> str:
    table = facts.published
    if table is None:
        return ""
    where = f"{table.id} ({table.citation})" if table.citation else table.id
    return f"The numbers are those printed in {where}; none is our own."


def _loud(facts: Facts) -> str:
    chosen = any(one.candidates > 1 for one in facts.summaries.values())
    if facts.select.split == "test":
        return "Selected on the TEST split, so the numbers are optimistic."
    if facts.select.split == "last" and chosen:
        return "Candidates selected on the TEST split, so the numbers are optimistic."
    return ""


def _averaged(facts: Facts) -> str:
    sizes = sorted({one.score.n for one in facts.summaries.values() if one.score})
    what = "mean ± standard deviation" if any(cell.std for cell in facts.entries()) else "mean"
    if sizes == [1]:
        return f"Test metrics of a single run ({_repeats(facts, 1)})."
    if len(sizes) > 1:
        return f"Test metrics, {what} over unequal numbers of repeats: {_unequal(facts, sizes)}."
    planned = len({one.repeat for one in facts.outcomes.trials})
    n = sizes[0] if sizes else planned
    return f"Test metrics, {what} over {_repeats(facts, n)}." if n else ""


def _repeats(facts: Facts, n: int) -> str:
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


def _unequal(facts: Facts, sizes: Sequence[int]) -> str:
    cells = {n: [one.cell for one in facts.summaries.values() if one.score and one.score.n == n] for n in sizes}
    most = max(sizes, key=lambda n: len(cells[n]))
    others = (f"n = {n} in {_few([_cell_name(facts, cell) for cell in cells[n]])}" for n in sizes if n != most)
    return "; ".join((f"n = {most} in {len(cells[most])} cells", *others))


def _splits(facts: Facts) -> str:
    """Which columns are not of test images."""
    columns = [c for panel in facts.panels for c in panel.columns if c.kind == "metric"]
    others = {c.title: c.key.split("/")[1] for c in columns if "/test/" not in c.key}
    found = {
        split: [title for title, one in others.items() if one == split] for split in dict.fromkeys(others.values())
    }
    words = {"train": "training images", "validation": "validation images"}
    return " ".join(f"{_and(titles)} of {words.get(split, split)}." for split, titles in found.items())


def _units(facts: Facts) -> str:
    titles = {c.title: c.unit for panel in facts.panels for c in panel.columns if c.kind == "metric"}
    percent = [title.removesuffix(" ↓") for title, unit in titles.items() if unit == "percent"]
    if not percent:
        return ""
    return "In percent." if len(percent) == len(titles) else f"{_and(percent)} in percent."


def _selected(facts: Facts) -> str:
    if facts.layout.selections == ("test",):
        return ""
    metric = metric_title(facts.select.metric, facts.names.parts)
    chosen = any(one.candidates > 1 for one in facts.summaries.values())
    if facts.select.split == "last":
        by = f"; each cell's candidate chosen by mean {metric} on the test split" if chosen else ""
        return f"Last checkpoint of each training{by}."
    what = "Best checkpoint of each training" + (" and best candidate of each cell" if chosen else "")
    return f"{what} chosen by {metric} on the {facts.select.split} split."


def _selections(facts: Facts) -> str:
    return words(facts.layout, metric_title(facts.select.metric, facts.names.parts))


def _budget(facts: Facts) -> str:
    cells = {cell.index: cell.labels for cell in facts.outcomes.cells}
    counts = {one.cell: one.candidates for one in facts.summaries.values()}
    filled = bool((facts.outcomes.spec.get("select") or {}).get("budget"))
    return budget(cells, counts, facts.names.label, filled=filled)


def _bold(facts: Facts) -> str:
    if facts.block is None or not any(cell.bold for cell in facts.entries()):
        return ""
    varied = {axis for cell in facts.outcomes.cells for axis in cell.labels}
    axes = [axis for axis in (*facts.layout.rows, *facts.layout.columns) if axis in facts.block and axis in varied]
    best = "best" if facts.published else "best mean"
    return f"Bold: {best} per {_and([_lower(facts.names.said(axis)) for axis in axes])}." if axes else f"Bold: {best}."


def _done(facts: Facts) -> str:
    total = len(facts.summaries)
    done = sum(one.status in SETTLED for one in facts.summaries.values())
    if not total:
        return f"No cells yet: the sweep is {facts.outcomes.state}."
    return "" if done == total else f"Incomplete: {done} of {total} cells are finished."


def _cell_name(facts: Facts, cell: int) -> str:
    labels = next(one.labels for one in facts.outcomes.cells if one.index == cell)
    return " / ".join(facts.names.label(axis, label) for axis, label in labels.items()) or "the only cell"


def _lower(title: str) -> str:
    """A title within a sentence: `Loss` -> loss, but `SEC weight` and `η` stay."""
    return title.lower() if title[:1].isupper() and title[1:].islower() else title


def _few(names: Sequence[str], most: int = 4) -> str:
    return _and(names) if len(names) <= most else f"{', '.join(names[:most])} and {len(names) - most} more"


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
