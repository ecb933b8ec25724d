"""Reads the tables of a spec: rows, columns, metrics and labels."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from pydantic import ValidationError

from orchestrator.plan.axes import read_when
from orchestrator.plan.imported_rows import ImportedRows, Layout
from orchestrator.plan.nameable import Nameable, default_metrics, entries, missing, stated, tasks, test_sets
from orchestrator.plan.parse import SpecDraft
from orchestrator.plan.problems import DocumentPlace, sentences, spend
from orchestrator.spec.axes import PARTS, Patch, When, exclusive, held, label_of, labels_of, number_of
from orchestrator.spec.layouts import MOST_METRICS, PLACE, MetricColumn, TableSpec, VerdictSpec
from orchestrator.spec.spec import Spec
from workers.catalog import Problem, listed, meant, metric_entry, metric_problem, shown


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


class Naming:
    """Reads `labels` and `titles` of one table, noting what is wrong with them."""

    def __init__(self, place: DocumentPlace, spec: Spec) -> None:
        self._note, self._spec = place.note, spec

    def labels(self, posted: Any) -> Any:
        """The posted `labels` with each label spelt as its axis does; what has another form stays as it is."""
        if not isinstance(posted, Mapping):
            return posted
        return {axis: self._of_axis(axis, texts) for axis, texts in posted.items()}

    def _of_axis(self, axis: str, texts: Any) -> Any:
        if not isinstance(texts, Mapping):
            return texts
        known = self._known_labels(axis)
        by_label: dict[str, Any] = {}
        for label, printed in texts.items():
            right = label if known is None else _spelt(label, known)
            if right is None:
                self._note(
                    f"labels.{axis}", f"axis '{axis}' has no alternative {shown(label)}; {meant(label, known or ())}"
                )
            elif isinstance(printed, Mapping | list) or printed is None:
                self._note(f"labels.{axis}.{label}", f"expected a text, found {shown(printed)}")
            else:
                by_label[right] = label_of(printed)
        return by_label

    def _known_labels(self, axis: str) -> Collection[str] | None:
        """The labels of an axis, and "" for where it does not apply; none where any may occur."""
        for axes in (self._spec.compare, self._spec.tune):
            if axis in axes:
                return ["", *labels_of(axes[axis])]
        value = held(axis, self._spec.recipe)
        return None if value is None else ["", value]

    def check(self, table: TableSpec, unreadable: Collection[str]) -> None:
        """Notes axes that the table does not show, and templates that no cell could fill."""
        axes = list(dict.fromkeys((*table.rows, *table.columns, *self._spec.compare, *self._spec.tune)))
        for field, given in (("labels", table.labels), ("titles", table.titles)):
            self._check_axes(field, given, axes)
        paths = {path for texts in table.labels.values() for one in texts.values() for path in PLACE.findall(one)}
        for path in sorted(paths):
            known = path in axes or held(path, self._spec.recipe) is not None
            if not known and path.partition(".")[0] not in unreadable:
                self._note("labels", f"no cell has a label for '{{{path}}}'; {meant(path, axes)}")

    def _check_axes(self, field: str, given: Iterable[str], axes: Sequence[str]) -> None:
        for axis in given:
            if axis not in axes:
                self._note(f"{field}.{axis}", f"'{axis}' is no axis of this table; {meant(axis, axes)}")


def _spelt(label: str, known: Collection[str]) -> str | None:
    """The label that is meant: the same text, or an equal number in another spelling."""
    if label in known:
        return label
    value = number_of(label)
    spend(len(known))
    return None if value is None else next((one for one in known if number_of(one) == value), None)


DEFAULT: Final = "main"
"""The table of a spec that asks for none."""

MOST_TABLES: Final = 100


def read_tables(draft: SpecDraft, nameable: Nameable, problems: list[Problem]) -> dict[str, TableSpec]:
    """The tables of a draft written out, or a default one; notes what is wrong with them."""
    if draft.tables is None or draft.tables == {}:
        columns = ["dataset"] if "dataset" in draft.spec.compare else []
        rows = [axis for axis in draft.spec.compare if axis not in columns]
        return {DEFAULT: TableSpec(rows=rows, columns=columns, metrics=[*default_metrics(draft.spec, nameable)])}
    posted = entries("tables", draft.tables, MOST_TABLES, problems)
    read = {name: _Table(place, draft, nameable).read(given) for name, given, place in posted}
    return {name: table for name, table in read.items() if table is not None}


class _Table:
    """Reads one table, noting what is wrong with it."""

    def __init__(self, place: DocumentPlace, draft: SpecDraft, nameable: Nameable) -> None:
        self._place, self._note = place, place.note
        self._spec, self._unreadable = draft.spec, draft.unreadable
        self._columns = ColumnReader(place, draft.spec, nameable)
        self._published = nameable.published
        self._imported = ImportedRows(place, draft.spec, nameable)

    def read(self, posted: Any) -> TableSpec | None:
        if not isinstance(posted, Mapping):
            self._note("", f"expected a mapping with `rows`, `columns` and `metrics`, found {shown(posted)}")
            return None
        naming = Naming(self._place, self._spec)
        given = {**posted, "metrics": self._columns.read(posted.get("metrics"), posted.get("columns", []))}
        if "labels" in posted:
            given["labels"] = naming.labels(posted["labels"])
        if posted.get("against") is not None:
            given["against"] = self._columns.one_label_each(posted["against"], "against")
        if isinstance(posted.get("verdicts"), Mapping):
            given["verdicts"] = self._verdicts(posted["verdicts"])
        if posted.get("imported") is not None:
            given["imported"] = self._imported.read(posted["imported"])
        try:
            table = TableSpec.model_validate(given, strict=True)
        except ValidationError as error:
            self._place.problems.extend(sentences(error, self._place.path, TableSpec))
            return None
        self._check_axes(table)
        self._check_bold(table)
        self._check_selections(table)
        self._check_spread(table)
        self._check_judged(table)
        naming.check(table, self._unreadable)
        self._imported.check(table.imported, Layout(table.rows, table.columns, table.metric_columns))
        for at, panel in enumerate(table.panels or ()):
            self._check_panel(panel, f"panels[{at}]", table)
        if not (table.published is None or self._published is None or table.published in self._published):
            right = meant(table.published, self._published)
            self._note("published", f"there is no published table '{table.published}'; {right}")
        else:
            self._check_quoted(table)
        return table

    def _verdicts(self, posted: Mapping[str, Any]) -> VerdictSpec | None:
        labels = {
            field: self._columns.one_label_each(posted[field], f"verdicts.{field}")
            for field in ("against", "of")
            if posted.get(field) is not None
        }
        try:
            return VerdictSpec.model_validate({**posted, **labels}, strict=True)
        except ValidationError as error:
            self._place.problems.extend(sentences(error, f"{self._place.path}.verdicts", VerdictSpec))
            return None

    def _check_judged(self, table: TableSpec) -> None:
        shown_metrics = [column.metric for column in table.metric_columns]
        for at, metric in enumerate(table.verdicts.metrics if table.verdicts else ()):
            if metric not in shown_metrics:
                said = f"'{metric}' is no metric of the table; {meant(metric, shown_metrics)}"
                self._note(f"verdicts.metrics[{at}]", said)

    def _check_axes(self, table: TableSpec) -> None:
        seen: set[str] = set()
        for field in ("rows", "columns"):
            for at, axis in enumerate(getattr(table, field)):
                if wrong := self._axis_problem(axis, seen):
                    self._note(f"{field}[{at}]", wrong)
                seen.add(axis)
        for axis, groups in self._spec.compare.items():
            if axis not in seen and sum(len(group.choices) for group in groups) > 1:
                self._note("", f"the compare axis '{axis}' stands neither in rows nor in columns")

    def _axis_problem(self, axis: str, seen: set[str]) -> str | None:
        if axis in seen:
            return f"'{axis}' stands twice"
        if axis in self._spec.tune or axis in self._spec.repeat:
            role = "tune" if axis in self._spec.tune else "repeat"
            return f"'{axis}' is a {role} axis; rows and columns are compare axes: {listed(self._spec.compare)}"
        known = axis in self._spec.compare or _is_held(axis, self._spec.recipe)
        if not known and axis.partition(".")[0] not in self._unreadable:
            return f"there is no compare axis '{axis}'; {meant(axis, self._spec.compare)}"
        return None

    def _check_bold(self, table: TableSpec) -> None:
        laid_out = [*table.rows, *table.columns]
        for at, axis in enumerate(table.bold if isinstance(table.bold, list) else ()):
            if axis not in laid_out:
                self._note(f"bold[{at}]", f"'{axis}' is neither in rows nor in columns; {meant(axis, laid_out)}")

    def _check_selections(self, table: TableSpec) -> None:
        if len(set(table.selections)) < len(table.selections):
            self._note("selections", f"expected each split once, found {listed(table.selections)}")
        if table.selections and self._spec.select.beside is None and "select" not in self._unreadable:
            self._note("selections", "needs `select: {beside: test}`: trainings keep what the test split would choose")
        if table.flattery and set(table.selections) != {"validation", "test"}:
            self._note("flattery", "compares the two of `selections: [validation, test]`; add that")
        for at, one in enumerate(table.metrics if table.selections else ()):
            if isinstance(one, MetricColumn) and one.split not in ("test", "test_separated"):
                self._note(f"metrics[{at}].split", f"both `selections` have test metrics only, found '{one.split}'")

    def _check_spread(self, table: TableSpec) -> None:
        if table.std is False and table.spread not in {None, "none"}:
            self._note("spread", f"`std: false` prints no spread, and this asks for '{table.spread}'; take one away")
        if table.covers != "seeds" and not any(self._columns.over_queries(one.metric) for one in table.metric_columns):
            self._note("covers", f"'{table.covers}' needs a metric that is a mean over queries, such as 'recall@1'")
        if table.center != "mean" and table.spread in {"se", "ci95"}:
            self._note("spread", f"'{table.spread}' is that of a mean, and `center` is '{table.center}'")

    def _check_quoted(self, table: TableSpec) -> None:
        """That each quoted row is one line of the printed table, or the same line under several data sets."""
        if table.quoted and table.published is None:
            self._note("quoted", "quotes a printed table; name it by `published`")
        if table.published is None or not isinstance(self._published, Mapping):
            return
        lines = self._published[table.published] if table.quoted else ()
        for at, row in enumerate(table.quoted):
            known = {axis: {line[axis] for line in lines if axis in line} for axis in row.of}
            for axis, label in row.of.items():
                if label not in known[axis]:
                    right = meant(label, sorted(known[axis])) if known[axis] else "it has no such axis"
                    self._note(f"quoted[{at}].of.{axis}", f"{table.published} has no line '{label}'; {right}")

    def _check_panel(self, panel: Mapping[str, Sequence[str]], field: str, table: TableSpec) -> None:
        for axis, labels in panel.items():
            if axis not in table.columns or axis not in self._spec.compare:
                columns = [column for column in table.columns if column in self._spec.compare]
                self._note(f"{field}.{axis}", f"'{axis}' is no compare axis in the columns; {meant(axis, columns)}")
                continue
            known = [choice.label for group in self._spec.compare[axis] for choice in group.choices]
            spend(len(labels) * (1 + len(known) // 8))
            for label in labels:
                if label not in known:
                    self._note(f"{field}.{axis}", f"axis '{axis}' has no alternative '{label}'; {meant(label, known)}")


def _is_held(path: str, recipe: Patch) -> bool:
    """Whether the base recipe holds a value at a path, which is then the same in every cell."""
    field, dot, _ = path.partition(".")
    return (not dot or field in PARTS) and held(path, recipe) is not None
