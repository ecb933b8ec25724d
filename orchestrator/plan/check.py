"""Checks a posted spec: every problem at once, or the spec that will be run."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from orchestrator.plan.figures import read_figures
from orchestrator.plan.layouts import read_tables
from orchestrator.plan.nameable import Nameable, tasks
from orchestrator.plan.parse import KEYS, SpecDraft, as_meant, narrowed, read
from orchestrator.plan.points import MOST_TRIALS, budget_problems, count_trials
from orchestrator.plan.problems import Findings, limited
from orchestrator.plan.soundness import MOST_CHECKED, Soundness, extent_problems, rival_problems
from orchestrator.spec.axes import When, labels_of
from orchestrator.spec.layouts import PLACE, FigureSpec, ImportedRow, MetricColumn, TableSpec, VerdictSpec
from orchestrator.spec.spec import Spec
from orchestrator.views.errors import InvalidSpecError
from workers.catalog import Catalog, Problem, selected, shown


class Leftover:
    """Trims tables and figures that were read of a whole spec to what is left of its axes."""

    def __init__(self, whole: Spec, subset: SpecDraft, nameable: Nameable) -> None:
        self._subset, self._nameable = subset, nameable
        before = whole.compare | whole.tune
        after = subset.spec.compare | subset.spec.tune
        self._labels = {axis: labels_of(after.get(axis, [])) for axis in before}
        self._gone = {axis for axis, labels in self._labels.items() if not labels}
        self.notes: list[str] = []
        """What was left out and why, a sentence each."""

    def spec(self, tables: Mapping[str, TableSpec], figures: Mapping[str, FigureSpec]) -> Spec:
        """The spec of the subset and what its tables and figures can show; where no table can, the default one."""
        spec = self._subset.spec
        if spec.prune is not None and (wrong := rival_problems(spec, self._nameable.catalog)):
            spec = spec.model_copy(update={"prune": None})
            self.notes.append(f"`prune` is left out: {wrong[0].message}")
        kept_tables = {name: left for name, table in tables.items() if (left := self._sound_table(name, table))}
        kept_figures = {name: found for name, figure in figures.items() if (found := self._sound_figure(name, figure))}
        kept_tables = kept_tables or read_tables(replace(self._subset, tables=None), self._nameable, [])
        return spec.model_copy(update={"tables": kept_tables, "figures": kept_figures})

    def _sound_table(self, name: str, table: TableSpec) -> TableSpec | None:
        found = self.table(name, table)
        if found is None:
            return None
        problems: list[Problem] = []
        posted = found.model_dump(mode="json", exclude_defaults=True) | {"metrics": _posted(found)}
        read_tables(replace(self._subset, tables={name: posted}), self._nameable, problems)
        return None if self._refused(f"table '{name}'", problems) else found

    def _sound_figure(self, name: str, figure: FigureSpec) -> FigureSpec | None:
        found = self.figure(name, figure)
        if found is None:
            return None
        problems: list[Problem] = []
        read_figures(
            {name: found.model_dump(mode="json", exclude_defaults=True)}, self._subset, self._nameable, problems
        )
        return None if self._refused(f"figure '{name}'", problems) else found

    def _refused(self, place: str, problems: Sequence[Problem]) -> bool:
        """Whether what is left would be refused if it were posted so, which is said."""
        if problems:
            self.notes.append(f"{place} is left out: {problems[0].path}: {problems[0].message}")
        return bool(problems)

    def table(self, name: str, table: TableSpec) -> TableSpec | None:
        """The table of what is left; none where that is nothing."""
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
        """The imported rows with those numbers that stand under what is left."""
        found = []
        for row in rows:
            if numbers := [one for one in row.numbers if self._is_taken(one.of)]:
                against = row.against if row.against and self._is_taken(row.against) else None
                found.append(row.model_copy(update={"numbers": numbers, "against": against}))
        return found

    def _is_taken(self, labels: Mapping[str, str]) -> bool:
        return all(label in self._labels.get(axis, [label]) for axis, label in labels.items())

    def figure(self, name: str, figure: FigureSpec) -> FigureSpec | None:
        """The figure of what is left; none where that is nothing."""
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
        """What is left of labels by axis, the recipe's own fields as they were; none where it is nothing."""
        found = {
            axis: [label for label in labels if label in self._labels[axis]] if axis in self._labels else labels
            for axis, labels in when.items()
        }
        return found if all(found.values()) else None

    def _baseline(self, labels: dict[str, str] | None, what: str) -> dict[str, str] | None:
        """The cell that others are compared with, where both it and others are taken."""
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
        """The texts for labels that are left, but those in which an axis stands that is not."""
        return {axis: dict(self._texts(axis, texts)) for axis, texts in given.items() if axis not in self._gone}

    def _texts(self, axis: str, texts: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        for label, printed in texts.items():
            known = not label or axis not in self._labels or label in self._labels[axis]
            if known and not self._gone & set(PLACE.findall(printed)):
                yield label, printed


def _posted(table: TableSpec) -> list[Any]:
    """The metrics of a table as one would post them."""
    return [
        one if isinstance(one, str) else one.model_dump(mode="json", exclude_defaults=True) for one in table.metrics
    ]


FEWEST_CHECKED: Final = 500
"""Combinations that are looked at where there are too many trials, which is the first thing to be mended."""


def check(
    document: Any, catalog: Catalog, notes: list[str] | None = None, published: Collection[str] | None = None
) -> Spec:
    """The spec that a document means; raises InvalidSpecError with every problem that it has.

    `notes` gets a sentence for each thing that the subset which `only` and `without` take can no longer show or do.
    `published` are the printed tables that a table may name; without them it may name any.
    """
    if not isinstance(document, Mapping):
        expected = "a spec is a mapping with at least `version`, `name` and `recipe`"
        raise InvalidSpecError([Problem("", f"{expected}; found {shown(document)}")])
    with limited():
        spec = _checked(document, catalog, notes, published)
    return Spec.model_validate(spec.model_dump(mode="json"))  # without the places of the document


def _checked(
    document: Mapping[str, Any], catalog: Catalog, notes: list[str] | None, published: Collection[str] | None
) -> Spec:
    problems = Findings()
    whole = read(document, problems)
    document = as_meant(document)
    whole = replace(whole, spec=_selecting(whole.spec, catalog))
    too_many = _too_many(whole)
    problems += too_many
    subset = whole if too_many else replace(whole, spec=narrowed(whole.spec, problems))
    soundness = Soundness(subset, catalog, FEWEST_CHECKED if too_many else MOST_CHECKED)
    if isinstance(document.get("recipe"), Mapping):
        problems += soundness.problems()
    nameable = Nameable(list(soundness.datasets), catalog, published)
    tables = read_tables(whole, nameable, problems)
    figures = read_figures(document.get("figures"), whole, nameable, problems)
    if not too_many:
        problems += budget_problems(subset.spec, catalog, sound=not problems)
        problems += [] if problems else rival_problems(whole.spec, catalog)
        problems += [] if problems else extent_problems(subset.spec, catalog)
    if problems:
        raise InvalidSpecError(problems.told(_rank))
    if subset.spec is whole.spec:
        return subset.spec.model_copy(update={"tables": tables, "figures": figures})
    leftover = Leftover(whole.spec, subset, nameable)
    spec = leftover.spec(tables, figures)
    if notes is not None:
        notes += leftover.notes
    return spec


def _selecting(spec: Spec, catalog: Catalog) -> Spec:
    """The spec with the metric and the split of its task where `select` does not say them."""
    named = tasks(spec, catalog)
    return spec.model_copy(update={"select": selected(spec.select, named[0])}) if named else spec


def _too_many(draft: SpecDraft) -> list[Problem]:
    trials, exact = count_trials(draft.spec)
    if trials <= MOST_TRIALS:
        return []
    asked = f"{trials:,}" if exact else f"more than {MOST_TRIALS:,}"
    return [Problem("", f"the spec asks for {asked} trials; at most {MOST_TRIALS:,} are allowed")]


_ORDER: Final = {key: at for at, key in enumerate(KEYS)}


def _rank(problem: Problem) -> int:
    """Where the key of a problem stands among those of a spec."""
    return _ORDER.get(problem.path.partition(".")[0].partition("[")[0], -1)
