"""Reads a posted document into a spec, keeping what is readable so that all problems can be told at once."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from orchestrator.plan.problems.sentences import sentences
from orchestrator.plan.reading.axis import LONGEST_LABEL, NO_RANGES, ONLY_TUNE, AxisReader, alternatives
from orchestrator.plan.reading.patch import read_patch
from orchestrator.plan.reading.prune import read_prune
from orchestrator.plan.reading.slots import read_slot, read_slots
from orchestrator.plan.reading.subset import read_labels
from orchestrator.plan.reading.when import read_when
from orchestrator.spec.axis import ROLES, Axis, Role
from orchestrator.spec.patch import Patch, Rule, Sources, apply
from orchestrator.spec.recipe import FIELDS, base_recipe
from orchestrator.spec.search import Search, SearchName
from orchestrator.spec.selection import Selection
from orchestrator.spec.slot import Slot
from orchestrator.spec.spec import Spec
from orchestrator.spec.when import When
from workers.catalog import Problem, meant, near, shown

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
