"""Reads the tables of a spec: what stands in rows and columns, and which metrics."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pydantic import ValidationError

from orchestrator.plan.problems import effort
from orchestrator.plan.problems.place import DocumentPlace
from orchestrator.plan.problems.sentences import sentences
from orchestrator.plan.reading.columns import ColumnReader, default_metrics
from orchestrator.plan.reading.entries import Nameable, entries
from orchestrator.plan.reading.imported_rows import ImportedRows, Layout
from orchestrator.plan.reading.naming import Naming
from orchestrator.plan.reading.reader import SpecDraft
from orchestrator.spec.patch import Patch
from orchestrator.spec.recipe import PARTS, held
from orchestrator.spec.table import MetricColumn, TableSpec, VerdictSpec
from workers.catalog import Problem, listed, meant, shown

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
            effort.spend(len(labels) * (1 + len(known) // 8))
            for label in labels:
                if label not in known:
                    self._note(f"{field}.{axis}", f"axis '{axis}' has no alternative '{label}'; {meant(label, known)}")


def _is_held(path: str, recipe: Patch) -> bool:
    """Whether the base recipe holds a value at a path, which is then the same in every cell."""
    field, dot, _ = path.partition(".")
    return (not dot or field in PARTS) and held(path, recipe) is not None
