"""Expands a spec into cells, candidates and trials, and finds what a wider spec adds."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Final, NamedTuple

from orchestrator.plan.axes import drawn
from orchestrator.plan.parse import slot_of
from orchestrator.plan.points import (
    MOST_TRIALS,
    Point,
    candidates_of,
    cells_of,
    count,
    count_candidates,
    points,
    recipe_of,
)
from orchestrator.spec.axes import Choice, Patch, Span, applies, apply, label_of
from orchestrator.spec.spec import Spec
from orchestrator.views import errors
from orchestrator.views.errors import InvalidSpecError, NumbersChangedError, timely
from orchestrator.views.operations import Inspected, PlannedContent
from orchestrator.views.runs import Candidate, Cell, Dimension, Extension, Labels, MeasuredTrial, PlannedTrial, TrialKey
from workers.catalog import (
    UNKNOWN,
    Catalog,
    FurtherMetrics,
    Need,
    Problem,
    changes,
    complete,
    decisive,
    further_metrics,
    need_of,
    out_of_reach,
    shown,
    undeclared,
    without_further,
)
from workers.contract import Part, Recipe, canonical_json, fingerprint_of

MOST_LOOKED_AT: Final = 10_000


@dataclass(frozen=True)
class Contents:
    """The content of the data that a sweep is planned with."""

    known: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By the key of the need, as `Finding.content` has it."""
    otherwise: str | None = None
    """What stands for content that nobody could tell, so that no other sweep reuses the training: the sweep's uid.

    None where nodes are not inspected: the content is not pinned then.
    """

    @classmethod
    def of(cls, planned: PlannedContent | None, found: Iterable[Inspected] = ()) -> "Contents":
        """What a sweep is planned with, and for what it does not say what was found since; None: nodes say nothing."""
        return cls() if planned is None else cls({**agreed(found), **planned.known}, planned.uid)

    def of_spec(self, spec: Spec, catalog: Catalog) -> dict[str, Mapping[str, str]]:
        """What is known of the needs of a spec."""
        keys = [one.key for one in needs(spec, catalog)]
        return {key: self.known[key] for key in keys if key in self.known}

    def pinned(self, recipe: Recipe, catalog: Catalog) -> Recipe:
        """A completed recipe for the content of the data that it reads."""
        wanted = decisive(recipe, catalog)
        if not wanted:
            return recipe
        need = need_of(recipe.dataset, recipe.backbone, catalog)
        found = self.known.get(need.key, {}) if need is not None else {}
        if wanted <= found.keys() and not undeclared(recipe, catalog):
            pins = {pin: found[name] for name, pin in (("data", "content"), ("weights", "weights")) if name in wanted}
        elif self.otherwise is not None:
            pins = {"content": f"{UNKNOWN}: {self.otherwise}"}
        else:
            return recipe
        return recipe.model_copy(update={"pins": recipe.pins.model_copy(update=pins)})


def agreed(found: Iterable[Inspected]) -> dict[str, dict[str, str]]:
    """The content of each need by its key: that of most nodes which have it, of equally many that of the first host.

    Nodes with other files are passed over by trainings that are planned so.
    """
    votes: dict[str, Counter[tuple[tuple[str, str], ...]]] = {}
    for one in sorted(found, key=lambda one: (one.host, one.node)):
        if one.finding.state == "ok" and one.finding.content and not one.need.content:
            votes.setdefault(one.need.key, Counter())[tuple(sorted(one.finding.content.items()))] += 1
    return {key: dict(counted.most_common(1)[0][0]) for key, counted in votes.items()}


def counted(found: Iterable[Inspected]) -> dict[str, dict[str, dict[str, int]]]:
    """The classes and images that nodes found in data sets, by the key of the need of the data set alone."""
    return {
        Need(dataset=one.need.dataset).key: one.finding.counts
        for one in found
        if one.finding.state == "ok" and one.finding.counts
    }


class Needs:
    """What recipes need; the trials of a sweep name few data sets and backbones, and each pair is looked up once."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._last: tuple[Part | None, Part | None] | None = None
        self._need: Need | None = None

    def of(self, recipe: Recipe) -> Need | None:
        """What a training of the recipe reads; none: nothing of the data root."""
        found = self.of_parts(recipe.dataset, recipe.backbone)
        return found.holding(recipe.pins) if found is not None else None

    def of_parts(self, dataset: Part | None, backbone: Part | None) -> Need | None:
        """The same of a recipe with these parts."""
        if self._last != (dataset, backbone):
            self._last, self._need = (dataset, backbone), need_of(dataset, backbone, self._catalog)
        return self._need


def needs(spec: Spec, catalog: Catalog) -> list[Need]:
    """Every different need of a checked spec's trainings, in the order of its cells; of the first places only."""
    lookup, found = Needs(catalog), dict[str, Need]()
    for cell, candidate in islice(_places(spec), MOST_LOOKED_AT):
        raw = recipe_of(spec, cell, candidate)
        held = {kind: Part.model_validate(raw[kind]) for kind in ("dataset", "backbone") if kind in raw}
        one = lookup.of_parts(held.get("dataset"), held.get("backbone"))
        if one is not None:
            found.setdefault(one.key, one)
    return list(found.values())


def _places(spec: Spec) -> Iterator[tuple[Point, Point]]:
    """Every cell with its candidates, or with the first one where tuning changes neither data set nor backbone."""
    choices = (choice for axis in spec.tune.values() for group in axis for choice in group.choices)
    tuned = any(path.partition(".")[0] in ("dataset", "backbone") for choice in choices for path in choice.patch)
    for cell in cells_of(spec):
        for candidate in islice(points(spec.tune, cell.labels), None if tuned else 1):
            yield cell, candidate


class Completed(NamedTuple):
    """A completed recipe."""

    recipe: Recipe
    document: dict[str, Any]
    fingerprint: str
    further: FurtherMetrics

    @classmethod
    def of(cls, raw: Mapping[str, Any], catalog: Catalog, contents: Contents) -> "Completed":
        """That of a recipe without problems as it was written."""
        recipe = contents.pinned(complete(Recipe.model_validate(raw), catalog), catalog)
        document = recipe.model_dump(mode="json")
        fingerprint = fingerprint_of(document)
        return cls(recipe, document, fingerprint, further_metrics(recipe, fingerprint, catalog))


class Seeded:
    """A recipe with any seed: it is completed and written once, and seeds are set in that, which is quicker."""

    def __init__(self, raw: Mapping[str, Any], catalog: Catalog, contents: Contents) -> None:
        self._recipe = contents.pinned(complete(Recipe.model_validate(raw), catalog), catalog)
        self._document = self._recipe.model_dump(mode="json")
        self._fingerprint = self._base = fingerprints_by_seed(self._document)
        if self._recipe.metrics:
            self._base = fingerprints_by_seed(without_further(self._recipe, catalog).model_dump(mode="json"))
        self._out_of_reach = out_of_reach(self._recipe, catalog)

    def at(self, seed: int) -> Completed:
        """The same recipe with this seed."""
        fingerprint = self._fingerprint(seed)
        base = fingerprint if self._base is self._fingerprint else self._base(seed)
        further = FurtherMetrics(base=base, out_of_reach=self._out_of_reach)
        document = {**self._document, "seed": seed}
        return Completed(self._recipe.model_copy(update={"seed": seed}), document, fingerprint, further)


def fingerprints_by_seed(recipe: Mapping[str, Any]) -> Callable[[int], str]:
    """`fingerprint_of` for a recipe that is JSON already with any seed, which writes the rest of it once."""
    before, found, after = canonical_json({**recipe, "seed": None}).rpartition('"seed":null')
    if not found or '"seed":null' in before:  # a part has a seed of its own that is not set
        return lambda seed: fingerprint_of({**recipe, "seed": seed})
    begun = hashlib.sha256(f'{before}"seed":'.encode())

    def of(seed: int) -> str:
        digest = begun.copy()
        digest.update(f"{seed}{after}".encode())
        return digest.hexdigest()

    return of


@dataclass(frozen=True)
class Plan:
    """What a spec expands to; its trials are made as they are asked for."""

    spec: Spec
    cells: list[Cell]
    candidates: list[Candidate]
    trial_count: int
    _catalog: Catalog = field(repr=False)
    _contents: Contents = field(default=Contents(), repr=False)

    def trials(self) -> Iterator[PlannedTrial]:
        """All trials by cell, candidate and repeat, each with its completed recipe; none where a search is adaptive."""
        if self.spec.search.adaptive:
            return
        needs = Needs(self._catalog)
        for cell, at_cell in enumerate(cells_of(self.spec)):
            repeats = list(points(self.spec.repeat, at_cell.labels))
            for candidate, at_candidate in enumerate(candidates_of(self.spec, at_cell, self._catalog)):
                raw = recipe_of(self.spec, at_cell, at_candidate)
                slot = slot_of(self.spec, {**at_cell.labels, **at_candidate.labels})
                for repeat, (labels, completed) in enumerate(self._repeated(raw, repeats)):
                    errors.check()
                    recipe, document, fingerprint, further = completed
                    need = needs.of(recipe)
                    yield PlannedTrial(
                        cell, candidate, repeat, labels, recipe, fingerprint, slot, document, need, further
                    )

    @property
    def candidate_count(self) -> int:
        """How many candidates there are; of an adaptive search, how many it may try."""
        if self.spec.search.adaptive:
            return sum(count_candidates(self.spec, cell.labels) for cell in self.cells)
        return len(self.candidates)

    def outlines(self) -> Iterator[tuple[int, Recipe]]:
        """Of each cell of an adaptive search the most trials that it can have, and the recipe of a first one."""
        for cell in cells_of(self.spec):
            repeats = list(points(self.spec.repeat, cell.labels))
            raw = recipe_of(self.spec, cell, next(points(self.spec.tune, cell.labels)))
            yield _most_trials(self.spec, cell, len(repeats)), next(self._repeated(raw, repeats))[1].recipe

    def _repeated(self, raw: Patch, repeats: list[Point]) -> Iterator[tuple[Labels, Completed]]:
        """The completed recipes of one candidate."""
        seeded: Seeded | None = None
        for repeat in repeats:
            patches = [choice.patch for choice in repeat.choices]
            seed = _seed_only(patches)
            if seed is None:
                yield repeat.labels, Completed.of(apply(raw, patches), self._catalog, self._contents)
                continue
            seeded = seeded or Seeded(raw, self._catalog, self._contents)
            yield repeat.labels, seeded.at(seed)


def expand(spec: Spec, catalog: Catalog, contents: Contents = Contents()) -> Plan:
    """The plan of a checked spec; the same spec, catalog and contents of the data give the same plan."""
    cells: list[Cell] = []
    candidates: list[Candidate] = []
    total = 0
    for index, cell in enumerate(timely(cells_of(spec))):
        cells.append(Cell(index, cell.labels))
        if spec.search.adaptive:
            total += _most_trials(spec, cell, count(spec.repeat, cell.labels, MOST_TRIALS))
            continue
        of_cell = [Candidate(index, at, one.labels) for at, one in enumerate(candidates_of(spec, cell, catalog))]
        candidates += of_cell
        total += len(of_cell) * count(spec.repeat, cell.labels, MOST_TRIALS)
    return Plan(spec, cells, candidates, total, catalog, contents)


def _most_trials(spec: Spec, cell: Point, repeats: int) -> int:
    return count_candidates(spec, cell.labels) * repeats + spec.search.reproduce


def _seed_only(patches: list[Patch]) -> int | None:
    """The seed where patches set nothing else."""
    if len(patches) != 1 or list(patches[0]) != ["seed"]:
        return None
    seed = patches[0]["seed"]
    return seed if type(seed) is int else None


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


@dataclass(frozen=True, slots=True)
class Space:
    """What may be varied within one cell."""

    cell: int
    labels: Labels
    dimensions: tuple[Dimension, ...]
    candidates: int  # how many the search may try


def space(spec: Spec, cell: int) -> Space:
    """The space of a cell, counted as in the grid."""
    at = _cell(spec, cell)
    dimensions = [
        Dimension(
            axis=axis,
            name=axis if len(groups) == 1 else f"{axis} #{number}",
            when={other: tuple(labels) for other, labels in group.when.items() if other not in at.labels},
            labels=() if group.span else tuple(choice.label for choice in group.choices),
            low=group.span.low if group.span else 0.0,
            high=group.span.high if group.span else 0.0,
            log=bool(group.span and group.span.log),
            step=group.span.step if group.span else None,
            whole=bool(group.span and group.span.whole),
        )
        for axis, groups in spec.tune.items()
        for number, group in enumerate(groups)
        if all(at.labels[other] in labels for other, labels in group.when.items() if other in at.labels)
    ]
    return Space(cell, at.labels, tuple(dimensions), count_candidates(spec, at.labels))


def candidate(spec: Spec, cell: int, index: int, values: Mapping[str, str | float]) -> Candidate:
    """The candidate that a suggestion is: of each axis the label of an alternative, or the number drawn."""
    return Candidate(cell, index, _point(spec, _cell(spec, cell), values).labels)


def trials(
    spec: Spec,
    catalog: Catalog,
    one: Candidate,
    contents: Contents = Contents(),
) -> Iterator[PlannedTrial]:
    """The trials of a suggested candidate: one for each repeat of its cell."""
    at = _cell(spec, one.cell)
    raw = recipe_of(spec, at, _point(spec, at, one.labels))
    slot, needs = slot_of(spec, {**at.labels, **one.labels}), Needs(catalog)
    for number, repeat in enumerate(points(spec.repeat, at.labels)):
        whole = complete(Recipe.model_validate(apply(raw, [choice.patch for choice in repeat.choices])), catalog)
        recipe = contents.pinned(whole, catalog)
        need = needs.of(recipe)
        further = further_metrics(recipe, recipe.fingerprint, catalog)
        yield PlannedTrial(
            one.cell, one.index, number, repeat.labels, recipe, recipe.fingerprint, slot, need=need, further=further
        )


def reproductions(spec: Spec, catalog: Catalog, planned: Sequence[PlannedTrial]) -> Iterator[PlannedTrial]:
    """Further trials of the best candidate, whose trials are `planned`: its first recipe with seeds not used yet."""
    first, used = planned[0], {one.recipe.seed for one in planned}
    fresh = (seed for seed in range(len(used) + spec.search.reproduce) if seed not in used)
    for number, seed in enumerate(islice(fresh, spec.search.reproduce)):
        recipe = first.recipe.model_copy(update={"seed": seed})
        labels = {**first.repeat_labels, "seed": str(seed)}
        at = len(planned) + number
        further = further_metrics(recipe, recipe.fingerprint, catalog)
        yield PlannedTrial(
            first.cell, first.candidate, at, labels, recipe, recipe.fingerprint, first.slot, need=first.need,
            further=further,
        )  # fmt: skip


def _cell(spec: Spec, cell: int) -> Point:
    return next(islice(cells_of(spec), cell, None))


def _point(spec: Spec, cell: Point, values: Mapping[str, str | float]) -> Point:
    labels: dict[str, str] = {}
    choices: list[Choice] = []
    for axis, groups in spec.tune.items():
        if axis not in values:
            continue
        for group in groups:
            if applies(group.when, {**cell.labels, **labels}):
                choice = _choice(axis, values[axis], group.span, group.choices)
                labels[axis] = choice.label
                choices.append(choice)
                break
    return Point(labels, tuple(choices))


def _choice(axis: str, value: str | float, span: Span | None, choices: Sequence[Choice]) -> Choice:
    if span is None:
        return next(choice for choice in choices if choice.label == value)
    number = drawn(span, float(value))
    return Choice(label=label_of(number), patch={axis: number})
