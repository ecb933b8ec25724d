"""The subset of a spec that `only` and `without` take: what is left of its axes, tables and figures."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from orchestrator.plan.figures import check_figures
from orchestrator.plan.layouts import Nameable, check_tables
from orchestrator.plan.points import cells_of, points
from orchestrator.plan.read import NOWHERE, SUBSET_KEYS, SpecDraft
from orchestrator.plan.soundness import rival_problems
from orchestrator.spec.fields import When
from orchestrator.spec.layouts import PLACE, FigureSpec, ImportedRow, MetricColumn, TableSpec, VerdictSpec
from orchestrator.spec.spec import ROLES, Axis, Choice, Group, Rule, SlotRule, Spec, labels_of
from workers.catalog import Problem, shown

Conditional = TypeVar("Conditional", Group, Rule, SlotRule)
Left = TypeVar("Left", TableSpec, FigureSpec)

Seen = Mapping[str, Collection[str]]
"""The labels that some trial has, by axis."""


def narrowed(spec: Spec, problems: list[Problem]) -> Spec:
    """The spec of the subset that `only` and `without` describe, with all tables and figures; notes why it is empty.

    Alternatives of which no trial is left are gone. A group that is left without any stays, so that its cells do not
    become such in which the axis does not apply.
    """
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
    found = _with_axes(limited, lambda name, axis: _remaining(axis, seen.get(name, ()), seen))
    return found.model_copy(update={"rules": _applying(limited.rules, seen), "slots": _applying(limited.slots, seen)})


def _filled_up(spec: Spec) -> Iterator[Problem]:
    """Why candidates of a cell cannot be left out: others would take their place."""
    for key in SUBSET_KEYS:
        for axis in getattr(spec, key):
            if axis in spec.tune and spec.search.adaptive:
                yield Problem(
                    f"{key}.{axis}", f"search '{spec.search.name}' draws from '{axis}'; change the axis itself"
                )
            elif axis in spec.tune and spec.select.budget is not None:
                yield Problem(f"{key}.{axis}", "`select.budget` would fill the cells up again; leave one of them out")


def _with_axes(spec: Spec, changed: Callable[[str, Axis], Axis]) -> Spec:
    """The spec with each axis changed; an axis without groups is dropped."""
    roles: dict[str, dict[str, Axis]] = {}
    for role in ROLES:
        axes = {name: changed(name, axis) for name, axis in spec.axes(role).items()}
        roles[role] = {name: axis for name, axis in axes.items() if axis}
    return spec.model_copy(update=roles)


def _limited(axis: Axis, name: str, spec: Spec) -> Axis:
    included, excluded = spec.only.get(name), spec.without.get(name, [])
    if included is None and not excluded:
        return axis

    def taken(label: str) -> bool:
        return (included is None or label in included) and label not in excluded

    kept = [_with_choices(group, [one for one in group.choices if taken(one.label)]) for group in axis]
    return kept if taken(NOWHERE) else [*kept, Group(choices=[])]  # which applies everywhere, without an alternative


def _with_choices(group: Group, choices: Sequence[Choice]) -> Group:
    return group.model_copy(update={"choices": list(choices)})


def _seen(spec: Spec) -> Seen | None:
    """The labels of all trials by axis, and all labels that a search draws from; None if no trial is left."""
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


def _applying(rules: Sequence[Conditional], seen: Seen) -> list[Conditional]:
    found = [(rule, left(rule.when, seen)) for rule in rules]
    return [rule.model_copy(update={"when": when}) for rule, when in found if when is not None]


def _remaining(axis: Axis, labels: Collection[str], seen: Seen) -> Axis:
    found = [_with_choices(group, [one for one in group.choices if one.label in labels]) for group in axis]
    found = _applying(found, seen)
    always = any(group.choices and not group.when for group in found)
    return [group for group in found if group.choices or not always]


def left(when: When, seen: Seen) -> When | None:
    """Restricts a condition to labels that the subset keeps; None if no label of an axis is left."""
    found = {axis: [label for label in labels if label in seen.get(axis, ())] for axis, labels in when.items()}
    return found if all(found.values()) else None


class Leftover:
    """Trims the tables and figures of a whole spec to the axes and labels that a subset keeps."""

    def __init__(self, whole: Spec, subset: SpecDraft, nameable: Nameable) -> None:
        self._subset, self._nameable = subset, nameable
        before = whole.compare | whole.tune
        after = subset.spec.compare | subset.spec.tune
        self._labels = {axis: labels_of(after.get(axis, [])) for axis in before}
        self._gone = {axis for axis, labels in self._labels.items() if not labels}
        self.notes: list[str] = []
        """What was left out and why, in sentences."""

    def spec(self, tables: Mapping[str, TableSpec], figures: Mapping[str, FigureSpec]) -> Spec:
        """The spec of the subset, with the tables and figures that it can fill, or else the default table."""
        spec = self._subset.spec
        if spec.prune is not None and (wrong := rival_problems(spec, self._nameable.catalog)):
            spec = spec.model_copy(update={"prune": None})
            self.notes.append(f"`prune` is left out: {wrong[0].message}")
        kept_tables = {
            name: trimmed
            for name, table in tables.items()
            if (trimmed := self._sound("table", name, self._table(name, table), check_tables))
        }
        kept_figures = {
            name: drawn
            for name, figure in figures.items()
            if (drawn := self._sound("figure", name, self._figure(name, figure), check_figures))
        }
        kept_tables = kept_tables or check_tables({}, self._subset, self._nameable, [])
        return spec.model_copy(update={"tables": kept_tables, "figures": kept_figures})

    def _sound(self, place: str, name: str, left: Left | None, check: Callable[..., object]) -> Left | None:
        """What is left, unless it would be refused if it were posted so; notes the first reason."""
        problems: list[Problem] = []
        if left is not None:
            check({name: left}, self._subset, self._nameable, problems)
        if problems:
            self.notes.append(f"{place} '{name}' is left out: {problems[0].path}: {problems[0].message}")
        return None if problems else left

    def _table(self, name: str, table: TableSpec) -> TableSpec | None:
        """The table of what is left; None if nothing is left."""
        place = f"table '{name}'"
        rows, columns = self._axes(table.rows), self._axes(table.columns)
        metrics = [left for metric in table.metrics if (left := self._metric(metric, place)) is not None]
        if not metrics:
            self.notes.append(f"{place} is left out: nothing that it shows is taken")
            return None
        panels = [when for panel in table.panels or () if (when := self._when(panel))]
        bold = (
            [axis for axis in table.bold if axis in (*rows, *columns)] if isinstance(table.bold, list) else table.bold
        )
        changed: dict[str, Any] = {
            "rows": rows, "columns": columns, "metrics": metrics, "panels": panels or None, "bold": bold,
            "against": self._baseline(table.against, f"{place}: the comparison with"),
            "labels": self._printed(table.labels), "titles": self._of_axes(table.titles),
            "verdicts": self._judged(table.verdicts, place),
            "imported": self._imported(table.imported),
        }  # fmt: skip
        return table.model_copy(update=changed)

    def _judged(self, verdicts: VerdictSpec | None, place: str) -> VerdictSpec | None:
        for labels in (verdicts.against, verdicts.of) if verdicts else ():
            if labels and not self._baseline(labels, f"{place}: the verdicts on"):
                return None
        return verdicts

    def _imported(self, rows: Sequence[ImportedRow]) -> list[ImportedRow]:
        """The imported rows with the numbers whose columns are left."""
        found = []
        for row in rows:
            if numbers := [one for one in row.numbers if self._is_taken(one.of)]:
                against = row.against if row.against and self._is_taken(row.against) else None
                found.append(row.model_copy(update={"numbers": numbers, "against": against}))
        return found

    def _is_taken(self, labels: Mapping[str, str]) -> bool:
        return all(label in self._labels.get(axis, [label]) for axis, label in labels.items())

    def _figure(self, name: str, figure: FigureSpec) -> FigureSpec | None:
        """The figure of what is left; None if nothing is left."""
        when = self._when(figure.when)
        if when is None or {figure.x, figure.y} & self._gone:
            self.notes.append(f"figure '{name}' is left out: nothing that it draws is taken")
            return None
        facets = self._axes(figure.facets)
        changed: dict[str, Any] = {
            "when": when,
            "colour": None if figure.colour in self._gone else figure.colour,
            "facet": facets[0] if len(facets) == 1 else facets or None,
            "labels": self._printed(figure.labels),
            "titles": self._of_axes(figure.titles),
        }
        return figure.model_copy(update=changed)

    def _axes(self, axes: list[str]) -> list[str]:
        return [axis for axis in axes if axis not in self._gone]

    def _of_axes(self, given: Mapping[str, Any]) -> dict[str, Any]:
        return {axis: value for axis, value in given.items() if axis not in self._gone}

    def _metric(self, metric: str | MetricColumn, place: str) -> str | MetricColumn | None:
        if isinstance(metric, str):
            return metric
        when = self._when(metric.when)
        if when is None:
            return None
        if metric.delta and not self._baseline(metric.delta, f"{place}: the difference of {metric.metric} to"):
            return None
        return metric.model_copy(update={"when": when})

    def _when(self, when: When) -> When | None:
        """The labels by axis that are left, and fields of the recipe unchanged; None if nothing is left."""
        return left(when, {axis: self._labels.get(axis, labels) for axis, labels in when.items()})

    def _baseline(self, labels: dict[str, str] | None, what: str) -> dict[str, str] | None:
        """The baseline cell, if the subset has it and other cells."""
        if labels is None:
            return None
        named = ", ".join(f"{axis} {label}" for axis, label in labels.items())
        if any(label not in self._labels.get(axis, [label]) for axis, label in labels.items()):
            self.notes.append(f"{what} {named} is left out: that is not taken")
            return None
        if all(set(self._labels.get(axis, [label])) == {label} for axis, label in labels.items()):
            self.notes.append(f"{what} {named} is left out: nothing else is taken")
            return None
        return labels

    def _printed(self, given: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, str]]:
        """The texts of labels that are left, without texts that insert an axis that is not."""
        return {axis: dict(self._texts(axis, texts)) for axis, texts in given.items() if axis not in self._gone}

    def _texts(self, axis: str, texts: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        for label, printed in texts.items():
            known = not label or axis not in self._labels or label in self._labels[axis]
            if known and not self._gone & set(PLACE.findall(printed)):
                yield label, printed
