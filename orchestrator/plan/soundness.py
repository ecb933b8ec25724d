"""Whether a spec that could be read can be trained: every part, option, rule and combination of them."""

import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain, combinations, islice, product
from typing import Any, Final, NamedTuple

from orchestrator.plan.layouts import at_the_end, facts_of, tasks
from orchestrator.plan.points import (
    MOST_TRIALS,
    Options,
    Point,
    budget_problems,
    cells_of,
    count,
    count_candidates,
    count_trials,
    points,
    recipe_of,
    rules_of,
    spend,
)
from orchestrator.plan.read import SpecDraft, set_by
from orchestrator.spec.fields import flow
from orchestrator.spec.spec import (
    ROLES,
    Axis,
    Choice,
    Group,
    Patch,
    Race,
    Rule,
    Spec,
    Wilcoxon,
    applies,
    apply,
    seed_of,
)
from orchestrator.views.runs import Labels
from workers.catalog import BATCH, Catalog, Problem, RecipeValidation, holds, listed, suggestion, unknown
from workers.contract import PART_FIELDS

Setting = Choice | Rule


MOST_CHECKED: Final = 5_000


_MOST_STORED: Final = 512 * 1024 * 1024
"""Bytes of a sweep's rows before anything is trained; 100,000 usual trials take half of it."""
_MOST_LABELS: Final = 1_000_000
"""Labels of all cells, and of all candidates: both are held while a sweep is expanded."""
_ROW: Final = 600  # bytes of a trial and its training without its labels and its recipe
_DEFAULTS: Final = 1_000  # bytes that defaults add to a recipe


MOST_PROBLEMS: Final = 200
"""Different problems after which no more recipes are looked at."""

_MOST_NOTED: Final = 5_000
"""Problems, of which most are the same in many recipes, after which no more recipes are looked at."""
_JUDGEMENT: Final = 50  # steps that the check of one recipe counts
_MOST_NAMED: Final = 3  # labels of an axis that a problem names; more would say nothing

Rank = Sequence[tuple[str | None, Setting]]


class Setter(NamedTuple):
    """The origin of a value at a recipe path: its place in the document, and the axis if an alternative set it."""

    source: str
    axis: str | None = None
    setting: Setting | None = None


class Soundness:
    """Checks the recipes of a spec's combinations of alternatives, and groups equal problems."""

    def __init__(self, draft: SpecDraft, catalog: Catalog, most: int = MOST_CHECKED) -> None:
        """`most` combinations are looked at, and as many again so that each alternative is among them."""
        self._spec = draft.spec
        self._catalog = catalog
        self._most = most
        self._judge = RecipeValidation(catalog)
        self._noted = 0
        self._possible: dict[tuple[str | None, str | None], Mapping[str, Mapping[str, None]]] = {}
        self._unreadable = draft.unreadable
        self._base = {path: Setter(source) for path, source in draft.recipe_sources.items()}
        self._misplaced = Misplaced(draft.spec, catalog)
        self._found: dict[Problem, tuple[Setter, list[Labels]]] = {}
        self._seen: list[Labels] = []
        self.datasets: dict[str, None] = {}
        """The names of all data sets of the combinations, in order; an empty name stands for a task without data."""

    def check(self, problems: list[Problem], whole: Spec | None) -> None:
        """Appends the problems of the recipes that the spec expands to, each once, and then those of its size.

        `whole` is the spec before `only` and `without`; None if it has too many trials.
        """
        for cell, candidate in cover(self._spec, self._most):
            self._look_at(cell, candidate)
            if len(self._found) >= MOST_PROBLEMS or self._noted >= _MOST_NOTED:
                break
        found = [*self._located(), *self._misplaced.problems()]
        found += self._unknown_parts({problem.path for problem in found})
        if whole is not None:
            found += _size_problems(whole, self._spec, self._catalog, sound=not problems and not found)
        if not self._found and not self._misplaced.found:  # repeats would report the same problems again
            self._look_at_repeats()
            found += self._located()
        if found:
            problems += found

    def _located(self) -> Iterator[Problem]:
        for problem, where in self._found.items():
            yield Problem(problem.path, problem.message + self._where(*where))

    def _unknown_parts(self, reported: Collection[str]) -> Iterator[Problem]:
        """Parts that do not exist and that no combination trains, since something else always replaces them."""
        settings: list[Setting] = [*self._spec.rules]
        for groups in (self._spec.compare | self._spec.tune).values():
            settings += (choice for group in groups for choice in group.choices)
        base = {path: setter.source for path, setter in self._base.items()}
        patches = [(self._spec.recipe, base, ""), *((one.patch, one.sources, one.source) for one in settings)]
        for patch, sources, source in patches:
            for kind in PART_FIELDS:
                name, path = _named_part(kind, patch), sources.get(kind, source or f"recipe.{kind}")
                if name and path not in reported and self._catalog.get(kind, name) is None:
                    yield Problem(path, unknown(kind, name, self._catalog.names(kind)))

    def _look_at(self, cell: Point, candidate: Point) -> None:
        labels = {**cell.labels, **candidate.labels}
        self._seen.append(labels)
        ranks: list[Rank] = [
            list(zip(cell.labels, cell.choices, strict=True)),
            [(None, rule) for rule in rules_of(self._spec, cell)],
            list(zip(candidate.labels, candidate.choices, strict=True)),
        ]
        recipe = recipe_of(self._spec, cell, candidate)
        if self._clashes(ranks[:2], cell.labels) or self._clashes(ranks[2:], labels):
            return
        if dataset := _named_part("dataset", recipe):
            self.datasets[dataset] = None
        elif self._takes_no_data(recipe):
            self.datasets[""] = None
        self._note_problems(recipe, ranks, labels)

    def _takes_no_data(self, recipe: Mapping[str, Any]) -> bool:
        task = self._catalog.get("task", _named_part("task", dict(recipe)) or "")
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
                    if not 0 <= seed_of(choice) < 2**31:  # which the contract takes
                        self._note_problems(apply(recipe, [choice.patch]), [[(axis, choice)]], {axis: choice.label})
        for cell in cells[:1]:
            repeat = next(points(self._spec.repeat, cell.labels))
            self._clashes([list(zip(repeat.labels, repeat.choices, strict=True))], cell.labels)

    def _clashes(self, ranks: Sequence[Rank], labels: Labels) -> bool:
        """Whether two settings of one rank set the same path in a combination; notes it."""
        for rank in ranks:
            if found := _clash([setting.patch for _, setting in rank]):
                path, first, second = found
                # An axis may set the path that it is named after; then the other setting is to blame.
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
                    setters = _with_rank(setters, rank)
            setter = Setter(problem.path) if field == "select" else _setter_of(problem.path, setters)
            if field in self._unreadable and _setter_of(field, setters).axis is None:
                continue  # what could not be read may be what is missed; where an axis gives the whole field it is not
            name = _named_part(field, dict(recipe))
            if name and self._misplaced.is_one(problem.path, name):
                self._misplaced.note(problem.path, name, setter, _setter_of(field, setters))
            else:
                self._note(setter.source, problem.message, setter, labels)

    def _note(self, source: str, message: str, setter: Setter, labels: Labels) -> None:
        self._found.setdefault(Problem(source, message), (setter, []))[1].append(labels)

    def _where(self, setter: Setter, found: Sequence[Labels]) -> str:
        """The labels with which a problem occurs, if its setter has it with some labels only."""
        own = setter.setting.label if setter.axis and setter.setting and hasattr(setter.setting, "label") else None
        possible, present = self._around(setter.axis if own is not None else None, own), _by_axis(found)
        shown = [
            f"{axis} {listed(labels)}"
            for axis, labels in present.items()
            if axis != setter.axis and len(labels) < len(possible.get(axis, ())) and len(labels) <= _MOST_NAMED
        ]
        return f" (with {', '.join(shown)})" if shown else ""

    def _around(self, axis: str | None, label: str | None) -> Mapping[str, Mapping[str, None]]:
        """The labels by axis of all checked combinations, or of those with a given label."""
        if (axis, label) not in self._possible:
            around = [labels for labels in self._seen if axis is None or labels.get(axis) == label]
            self._possible[axis, label] = _by_axis(around)
        return self._possible[axis, label]


Setters = dict[str, Setter]
"""The last setter of each path of a recipe."""


class Misplaced:
    """Collects hyper-parameters that were given to parts that lack them, to report each hyper-parameter once."""

    def __init__(self, spec: Spec, catalog: Catalog) -> None:
        self._spec = spec
        self._catalog = catalog
        self.found: dict[tuple[str, str], tuple[Setter, Setter, dict[str, None]]] = {}

    def is_one(self, path: str, name: str | None) -> bool:
        """Whether the recipe path `path` is a hyper-parameter that the part `name` lacks."""
        kind, dot, option = path.partition(".")
        entry = self._catalog.get(kind, name) if name else None
        # A hyper-parameter of a part within a part is reported by that part.
        return bool(dot and "." not in option and entry and entry.parameter(option) is None)

    def note(self, path: str, name: str, setter: Setter, part_setter: Setter) -> None:
        """Record that `setter` gave the hyper-parameter `path` to the part that `part_setter` chose."""
        source = setter.source
        if setter.axis == path and setter.setting is not None:  # all values of the axis or group have the problem
            group = _group_of(setter, self._spec)
            source = group.source if group else source
        _, _, names = self.found.setdefault((source, path), (setter, part_setter, {}))
        names[name] = None

    def problems(self) -> Iterator[Problem]:
        """One problem for each misplaced hyper-parameter and place in the document."""
        for (source, path), (setter, part_setter, names) in self.found.items():
            kind, _, option = path.partition(".")
            lacking = f"{kind}s {listed(names)} have" if len(names) > 1 else f"{kind} {listed(names)} has"
            right = self._right(path, setter, part_setter, list(names))
            yield Problem(source, f"{lacking} no hyper-parameter '{option}'; {right}")

    def _right(self, path: str, setter: Setter, part_setter: Setter, names: list[str]) -> str:
        group = _group_of(setter, self._spec) if setter.axis == path else None
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
        return suggestion(option, known) if known else "it has none"

    def _having(self, path: str, axis: str, among: list[str] | None) -> list[str]:
        """The alternatives of an axis whose part has the hyper-parameter."""
        kind, _, option = path.partition(".")
        groups: list[Group] = (self._spec.compare | self._spec.tune).get(axis, [])
        found: dict[str, None] = {}
        for choice in (choice for group in groups for choice in group.choices):
            entry = self._catalog.get(kind, _named_part(kind, choice.patch) or "")
            if entry and entry.parameter(option) and (among is None or choice.label in among):
                found[choice.label] = None
        return list(found)


def _clash(patches: Sequence[Patch]) -> tuple[str, int, int] | None:
    """A path that two patches of one rank set, and their positions."""
    setters: dict[str, int] = {}
    for position, patch in enumerate(patches):
        for path in set_by(patch):
            if setters.setdefault(path, position) != position:
                return path, setters[path], position
    return None


def _group_of(setter: Setter, spec: Spec) -> Group | None:
    """The group of the choice that is the setter."""
    if setter.axis is None or setter.setting is None:
        return None
    source = re.sub(r"(\.values)?\[\d+\]$|\.(low|high)$", "", setter.setting.source)
    groups = (spec.compare | spec.tune).get(setter.axis, [])
    return next((group for group in groups if group.source == source), None)


def _named_part(kind: str, patch: Patch) -> str | None:
    """The name of the part that a patch puts at `kind`."""
    part = patch.get(kind)
    name = part.get("name") if isinstance(part, dict) else None
    return name if isinstance(name, str) else None


def cover(spec: Spec, most: int = MOST_CHECKED) -> Iterator[tuple[Point, Point]]:
    """Combinations of compare and tune alternatives to check: all of them, if there are at most `most`.

    Otherwise up to `most` combinations that together hold each compatible pair of alternatives, then each alternative
    once.
    """
    if _few(spec, most):
        yield from ((cell, one) for cell in cells_of(spec) for one in points(spec.tune, cell.labels))
        return
    pins = {name: list(_pins(name, axis)) for name, axis in (spec.compare | spec.tune).items()}
    met = chain.from_iterable(product(one, other) for one, other in combinations(pins.values(), 2))
    agreeing = (both for one, other in islice(met, 10 * most) if (both := one | other) == other | one)
    compare, tune = ({name: Options(axis) for name, axis in axes.items()} for axes in (spec.compare, spec.tune))
    seen: set[tuple[str, ...]] = set()
    for pinned in chain(islice(agreeing, most), chain.from_iterable(pins.values())):
        if (cell := _first(compare, {}, pinned)) is None:
            continue
        if (candidate := _first(tune, cell.labels, pinned)) is None:
            continue
        key = (*cell.labels.values(), "", *candidate.labels.values())
        if key not in seen:
            seen.add(key)
            yield cell, candidate


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


def _first(axes: Mapping[str, Options], given: Labels, pins: Mapping[str, str]) -> Point | None:
    """The first point with the pinned labels, as far as they apply; None if no point exists."""
    labels: dict[str, str] = {}
    choices: list[Choice] = []
    for name, options in axes.items():
        around = {**given, **labels}
        applying = options.alternatives(around)
        if applying is not None:
            choice = options.labelled(pins.get(name, ""), around) or next(iter(applying), None)
            if choice is None:  # `only` or `without` took them all
                return None
            labels[name] = choice.label
            choices.append(choice)
    return Point(labels, tuple(choices))


def _with_rank(setters: Setters, settings: Rank) -> Setters:
    """The setters after one more rank of (axis, setting); a setting that replaces a part sets all of it."""
    replaced = {
        path
        for _, setting in settings
        for path, value in setting.patch.items()
        if "." not in path and isinstance(value, dict)
    }
    found = {path: setter for path, setter in setters.items() if path.partition(".")[0] not in replaced}
    for axis, setting in settings:
        for path, source in setting.sources.items():
            found[path] = Setter(source, axis, setting)
    return found


def _setter_of(path: str, setters: Setters) -> Setter:
    """The setter of a path or of the nearest part around it; by default the base recipe."""
    around = path
    while around not in setters and "." in around:
        around = around.rpartition(".")[0]
    return setters.get(around, Setter(f"recipe.{path}"))


def _by_axis(points: Sequence[Labels]) -> Mapping[str, Mapping[str, None]]:
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for labels in points:
        for axis, label in labels.items():
            found[axis][label] = None
    return found


def _size_problems(whole: Spec, spec: Spec, catalog: Catalog, *, sound: bool) -> list[Problem]:
    """Problems of the numbers of candidates, repeats and trials; if the spec is not `sound`, of its budget alone."""
    if (budget := spec.select.budget) is not None and (found := budget_problems(spec, budget, catalog, sound=sound)):
        return found
    return (rival_problems(whole, catalog) or _extent_problems(spec)) if sound else []


def _extent_problems(spec: Spec) -> list[Problem]:
    """Problems of a valid spec whose labels and recipes would make the database rows too large."""
    cells, (trials, _) = count(spec.compare, {}, MOST_TRIALS), count_trials(spec)
    spend(trials * len(spec.slots) // 8)
    return [*_labels(spec, cells, trials), *_stored(spec, cells, trials)][:1]


def _labels(spec: Spec, cells: int, trials: int) -> Iterator[Problem]:
    for noun, number, axes in (("cells", cells, spec.compare), ("candidates", trials, spec.tune)):
        if number * len(axes) > _MOST_LABELS:
            found = f"{number:,} {noun} with a label on each of {len(axes)} axes are more than {_MOST_LABELS:,} labels"
            yield Problem("", f"{found}; name fewer axes, or divide the sweep")


def _stored(spec: Spec, cells: int, trials: int) -> Iterator[Problem]:
    compare, tune, repeat = (
        sum(
            _length(name) + max((_length(choice.label) for group in axis for choice in group.choices), default=0)
            for name, axis in spec.axes(role).items()
        )
        for role in ROLES
    )
    size = cells * compare + trials * (tune + repeat + _ROW + _longest_recipe(spec))
    if size > _MOST_STORED:
        found = f"the rows of {trials:,} trials would take up to {size // 2**20:,} MiB"
        right = "write shorter labels and values, or divide the sweep"
        yield Problem("", f"{found}; at most {_MOST_STORED // 2**20:,} MiB are allowed: {right}")


def _length(value: Mapping[str, Any] | Any) -> int:
    """The bytes of a value in the database, which holds ASCII."""
    return len(json.dumps(value)) + 2


def _longest_recipe(spec: Spec) -> int:
    """An upper bound of the bytes of a recipe: the first recipe, plus the longest value that is set at each path."""
    cell = next(points(spec.compare, {}))
    first = recipe_of(spec, cell, next(points(spec.tune, cell.labels)))
    longest: dict[str, int] = defaultdict(int)
    for patch in islice(spec.patches(), 1, None):
        for path, value in patch.items():
            longest[path] = max(longest[path], _length(path) + _length(value))
    return _length(first) + _DEFAULTS + sum(longest.values())


def rival_problems(spec: Spec, catalog: Catalog) -> list[Problem]:
    """Problems of the `prune` block of an otherwise valid spec, such as cells with too few candidates or repeats."""
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


def _tested(spec: Spec, rule: Wilcoxon) -> list[Problem]:
    # The smallest one-sided p-value of n differences is 2^-n, when all have the same sign.
    needed = max(2, rule.startup)
    while 2.0**-needed >= rule.p:
        needed += 1
    so = f"'wilcoxon' with p {rule.p:g} can judge after {needed} repeats at the earliest, so that of {needed + 1} it"
    return _too_few_repeats(spec, needed, f"{so} may spare one", ", or raise `p`")


def _raced(spec: Spec, rule: Race) -> list[Problem]:
    if spec.search.adaptive:
        reason = f"'race' has all candidates of a cell run side by side, and {spec.search.name!r} proposes them in turn"
        return [Problem("prune", f"{reason}; take 'wilcoxon', or leave `search` out")]
    so = f"'race' judges after {rule.first} repeats at the earliest, so that of {rule.first + 1} it may spare one"
    return _too_few_repeats(spec, rule.first, so, "")


def _too_few_repeats(spec: Spec, needed: int, so: str, instead: str) -> list[Problem]:
    repeats = max(count(spec.repeat, cell.labels, 1_000) for cell in cells_of(spec))
    found = "1 repeat" if repeats == 1 else f"{repeats} repeats"
    return [] if repeats > needed else [Problem("prune", f"{so}; found {found}; add to `repeat`{instead}")]


def _scored(spec: Spec, rule: str, catalog: Catalog) -> list[Problem]:
    """Rules that judge by evaluations need scores before the end, in at least one task."""
    metric, trained = spec.select.metric, tasks(spec, catalog)
    if not at_the_end(metric, trained, catalog):
        return []
    watched = facts_of(trained, "watched")
    right = ["take 'wilcoxon', which judges by repeats", "leave `prune` out"]
    right = [f"select by {watched[0]!r}", *right] if watched else right
    reason = f"{rule!r} judges by scores on the way, and {metric!r} is measured at the end only"
    return [Problem("prune", f"{reason}; {', or '.join(right)}")]
