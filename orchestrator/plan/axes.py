"""Reads the axes of a spec: alternatives, their patches and their conditions."""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from orchestrator.plan.problems import spend
from orchestrator.spec.axes import (
    ELSEWHERE,
    FIELDS,
    PARTS,
    Axis,
    Choice,
    Group,
    Patch,
    Sources,
    Span,
    When,
    exclusive,
    label_of,
    number_of,
)
from workers.catalog import BATCH, Problem, brief, listed, load, meant, meant_of_parts, shown
from workers.contract import canonical_json


def path_problem(path: str) -> str | None:
    """Why `path` is no path of a recipe; None where it is one."""
    field, dot, option = path.partition(".")
    if field in ELSEWHERE:
        return ELSEWHERE[field]
    if field not in FIELDS:
        right = _of_parts().get(field) or meant(field, FIELDS)
        return f"a recipe has no field {shown(field)}; {right}"
    if dot and field not in PARTS:
        return f"{shown(field)} is a plain value and has nothing within it"
    if dot and (not option or "." in option):
        return f"{shown(path)} is no path; one within a part has one dot, such as 'loss.alpha'"
    if option == "name":
        return f"write '{field}' for the part that '{path}' would name"
    return None


def read_patch(posted: Mapping[str, Any], source: str, problems: list[Problem]) -> tuple[Patch, Sources]:
    """A posted patch written out, and where each of its paths stands; notes what is wrong."""
    patch: Patch = {}
    sources: Sources = {}
    decided: set[str] = set()
    for path, value in posted.items():
        values, places = read_value(path, value, f"{source}.{path}", problems)
        deciding = set(_set_by(values))
        for twice in sorted(deciding & decided):
            problems.append(Problem(places.get(twice, f"{source}.{path}"), f"'{twice}' is set twice in this patch"))
        decided |= deciding
        patch |= values
        sources |= places
    return patch, sources


def read_value(path: str, value: Any, source: str, problems: list[Problem]) -> tuple[Patch, Sources]:
    """The patch that a value posted at `path` is: a name or a mapping with `name` replaces a part, others merge."""
    if wrong := path_problem(path):
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


def clash(patches: Sequence[Patch]) -> tuple[str, int, int] | None:
    """A path that two patches of one rank set, and their positions."""
    setters: dict[str, int] = {}
    for position, patch in enumerate(patches):
        for path in _set_by(patch):
            if setters.setdefault(path, position) != position:
                return path, setters[path], position
    return None


def _set_by(patch: Patch) -> Iterable[str]:
    """Each path that a patch decides: a part that it replaces, and every option that it gives."""
    for path, value in patch.items():
        yield path
        if path in PARTS and isinstance(value, dict):
            yield from (f"{path}.{option}" for option in value if option != "name")


@lru_cache(maxsize=1)
def _of_parts() -> dict[str, str]:
    """What would be right for the name of a hyper-parameter where a field of the recipe is expected."""
    catalog = load()
    names = {*BATCH, *(one.name for entry in catalog.entries for one in entry.parameters)}
    return {name: right for name in names if (right := meant_of_parts(name, catalog))}


_DIGITS: Final = 6


def read_span(posted: Mapping[str, Any], source: str, problems: list[Problem]) -> Span | None:
    """The range of a mapping with `low` and `high`; notes what is wrong with it."""
    known = len(problems)
    for end in ("low", "high"):
        if not _is_number(posted.get(end)):
            problems.append(Problem(f"{source}.{end}", f"expected a finite number, found {shown(posted.get(end))}"))
    log, step = posted.get("log", False), posted.get("step")
    if not isinstance(log, bool):
        problems.append(Problem(f"{source}.log", f"expected true or false, found {shown(log)}"))
    if step is not None and (not _is_number(step) or step <= 0):
        problems.append(Problem(f"{source}.step", f"expected a number above 0, found {shown(step)}"))
    if len(problems) > known:
        return None
    low, high = posted["low"], posted["high"]
    if low >= high:
        problems.append(Problem(source, f"`low` must be below `high`, found {shown(low)} and {shown(high)}"))
    elif log and low <= 0:
        problems.append(Problem(f"{source}.low", f"a logarithmic range begins above 0, found {shown(low)}"))
    elif log and step is not None:
        problems.append(Problem(f"{source}.step", "a logarithmic range has no `step`"))
    elif step is not None and step > high - low:
        problems.append(Problem(f"{source}.step", f"expected at most {shown(high - low)}, found {shown(step)}"))
    if len(problems) > known:
        return None
    whole = all(isinstance(one, int) for one in (low, high, step or 0))
    return Span(low=low, high=high, log=log, step=step, whole=whole)


def drawn(span: Span, value: float) -> float | int:
    """A drawn value as the recipe gets it: whole, or of six digits, so that a table can print it."""
    if span.whole:
        return round(value)
    rounded = float(f"{value:.{_DIGITS}g}")
    return min(max(rounded, span.low), span.high)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


Known = Mapping[str, Collection[str] | None]
"""The labels of the axes that a `when` may name; None for an axis with problems of its own."""

_FEW: Final = 1000  # labels that are compared as numbers too, which takes one look at each


def read_when(posted: Any, source: str, known: Known, problems: list[Problem]) -> When:
    """A posted `when` written out; notes what is wrong, and gives what never applies where that is not readable."""
    if not isinstance(posted, Mapping) or not posted:
        example = "expected a mapping from an axis to one or several of its labels, such as {regularizer: [l2, sec]}"
        problems.append(Problem(source, f"{example}; found {shown(posted)}"))
        return {"": []}
    return {axis: _labels(axis, wanted, source, known, problems) for axis, wanted in posted.items()}


def _labels(axis: str, wanted: Any, source: str, known: Known, problems: list[Problem]) -> list[str]:
    if axis not in known:
        right = meant(axis, known) if known else "no axis is"
        problems.append(Problem(source, f"no axis {shown(axis)} is applied before this; {right}"))
        return []
    values = wanted if isinstance(wanted, list) else [wanted]
    if not values or any(value is None or isinstance(value, list | Mapping) for value in values):
        problems.append(Problem(f"{source}.{axis}", f"expected a label or a list of labels, found {shown(wanted)}"))
        return []
    labels = known[axis]
    if labels is None:
        return [label_of(value) for value in values]
    matches = {label_of(value): match(value, labels) for value in values}
    if strange := [label for label, match in matches.items() if match is None]:
        right = meant(strange[0], labels)
        problems.append(Problem(f"{source}.{axis}", f"axis '{axis}' has no alternative {listed(strange)}; {right}"))
    return [match for match in matches.values() if match is not None]


def match(value: Any, labels: Collection[str]) -> str | None:
    """The label that a value means: the same text, or an equal number in another spelling."""
    if label_of(value) in labels:
        return label_of(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or len(labels) > _FEW:
        return None
    spend(len(labels))
    return next((label for label in labels if number_of(label) == value), None)


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
                self._note(f"{self._source}[{at}]", "an alternative next to groups; put it into the `values` of one")
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
                    spend(own + sum(map(len, earlier.when.values())) // 4)
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
