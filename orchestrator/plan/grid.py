"""Expands a spec into cells, candidates and trials, and finds what a wider spec adds."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Final, NamedTuple

from orchestrator.plan.points import (
    MOST_TRIALS,
    Point,
    candidates_of,
    cells_of,
    count,
    count_candidates,
    most_trials,
    points,
    recipe_of,
    slot_of,
)
from orchestrator.spec.fields import label_of
from orchestrator.spec.spec import Choice, Patch, Span, Spec, applies, apply, seed_of
from orchestrator.views import errors
from orchestrator.views.errors import InvalidSpecError, NumbersChangedError, timely
from orchestrator.views.operations import Inspected, PlannedContent
from orchestrator.views.runs import Candidate, Cell, Dimension, Extension, Labels, MeasuredTrial, PlannedTrial, TrialKey
from orchestrator.views.trials import leaves
from workers.catalog import (
    UNKNOWN,
    Catalog,
    FurtherMetrics,
    Need,
    Problem,
    changes,
    complete,
    decisive,
    figure_of,
    further_metrics,
    need_of,
    shown,
    undeclared,
    without_further,
)
from workers.contract import Part, Recipe, fingerprint_of

MOST_LOOKED_AT: Final = 10_000


_Key = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Contents:
    """The hashes of data sets and weights with which a sweep is planned."""

    known: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """The content by the key of the need, as in `Finding.content`."""
    otherwise: str | None = None
    """Replaces unknown content by the uid of the sweep, so that no other sweep reuses the training.

    None where nodes are not inspected: the content is not pinned then.
    """

    @classmethod
    def of(cls, planned: PlannedContent | None, found: Iterable[Inspected] = ()) -> "Contents":
        """The hashes with which a sweep was planned, completed by those that nodes have reported since."""
        return cls() if planned is None else cls({**agreed(found), **planned.known}, planned.uid)

    def of_spec(self, spec: Spec, catalog: Catalog) -> dict[str, Mapping[str, str]]:
        """The known hashes of the data sets and weights that a spec needs, by the key of the need."""
        keys = [one.key for one in needs(spec, catalog)]
        return {key: self.known[key] for key in keys if key in self.known}

    def pinned(self, recipe: Recipe, catalog: Catalog) -> Recipe:
        """A completed recipe with the hashes of the data and weights that it reads, if they are known."""
        required = decisive(recipe, catalog)
        if not required:
            return recipe
        need = need_of(recipe.dataset, recipe.backbone, catalog)
        found = self.known.get(need.key, {}) if need is not None else {}
        if required <= found.keys() and not undeclared(recipe, catalog):
            pins = {pin: found[name] for name, pin in (("data", "content"), ("weights", "weights")) if name in required}
        elif self.otherwise is not None:
            pins = {"content": f"{UNKNOWN}: {self.otherwise}"}
        else:
            return recipe
        return recipe.model_copy(update={"pins": recipe.pins.model_copy(update=pins)})


class Completed(NamedTuple):
    """A recipe with all defaults filled in, with its JSON, fingerprint and further metrics."""

    recipe: Recipe
    document: dict[str, Any]
    fingerprint: str
    further: FurtherMetrics
    bare: dict[str, Any]  # the document without the further metrics

    @classmethod
    def of(cls, raw: Mapping[str, Any], catalog: Catalog, contents: Contents) -> "Completed":
        """Fills in the defaults of a valid recipe."""
        recipe = contents.pinned(complete(Recipe.model_validate(raw), catalog), catalog)
        document = recipe.model_dump(mode="json")
        fingerprint = fingerprint_of(document)
        further = further_metrics(recipe, fingerprint, catalog)
        bare = without_further(recipe, catalog).model_dump(mode="json") if further.names else document
        return cls(recipe, document, fingerprint, further, bare)

    def at(self, seed: int) -> "Completed":
        """The completed recipe with another seed and so another fingerprint."""
        recipe, document = self.recipe.model_copy(update={"seed": seed}), {**self.document, "seed": seed}
        # Nothing else depends on the seed, and to complete each of 10,000 recipes takes seconds.
        fingerprint = fingerprint_of(document)
        base = fingerprint_of({**self.bare, "seed": seed}) if self.further.names else fingerprint
        return Completed(recipe, document, fingerprint, self.further.model_copy(update={"base": base}), self.bare)


@dataclass(frozen=True)
class Plan:
    """The cells, candidates and trials of a spec; trials are generated on demand."""

    spec: Spec
    cells: list[Cell]
    candidates: list[Candidate]
    trial_count: int
    _catalog: Catalog = field(repr=False)
    _contents: Contents = field(default=Contents(), repr=False)

    def trials(self) -> Iterator[PlannedTrial]:
        """All trials by cell, candidate and repeat, with completed recipes; empty for an adaptive search."""
        if self.spec.search.adaptive:
            return
        for cell, at_cell in enumerate(cells_of(self.spec)):
            repeats = list(points(self.spec.repeat, at_cell.labels))
            for candidate, at_candidate in enumerate(candidates_of(self.spec, at_cell, self._catalog)):
                raw = recipe_of(self.spec, at_cell, at_candidate)
                slot = slot_of(self.spec, {**at_cell.labels, **at_candidate.labels})
                for repeat, (labels, completed) in enumerate(self._repeated(raw, repeats)):
                    errors.check()
                    recipe, document, fingerprint, further, _ = completed
                    need = _need(recipe, self._catalog)
                    yield PlannedTrial(
                        cell, candidate, repeat, labels, recipe, fingerprint, slot, document, need, further
                    )

    @property
    def candidate_count(self) -> int:
        """The number of candidates; for an adaptive search the number that it may try."""
        if self.spec.search.adaptive:
            return sum(count_candidates(self.spec, cell.labels) for cell in self.cells)
        return len(self.candidates)

    def outlines(self) -> Iterator[tuple[int, Recipe]]:
        """For each cell of an adaptive search: the highest number of its trials, and the recipe of a first trial."""
        for cell in cells_of(self.spec):
            repeats = list(points(self.spec.repeat, cell.labels))
            raw = recipe_of(self.spec, cell, next(points(self.spec.tune, cell.labels)))
            yield most_trials(self.spec, cell.labels), next(self._repeated(raw, repeats))[1].recipe

    def _repeated(self, raw: Patch, repeats: list[Point]) -> Iterator[tuple[Labels, Completed]]:
        """The completed recipes of one candidate."""
        seeded: Completed | None = None
        for repeat in repeats:
            seed = seed_of(repeat.choices[0]) if len(repeat.choices) == 1 else -1
            if seed < 0:
                patched = apply(raw, [choice.patch for choice in repeat.choices])
                yield repeat.labels, Completed.of(patched, self._catalog, self._contents)
                continue
            seeded = seeded or Completed.of(raw, self._catalog, self._contents)
            yield repeat.labels, seeded.at(seed)


def expand(spec: Spec, catalog: Catalog, contents: Contents = Contents()) -> Plan:
    """Expands a checked spec to its plan; equal spec, catalog and data hashes give an equal plan."""
    cells: list[Cell] = []
    candidates: list[Candidate] = []
    total = 0
    for index, cell in enumerate(timely(cells_of(spec))):
        cells.append(Cell(index, cell.labels))
        if spec.search.adaptive:
            total += most_trials(spec, cell.labels)
            continue
        of_cell = [Candidate(index, at, one.labels) for at, one in enumerate(candidates_of(spec, cell, catalog))]
        candidates += of_cell
        total += len(of_cell) * count(spec.repeat, cell.labels, MOST_TRIALS)
    return Plan(spec, cells, candidates, total, catalog, contents)


def agreed(found: Iterable[Inspected]) -> dict[str, dict[str, str]]:
    """The hashes of each data set and weights on most nodes, by the key of the need; a tie goes to the first host.

    Nodes with other files are passed over by trainings that are planned so.
    """
    votes: dict[str, Counter[tuple[tuple[str, str], ...]]] = {}
    for one in sorted(found, key=lambda one: (one.host, one.node)):
        if one.finding.state == "ok" and one.finding.content and not one.need.content:
            votes.setdefault(one.need.key, Counter())[tuple(sorted(one.finding.content.items()))] += 1
    return {key: dict(counted.most_common(1)[0][0]) for key, counted in votes.items()}


def counted(found: Iterable[Inspected]) -> dict[str, dict[str, dict[str, int]]]:
    """The numbers of classes and images that nodes found in each data set, by the key of the data set's need."""
    return {
        Need(dataset=one.need.dataset).key: one.finding.counts
        for one in found
        if one.finding.state == "ok" and one.finding.counts
    }


def needs(spec: Spec, catalog: Catalog) -> list[Need]:
    """The distinct data sets and weights that a checked spec needs, by cell; only the first candidates are examined."""
    found: dict[str, Need] = {}
    for cell, candidate in islice(_places(spec), MOST_LOOKED_AT):
        raw = recipe_of(spec, cell, candidate)
        held = {kind: Part.model_validate(raw[kind]) for kind in ("dataset", "backbone") if kind in raw}
        one = need_of(held.get("dataset"), held.get("backbone"), catalog)
        if one is not None:
            found.setdefault(one.key, one)
    return list(found.values())


def _need(recipe: Recipe, catalog: Catalog) -> Need | None:
    """What a recipe reads below the data root; None if it reads nothing there."""
    found = need_of(recipe.dataset, recipe.backbone, catalog)
    return None if found is None else found.holding(recipe.pins)


def _places(spec: Spec) -> Iterator[tuple[Point, Point]]:
    """Every cell with its candidates, or with its first candidate if tuning changes neither data set nor backbone."""
    choices = (choice for axis in spec.tune.values() for group in axis for choice in group.choices)
    tuned = any(path.partition(".")[0] in ("dataset", "backbone") for choice in choices for path in choice.patch)
    for cell in cells_of(spec):
        for candidate in islice(points(spec.tune, cell.labels), None if tuned else 1):
            yield cell, candidate


def candidate(spec: Spec, cell: int, index: int, values: Mapping[str, str | float]) -> Candidate:
    """The candidate that an adaptive search suggests: `values` holds a label or a drawn number for each tune axis."""
    return Candidate(cell, index, _point(spec, _cell(spec, cell), values).labels)


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
    number = span.drawn(float(value))
    return Choice(label=label_of(number), patch={axis: number})


def _cell(spec: Spec, cell: int) -> Point:
    return next(islice(cells_of(spec), cell, None))


def trials(spec: Spec, catalog: Catalog, one: Candidate, contents: Contents = Contents()) -> Iterator[PlannedTrial]:
    """The trials of the candidate that an adaptive search suggests, for each repeat of its cell."""
    at = _cell(spec, one.cell)
    raw = recipe_of(spec, at, _point(spec, at, one.labels))
    slot = slot_of(spec, {**at.labels, **one.labels})
    for number, repeat in enumerate(points(spec.repeat, at.labels)):
        patched = apply(raw, [choice.patch for choice in repeat.choices])
        recipe, document, fingerprint, further, _ = Completed.of(patched, catalog, contents)
        need = _need(recipe, catalog)
        yield PlannedTrial(
            one.cell, one.index, number, repeat.labels, recipe, fingerprint, slot, document, need, further
        )


def extension(
    places: Sequence[TrialKey],
    plan: Plan,
    text: str,
    spec: Mapping[str, Any],
    catalog: Catalog,
    former: Mapping[str, Any] | None = None,
) -> Extension:
    """The trials that `plan` adds to the existing trials `places`.

    Raises InvalidSpecError if `plan` lacks or changes one, with the fields that differ from the sweep's spec `former`;
    NumbersChangedError if versions of parts have changed since the sweep was planned.
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
            changed.append(_joined_labels(at, chosen, trial.repeat_labels))
    measuring.require_reach()
    if changed:
        differing = _differing(former or {}, spec)
        found = f"; {', '.join(differing)}" if differing else ""
        raise InvalidSpecError([Problem("", f"the wider spec changes trials of the sweep: {_few(changed)}{found}")])
    if known:
        lacking = [_joined_labels(one.cell_labels, one.candidate_labels, one.repeat_labels) for one in known.values()]
        raise InvalidSpecError([Problem("", f"the wider spec lacks trials of the sweep: {_few(lacking)}")])
    return Extension(text, spec, plan.trial_count, numbering.cells, numbering.candidates, added, measuring.measured)


def _require_today(places: Sequence[TrialKey], catalog: Catalog) -> None:
    """Refuses an extension if versions have changed, since its numbers would mix with those of older versions."""
    by_stamp = {stamp: changes(stamp, catalog) for stamp in {one.stamp for one in places}}
    outdated = sum(bool(by_stamp[one.stamp]) for one in places)
    if not outdated:
        return
    changed = sorted({(one.what, f"{one.then}, now {one.now}") for some in by_stamp.values() for one in some})
    listed = ", ".join(f"{what} ({change})" for what, change in changed)
    raise NumbersChangedError(
        f"numbers changed in {listed} since {outdated} of the sweep's {len(places)} trials were trained, so that it "
        "cannot grow; submit the wider spec as a new sweep (`metricsweep submit`): it trains what changed and reuses "
        "what did not, and the old sweep stays as it is",
        [Problem(what, change) for what, change in changed],
    )


class _Numbering:
    """Numbers new places after the existing ones."""

    def __init__(self, places: Sequence[TrialKey]) -> None:
        self._cells = {_key(one.cell_labels): one.cell for one in places}
        self._candidates = {(one.cell, _key(one.candidate_labels)): one.candidate for one in places}
        # Next numbers are cached, since a search for the largest at each addition is quadratic.
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


class _Measuring:
    """Collects the trials that get further metrics or figures, computed from their kept weights."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._out_of_reach: dict[str, list[str]] = {}
        self.measured: list[MeasuredTrial] = []

    def take(self, place: TrialKey, one: PlannedTrial) -> bool:
        """Take a trial whose recipe differs only by what kept weights give; False for any other trial."""
        further = one.further
        if further is None or not place.base or further.base != place.base:
            return False
        added = [name for name in further.names if name not in place.further]
        if not added:
            return True
        if {name.partition(" ")[0] for name in added} & {name.partition(" ")[0] for name in place.further}:
            return False  # a figure with other options would replace that of the training
        self._out_of_reach |= {name: further.out_of_reach[name] for name in added if name in further.out_of_reach}
        self.measured.append(MeasuredTrial(place.trial, self._with(one, place.further)))
        return True

    def require_reach(self) -> None:
        """Raise InvalidSpecError if the wider spec needs a metric that kept weights cannot give."""
        if self._out_of_reach:
            keys = [key for found in self._out_of_reach.values() for key in found]
            raise InvalidSpecError([Problem(
                "recipe.metrics",
                f"the kept weights of the sweep's trainings cannot give {_few(keys)}; submit the wider spec as "
                "a new sweep (`metricsweep submit`), which trains them",
            )])  # fmt: skip

    def _with(self, one: PlannedTrial, known: Sequence[str]) -> PlannedTrial:
        lacking = [name for name in known if one.further is None or name not in one.further.names]
        if not lacking:
            return one
        metrics = [name for name in lacking if " " not in name]
        figures = [figure_of(name) for name in lacking if " " in name]
        update = {"metrics": sorted({*one.recipe.metrics, *metrics}), "figures": [*one.recipe.figures, *figures]}
        recipe = complete(one.recipe.model_copy(update=update), self._catalog)
        further = further_metrics(recipe, recipe.fingerprint, self._catalog)
        return replace(one, recipe=recipe, fingerprint=recipe.fingerprint, document=None, further=further)


def _few(found: Sequence[str], most: int = 3) -> str:
    more = f" and {len(found) - most} more" if len(found) > most else ""
    return "; ".join(found[:most]) + more


def _joined_labels(*labels: Labels) -> str:
    return ", ".join(f"{axis}={label}" for some in labels for axis, label in some.items()) or "its only trial"


def _differing(former: Mapping[str, Any], spec: Mapping[str, Any]) -> list[str]:
    """The fields of the recipe and of the selection that differ, with both values: `recipe.iterations was 5, is 9`."""
    found = []
    for block in ("recipe", "select"):
        old, new = (dict(leaves(one.get(block) or {}, f"{block}.")) for one in (former, spec))
        paths = [path for path in dict.fromkeys([*old, *new]) if old.get(path) != new.get(path)]
        found += [f"{path} was {shown(old.get(path))}, is {shown(new.get(path))}" for path in paths]
    return found[:10]


@dataclass(frozen=True, slots=True)
class Space:
    """The search space of one cell: its dimensions and the number of candidates that the search may try."""

    cell: int
    labels: Labels
    dimensions: tuple[Dimension, ...]
    candidates: int  # how many the search may try


def space(spec: Spec, cell: int) -> Space:
    """The search space of an adaptive search in one cell."""
    at = _cell(spec, cell)
    dimensions = [
        Dimension(
            axis=axis,
            name=axis if len(groups) == 1 else f"{axis} #{number}",
            when={other: tuple(labels) for other, labels in group.when.items() if other not in at.labels},
            labels=() if group.span else tuple(choice.label for choice in group.choices),
            span=group.span,
        )
        for axis, groups in spec.tune.items()
        for number, group in enumerate(groups)
        if all(at.labels[other] in labels for other, labels in group.when.items() if other in at.labels)
    ]
    return Space(cell, at.labels, tuple(dimensions), count_candidates(spec, at.labels))


def reproductions(spec: Spec, catalog: Catalog, planned: Sequence[PlannedTrial]) -> Iterator[PlannedTrial]:
    """Additional trials of a cell's best candidate with unused seeds; `planned` are its existing trials."""
    first, used = planned[0], {one.recipe.seed for one in planned}
    fresh = (seed for seed in range(len(used) + spec.search.reproduce) if seed not in used)
    for at, seed in enumerate(islice(fresh, spec.search.reproduce), len(planned)):
        recipe = first.recipe.model_copy(update={"seed": seed})
        further = further_metrics(recipe, recipe.fingerprint, catalog)
        yield replace(
            first, repeat=at, repeat_labels={**first.repeat_labels, "seed": str(seed)}, recipe=recipe,
            fingerprint=recipe.fingerprint, document=None, further=further,
        )  # fmt: skip
