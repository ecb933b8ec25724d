"""Reads an axis: a list of alternatives, or groups of them that each apply in some cells."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, Final

from orchestrator.plan.problems import effort
from orchestrator.plan.reading.patch import path_problem, read_patch, read_value
from orchestrator.plan.reading.span import read_span
from orchestrator.plan.reading.when import Known, read_when
from orchestrator.spec.axis import Axis, Choice, Group, Span
from orchestrator.spec.label import label_of
from orchestrator.spec.recipe import PARTS
from orchestrator.spec.when import exclusive
from workers.catalog import Problem, brief, meant, shown
from workers.contract import canonical_json

LONGEST_LABEL: Final = 100
MOST_GROUPS: Final = 1000

NO_RANGES: Final = (
    "search 'grid' needs values; a range (`low`, `high`) is for adaptive search: `search: {name: tpe, trials: 50}`"
)
ONLY_TUNE: Final = "a range (`low`, `high`) is for `tune` only; list the values here"
_GROUP_KEYS: Final = ("values", "when")
_SPAN_KEYS: Final = ("low", "high", "log", "step")
_LABELLED_KEYS: Final = ("label", "patch")

Shared = Mapping[str, Mapping[str, Any]]
"""The options that all alternatives of an axis have in common which name the same part, by that name."""


class AxisReader:
    """Reads one axis, noting what is wrong with it; what is readable is kept, so that it can be checked further."""

    def __init__(
        self, axis: str, source: str, known: Known, problems: list[Problem], no_ranges: str | None = NO_RANGES
    ) -> None:
        """`no_ranges` is why a range cannot stand here; none where it can."""
        self._axis = axis
        self._source = source
        self._known = known
        self._problems = problems
        self._no_ranges = no_ranges
        self._shared: Shared = {}
        self._spans: dict[str, Span] = {}

    def read(self, posted: Any) -> Axis:
        """The axis written out; without groups when nothing of it is readable."""
        groups = self._groups(posted)
        values = [value for _, given, _ in groups for value, _ in given]
        self._shared = _shared(values)
        wrong = path_problem(self._axis)
        if wrong and not all(_is_labelled(value) for value in values):
            self._note(self._source, f"{wrong} (An axis of another name needs alternatives with `label` and `patch`.)")
            return []
        axis = []
        for source, given, when in groups:
            choices = [choice for value, place in given if (choice := self._choice(value, place))]
            if unlike := list(self._without_repeats(choices)):
                axis.append(Group(when=when, choices=unlike, span=self._spans.get(source), source=source))
        self._check_overlaps(axis)
        return axis

    def _note(self, source: str, message: str) -> None:
        self._problems.append(Problem(source, message))

    # Groups

    def _groups(self, posted: Any) -> list[tuple[str, list[tuple[Any, str]], dict[str, list[str]]]]:
        """Each group's place, its values with theirs, and its `when`."""
        if isinstance(posted, Mapping):
            return self._group(posted, self._source)
        if not isinstance(posted, list):
            self._note(self._source, f"expected a list of alternatives, such as [{_bare(posted)}]")
            return []
        if not posted:
            self._note(self._source, "the list is empty; an axis needs at least one alternative")
        if not any(_is_group(item) for item in posted):
            return [(self._source, [(value, f"{self._source}[{at}]") for at, value in enumerate(posted)], {})]
        if len(posted) > MOST_GROUPS:
            self._note(self._source, f"the axis has {len(posted):,} groups; at most {MOST_GROUPS:,} are allowed")
            return []
        groups = []
        for at, item in enumerate(posted):
            if _is_group(item):
                groups += self._group(item, f"{self._source}[{at}]")
            else:
                self._note(f"{self._source}[{at}]", "an alternative beside groups; put it into the `values` of one")
        return groups

    def _group(self, posted: Mapping[str, Any], source: str) -> list[tuple[str, list[tuple[Any, str]], Any]]:
        span = "low" in posted or "high" in posted
        if span and self._no_ranges:
            self._note(source, self._no_ranges)
            return []
        self._refuse_unknown(posted, (*_SPAN_KEYS, "when") if span else _GROUP_KEYS, source)
        when = read_when(posted["when"], f"{source}.when", self._known, self._problems) if "when" in posted else {}
        if span:
            return [(source, ends, when)] if (ends := self._ends(posted, source)) else []
        values = posted.get("values")
        if not isinstance(values, list) or not values:
            self._note(f"{source}.values", f"expected a list of at least one alternative, found {shown(values)}")
            return []
        return [(source, [(value, f"{source}.values[{at}]") for at, value in enumerate(values)], when)]

    def _ends(self, posted: Mapping[str, Any], source: str) -> list[tuple[Any, str]]:
        """The two ends of a posted range, which is noted; nothing where it is none."""
        if path_problem(self._axis):
            self._note(source, "a range sets one path, so the axis must be named after it, such as 'optimizer.lr'")
            return []
        span = read_span(posted, source, self._problems)
        if span is None:
            return []
        self._spans[source] = span
        return [(posted["low"], f"{source}.low"), (posted["high"], f"{source}.high")]

    def _refuse_unknown(self, posted: Mapping[str, Any], known: tuple[str, ...], source: str) -> None:
        for key in posted:
            if key not in known:
                self._note(f"{source}.{key}", f"there is no key {shown(key)} here; {meant(key, known)}")

    def _without_repeats(self, choices: list[Choice]) -> Iterator[Choice]:
        labels: dict[str, str] = {}
        patches: dict[str, str] = {}
        for choice in choices:
            content = canonical_json(_plain(choice.patch))
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
                    effort.spend(own + sum(map(len, earlier.when.values())) // 4)
                    if not exclusive(group.when, earlier.when):
                        both = f"stands in {earlier.source} too, and both groups can apply in one cell"
                        self._note(choice.source, f"{shown(choice.label)} {both}")
            for choice in group.choices:
                holders[choice.label].append(group)

    # Alternatives

    def _choice(self, value: Any, source: str) -> Choice | None:
        if _is_labelled(value):
            return self._labelled(value, source)
        if isinstance(value, Mapping) and "name" not in value and ("low" in value or "high" in value):
            self._note(source, self._no_ranges or "a range stands in place of `values`, not among them")
            return None
        if isinstance(value, Mapping) and self._axis not in PARTS:
            self._note(source, f"expected a value, or an alternative with `label` and `patch`; found {shown(value)}")
            return None
        patch, sources = read_value(self._axis, value, source, self._problems)
        label = self._label(value)
        if not patch or not self._is_label(label, source):
            return None
        return Choice(label=label, patch=patch, source=source, sources=sources)

    def _labelled(self, value: Mapping[str, Any], source: str) -> Choice | None:
        if "patch" not in value and "name" in value:
            right = (
                f"{{label: {_bare(value['label'])}, patch: {{{self._axis}: {{name: {_bare(value['name'])}, ...}}}}}}"
            )
            self._note(source, f"a part has no `label`; write {right}")
            return None
        self._refuse_unknown(value, _LABELLED_KEYS, source)
        label, posted = value.get("label"), value.get("patch")
        if label is None or isinstance(label, list | Mapping):
            self._note(f"{source}.label", f"expected a text that names the alternative, found {shown(label)}")
            return None
        if not isinstance(posted, Mapping) or not posted:
            self._note(f"{source}.patch", f"expected a mapping from paths to values, found {shown(posted)}")
            return None
        patch, sources = read_patch(posted, f"{source}.patch", self._problems)
        if not self._is_label(label_of(label), f"{source}.label"):
            return None
        return Choice(label=label_of(label), patch=patch, source=source, sources=sources) if patch else None

    def _is_label(self, label: str, source: str) -> bool:
        if label.strip() and label.isprintable() and len(label) <= LONGEST_LABEL:
            return True
        self._note(source, f"expected a label of 1 to {LONGEST_LABEL} printable characters, found {shown(label)}")
        return False

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
        return " ".join(([] if name is None else [label_of(name)]) + ([", ".join(telling)] if telling else []))


def alternatives(posted: Any) -> int:
    """How many alternatives a posted axis has, as far as it is readable."""
    if isinstance(posted, Mapping):
        posted = posted.get("values")
    if not isinstance(posted, list):
        return 1
    return sum(alternatives(one) if _is_group(one) else 1 for one in posted)


def _bare(value: Any) -> str:
    """A value as it is written in YAML, cut where it is long."""
    return brief(value) if isinstance(value, str) else shown(value)


def _is_group(item: Any) -> bool:
    return (
        isinstance(item, Mapping)
        and "name" not in item
        and any(key in item for key in ("values", "when", "low", "high"))
    )


def _is_labelled(value: Any) -> bool:
    return isinstance(value, Mapping) and ("patch" in value or "label" in value)


def _shared(values: list[Any]) -> Shared:
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
