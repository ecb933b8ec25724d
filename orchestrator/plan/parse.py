"""Reads a posted document into the normalized spec, or reports every problem."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, TypeVar, get_args

from pydantic import BaseModel, JsonValue, ValidationError

from orchestrator.plan.axes import (
    LONGEST_LABEL,
    NO_RANGES,
    ONLY_TUNE,
    AxisReader,
    Known,
    alternatives,
    match,
    read_patch,
    read_when,
)
from orchestrator.plan.points import cells_of, points
from orchestrator.plan.problems import sentences
from orchestrator.spec.axes import (
    FIELDS,
    PRUNES,
    ROLES,
    Axis,
    Choice,
    Group,
    Patch,
    Prune,
    Role,
    Rule,
    Search,
    SearchName,
    Selection,
    Slot,
    SlotRule,
    Sources,
    When,
    applies,
    apply,
    base_recipe,
    held,
    label_of,
)
from orchestrator.spec.spec import Spec
from orchestrator.views.runs import Labels
from workers.catalog import Problem, listed, meant, near, shown


def read_prune(posted: Any, problems: list[Problem]) -> Prune | None:
    """The rule that was posted, a name or a mapping; none where there is none, or where it cannot be read."""
    if posted is None:
        return None
    given = {"name": posted} if isinstance(posted, str) else posted
    if not isinstance(given, Mapping):
        problems.append(Problem("prune", f"expected a name or a mapping with `name`, found {shown(posted)}"))
        return None
    name = given.get("name")
    if name is None:
        problems.append(Problem("prune.name", f"is missing; {meant('', PRUNES)}"))
        return None
    if not isinstance(name, str) or name not in PRUNES:
        problems.append(Problem("prune.name", f"there is no rule {shown(name)}; {meant(str(name), PRUNES)}"))
        return None
    rule = PRUNES[name]
    problems += _misplaced(name, given)
    try:
        return rule.model_validate({key: one for key, one in given.items() if key in rule.model_fields}, strict=True)
    except ValidationError as error:
        problems += sentences(error, "prune", rule)
        return None


def _misplaced(name: str, given: Iterable[str]) -> list[Problem]:
    """The options that another rule takes, or none."""
    known = PRUNES[name].model_fields
    takes = ", ".join(f"`{one}`" for one in known if one != "name")
    found = []
    for key in given:
        if key in known:
            continue
        owners = [other for other, rule in PRUNES.items() if key in rule.model_fields]
        whose = f"is an option of {' and '.join(owners)}" if owners else f"is not known here; {meant(key, known)}"
        found.append(Problem(f"prune.{key}", f"{whose}; '{name}' takes {takes}"))
    return found


MOST_LOOKED_AT: Final = 100_000
MOST_SLOT_RULES: Final = 1_000
SLOT_FIELDS: Final = tuple(Slot.model_fields)


def read_slot(posted: Mapping[str, Any], source: str, problems: list[Problem]) -> dict[str, JsonValue]:
    """The fields of a slot that are named, with shares of a GPU written out; notes what is wrong with them."""
    try:
        slot = Slot.model_validate(dict(posted), strict=True)
    except ValidationError as error:
        problems.extend(sentences(error, source, Slot))
        return {}
    named = {field: value for field, value in slot.model_dump(mode="json").items() if field in posted}
    if isinstance(slot.gpus, float | int) and "gpus" in posted:
        right, share = _share(slot.gpus)
        if right:
            problems.append(Problem(f"{source}.gpus", f"expected {right}; found {shown(slot.gpus)}"))
        named["gpus"] = share
    if "resources" in posted:  # which an empty mapping takes back
        named["resources"] = dict(slot.resources)
    return named


def read_slots(posted: Any, known: Known, problems: list[Problem]) -> list[SlotRule]:
    """The entries of `slots`; notes what is wrong with them."""
    if posted is None:
        return []
    expected = "expected a list of mappings with `when` and what the slot has there"
    if not isinstance(posted, list):
        problems.append(Problem("slots", f"{expected}, found {shown(posted)}"))
        return []
    if len(posted) > MOST_SLOT_RULES:
        problems.append(Problem("slots", f"there are {len(posted):,} entries; at most {MOST_SLOT_RULES:,} are allowed"))
        return []
    rules: list[SlotRule] = []
    for at, entry in enumerate(posted):
        source = f"slots[{at}]"
        if not isinstance(entry, Mapping):
            problems.append(Problem(source, f"{expected}, found {shown(entry)}"))
            continue
        when = read_when(entry.get("when"), f"{source}.when", known, problems)
        given = {field: value for field, value in entry.items() if field != "when"}
        if not given:
            problems.append(Problem(source, f"names nothing of a slot; {meant('', SLOT_FIELDS)}"))
            continue
        rules.append(SlotRule(when=when, slot=read_slot(given, source, problems)))
    return rules


def slot_of(spec: Spec, labels: Labels) -> Slot | None:
    """The slot of the trials with these labels of compare and tune axes; none: that of the spec."""
    if not spec.slots:
        return None
    slot = _slot(spec, labels)
    return None if slot == spec.slot else slot


def where(spec: Spec, labels: Labels) -> str:
    """What gives trials with these labels a slot of their own: `dataset=sop`; empty where nothing does."""
    rules = [rule for rule in spec.slots if applies(rule.when, labels)]
    axes = dict.fromkeys(axis for rule in rules for axis in rule.when)
    return ", ".join(f"{axis}={labels[axis]}" for axis in axes)


def slots(spec: Spec) -> Iterator[tuple[Slot, str]]:
    """Every different slot of a spec's trials, and which trials it is of (empty: those without a slot of their own)."""
    told: set[str] = set()
    for labels in islice(_places(spec), MOST_LOOKED_AT):
        slot = _slot(spec, labels)
        key = slot.model_dump_json()
        if key not in told:
            told.add(key)
            yield slot, "" if slot == spec.slot else where(spec, labels)


def _slot(spec: Spec, labels: Labels) -> Slot:
    named: dict[str, JsonValue] = spec.slot.model_dump(mode="json")
    for rule in spec.slots:
        if applies(rule.when, labels):
            named |= rule.slot
    return Slot.model_validate(named)


def _places(spec: Spec) -> Iterator[Labels]:
    """The labels that decide on slots, of every candidate."""
    if not spec.slots:
        yield {}
        return
    tuned = any(axis in spec.tune for rule in spec.slots for axis in rule.when)
    for cell in cells_of(spec):
        if not tuned:
            yield cell.labels
            continue
        for candidate in points(spec.tune, cell.labels):
            yield {**cell.labels, **candidate.labels}


def _share(gpus: float) -> tuple[str | None, float]:
    """What would be right instead of a number of GPUs (none: it is right), and the number that is meant."""
    if 0 <= gpus <= 1024 and float(gpus).is_integer():
        return None, gpus
    if 0.001 <= gpus < 1 and 0.98 <= gpus * round(1 / gpus) <= 1.005:  # 0.33 and 0.334 mean a third
        return None, 1 / round(1 / gpus)
    if not 0.001 <= gpus <= 1024:
        return "0, a whole number up to 1,024, or a share that fills a GPU, such as 0.5 or 0.25", gpus
    if gpus > 1:
        return f"a whole number such as {int(gpus)} or {int(gpus) + 1}, or a share that fills a GPU, such as 0.5", gpus
    parts = int(1 / gpus)
    near = [f"{1 / count:.4g}" for count in (parts, parts + 1)]
    return f"a share that fills a GPU (1/k), such as {near[0]} or {near[1]}", gpus


SUBSET_KEYS: Final = ("only", "without")

NOWHERE: Final = ""
"""The label of an axis for the trials in which it does not apply, as tables write it."""

_MANY: Final = 30  # labels that a message lists

Conditional = TypeVar("Conditional", Group, Rule, SlotRule)

Seen = Mapping[str, Collection[str]]
"""The labels that some trial has, by axis."""


def read_labels(posted: Any, key: str, known: Known, recipe: Patch, problems: list[Problem]) -> When:
    """A posted `only` or `without` with each label spelt as its axis does; empty where anything is wrong with it."""
    if not isinstance(posted, Mapping) or not posted:
        example = "expected a mapping from axes to their labels, such as {dataset: [cub200, cars196]}"
        problems.append(Problem(key, f"{example}; found {shown(posted)}"))
        return {}
    wrong: list[Problem] = []
    labels: When = {}
    for axis, given in posted.items():
        if axis in known:
            labels[axis] = _labels(axis, given, f"{key}.{axis}", known[axis], wrong)
        else:
            wrong.append(Problem(f"{key}.{axis}", _no_axis(axis, known, recipe)))
    problems += wrong
    return {} if wrong else labels


def _no_axis(axis: str, known: Known, recipe: Patch) -> str:
    if value := held(axis, recipe):
        return f"'{axis}' is no axis: the recipe holds {shown(value)} for all trials"
    axes = f"the axes are {listed(known)}" if known else "the spec has none"
    return f"there is no axis {shown(axis)}; {f'{meant(axis, known)} ' if near(axis, known) else ''}{axes}"


def _labels(axis: str, given: Any, source: str, labels: Collection[str] | None, problems: list[Problem]) -> list[str]:
    values = given if isinstance(given, list) else [given]
    if not values or any(value is None or isinstance(value, list | Mapping) for value in values):
        problems.append(Problem(source, f"expected a label or a list of labels, found {shown(given)}"))
        return []
    if labels is None:  # an axis with problems of its own, which are told
        return []
    matches = [NOWHERE if value == NOWHERE else match(value, labels) for value in values]
    strange = [label_of(value) for value, label in zip(values, matches, strict=True) if label is None]
    if strange:
        right = f"{meant(strange[0], labels)} " if near(strange[0], labels) else ""
        has = f"it has {listed(list(labels)[:_MANY])}{', ...' if len(labels) > _MANY else ''}"
        problems.append(Problem(source, f"axis '{axis}' has no alternative {listed(strange)}; {right}{has}"))
    return [label for label in matches if label is not None]


def narrowed(spec: Spec, problems: list[Problem]) -> Spec:
    """The spec of the subset alone, its tables and figures as they were; notes why there is none.

    Alternatives of which no trial is left are gone. A group that is left without any stays, so that its cells do not
    become such in which the axis does not apply.
    """
    if not spec.only and not spec.without:
        return spec
    if wrong := list(_filled_up(spec)):
        problems += wrong
        return spec
    limited = _with_axes(spec, lambda name, axis: _limited(axis, name, spec))
    seen = _seen(limited)
    if seen is None:
        given = [(key, axis, labels) for key in SUBSET_KEYS for axis, labels in getattr(spec, key).items()]
        taken = ", ".join(
            f"{key} {axis} {' or '.join(shown(label) for label in labels)}" for key, axis, labels in given
        )
        problems.append(Problem(given[0][0], f"no trial is left: {taken}"))
        return spec
    return _without_unseen(limited, seen)


def _filled_up(spec: Spec) -> Iterator[Problem]:
    """What forbids to take some candidates of a cell: others would come in their place."""
    for key in SUBSET_KEYS:
        for axis in getattr(spec, key):
            if axis in spec.tune and spec.search.adaptive:
                yield Problem(
                    f"{key}.{axis}", f"search '{spec.search.name}' draws from '{axis}'; change the axis itself"
                )
            elif axis in spec.tune and spec.select.budget is not None:
                yield Problem(f"{key}.{axis}", "`select.budget` would fill the cells up again; leave one of them out")


def _with_axes(spec: Spec, changed: Callable[[str, Axis], Axis]) -> Spec:
    """The spec with each axis changed; one of which no group is left is gone."""
    roles: dict[str, dict[str, Axis]] = {}
    for role in ROLES:
        axes = {name: changed(name, axis) for name, axis in spec.axes(role).items()}
        roles[role] = {name: axis for name, axis in axes.items() if axis}
    return spec.model_copy(update=roles)


def _limited(axis: Axis, name: str, spec: Spec) -> Axis:
    wanted, unwanted = spec.only.get(name), spec.without.get(name, [])
    if wanted is None and not unwanted:
        return axis

    def taken(label: str) -> bool:
        return (wanted is None or label in wanted) and label not in unwanted

    kept = [_with_choices(group, [one for one in group.choices if taken(one.label)]) for group in axis]
    return kept if taken(NOWHERE) else [*kept, Group(choices=[])]  # which applies everywhere, without an alternative


def _with_choices(group: Group, choices: Sequence[Choice]) -> Group:
    return group.model_copy(update={"choices": list(choices)})


def _seen(spec: Spec) -> Seen | None:
    """The labels of all trials by axis; none where no trial is left. Those that a search draws from count as seen."""
    seen: dict[str, dict[str, None]] = defaultdict(dict)
    empty = True
    for cell in cells_of(spec):
        empty = False
        inner = [spec.repeat] if spec.search.adaptive else [spec.tune, spec.repeat]
        for point in (cell, *(point for axes in inner for point in points(axes, cell.labels))):
            for axis, label in point.labels.items():
                seen[axis][label] = None
    if spec.search.adaptive:
        seen |= {
            name: dict.fromkeys(one.label for group in axis for one in group.choices)
            for name, axis in spec.tune.items()
        }
    return None if empty else seen


def _without_unseen(spec: Spec, seen: Seen) -> Spec:
    found = _with_axes(spec, lambda name, axis: _remaining(axis, seen.get(name, ()), seen))
    return found.model_copy(update={"rules": _applying(spec.rules, seen), "slots": _applying(spec.slots, seen)})


def _applying(rules: Sequence[Conditional], seen: Seen) -> list[Conditional]:
    found = [(rule, left(rule.when, seen)) for rule in rules]
    return [rule.model_copy(update={"when": when}) for rule, when in found if when is not None]


def _remaining(axis: Axis, labels: Collection[str], seen: Seen) -> Axis:
    found = [_with_choices(group, [one for one in group.choices if one.label in labels]) for group in axis]
    found = _applying(found, seen)
    always = any(group.choices and not group.when for group in found)
    return [group for group in found if group.choices or not always]


def left(when: When, seen: Seen) -> When | None:
    """What is left of a `when`; none where nothing that it names is."""
    found = {axis: [label for label in labels if label in seen.get(axis, ())] for axis, labels in when.items()}
    return found if all(found.values()) else None


KEYS: Final = tuple(Spec.model_fields)
"""The keys of a spec, in the order in which it reads best."""

SEARCHES: Final[tuple[str, ...]] = get_args(SearchName)
MOST_AXES: Final = 40
MOST_ALTERNATIVES: Final = 20_000
MOST_RULES: Final = 1_000
LONGEST_NAME: Final = 100
LONGEST_DESCRIPTION: Final = 10_000

Block = TypeVar("Block", bound=BaseModel)


@dataclass
class SpecDraft:
    """A spec as far as it was readable; its tables are still as posted."""

    spec: Spec
    recipe_sources: Sources
    tables: Any
    unreadable: set[str] = field(default_factory=set)
    """The recipe's fields whose values are unknown, so that nothing can be said of them."""


def as_meant(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """The document with misspelt keys as they were meant, so that one mistake is one problem."""
    renamed = {key: near(key, KEYS) for key in document if isinstance(key, str) and key not in KEYS}
    free = {key: right for key, right in renamed.items() if right is not None and right not in document}
    return {free.get(key, key): value for key, value in document.items()} if free else document


def read(document: Mapping[str, Any], problems: list[Problem]) -> SpecDraft:
    """The draft of a posted mapping; notes what is wrong with its form."""
    for key in document:
        if key not in KEYS:
            problems.append(Problem(key, f"there is no key {shown(key)} in a spec; {meant(key, KEYS)}"))
    document = as_meant(document)
    reader = _Reader(document, problems)
    reader.version()
    recipe, sources = reader.recipe()
    search = reader.search()
    few = reader.few_alternatives()
    axes = {role: reader.axes(role, _no_ranges(role, search)) if few else {} for role in ROLES}
    spec = Spec(
        name=reader.line("name", LONGEST_NAME),
        description=reader.description(),
        recipe=recipe,
        compare=axes["compare"],
        tune=axes["tune"],
        repeat=axes["repeat"],
        rules=reader.rules(),
        only=reader.taken("only", recipe),
        without=reader.taken("without", recipe),
        select=reader.block("select", Selection()),
        slot=reader.slot(),
        slots=read_slots(document.get("slots"), reader.before("tune"), problems),
        search=search,
        prune=read_prune(document.get("prune"), problems),
        fresh=reader.fresh(),
    )
    return SpecDraft(spec, sources, document.get("tables"), reader.unreadable)


class _Reader:
    def __init__(self, document: Mapping[str, Any], problems: list[Problem]) -> None:
        self._document = document
        self._problems = problems
        self._labels: dict[Role, dict[str, dict[str, None] | None]] = {role: {} for role in ROLES}
        self.unreadable: set[str] = set()

    def _note(self, path: str, message: str) -> None:
        self._problems.append(Problem(path, message))

    def _mapping(self, key: str) -> Mapping[str, Any]:
        """The mapping at a key; empty where there is none."""
        posted = self._document.get(key)
        if isinstance(posted, Mapping):
            return posted
        if posted is not None:
            self._note(key, f"expected a mapping, found {shown(posted)}")
        return {}

    def version(self) -> None:
        posted = self._document.get("version")
        if posted is None:
            self._note("version", "is missing; write `version: 1`")
        elif posted != 1 or isinstance(posted, bool):
            self._note("version", f"expected 1, found {shown(posted)}")

    def line(self, key: str, longest: int) -> str:
        posted = self._document.get(key)
        if posted is None:
            self._note(key, f"is missing; write `{key}: ` and 1 to {longest} printable characters")
        elif not isinstance(posted, str) or not posted.strip() or not posted.isprintable() or len(posted) > longest:
            self._note(key, f"expected 1 to {longest} printable characters, found {shown(posted)}")
        else:
            return posted
        return ""

    def description(self) -> str:
        posted = self._document.get("description")
        if isinstance(posted, str) and len(posted) <= LONGEST_DESCRIPTION:
            return posted
        if posted is not None:
            self._note("description", f"expected a text of at most {LONGEST_DESCRIPTION:,} characters")
        return ""

    def fresh(self) -> bool:
        posted = self._document.get("fresh")
        if posted is not None and not isinstance(posted, bool):
            self._note("fresh", f"expected true or false, found {shown(posted)}")
        return posted is True

    def recipe(self) -> tuple[dict[str, Any], Sources]:
        """The base recipe, and where in the document its values stand."""
        if self._document.get("recipe") is None:
            self._note("recipe", "is missing; it holds what all trainings share, such as `dataset` and `iterations`")
        known = len(self._problems)
        patch, sources = read_patch(self._mapping("recipe"), "recipe", self._problems)
        for problem in self._problems[known:]:
            self._set_aside(problem.path.partition(".")[2].partition(".")[0])
        return apply(base_recipe(), [patch]), sources

    def few_alternatives(self) -> bool:
        """Whether the axes have no more alternatives than are worth a look; notes it where they have."""
        axes = [
            axis
            for role in ROLES
            if isinstance(posted := self._document.get(role), Mapping)
            for axis in posted.values()
        ]
        count = sum(map(alternatives, axes))
        if count > MOST_ALTERNATIVES:
            said = f"all axes together have {count:,} alternatives; at most {MOST_ALTERNATIVES:,} are allowed"
            self._note("", said)
            self.unreadable |= {*FIELDS}
        return count <= MOST_ALTERNATIVES

    def axes(self, role: Role, no_ranges: str | None) -> dict[str, Axis]:
        posted = self._mapping(role)
        if len(posted) > MOST_AXES:
            self._note(role, f"there are {len(posted):,} axes; at most {MOST_AXES} are allowed")
            return {}
        axes: dict[str, Axis] = {}
        for name, values in posted.items():
            source = f"{role}.{name}"
            if not name.strip() or not name.isprintable() or len(name) > LONGEST_LABEL:
                self._note(source, f"expected an axis' name of 1 to {LONGEST_LABEL} printable characters")
                continue
            if other := next((other for other in ROLES if other != role and name in self._labels[other]), None):
                self._note(source, f"'{name}' is an axis of `{other}` already; an axis has one role")
                continue
            axis = AxisReader(name, source, self.before(role), self._problems, no_ranges).read(values)
            self._labels[role][name] = dict.fromkeys(one.label for group in axis for one in group.choices) or None
            if axis:
                axes[name] = axis
            else:
                self._labels[role][self._set_aside(name)] = None
        return axes

    def _set_aside(self, path: str) -> str:
        """Say nothing more of a path that is not readable, nor of the one that was meant by it, which is given."""
        field, dot, option = path.partition(".")
        meant_field = near(field, FIELDS) or field
        self.unreadable |= {field, meant_field}
        return f"{meant_field}{dot}{option}"

    def before(self, role: Role) -> dict[str, dict[str, None] | None]:
        """The axes that a `when` of this role may name: compare axes, and earlier ones of the role."""
        return self._labels["compare"] | (self._labels["tune"] if role == "tune" else {})

    def taken(self, key: str, recipe: Patch) -> When:
        """The labels of `only` or `without`, which may name any axis."""
        posted = self._document.get(key)
        every = {axis: labels for role in ROLES for axis, labels in self._labels[role].items()}
        return {} if posted is None else read_labels(posted, key, every, recipe, self._problems)

    def rules(self) -> list[Rule]:
        posted = self._document.get("rules")
        if posted is None:
            return []
        if not isinstance(posted, list):
            self._note("rules", f"expected a list of mappings with `when` and `patch`, found {shown(posted)}")
            return []
        if len(posted) > MOST_RULES:
            self._note("rules", f"there are {len(posted):,} rules; at most {MOST_RULES:,} are allowed")
            return []
        return [rule for at, one in enumerate(posted) if (rule := self._rule(one, f"rules[{at}]"))]

    def _rule(self, posted: Any, source: str) -> Rule | None:
        if not isinstance(posted, Mapping):
            self._note(source, f"expected a mapping with `when` and `patch`, found {shown(posted)}")
            return None
        for key in posted:
            if key not in ("when", "patch"):
                self._note(f"{source}.{key}", f"there is no key {shown(key)} here; {meant(key, ('when', 'patch'))}")
        when = read_when(posted.get("when"), f"{source}.when", self.before("compare"), self._problems)
        given = posted.get("patch")
        if not isinstance(given, Mapping) or not given:
            self._note(f"{source}.patch", f"expected a mapping from paths to values, found {shown(given)}")
            return None
        patch, sources = read_patch(given, f"{source}.patch", self._problems)
        return Rule(when=when, patch=patch, source=source, sources=sources)

    def block(self, key: str, default: Block) -> Block:
        """A flat block of the spec, with its defaults."""
        try:
            return type(default).model_validate(dict(self._mapping(key)), strict=True)
        except ValidationError as error:
            self._problems.extend(sentences(error, key, type(default)))
            self.unreadable.add(key)
            return default

    def slot(self) -> Slot:
        return Slot.model_validate(read_slot(self._mapping("slot"), "slot", self._problems))

    def search(self) -> Search:
        posted = self._document.get("search")
        if isinstance(posted, str):
            posted = {"name": posted}
        elif posted is not None and not isinstance(posted, Mapping):
            self._note("search", f"expected a name or a mapping with `name`, found {shown(posted)}")
        given = posted if isinstance(posted, Mapping) else {}
        name = given.get("name", "grid")
        if name not in SEARCHES:
            self._note("search.name", f"there is no search {shown(name)}; {meant(str(name), SEARCHES)}")
            return Search()
        try:
            search = Search.model_validate(dict(given), strict=True)
        except ValidationError as error:
            self._problems.extend(sentences(error, "search", Search))
            return Search(name=name, trials=1)
        self._check_search(search, given)
        return search

    def _check_search(self, search: Search, given: Mapping[str, Any]) -> None:
        if not search.adaptive:
            for key in given:
                if key != "name":
                    self._note(f"search.{key}", f"search 'grid' runs every candidate and takes no `{key}`")
        elif search.trials is None and search.name != "brute_force":
            self._note("search.trials", f"is missing; say how many candidates '{search.name}' may try in each cell")


def _no_ranges(role: Role, search: Search) -> str | None:
    if role != "tune":
        return ONLY_TUNE
    return None if search.adaptive else NO_RANGES
