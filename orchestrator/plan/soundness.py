"""Whether a spec that could be read can be trained: every part, option, rule and combination of them."""

import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, combinations, islice, product
from typing import Any, Final, NamedTuple

from orchestrator.plan.axes import clash
from orchestrator.plan.nameable import at_the_end, stated, tasks
from orchestrator.plan.parse import SpecDraft
from orchestrator.plan.points import (
    MOST_TRIALS,
    Point,
    cells_of,
    count,
    count_candidates,
    count_trials,
    named,
    points,
    recipe_of,
    rules_of,
    weight,
)
from orchestrator.plan.problems import spend
from orchestrator.spec.axes import (
    ROLES,
    Axis,
    Choice,
    Group,
    Patch,
    Race,
    Rule,
    Sources,
    Wilcoxon,
    applies,
    apply,
    flow,
)
from orchestrator.spec.spec import Spec
from orchestrator.views.runs import Labels
from workers.catalog import BATCH, Catalog, Problem, RecipeValidation, complete, holds, listed, meant, unknown
from workers.contract import PART_FIELDS, Recipe

Setting = Choice | Rule


class Setter(NamedTuple):
    """What set a path last: its place in the document, and the axis when it was a choice."""

    source: str
    axis: str | None = None
    setting: Setting | None = None


Setters = dict[str, Setter]
"""Who set what, by path of the recipe."""


def base_setters(sources: Sources) -> Setters:
    """The setters of the base recipe."""
    return {path: Setter(source) for path, source in sources.items()}


def with_rank(setters: Setters, settings: Iterable[tuple[str | None, Setting]]) -> Setters:
    """The setters after one more rank, given as (axis, setting): what replaces a part sets it whole."""
    settings = list(settings)
    replaced = {path for _, setting in settings for path, value in setting.patch.items() if _is_part(path, value)}
    found = {path: setter for path, setter in setters.items() if path.partition(".")[0] not in replaced}
    for axis, setting in settings:
        for path, source in setting.sources.items():
            found[path] = Setter(source, axis, setting)
    return found


def setter_of(path: str, setters: Setters) -> Setter:
    """Who set a path, or the nearest part around it; the base recipe where no one did."""
    around = path
    while around not in setters and "." in around:
        around = around.rpartition(".")[0]
    return setters.get(around, Setter(f"recipe.{path}"))


def group_of(setter: Setter, spec: Spec) -> Group | None:
    """The group of the choice that is the setter."""
    if setter.axis is None or setter.setting is None:
        return None
    source = re.sub(r"(\.values)?\[\d+\]$|\.(low|high)$", "", setter.setting.source)
    groups = (spec.compare | spec.tune).get(setter.axis, [])
    return next((group for group in groups if group.source == source), None)


def _is_part(path: str, value: object) -> bool:
    return "." not in path and isinstance(value, dict)


def named_part(kind: str, patch: Patch) -> str | None:
    """The name of the part that a patch puts at `kind`."""
    part = patch.get(kind)
    name = part.get("name") if isinstance(part, dict) else None
    return name if isinstance(name, str) else None


MOST_CHECKED: Final = 5_000


class Combination(NamedTuple):
    """A candidate in its cell."""

    cell: Point
    candidate: Point


def cover(spec: Spec, most: int = MOST_CHECKED) -> Iterator[Combination]:
    """All combinations of compare and tune alternatives where they are at most `most`.

    Else those in which two alternatives that can meet do meet, as far as `most` goes, and then each alternative once.
    """
    if _few(spec, most):
        for cell in cells_of(spec):
            for candidate in points(spec.tune, cell.labels):
                yield Combination(cell, candidate)
        return
    pins = {name: list(_pins(name, axis)) for name, axis in (spec.compare | spec.tune).items()}
    met = chain.from_iterable(product(one, other) for one, other in combinations(pins.values(), 2))
    pairs = (one | other for one, other in islice(met, 10 * most) if _agree(one, other))
    shelves = _Shelves(spec)
    seen: set[tuple[str, ...]] = set()
    for pinned in chain(islice(pairs, most), chain.from_iterable(pins.values())):
        combination = shelves.take(pinned)
        if combination is None:
            continue
        key = (*combination.cell.labels.values(), "", *combination.candidate.labels.values())
        if key not in seen:
            seen.add(key)
            yield combination


def _few(spec: Spec, most: int) -> bool:
    """Whether all combinations can be looked at; stops counting once they are too many."""
    total = 0
    for cell in islice(cells_of(spec), most + 1):
        total += count(spec.tune, cell.labels, most)
        if total > most:
            return False
    return True


def _pins(name: str, axis: Axis) -> Iterator[dict[str, str]]:
    """For each alternative the labels that a combination needs to hold it."""
    for group in axis:
        needed = {other: labels[0] for other, labels in group.when.items() if labels}
        for choice in group.choices:
            yield {**needed, name: choice.label}


def _agree(one: dict[str, str], other: dict[str, str]) -> bool:
    return all(other.get(axis, label) == label for axis, label in one.items())


class _Shelves:
    """The alternatives of every group by label, so that one is found without looking at all."""

    def __init__(self, spec: Spec) -> None:
        self._compare = {name: _Shelf(axis) for name, axis in spec.compare.items()}
        self._tune = {name: _Shelf(axis) for name, axis in spec.tune.items()}

    def take(self, pins: dict[str, str]) -> Combination | None:
        """The first combination that holds the pinned labels, as far as these apply; none where there is none."""
        cell = _first(self._compare, {}, pins)
        candidate = _first(self._tune, cell.labels, pins) if cell else None
        return Combination(cell, candidate) if cell and candidate else None


class _Shelf:
    """The alternatives of an axis by label; what applies is looked up once for all labels that its groups name."""

    def __init__(self, axis: Axis) -> None:
        self._axis = axis
        self._named = named(axis)
        self._found: dict[tuple[str | None, ...], dict[str, Choice] | None] = {}

    def beside(self, labels: Labels) -> dict[str, Choice] | None:
        """Those that apply beside these labels, the first of namesakes; none where the axis does not apply."""
        key = tuple([labels.get(name) for name in self._named])
        if key not in self._found:
            spend(sum(map(weight, self._axis)))
            applying = [group for group in self._axis if applies(group.when, labels)]
            found: dict[str, Choice] = {}
            for choice in (one for group in applying for one in group.choices):
                found.setdefault(choice.label, choice)
            self._found[key] = found if applying else None
        return self._found[key]


def _first(axes: dict[str, _Shelf], given: Labels, pins: dict[str, str]) -> Point | None:
    labels: dict[str, str] = {}
    choices: list[Choice] = []
    for name, shelf in axes.items():
        by_label = shelf.beside({**given, **labels})
        if by_label is not None:
            choice = by_label.get(pins.get(name, "")) or next(iter(by_label.values()), None)
            if choice is None:  # `only` or `without` took them all
                return None
            labels[name] = choice.label
            choices.append(choice)
    return Point(labels, tuple(choices))


MOST_STORED: Final = 512 * 1024 * 1024
"""Bytes of a sweep's rows before anything is trained; 100,000 usual trials take half of it."""
MOST_LABELS: Final = 1_000_000
"""Labels of all cells, and of all candidates: both are held while a sweep is expanded."""
_ROW: Final = 600  # bytes of a trial and its training beside its labels and its recipe


def extent_problems(spec: Spec, catalog: Catalog) -> list[Problem]:
    """Why the rows of a spec that is sound otherwise cannot be kept."""
    cells, (trials, _) = count(spec.compare, {}, MOST_TRIALS), count_trials(spec)
    spend(trials * len(spec.slots) // 8)
    return [*_labels(spec, cells, trials), *_stored(spec, catalog, cells, trials)][:1]


def _labels(spec: Spec, cells: int, trials: int) -> Iterator[Problem]:
    for noun, number, axes in (("cells", cells, spec.compare), ("candidates", trials, spec.tune)):
        if number * len(axes) > MOST_LABELS:
            found = f"{number:,} {noun} with a label on each of {len(axes)} axes are more than {MOST_LABELS:,} labels"
            yield Problem("", f"{found}; name fewer axes, or divide the sweep")


def _stored(spec: Spec, catalog: Catalog, cells: int, trials: int) -> Iterator[Problem]:
    compare, tune, repeat = (sum(_longest_label(*one) for one in spec.axes(role).items()) for role in ROLES)
    size = cells * compare + trials * (tune + repeat + _ROW + _longest_recipe(spec, catalog))
    if size > MOST_STORED:
        found = f"the rows of {trials:,} trials would take up to {size // 2**20:,} MiB"
        right = "write shorter labels and values, or divide the sweep"
        yield Problem("", f"{found}; at most {MOST_STORED // 2**20:,} MiB are allowed: {right}")


def _longest_label(name: str, axis: Axis) -> int:
    return _length(name) + max((_length(choice.label) for group in axis for choice in group.choices), default=0)


def _longest_recipe(spec: Spec, catalog: Catalog) -> int:
    """The bytes of the first recipe, and beside it of the longest value that is set anywhere at each path."""
    cell = next(points(spec.compare, {}))
    first = recipe_of(spec, cell, next(points(spec.tune, cell.labels)))
    longest: dict[str, int] = defaultdict(int)
    for patch in _patches(spec):
        for path, value in patch.items():
            longest[path] = max(longest[path], _length(path) + _length(value))
    whole = complete(Recipe.model_validate(first), catalog).model_dump(mode="json")
    return _length(whole) + sum(longest.values())


def _patches(spec: Spec) -> Iterator[Patch]:
    for role in ROLES:
        for axis in spec.axes(role).values():
            yield from (choice.patch for group in axis for choice in group.choices)
    yield from (rule.patch for rule in spec.rules)


def _length(value: Mapping[str, Any] | Any) -> int:
    """The bytes of a value in the database, which holds ASCII."""
    return len(json.dumps(value)) + 2


class Misplaced:
    """Collects them over all combinations, so that one problem names every part that lacks the hyper-parameter."""

    def __init__(self, spec: Spec, catalog: Catalog) -> None:
        self._spec = spec
        self._catalog = catalog
        self._found: dict[tuple[str, str], tuple[Setter, Setter, dict[str, None]]] = {}

    @property
    def found(self) -> bool:
        """Whether there is any."""
        return bool(self._found)

    def is_one(self, path: str, name: str | None) -> bool:
        """Whether `path` is a hyper-parameter that the part named `name` does not have."""
        kind, dot, option = path.partition(".")
        entry = self._catalog.get(kind, name) if name else None
        # One within a part within it is told by its own part.
        return bool(dot and "." not in option and entry and entry.parameter(option) is None)

    def note(self, path: str, name: str, setter: Setter, part_setter: Setter) -> None:
        """Take note that `setter` gave `path` to the part that `part_setter` chose."""
        source = setter.source
        if setter.axis == path and setter.setting is not None:  # all values of the axis, or of its group, are alike
            group = group_of(setter, self._spec)
            source = group.source if group else source
        _, _, names = self._found.setdefault((source, path), (setter, part_setter, {}))
        names[name] = None

    def problems(self) -> Iterator[Problem]:
        """One problem a hyper-parameter and a place."""
        for (source, path), (setter, part_setter, names) in self._found.items():
            kind, _, option = path.partition(".")
            lacking = f"{kind}s {listed(names)} have" if len(names) > 1 else f"{kind} {listed(names)} has"
            right = self._right(path, setter, part_setter, list(names))
            yield Problem(source, f"{lacking} no hyper-parameter '{option}'; {right}")

    def _right(self, path: str, setter: Setter, part_setter: Setter, names: list[str]) -> str:
        group = group_of(setter, self._spec) if setter.axis == path else None
        if (group or isinstance(setter.setting, Rule)) and part_setter.axis and part_setter.axis != setter.axis:
            when = group.when if group else setter.setting.when if isinstance(setter.setting, Rule) else {}
            labels = self._having(path, part_setter.axis, when.get(part_setter.axis))
            if labels:
                add = "narrow `when` to" if part_setter.axis in when else "add"
                limit = f"{{{part_setter.axis}: {flow(labels)}}}"
                return f"{add} `{limit}`" if part_setter.axis in when else f"{add} `when: {limit}`"
        kind, _, option = path.partition(".")
        entries = [self._catalog.get(kind, name) for name in names]
        known = dict.fromkeys(one.name for entry in entries if entry for one in entry.parameters)
        if kind == "sampler" and option in BATCH and "per_class" in known:
            return "the batch is `classes` x `per_class`"
        return meant(option, known) if known else "it has none"

    def _having(self, path: str, axis: str, among: list[str] | None) -> list[str]:
        """The alternatives of an axis whose part has the hyper-parameter."""
        kind, _, option = path.partition(".")
        groups: list[Group] = (self._spec.compare | self._spec.tune).get(axis, [])
        found: dict[str, None] = {}
        for choice in (choice for group in groups for choice in group.choices):
            entry = self._catalog.get(kind, named_part(kind, choice.patch) or "")
            if entry and entry.parameter(option) and (among is None or choice.label in among):
                found[choice.label] = None
        return list(found)


def rival_problems(spec: Spec, catalog: Catalog) -> list[Problem]:
    """What is wrong with the `prune` of a spec that is sound otherwise."""
    if spec.prune is None:
        return []
    if all(count_candidates(spec, cell.labels, 1) <= 1 for cell in cells_of(spec)):
        message = "nothing competes: every cell has one candidate; add a `tune` axis with several, or leave `prune` out"
        return [Problem("prune", message)]
    if isinstance(spec.prune, Wilcoxon):
        return _tested(spec, spec.prune)
    if isinstance(spec.prune, Race):
        return _raced(spec, spec.prune)
    return _scored(spec, spec.prune.name, catalog)


def _scored(spec: Spec, rule: str, catalog: Catalog) -> list[Problem]:
    """The rules of evaluations have scores on the way, in the trainings of one task at least."""
    metric, trained = spec.select.metric, tasks(spec, catalog)
    if not at_the_end(metric, trained, catalog):
        return []
    watched = stated(trained, "watched")
    right = ["take 'wilcoxon', which judges by repeats", "leave `prune` out"]
    right = [f"select by {watched[0]!r}", *right] if watched else right
    reason = f"{rule!r} judges by scores on the way, and {metric!r} is measured at the end only"
    return [Problem("prune", f"{reason}; {', or '.join(right)}")]


def _tested(spec: Spec, rule: Wilcoxon) -> list[Problem]:
    repeats = max(count(spec.repeat, cell.labels, 1_000) for cell in cells_of(spec))
    # Where all n differences point one way, the one-sided p-value is 2^-n, and there is none smaller.
    needed = max(2, rule.startup)
    while 2.0**-needed >= rule.p:
        needed += 1
    if repeats > needed:
        return []
    so = f"'wilcoxon' with p {rule.p:g} can judge after {needed} repeats at the earliest, so that of {needed + 1} it"
    found = "1 repeat" if repeats == 1 else f"{repeats} repeats"
    return [Problem("prune", f"{so} may spare one; found {found}; add to `repeat`, or raise `p`")]


def _raced(spec: Spec, rule: Race) -> list[Problem]:
    if spec.search.adaptive:
        reason = f"'race' has all candidates of a cell run side by side, and {spec.search.name!r} proposes them in turn"
        return [Problem("prune", f"{reason}; take 'wilcoxon', or leave `search` out")]
    repeats = max(count(spec.repeat, cell.labels, 1_000) for cell in cells_of(spec))
    if repeats > rule.first:
        return []
    so = f"'race' judges after {rule.first} repeats at the earliest, so that of {rule.first + 1} it may spare one"
    found = "1 repeat" if repeats == 1 else f"{repeats} repeats"
    return [Problem("prune", f"{so}; found {found}; add to `repeat`")]


MOST_PROBLEMS: Final = 200
"""Different problems after which no more recipes are looked at."""

_MOST_NOTED: Final = 5_000
"""Problems, of which most are the same in many recipes, after which no more recipes are looked at."""
_JUDGEMENT: Final = 50  # steps: what a recipe costs beside what it has in common with others
_TOLD: Final = 3  # labels that a problem is said to come with; more say nothing

Rank = Sequence[tuple[str | None, Setting]]


class Soundness:
    """Looks at the combinations of a spec one by one, and puts what is alike together."""

    def __init__(self, draft: SpecDraft, catalog: Catalog, most: int = MOST_CHECKED) -> None:
        """`most` combinations are looked at, and as many again so that each alternative is among them."""
        self._spec = draft.spec
        self._catalog = catalog
        self._most = most
        self._judge = RecipeValidation(catalog)
        self._noted = 0
        self._possible: dict[tuple[str | None, str | None], Mapping[str, Mapping[str, None]]] = {}
        self._unreadable = draft.unreadable
        self._base = base_setters(draft.recipe_sources)
        self._misplaced = Misplaced(draft.spec, catalog)
        self._found: dict[Problem, tuple[Setter, list[Labels]]] = {}
        self._seen: list[Labels] = []
        self.datasets: dict[str, None] = {}
        """The names of all data sets that were seen, in order; an empty one where a task takes none."""

    def problems(self) -> list[Problem]:
        """Everything that is wrong with the recipes, each problem once."""
        for combination in cover(self._spec, self._most):
            self._look_at(combination)
            if len(self._found) >= MOST_PROBLEMS or self._noted >= _MOST_NOTED:
                break
        if not self._found and not self._misplaced.found:  # else a repeat would tell the same once more
            self._look_at_repeats()
        told = [Problem(one.path, one.message + self._where(*found)) for one, found in self._found.items()]
        return [*told, *self._misplaced.problems(), *self._unknown_parts({one.path for one in told})]

    def _unknown_parts(self, told: Collection[str]) -> Iterator[Problem]:
        """Parts that do not exist and that no combination trains, since something else always replaces them."""
        settings: list[Setting] = [*self._spec.rules]
        for groups in (self._spec.compare | self._spec.tune).values():
            settings += (choice for group in groups for choice in group.choices)
        base = {path: setter.source for path, setter in self._base.items()}
        patches = [(self._spec.recipe, base, ""), *((one.patch, one.sources, one.source) for one in settings)]
        for patch, sources, source in patches:
            for kind in PART_FIELDS:
                name, path = named_part(kind, patch), sources.get(kind, source or f"recipe.{kind}")
                if name and path not in told and self._catalog.get(kind, name) is None:
                    yield Problem(path, unknown(kind, name, self._catalog.names(kind)))

    def _look_at(self, combination: Combination) -> None:
        labels = {**combination.cell.labels, **combination.candidate.labels}
        self._seen.append(labels)
        ranks: list[Rank] = [
            list(zip(combination.cell.labels, combination.cell.choices, strict=True)),
            [(None, rule) for rule in rules_of(self._spec, combination.cell)],
            list(zip(combination.candidate.labels, combination.candidate.choices, strict=True)),
        ]
        if self._clashes(ranks[:2], combination.cell.labels) or self._clashes(ranks[2:], labels):
            return
        recipe = recipe_of(self._spec, combination.cell, combination.candidate)
        if dataset := named_part("dataset", recipe):
            self.datasets[dataset] = None
        elif self._takes_no_data(recipe):
            self.datasets[""] = None
        self._note_problems(recipe, ranks, labels)

    def _takes_no_data(self, recipe: Mapping[str, Any]) -> bool:
        task = self._catalog.get("task", named_part("task", dict(recipe)) or "")
        return task is not None and "dataset" not in holds(task).must

    def _look_at_repeats(self) -> None:
        """Each alternative of the repeat axes in the first cell where it applies."""
        cells = list(islice(cells_of(self._spec), MOST_CHECKED))
        for axis, groups in self._spec.repeat.items():
            for group in groups:
                cell = next((one for one in cells if applies(group.when, one.labels)), None)
                if cell is None:
                    continue
                recipe = recipe_of(self._spec, cell, next(points(self._spec.tune, cell.labels)))
                for choice in group.choices:
                    if not _is_seed(choice.patch):
                        self._note_problems(apply(recipe, [choice.patch]), [[(axis, choice)]], {axis: choice.label})
        for cell in cells[:1]:
            repeat = next(points(self._spec.repeat, cell.labels))
            self._clashes([list(zip(repeat.labels, repeat.choices, strict=True))], cell.labels)

    def _clashes(self, ranks: Sequence[Rank], labels: Labels) -> bool:
        """Whether two settings of one rank set the same path here, which is noted."""
        for rank in ranks:
            if found := clash([setting.patch for _, setting in rank]):
                path, first, second = found
                # An axis named after the path has every right to it: then the other one is to blame.
                blamed, other = (first, second) if rank[second][0] == path else (second, first)
                axis, setting = rank[blamed]
                source = setting.sources.get(path, setting.source)
                message = f"sets '{path}', as {self._named(*rank[other])} does; only one of them may in one cell"
                self._note(source, message, Setter(source, axis, setting), labels)
                return True
        return False

    def _named(self, axis: str | None, setting: Setting) -> str:
        """A rule by its place, a choice by its axis."""
        role = next((role for role in ROLES if axis in self._spec.axes(role)), None)
        return f"{role}.{axis}" if role else setting.source

    def _note_problems(self, recipe: Mapping[str, Any], ranks: Sequence[Rank], labels: Labels) -> None:
        setters: Setters | None = None
        spend(_JUDGEMENT)
        for problem in self._judge.problems(recipe):
            self._noted += 1
            field = problem.path.partition(".")[0]
            if setters is None:  # most recipes are sound
                setters = self._base
                for rank in ranks:
                    setters = with_rank(setters, rank)
            setter = Setter(problem.path) if field == "select" else setter_of(problem.path, setters)
            if field in self._unreadable and setter_of(field, setters).axis is None:
                continue  # what could not be read may be what is missed; where an axis gives the whole field it is not
            name = named_part(field, dict(recipe))
            if name and self._misplaced.is_one(problem.path, name):
                self._misplaced.note(problem.path, name, setter, setter_of(field, setters))
            else:
                self._note(setter.source, problem.message, setter, labels)

    def _note(self, source: str, message: str, setter: Setter, labels: Labels) -> None:
        self._found.setdefault(Problem(source, message), (setter, []))[1].append(labels)

    def _where(self, setter: Setter, found: Sequence[Labels]) -> str:
        """The labels that a problem comes with, where its setter has it only beside some."""
        own = setter.setting.label if setter.axis and setter.setting and hasattr(setter.setting, "label") else None
        possible, present = self._around(setter.axis if own is not None else None, own), _by_axis(found)
        told = [
            f"{axis} {listed(labels)}"
            for axis, labels in present.items()
            if axis != setter.axis and len(labels) < len(possible.get(axis, ())) and len(labels) <= _TOLD
        ]
        return f" (with {', '.join(told)})" if told else ""

    def _around(self, axis: str | None, label: str | None) -> Mapping[str, Mapping[str, None]]:
        """The labels by axis of all combinations that were looked at, or of those with one label."""
        if (axis, label) not in self._possible:
            around = [labels for labels in self._seen if axis is None or labels.get(axis) == label]
            self._possible[axis, label] = _by_axis(around)
        return self._possible[axis, label]


def _by_axis(points: Sequence[Labels]) -> Mapping[str, Mapping[str, None]]:
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for labels in points:
        for axis, label in labels.items():
            found[axis][label] = None
    return found


def _is_seed(patch: Mapping[str, Any]) -> bool:
    """Whether a patch is a seed that the contract takes, which need not be looked at."""
    seed = patch.get("seed")
    return len(patch) == 1 and type(seed) is int and 0 <= seed < 2**31
