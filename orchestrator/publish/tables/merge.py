"""Several sweeps as one: their cells matched by labels, and the words that say which sweep a number is from."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from orchestrator.publish.labels import Names
from orchestrator.publish.select import selection
from orchestrator.publish.tables.disagreement import disagreement
from orchestrator.publish.tables.layout import fixed_label, parse, place
from orchestrator.publish.tables.table import build
from orchestrator.publish.tables.table_data import Origin, Table
from orchestrator.spec.recipe import shared
from orchestrator.views.errors import ConflictError
from orchestrator.views.lifecycle import SWEEP_ENDED
from orchestrator.views.outcomes import SweepOutcomes, TrialOutcome
from orchestrator.views.planned import Candidate, Cell, Labels
from workers.catalog import Catalog
from workers.contract import Select

MOST: Final = 10
"""Sweeps that one table is made of."""
_MOST_NAMED: Final = 12

_Key = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Merged:
    """One sweep made of several."""

    outcomes: SweepOutcomes
    origins: Mapping[int, Origin]  # by cell
    held: Mapping[int, Mapping[int, int]]  # by cell, by sweep: the number of that cell in each sweep that has it
    axes: Sequence[str]  # whose labels tell its cells apart


def table(several: Sequence[SweepOutcomes], name: str, catalog: Catalog) -> Table:
    """The table `name` of the first sweep's spec with the cells of all of them.

    Where several have a cell the first named one's numbers stand, and the caption says so. ConflictError where they
    select by different metrics or splits, NotFoundError where the first has no such table.
    """
    check(several)
    rules = {one.sweep: selection(one.spec) for one in several}
    if len({(one.metric, one.split) for one in rules.values()}) > 1:
        said = "; ".join(f"sweep {sweep} by {one.metric} on {one.split}" for sweep, one in rules.items())
        raise ConflictError(
            f"the sweeps select differently ({said}), so that their numbers do not compare in one table"
        )
    merged = merge(several, name, [one.sweep for one in several])
    built = build(merged.outcomes, name, catalog)
    names = Names(catalog, parse(merged.outcomes.spec, name).labels, parse(merged.outcomes.spec, name).titles)
    words = (*_sources(several, merged, name, names), *_clashes(several, merged), disagreement(several, merged.axes))
    return replace(built, caption=" ".join(one for one in (built.caption, *words) if one), origins=merged.origins)


def check(several: Sequence[SweepOutcomes]) -> None:
    """Raise ConflictError unless these are a few different sweeps."""
    ids = [one.sweep for one in several]
    if not 2 <= len(ids) <= MOST or len(set(ids)) != len(ids):
        raise ConflictError(
            f"a comparison needs 2 to {MOST} different sweeps, not {', '.join(map(str, ids)) or 'none'}"
        )


def merge(several: Sequence[SweepOutcomes], name: str, preferred: Sequence[int]) -> Merged:
    """The cells of all sweeps in the order of their first occurrence, each from the first of `preferred` that has it.

    The layout of the table `name`, and what is selected by, are those of the first of `several`.
    """
    first = several[0]
    layout = parse(first.spec, name)
    axes = _axes(several, (*layout.rows, *layout.columns))
    places: dict[_Key, dict[int, int]] = {}
    for source in several:
        for cell in source.cells:
            key = tuple(_labels(source, cell, axes).items())
            places.setdefault(key, {})[source.sweep] = cell.index
    by_sweep = {one.sweep: one for one in several}
    cells, origins = [], {}
    for number, (key, held) in enumerate(places.items()):
        chosen = next(sweep for sweep in preferred if sweep in held)
        cells.append(Cell(number, dict(key)))
        origins[number] = Origin(chosen, held[chosen])
    numbers = {origin: number for number, origin in origins.items()}
    varied = {role: _together(several, role) for role in ("compare", "tune", "repeat")}
    unended = (one.state for one in several if one.state not in SWEEP_ENDED)
    outcomes = SweepOutcomes(
        sweep=first.sweep,
        name=" + ".join(f"{one.name} #{one.sweep}" for one in several),
        state=next(unended, first.state),
        spec={**first.spec, "recipe": shared([one.spec.get("recipe") or {} for one in several]), **varied},
        cells=tuple(cells),
        candidates=tuple(one for sweep in by_sweep.values() for one in _candidates(sweep, numbers)),
        trials=tuple(one for sweep in by_sweep.values() for one in _trials(sweep, numbers)),
        queries=first.queries,
    )
    return Merged(outcomes, origins, dict(enumerate(places.values())), axes)


def rule_of(select: Select) -> str:
    """What is selected by, in words."""
    return f"{select.metric} on {select.split}"


def few(found: Sequence[str], between: str = " | ") -> str:
    """The first of some texts, and how many more there are."""
    more = [f"{len(found) - _MOST_NAMED} more"] if len(found) > _MOST_NAMED else []
    return between.join([*found[:_MOST_NAMED], *more])


def _axes(several: Sequence[SweepOutcomes], named: Sequence[str]) -> list[str]:
    """The axes that tell cells apart: those that a sweep compares, and those of the layout that are fixed otherwise."""
    compared = list(dict.fromkeys(axis for one in several for cell in one.cells for axis in cell.labels))
    fixed = [axis for axis in named if len({fixed_label(one.spec, axis) for one in several}) > 1]
    return list(dict.fromkeys((*compared, *fixed)))


def _labels(outcomes: SweepOutcomes, cell: Cell, axes: Sequence[str]) -> Labels:
    """The labels of a cell over all axes: one that its sweep does not compare has the value of the base recipe."""
    varied = outcomes.spec.get("compare") or {}
    found = {axis: cell.labels.get(axis, "" if axis in varied else fixed_label(outcomes.spec, axis)) for axis in axes}
    return {axis: label for axis, label in found.items() if label}


def _together(several: Sequence[SweepOutcomes], role: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for one in reversed(several):
        found = {**found, **(one.spec.get(role) or {})}
    return found


def _candidates(outcomes: SweepOutcomes, numbers: Mapping[Origin, int]) -> Iterator[Candidate]:
    for one in outcomes.candidates:
        number = numbers.get(Origin(outcomes.sweep, one.cell))
        if number is not None:
            yield replace(one, cell=number)


def _trials(outcomes: SweepOutcomes, numbers: Mapping[Origin, int]) -> Iterator[TrialOutcome]:
    for one in outcomes.trials:
        number = numbers.get(Origin(outcomes.sweep, one.cell))
        if number is not None:
            yield replace(one, cell=number)


def _sources(several: Sequence[SweepOutcomes], merged: Merged, name: str, names: Names) -> Iterator[str]:
    """Which rows are from which sweep, else which columns, else which cells."""
    placed = place(merged.outcomes, parse(merged.outcomes.spec, name))
    for what, axes, side in (("rows", placed.row_axes, 0), ("columns", placed.column_axes, 1)):
        whose: dict[tuple[str, ...], set[int]] = {}
        for points, cell in placed.cells.items():
            whose.setdefault(points[side], set()).add(merged.origins[cell.index].sweep)
        if len(whose) > 1 and all(len(found) == 1 for found in whose.values()):
            texts = {point: _point(names.point(axes, point)) for point in whose}
            yield _listed(
                several, {s: [texts[p] for p, found in whose.items() if s in found] for s in _ids(several)}, what
            )
            return
    cells = {cell.index: _point([names.label(axis, label) for axis, label in cell.labels.items()])
             for cell in merged.outcomes.cells}  # fmt: skip
    listed = {
        s: [cells[number] for number, origin in merged.origins.items() if origin.sweep == s] for s in _ids(several)
    }
    yield _listed(several, listed, "cells")


def _listed(several: Sequence[SweepOutcomes], found: Mapping[int, Sequence[str]], what: str) -> str:
    said = []
    for one in several:
        said.append(f"sweep {one.sweep} ({one.name}): {few(found[one.sweep], ', ') or 'none'}")
    return f"From which sweep the {what} are: {'; '.join(said)}."


def _clashes(several: Sequence[SweepOutcomes], merged: Merged) -> Iterator[str]:
    shared = sum(len(held) > 1 for held in merged.held.values())
    if shared:
        cells = "1 cell that several sweeps have" if shared == 1 else f"{shared} cells that several sweeps have"
        order = ", ".join(str(one.sweep) for one in several)
        yield f"In {cells} the first of the sweeps {order} stands."


def _ids(several: Sequence[SweepOutcomes]) -> list[int]:
    return [one.sweep for one in several]


def _point(texts: Sequence[str]) -> str:
    return " / ".join(text for text in texts if text) or "the only one"
