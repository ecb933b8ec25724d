"""Reads a posted document: the posted models find what is wrong with its form, and what they hold is written out."""

import itertools
import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, TypeVar

from pydantic import ValidationError

from orchestrator.plan.points import spend
from orchestrator.spec.fields import (
    UNION,
    UNREADABLE,
    Reading,
    When,
    count_alternatives,
    label_of,
    number_of,
    with_corrected_keys,
)
from orchestrator.spec.layouts import FigureSpec, TableSpec
from orchestrator.spec.posted import (
    LONGEST_LABEL,
    MOST_ALTERNATIVES,
    PostedChoice,
    PostedGroup,
    PostedRange,
    PostedSlotRule,
    PostedSpec,
)
from orchestrator.spec.spec import (
    ELSEWHERE,
    FIELDS,
    PARTS,
    ROLES,
    Axis,
    Choice,
    Group,
    Patch,
    Role,
    Rule,
    Search,
    SlotRule,
    Sources,
    Span,
    Spec,
    apply,
    recipe_label,
)
from orchestrator.views.errors import InvalidSpecError, TooLargeError
from workers.catalog import (
    BATCH,
    MOST_REPORTED,
    Document,
    DocumentError,
    DocumentTooLargeError,
    Problem,
    brief,
    listed,
    load,
    load_document,
    near,
    shown,
    suggested_part_field,
    suggestion,
)
from workers.contract import Part, Recipe

T = TypeVar("T")

KEYS: Final = tuple(PostedSpec.model_fields)
"""The keys of a spec, in the order in which it reads best."""
SUBSET_KEYS: Final = ("only", "without")
NOWHERE: Final = ""
"""The label of an axis for the trials in which it does not apply, as tables write it."""

_NEVER: Final[When] = {"": ["-"]}
"""Stands for a condition that cannot be read: it never applies."""
_FEW: Final = 1_000
"""Labels that are compared as numbers too, which takes a look at each."""
_LISTED: Final = 30
"""Labels of an axis that a message lists."""

Known = Mapping[str, Collection[str] | None]
"""The labels of the axes that a condition may name; None for an axis with problems of its own."""


@dataclass
class SpecDraft:
    """A spec whose form has been read, as far as possible; its tables and figures are not checked yet."""

    spec: Spec
    recipe_sources: Sources
    tables: Mapping[str, TableSpec]
    figures: Mapping[str, FigureSpec]
    unreadable: set[str] = field(default_factory=set)
    """The recipe's fields whose values are unknown, so that nothing can be said of them."""
    has_recipe: bool = True


def spec_document(text: bytes) -> Document:
    """Parse a posted YAML text as plain data; raises InvalidSpecError, or TooLargeError over 1 MiB."""
    try:
        return load_document(text)
    except DocumentTooLargeError as error:
        raise TooLargeError(f"The spec is too large: {error}.") from None
    except DocumentError as error:
        raise InvalidSpecError(error.problems) from None


def read(document: Mapping[str, Any], problems: list[Problem]) -> SpecDraft:
    """Reads a posted mapping as a draft of a spec; appends every problem of form."""
    reader = _Reader(problems)
    posted = reader.posted(document)
    recipe, sources = reader.recipe(posted.recipe)
    adaptive = posted.search.adaptive
    reader.check_search(posted.search, adaptive)
    axes = {role: reader.axes(role, getattr(posted, role), adaptive) for role in ROLES}
    same = ("name", "description", "select", "slot", "search", "prune", "fresh")
    spec = Spec(
        **{key: getattr(posted, key) for key in same},
        recipe=recipe,
        **axes,
        rules=reader.rules(posted),
        only=reader.labels("only", posted.only, recipe),
        without=reader.labels("without", posted.without, recipe),
        slots=reader.slots(posted),
    )
    return SpecDraft(spec, sources, posted.tables, posted.figures, reader.unreadable, "recipe" not in reader.lost)


class _Reader:
    def __init__(self, problems: list[Problem]) -> None:
        self._problems = problems
        self._labels: dict[Role, dict[str, dict[str, None] | None]] = {role: {} for role in ROLES}
        self.unreadable: set[str] = set()
        self.lost: set[str] = set()
        """The keys of the spec that are missing or cannot be read."""

    def _note(self, path: str, message: str) -> None:
        self._problems.append(Problem(path, message))

    def posted(self, document: Mapping[str, Any]) -> PostedSpec:
        """The document in its posted form; what cannot be read has its default."""
        for key in (key for key in document if key not in KEYS):
            self._note(key, f"there is no key {shown(key)} in a spec; {suggestion(key, KEYS)}")
        given = with_corrected_keys({key: value for key, value in document.items() if value is not None}, KEYS)
        axes = [axis for role in ROLES if isinstance(block := given.get(role), Mapping) for axis in block.values()]
        if (count := sum(map(count_alternatives, axes))) > MOST_ALTERNATIVES:
            most = f"at most {MOST_ALTERNATIVES:,} are allowed"
            self._note("", f"all axes together have {count:,} alternatives; {most}")
            self.unreadable |= {*FIELDS}
            given = {key: value for key, value in given.items() if key not in ROLES}
        try:
            return PostedSpec.model_validate(given, strict=True, context=Reading())
        except ValidationError as error:
            self._problems += form_problems(error)
        defaults: dict[str, Any] = {"version": 1, "name": "", "recipe": {}}
        posted = PostedSpec.model_validate(defaults | given, strict=True, context=Reading(lenient=True))
        lost = [key for key in KEYS if getattr(posted, key) is UNREADABLE]
        self.lost = {*lost, *(defaults.keys() - given.keys())}
        self.unreadable |= self.lost & {"select"}
        fields = PostedSpec.model_fields
        found = {key: defaults.get(key, fields[key].get_default(call_default_factory=True)) for key in lost}
        if "search" in lost:
            found["search"] = Search(name="random", trials=1)  # so that ranges may stand in its axes
        return posted.model_copy(update=found)

    def recipe(self, posted: Mapping[str, Any]) -> tuple[Patch, Sources]:
        """The base recipe, and where in the document its values stand."""
        known = len(self._problems)
        patch, sources = read_patch(posted, "recipe", self._problems)
        for problem in self._problems[known:]:
            self._set_aside(problem.path.partition(".")[2].partition(".")[0])
        return apply(base_recipe(), [patch]), sources

    def check_search(self, search: Search, adaptive: bool) -> None:
        """Notes what a search lacks, and what means nothing for it."""
        if not adaptive:
            for name in Search.model_fields:
                if name in search.model_fields_set - {"name"}:
                    self._note(f"search.{name}", f"search 'grid' runs every candidate and takes no `{name}`")
        elif search.trials is None and search.name != "brute_force":
            needed = f"say how many candidates '{search.name}' may try in each cell"
            self._note("search.trials", f"is missing; {needed}")

    def _set_aside(self, path: str) -> str:
        """Report nothing more of a path that cannot be read, nor of the path that it is a near miss of."""
        first, dot, option = path.partition(".")
        meant_field = near(first, FIELDS) or first
        self.unreadable |= {first, meant_field}
        return f"{meant_field}{dot}{option}"

    def axes(self, role: Role, posted: Mapping[str, Any], adaptive: bool) -> dict[str, Axis]:
        """The axes of a role."""
        axes: dict[str, Axis] = {}
        for name, values in posted.items():
            source = f"{role}.{name}"
            if other := next((other for other in ROLES if other != role and name in self._labels[other]), None):
                self._note(source, f"'{name}' is an axis of `{other}` already; an axis has one role")
                continue
            axis: Axis = []
            if values is not UNREADABLE:
                no_ranges = _ONLY_TUNE if role != "tune" else None if adaptive else NO_RANGES
                axis = _AxisReader(name, source, self._before(role), self._problems).read(values, no_ranges)
            self._labels[role][name] = dict.fromkeys(choice.label for group in axis for choice in group.choices) or None
            if axis:
                axes[name] = axis
            else:
                self._labels[role][self._set_aside(name)] = None
        return axes

    def _before(self, role: Role) -> Known:
        """The axes that a condition of this role may name: compare axes, and earlier axes of the role."""
        return self._labels["compare"] | (self._labels["tune"] if role == "tune" else {})

    def rules(self, posted: PostedSpec) -> list[Rule]:
        """The rules of the spec."""
        rules = []
        for at, rule in readable(enumerate(posted.rules)):
            source = f"rules[{at}]"
            when = matched(rule.when, f"{source}.when", self._before("compare"), self._problems)
            patch, sources = read_patch(rule.patch, f"{source}.patch", self._problems)
            rules.append(Rule(when=when, patch=patch, source=source, sources=sources))
        return rules

    def slots(self, posted: PostedSpec) -> list[SlotRule]:
        """What the slot has otherwise for some labels."""
        entries: Iterable[tuple[int, PostedSlotRule]] = readable(enumerate(posted.slots))
        return [
            SlotRule(
                when=matched(entry.when, f"slots[{at}].when", self._before("tune"), self._problems),
                slot={name: getattr(entry, name) for name in type(entry).model_fields
                      if name in entry.model_fields_set and name != "when"},
            )
            for at, entry in entries
        ]  # fmt: skip

    def labels(self, key: str, posted: When, recipe: Patch) -> When:
        """The labels of `only` or `without`, which may name any axis."""
        every = {axis: labels for role in ROLES for axis, labels in self._labels[role].items()}
        return taken(posted, key, every, recipe, self._problems)


# Problems


@dataclass(frozen=True, slots=True)
class DocumentPlace:
    """A place in a document, such as `tables.main`, with the list that collects the problems of the whole document."""

    path: str
    problems: list[Problem]

    def note(self, field: str, message: str) -> None:
        """Append a problem of one field of this place; the field "" means the place itself."""
        self.problems.append(Problem(f"{self.path}.{field}" if field else self.path, message))


def form_problems(error: ValidationError) -> Iterator[Problem]:
    """Converts a pydantic error to problems with paths; at most as many as are reported."""
    for details in itertools.islice(error.errors(include_url=False), MOST_REPORTED + 1):
        yield Problem(_path(details["loc"]), details["msg"])


def _path(loc: Sequence[str | int]) -> str:
    """A path such as `compare.loss[3].label`; the members of unions are left out."""
    path = ""
    for step in loc:
        if isinstance(step, int):
            path += f"[{step}]"
        elif not step.startswith(UNION) and step != "[key]":
            path += f".{step}" if path else step
    return path


# Conditions


def readable(items: Iterable[tuple[Any, T]]) -> Iterator[tuple[Any, T]]:
    """The entries of a mapping or the indexed items of a list, without those that failed lenient validation."""
    return ((key, item) for key, item in items if item is not UNREADABLE)


def exclusive(one: When, other: When) -> bool:
    """Whether no point of the grid can satisfy both conditions."""
    return any(axis in other and not set(wanted) & set(other[axis]) for axis, wanted in one.items())


def match(label: str, labels: Collection[str]) -> str | None:
    """The label that a posted label means: the same text, or an equal number in another spelling; None if unknown."""
    if label in labels:
        return label
    value = number_of(label) if len(labels) <= _FEW else None
    if value is None:
        return None
    spend(len(labels))
    return next((known for known in labels if number_of(known) == value), None)


def matched(when: When, source: str, known: Known, problems: list[Problem]) -> When:
    """A condition with each label in its axis's own spelling; appends unknown axes and labels to `problems`."""
    if when is UNREADABLE:
        return _NEVER
    found: When = {}
    for axis, values in when.items():
        found[axis] = values
        if axis not in known:
            right = suggestion(axis, known) if known else "no axis is"
            problems.append(Problem(source, f"no axis {shown(axis)} is applied before this; {right}"))
        elif (labels := known[axis]) is not None:
            found[axis], strange = _spelt(values, labels)
            if strange:
                message = f"axis '{axis}' has no alternative {listed(strange)}; {suggestion(strange[0], labels)}"
                problems.append(Problem(f"{source}.{axis}", message))
    return found


def _spelt(values: Sequence[str], labels: Collection[str]) -> tuple[list[str], list[str]]:
    """The labels as their axis spells them, and those that it does not have."""
    matches = {label: match(label, labels) for label in values}
    strange = [label for label, known in matches.items() if known is None]
    return [known or label for label, known in matches.items()], strange


def taken(posted: When, key: str, known: Known, recipe: Patch, problems: list[Problem]) -> When:
    """The labels that the `only` or `without` of a spec names, by axis, as the axes spell them; empty after any
    problem.
    """
    wrong: list[Problem] = []
    found: When = {}
    for axis, values in posted.items():
        source = f"{key}.{axis}"
        if axis not in known:
            wrong.append(Problem(source, _no_axis(axis, known, recipe)))
            continue
        if (labels := known[axis]) is None:  # its own problems are reported
            continue
        found[axis], strange = _spelt(values, [*labels, NOWHERE] if NOWHERE in values else labels)
        if strange:
            right = f"{suggestion(strange[0], labels)} " if near(strange[0], labels) else ""
            has = f"it has {listed(list(labels)[:_LISTED])}{', ...' if len(labels) > _LISTED else ''}"
            wrong.append(Problem(source, f"axis '{axis}' has no alternative {listed(strange)}; {right}{has}"))
    if wrong:
        problems += wrong
        return {}
    return found


def _no_axis(axis: str, known: Known, recipe: Patch) -> str:
    if value := recipe_label(axis, recipe):
        return f"'{axis}' is no axis: the recipe holds {shown(value)} for all trials"
    axes = f"the axes are {listed(known)}" if known else "the spec has none"
    return f"there is no axis {shown(axis)}; {f'{suggestion(axis, known)} ' if near(axis, known) else ''}{axes}"


# Patches


def base_recipe() -> Patch:
    """The recipe before a spec sets anything: the default parts of the contract, and no validation split."""
    defaults = {name: field.default for name, field in Recipe.model_fields.items()}
    parts: Patch = {name: {"name": part.name} for name, part in defaults.items() if isinstance(part, Part)}
    return parts | {"validation": {"name": "none"}}


def read_patch(posted: Mapping[str, Any], source: str, problems: list[Problem]) -> tuple[Patch, Sources]:
    """Expands a posted patch to paths and values, with the place in the document of each path; appends problems."""
    patch: Patch = {}
    sources: Sources = {}
    decided: set[str] = set()
    for path, value in posted.items():
        values, places = _read_value(path, value, f"{source}.{path}", problems)
        deciding = set(set_by(values))
        for twice in sorted(deciding & decided):
            problems.append(Problem(places.get(twice, f"{source}.{path}"), f"'{twice}' is set twice in this patch"))
        decided |= deciding
        patch |= values
        sources |= places
    return patch, sources


def _read_value(path: str, value: Any, source: str, problems: list[Problem]) -> tuple[Patch, Sources]:
    """The patch that a value posted at `path` is: a name or a mapping with `name` replaces a part, others merge."""
    if wrong := _path_problem(path):
        problems.append(Problem(source, wrong))
        return {}, {}
    if path not in PARTS:
        return {path: value}, {path: source}
    if isinstance(value, str):
        return {path: {"name": value}}, {path: source}
    if not isinstance(value, Mapping) or not value:
        expected = f"expected the name of a {path}, or a mapping with its `name`"
        problems.append(Problem(source, f"{expected}; found {shown(value)}"))
        return {}, {}
    places = {f"{path}.{option}": f"{source}.{option}" for option in value if option != "name"}
    if "name" not in value:
        return {f"{path}.{option}": given for option, given in value.items()}, places
    return {path: dict(value)}, {path: source} | places


def _path_problem(path: str) -> str | None:
    """Why `path` is no path of a recipe; None where it is one."""
    first, dot, option = path.partition(".")
    if first in ELSEWHERE:
        return ELSEWHERE[first]
    if first not in FIELDS:
        return f"a recipe has no field {shown(first)}; {_of_parts().get(first) or suggestion(first, FIELDS)}"
    if dot and first not in PARTS:
        return f"{shown(first)} is a plain value and has nothing within it"
    if dot and (option.count(".") > (first != "validation") or not all(option.split("."))):
        return f"{shown(path)} is no path; a path within a part is such as 'loss.alpha', or 'backbone.of.width'"
    if option.rpartition(".")[2] == "name":
        return f"write '{path.rpartition('.')[0]}' for the part that '{path}' would name"
    return None


@lru_cache(maxsize=1)
def _of_parts() -> dict[str, str]:
    """What would be right for the name of a hyper-parameter where a field of the recipe is expected."""
    catalog = load()
    names = {*BATCH, *(parameter.name for entry in catalog.entries for parameter in entry.parameters)}
    return {name: right for name in names if (right := suggested_part_field(name, catalog))}


def set_by(patch: Patch) -> Iterable[str]:
    """The paths that a patch sets: a replaced part, and each option that the patch gives it."""
    for path, value in patch.items():
        yield path
        if path in PARTS and isinstance(value, dict):
            yield from (f"{path}.{option}" for option in value if option != "name")


# Axes


NO_RANGES: Final = (
    "search 'grid' needs values; a range (`low`, `high`) is for adaptive search: `search: {name: tpe, trials: 50}`"
)
_ONLY_TUNE: Final = "a range (`low`, `high`) is for `tune` only; list the values here"


_Group = tuple[str, Sequence[tuple[str, Any]], When, Span | None]
"""The place of a group, its alternatives with theirs, its condition, and its range."""


class _AxisReader:
    """Writes one axis out, noting what is wrong with it; what is right is kept, so that it can be checked further."""

    def __init__(self, axis: str, source: str, known: Known, problems: list[Problem]) -> None:
        self._axis, self._source, self._known, self._problems = axis, source, known, problems
        self._shared: dict[str, dict[str, Any]] = {}

    def read(self, posted: Any, no_ranges: str | None) -> Axis:
        """The axis written out; `no_ranges` says why a range cannot stand here, None where it can."""
        groups = list(self._groups(posted, no_ranges))
        values = [value for _, given, _, _ in groups for _, value in given]
        wrong = _path_problem(self._axis)
        if wrong and not all(isinstance(value, PostedChoice) for value in values):
            self._note(self._source, f"{wrong} (An axis of another name needs alternatives with `label` and `patch`.)")
            return []
        self._shared = _shared(values)
        axis = []
        for source, given, when, span in groups:
            choices = [choice for place, value in given if (choice := self._choice(value, place))]
            if unlike := list(self._without_repeats(choices)):
                axis.append(Group(when=when, choices=unlike, span=span, source=source))
        self._check_overlaps(axis)
        return axis

    def _note(self, source: str, message: str) -> None:
        self._problems.append(Problem(source, message))

    # Groups

    def _groups(self, posted: Any, no_ranges: str | None) -> Iterator[_Group]:
        grouped = [(self._source, posted)]
        if isinstance(posted, list):
            grouped = [(f"{self._source}[{at}]", item) for at, item in readable(enumerate(posted))]
            if not any(isinstance(item, PostedGroup | PostedRange) for _, item in grouped):
                yield self._source, grouped, {}, None
                return
        for source, group in grouped:
            when = matched(group.when, f"{source}.when", self._known, self._problems)
            if isinstance(group, PostedGroup):
                values = [(f"{source}.values[{at}]", value) for at, value in readable(enumerate(group.values))]
                yield source, values, when, None
            elif no_ranges:
                self._note(source, no_ranges)
            elif _path_problem(self._axis):
                self._note(source, "a range sets one path, so the axis must be named after it, such as 'optimizer.lr'")
            else:
                yield source, [(f"{source}.low", group.low), (f"{source}.high", group.high)], when, _span(group)

    def _without_repeats(self, choices: list[Choice]) -> Iterator[Choice]:
        labels: dict[str, str] = {}
        patches: dict[str, str] = {}
        for choice in choices:
            content = json.dumps(_plain(choice.patch), sort_keys=True)
            if first := labels.get(choice.label):
                self._note(choice.source, f"{shown(choice.label)} stands twice; first at {first}")
            elif first := patches.get(content):
                self._note(choice.source, f"{shown(choice.label)} changes nothing else than {first} does")
            else:
                labels[choice.label] = patches[content] = choice.source
                yield choice

    def _check_overlaps(self, axis: Axis) -> None:
        """A label means one thing in a cell: groups that can apply together have none in common."""
        holders: dict[str, list[Group]] = defaultdict(list)
        for group in axis:
            own = 1 + sum(map(len, group.when.values())) // 4
            for choice in group.choices:
                for earlier in holders[choice.label]:
                    spend(own + sum(map(len, earlier.when.values())) // 4)
                    if not exclusive(group.when, earlier.when):
                        both = f"stands in {earlier.source} too, and both groups can apply in one cell"
                        self._note(choice.source, f"{shown(choice.label)} {both}")
            for choice in group.choices:
                holders[choice.label].append(group)

    # Alternatives

    def _choice(self, value: Any, source: str) -> Choice | None:
        if isinstance(value, PostedChoice):
            label, place = value.label, source
            patch, sources = read_patch(value.patch, f"{source}.patch", self._problems)
            return Choice(label=label, patch=patch, source=place, sources=sources) if patch else None
        if isinstance(value, Mapping) and "label" in value:
            label, name = (_bare(value[key]) for key in ("label", "name"))
            written = f"{{label: {label}, patch: {{{self._axis}: {{name: {name}, ...}}}}}}"
            self._note(source, f"a part has no `label`; write {written}")
            return None
        if isinstance(value, Mapping) and "name" not in value and ("low" in value or "high" in value):
            self._note(source, "a range stands in place of `values`, not among them")
            return None
        if isinstance(value, Mapping) and self._axis not in PARTS:
            self._note(source, f"expected a value, or an alternative with `label` and `patch`; found {shown(value)}")
            return None
        patch, sources = _read_value(self._axis, value, source, self._problems)
        label = self._label(value)
        if patch and not (label.strip() and label.isprintable() and len(label) <= LONGEST_LABEL):
            right = f"expected a label of 1 to {LONGEST_LABEL} printable characters"
            self._note(source, f"{right}, found {shown(label)}")
            return None
        return Choice(label=label, patch=patch, source=source, sources=sources) if patch else None

    def _label(self, value: Any) -> str:
        """The text of a bare value; the name of a part, with the options that set it apart from its namesakes."""
        if not isinstance(value, Mapping):
            return label_of(value)
        name = value.get("name")
        if name is not None and not isinstance(name, str):
            return shown(name)
        shared = self._shared.get(name, {}) if name is not None else {}
        telling = [
            f"{option}={label_of(given)}"
            for option, given in value.items()
            if option != "name" and (option not in shared or shared[option] != given)
        ]
        return " ".join(([] if name is None else [name]) + ([", ".join(telling)] if telling else []))


def _span(posted: PostedRange) -> Span:
    whole = all(isinstance(number, int) for number in (posted.low, posted.high, posted.step or 0))
    return Span(low=posted.low, high=posted.high, log=posted.log, step=posted.step, whole=whole)


def _bare(value: Any) -> str:
    """A value as it is written in YAML, cut where it is long."""
    return brief(value) if isinstance(value, str) else shown(value)


def _shared(values: list[Any]) -> dict[str, dict[str, Any]]:
    """The options that all alternatives of an axis which name the same part have in common, by that name."""
    shared: dict[str, dict[str, Any]] = {}
    for value in values:
        part = {"name": value} if isinstance(value, str) else value
        if isinstance(part, Mapping) and isinstance(name := part.get("name"), str):
            common = shared.setdefault(name, dict(part))
            for option in [option for option in common if option not in part or part[option] != common[option]]:
                del common[option]
    return shared


def _plain(value: Any) -> Any:
    """A value in which 1.0 is 1, so that equal numbers are equal texts."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
