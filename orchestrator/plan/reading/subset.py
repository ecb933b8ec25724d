"""Takes a subset of a spec: the trials that have the labels of `only`, and not those that have one of `without`."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

from orchestrator.plan.reading.points import cells_of, points
from orchestrator.plan.reading.when import Known, match
from orchestrator.spec.axis import ROLES, Axis, Choice, Group
from orchestrator.spec.label import label_of
from orchestrator.spec.patch import Patch, Rule
from orchestrator.spec.recipe import held
from orchestrator.spec.slot import SlotRule
from orchestrator.spec.spec import Spec
from orchestrator.spec.when import When
from workers.catalog import Problem, listed, meant, near, shown

KEYS: Final = ("only", "without")

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
        given = [(key, axis, labels) for key in KEYS for axis, labels in getattr(spec, key).items()]
        taken = ", ".join(
            f"{key} {axis} {' or '.join(shown(label) for label in labels)}" for key, axis, labels in given
        )
        problems.append(Problem(given[0][0], f"no trial is left: {taken}"))
        return spec
    return _without_unseen(limited, seen)


def _filled_up(spec: Spec) -> Iterator[Problem]:
    """What forbids to take some candidates of a cell: others would come in their place."""
    for key in KEYS:
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
