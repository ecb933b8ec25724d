"""What a wider spec adds to a sweep: places are matched by their labels, and what exists must stay as it is."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from orchestrator.plan.grid import Plan
from orchestrator.views.errors import InvalidSpecError, NumbersChangedError
from orchestrator.views.runs import Candidate, Cell, Extension, Labels, MeasuredTrial, PlannedTrial, TrialKey
from workers.catalog import Catalog, Problem, changes, complete, further_metrics, shown

_Key = tuple[tuple[str, str], ...]


def extension(
    places: Sequence[TrialKey],
    plan: Plan,
    text: str,
    spec: Mapping[str, Any],
    catalog: Catalog,
    former: Mapping[str, Any] | None = None,
) -> Extension:
    """What `plan` has beyond the `places`; InvalidSpecError when it lacks one of them or would train it otherwise.

    `former` is the sweep's spec before, so that the error names the fields that differ.

    NumbersChangedError where it would do so because versions are others today than when the sweep was planned.
    """
    _require_today(places, catalog)
    if plan.spec.search.adaptive:
        raise InvalidSpecError([Problem("search", "a sweep with adaptive search cannot be extended; submit a new one")])
    numbering = _Numbering(places)
    known = {(_key(one.cell_labels), _key(one.candidate_labels), _key(one.repeat_labels)): one for one in places}
    labels = {(one.cell, one.index): one.labels for one in plan.candidates}
    cells = {one.index: one.labels for one in plan.cells}
    added: list[PlannedTrial] = []
    changed: list[str] = []
    measuring = _Measuring(catalog)
    for trial in plan.trials():
        at, chosen = cells[trial.cell], labels[trial.cell, trial.candidate]
        place = known.pop((_key(at), _key(chosen), _key(trial.repeat_labels)), None)
        if place is None:
            added.append(numbering.place(trial, at, chosen))
        elif place.fingerprint != trial.fingerprint and not measuring.take(place, trial):
            changed.append(_said(at, chosen, trial.repeat_labels))
    measuring.require_reach()
    if changed:
        differing = _differing(former or {}, spec)
        found = f"; {', '.join(differing)}" if differing else ""
        raise InvalidSpecError([Problem("", f"would train differently what the sweep has: {_few(changed)}{found}")])
    if known:
        lacking = [_said(one.cell_labels, one.candidate_labels, one.repeat_labels) for one in known.values()]
        raise InvalidSpecError([Problem("", f"lacks what the sweep has: {_few(lacking)}")])
    return Extension(text, spec, plan.trial_count, numbering.cells, numbering.candidates, added, measuring.measured)


def _differing(former: Mapping[str, Any], spec: Mapping[str, Any]) -> list[str]:
    """The fields of the recipe and of the selection that differ, with both values: `recipe.iterations was 5, is 9`."""
    found = []
    for block in ("recipe", "select"):
        old, new = _flat(former.get(block) or {}, block), _flat(spec.get(block) or {}, block)
        paths = [path for path in dict.fromkeys([*old, *new]) if old.get(path) != new.get(path)]
        found += [f"{path} was {shown(old.get(path))}, is {shown(new.get(path))}" for path in paths]
    return found[:10]


def _flat(block: Mapping[str, Any], path: str) -> dict[str, Any]:
    """The values of a nested mapping by their paths."""
    found: dict[str, Any] = {}
    for key, value in block.items():
        found |= _flat(value, f"{path}.{key}") if isinstance(value, Mapping) and value else {f"{path}.{key}": value}
    return found


def _require_today(places: Sequence[TrialKey], catalog: Catalog) -> None:
    """What is added is trained under today's versions, and would stand in one table with numbers of older ones."""
    by_stamp = {stamp: changes(stamp, catalog) for stamp in {one.stamp for one in places}}
    outdated = sum(bool(by_stamp[one.stamp]) for one in places)
    if not outdated:
        return
    changed = sorted({(one.what, f"{one.then}, now {one.now}") for some in by_stamp.values() for one in some})
    listed = ", ".join(f"{what} ({said})" for what, said in changed)
    raise NumbersChangedError(
        f"numbers changed in {listed} since {outdated} of the sweep's {len(places)} trials were trained, so that it "
        "cannot grow; submit the wider spec as a new sweep (`metricsweep submit`): it trains what changed and reuses "
        "what did not, and the old sweep stays as it is",
        [Problem(what, said) for what, said in changed],
    )


class _Measuring:
    """Collects the trials that are to have further metrics, which the weights that they keep can tell."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._out_of_reach: dict[str, list[str]] = {}
        self.measured: list[MeasuredTrial] = []

    def take(self, place: TrialKey, one: PlannedTrial) -> bool:
        """Take a trial whose recipe differs by further metrics alone; False for any other. What it has stays."""
        further = one.further
        if further is None or not place.base or further.base != place.base:
            return False
        added = [name for name in one.recipe.metrics if name not in place.metrics]
        if not added:
            return True
        self._out_of_reach |= {name: further.out_of_reach[name] for name in added if name in further.out_of_reach}
        self.measured.append(MeasuredTrial(place.trial, self._with(one, place.metrics)))
        return True

    def require_reach(self) -> None:
        """Raise InvalidSpecError where a training alone gives what the wider spec would show."""
        if self._out_of_reach:
            keys = [key for found in self._out_of_reach.values() for key in found]
            raise InvalidSpecError([Problem(
                "recipe.metrics",
                f"the weights that the sweep's trainings have kept do not tell {_few(keys)}; submit the wider spec as "
                "a new sweep (`metricsweep submit`), which trains them",
            )])  # fmt: skip

    def _with(self, one: PlannedTrial, known: Sequence[str]) -> PlannedTrial:
        if set(known) <= set(one.recipe.metrics):
            return one
        asked = one.recipe.model_copy(update={"metrics": sorted({*one.recipe.metrics, *known})})
        recipe = complete(asked, self._catalog)
        further = further_metrics(recipe, recipe.fingerprint, self._catalog)
        return replace(one, recipe=recipe, fingerprint=recipe.fingerprint, document=None, further=further)


class _Numbering:
    """Numbers added places after those that exist."""

    def __init__(self, places: Sequence[TrialKey]) -> None:
        self._cells = {_key(one.cell_labels): one.cell for one in places}
        self._candidates = {(one.cell, _key(one.candidate_labels)): one.candidate for one in places}
        # The next numbers are kept: to look for the largest at every addition would take hours for many.
        self._next_cell = 1 + max(self._cells.values(), default=-1)
        self._next_candidate: dict[int, int] = {}
        self._repeats: dict[tuple[int, int], int] = {}
        for one in places:
            at = (one.cell, one.candidate)
            self._repeats[at] = max(self._repeats.get(at, 0), one.repeat + 1)
            self._next_candidate[one.cell] = max(self._next_candidate.get(one.cell, 0), one.candidate + 1)
        self.cells: list[Cell] = []
        self.candidates: list[Candidate] = []

    def place(self, one: PlannedTrial, at: Labels, chosen: Labels) -> PlannedTrial:
        """The planned trial under the sweep's own numbers."""
        if _key(at) not in self._cells:
            self._cells[_key(at)] = self._next_cell
            self._next_cell += 1
            self.cells.append(Cell(self._cells[_key(at)], at))
        cell = self._cells[_key(at)]
        if (cell, _key(chosen)) not in self._candidates:
            index = self._candidates[cell, _key(chosen)] = self._next_candidate.get(cell, 0)
            self._next_candidate[cell] = index + 1
            self.candidates.append(Candidate(cell, index, chosen))
        candidate = self._candidates[cell, _key(chosen)]
        repeat = self._repeats.get((cell, candidate), 0)
        self._repeats[cell, candidate] = repeat + 1
        return replace(one, cell=cell, candidate=candidate, repeat=repeat)


def _key(labels: Labels) -> _Key:
    return tuple(sorted(labels.items()))


def _said(*labels: Labels) -> str:
    return ", ".join(f"{axis}={label}" for some in labels for axis, label in some.items()) or "its only trial"


def _few(found: Sequence[str], most: int = 3) -> str:
    more = f" and {len(found) - most} more" if len(found) > most else ""
    return "; ".join(found[:most]) + more
