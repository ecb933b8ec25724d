"""Reads the metrics of a table: which stand under which columns, and in which form."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from orchestrator.plan.problems.place import DocumentPlace
from orchestrator.plan.problems.sentences import sentences
from orchestrator.plan.reading.computed import declared, missing, stated, tasks, test_sets
from orchestrator.plan.reading.entries import Nameable
from orchestrator.plan.reading.when import read_when
from orchestrator.spec.axis import labels_of
from orchestrator.spec.patch import Patch
from orchestrator.spec.recipe import held
from orchestrator.spec.spec import Spec
from orchestrator.spec.table import MOST_METRICS, MetricColumn
from orchestrator.spec.when import When, exclusive
from workers.catalog import listed, meant, metric_entry, metric_problem, shown


def default_metrics(spec: Spec, nameable: Nameable) -> list[str]:
    """The metrics of trainings on all these data sets: those of which one value is better than another."""
    computed = [declared(dataset, spec, nameable.catalog) for dataset in nameable.datasets]
    if not computed:
        return []
    shared = [metric for metric in computed[0] if all(metric in other for other in computed[1:])]
    entries = {metric: metric_entry(metric, nameable.catalog) for metric in shared}
    return [metric for metric, entry in entries.items() if entry and entry.facts.get("better") != "none"]


class ColumnReader:
    """Reads the metrics of one table, noting what is wrong with them."""

    def __init__(self, place: DocumentPlace, spec: Spec, nameable: Nameable) -> None:
        self._place, self._note, self._spec = place, place.note, spec
        self._nameable = nameable

    def read(self, posted: Any, axes: Any) -> list[str | MetricColumn]:
        """The metrics of a table whose column axes are `axes`; those that its data sets declare where it names none."""
        if posted is None:
            return [*default_metrics(self._spec, self._nameable)]
        if not isinstance(posted, list) or not posted:
            self._note("metrics", f"expected a list of at least one metric, found {shown(posted)}")
            return []
        if len(posted) > MOST_METRICS:
            self._note("metrics", f"there are {len(posted):,} metrics; at most {MOST_METRICS} are allowed")
            return []
        known = {axis: self._labels(axis) for axis in axes if isinstance(axis, str)} if isinstance(axes, list) else {}
        columns: list[str | MetricColumn] = []
        for at, entry in enumerate(posted):
            field = f"metrics[{at}]"
            column = self._read_one(entry, field, known)
            if column is None:
                continue
            whole = _whole(column)
            if any(_same(whole, _whole(earlier)) for earlier in columns):
                self._note(field, f"'{whole.metric}' stands twice")
            columns.append(column)
            self._check_metric(whole, field)
        return columns

    def over_queries(self, metric: str) -> bool:
        """Whether a metric is a mean over queries; one that does not exist is told of already."""
        entry = metric_entry(metric, self._nameable.catalog)
        return entry is None or entry.facts.get("over") == "queries"

    def one_label_each(self, posted: Any, field: str) -> dict[str, str]:
        """A mapping from compare axes to one of their labels each, noting what is wrong with it."""
        known = {axis: labels_of(groups) for axis, groups in self._spec.compare.items()}
        found = self._by_axis(posted, field, known, "there is no compare axis '{axis}'")
        for axis, labels in (found or {}).items():
            if len(labels) > 1:
                self._note(f"{field}.{axis}", f"expected one label, found {listed(labels)}")
        # What is not readable is told already, and the rest is kept to be checked further.
        return {"": ""} if found is None else {axis: labels[0] if labels else "" for axis, labels in found.items()}

    def _labels(self, axis: str) -> list[str] | None:
        if axis in self._spec.compare:
            return labels_of(self._spec.compare[axis])
        value = held(axis, self._spec.recipe)
        return None if value is None else [value]

    def _read_one(self, posted: Any, field: str, known: Mapping[str, list[str] | None]) -> str | MetricColumn | None:
        if isinstance(posted, str):
            return posted
        if not isinstance(posted, Mapping):
            self._note(field, f"expected a metric, or a mapping with `metric`; found {shown(posted)}")
            return None
        given = dict(posted)
        if "when" in given:
            given["when"] = self._when(given["when"], f"{field}.when", known)
        if given.get("delta") is not None:
            given["delta"] = self.one_label_each(given["delta"], f"{field}.delta")
        try:
            return MetricColumn.model_validate(given, strict=True)
        except ValidationError as error:
            self._place.problems.extend(sentences(error, f"{self._place.path}.{field}", MetricColumn))
            return None

    def _when(self, posted: Any, field: str, known: Mapping[str, list[str] | None]) -> When:
        return self._by_axis(posted, field, known, "'{axis}' is no axis of the columns") or {}

    def _by_axis(self, posted: Any, field: str, known: Mapping[str, list[str] | None], strange: str) -> When | None:
        """A mapping from axes that are known to some of their labels; none where it names no such axis."""
        if not isinstance(posted, Mapping) or not posted:
            return read_when(posted, f"{self._place.path}.{field}", known, self._place.problems)
        for axis in [axis for axis in posted if axis not in known]:
            self._note(f"{field}.{axis}", f"{strange.format(axis=axis)}; {meant(str(axis), known)}")
        right = {axis: labels for axis, labels in posted.items() if axis in known}
        return read_when(right, f"{self._place.path}.{field}", known, self._place.problems) if right else None

    def _check_metric(self, column: MetricColumn, field: str) -> None:
        if wrong := metric_problem(column.metric, self._nameable.catalog):
            self._note(field, wrong)
            return
        trained = stated(tasks(self._spec, self._nameable.catalog), "trained")
        if column.split == "train" and column.metric not in trained:
            right = meant(column.metric, trained)
            self._note(f"{field}.split", f"'{column.metric}' is not computed of training images; {right}")
        if column.split == "test_separated" and not self._cross_validates():
            needed = "is the mean over the models of a cross-validation; add `validation: {name: cross_validation}`"
            self._note(f"{field}.split", f"'{column.split}' {needed}")
        known = test_sets(self._spec, self._nameable.catalog) if column.test_set else []
        if column.test_set and column.test_set not in known:
            right = meant(column.test_set, known) if known else "none of them is asked for any"
            self._note(f"{field}.split", f"no data set of this sweep has a test set '{column.test_set}'; {right}")
        for dataset in self._reached(column.when):
            if wrong := missing(column.metric, dataset, self._spec, self._nameable.catalog):
                self._note(field, wrong)

    def _cross_validates(self) -> bool:
        """Whether any recipe of the sweep trains a model for each fold."""
        return any(held("validation", patch) == "cross_validation" for patch in self._spec.patches())

    def _reached(self, when: When) -> Sequence[str]:
        """The data sets under which a column stands, as far as its `when` says."""
        for axis, labels in when.items():
            choices = [choice for group in self._spec.compare.get(axis, []) for choice in group.choices]
            if choices and all("dataset" in choice.patch for choice in choices):
                return list(_datasets(choice.patch for choice in choices if choice.label in labels))
        return self._nameable.datasets


def _datasets(patches: Iterator[Patch]) -> Iterator[str]:
    for patch in patches:
        if isinstance(part := patch["dataset"], dict):
            yield str(part.get("name", ""))


def _whole(column: str | MetricColumn) -> MetricColumn:
    return MetricColumn(metric=column) if isinstance(column, str) else column


def _same(one: MetricColumn, other: MetricColumn) -> bool:
    """Whether two columns could not be told apart where they stand side by side."""
    alike = (one.metric, one.split, one.delta, one.label) == (other.metric, other.split, other.delta, other.label)
    return alike and not exclusive(one.when, other.when)
