"""Reads the tables of a spec: what stands in rows and columns, and which metrics."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pydantic import ValidationError

from orchestrator.errors import Problem
from orchestrator.plan.patch import PARTS
from orchestrator.plan.reader import Draft
from orchestrator.plan.spec import MetricColumn, Patch, TableSpec
from orchestrator.plan.wording import listed, meant, sentences, shown
from workers.catalog import Catalog, metric_entry, metric_problem

DEFAULT: Final = "main"
"""The table of a spec that asks for none."""

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


def read_tables(
    draft: Draft, datasets: Sequence[str], catalog: Catalog, problems: list[Problem]
) -> dict[str, TableSpec]:
    """The tables of a draft written out, or a default one; notes what is wrong with them.

    `datasets` are the names of all data sets that the sweep trains on.
    """
    posted, spec = draft.tables, draft.spec
    if posted is not None and not isinstance(posted, Mapping):
        problems.append(Problem("tables", f"expected a mapping from names to tables, found {shown(posted)}"))
        return {}
    if not posted:
        columns = ["dataset"] if "dataset" in spec.compare else []
        rows = [axis for axis in spec.compare if axis not in columns]
        return {DEFAULT: TableSpec(rows=rows, columns=columns, metrics=[*_metrics(datasets, catalog)])}
    tables: dict[str, TableSpec] = {}
    for name, given in posted.items():
        source = f"tables.{name}"
        if not NAME.fullmatch(name):
            problems.append(Problem(source, "expected a name of 1 to 64 letters, digits, '-' and '_'"))
        table = _Table(source, draft, datasets, catalog, problems).read(given)
        if table:
            tables[name] = table
    return tables


def _metrics(datasets: Sequence[str], catalog: Catalog) -> list[str]:
    """The retrieval metrics that all these data sets declare: those of which one value is better than another."""
    declared = [catalog.metrics(dataset) for dataset in datasets]
    if not declared:
        return []
    shared = [metric for metric in declared[0] if all(metric in other for other in declared[1:])]
    entries = {metric: metric_entry(metric, catalog) for metric in shared}
    return [metric for metric, entry in entries.items() if entry and entry.facts.get("better") != "none"]


class _Table:
    """Reads one table, noting what is wrong with it."""

    def __init__(
        self, source: str, draft: Draft, datasets: Sequence[str], catalog: Catalog, problems: list[Problem]
    ) -> None:
        self._source = source
        self._spec = draft.spec
        self._unreadable = draft.unreadable
        self._datasets = datasets
        self._catalog = catalog
        self._problems = problems

    def _note(self, field: str, message: str) -> None:
        self._problems.append(Problem(f"{self._source}.{field}" if field else self._source, message))

    def read(self, posted: Any) -> TableSpec | None:
        if not isinstance(posted, Mapping):
            self._note("", f"expected a mapping with `rows`, `columns` and `metrics`, found {shown(posted)}")
            return None
        metrics = self._read_metrics(posted.get("metrics"))
        try:
            table = TableSpec.model_validate({**posted, "metrics": metrics}, strict=True)
        except ValidationError as error:
            self._problems.extend(sentences(error, self._source, TableSpec))
            return None
        self._check_axes(table)
        self._check_bold(table)
        for at, panel in enumerate(table.panels or ()):
            self._check_panel(panel, f"panels[{at}]", table)
        return table

    def _read_metrics(self, posted: Any) -> list[str | MetricColumn]:
        if posted is None:
            return [*_metrics(self._datasets, self._catalog)]
        if not isinstance(posted, list) or not posted:
            self._note("metrics", f"expected a list of at least one metric, found {shown(posted)}")
            return []
        found: dict[str, str | MetricColumn] = {}
        for at, one in enumerate(posted):
            column = self._read_metric(one, f"metrics[{at}]")
            name = column.metric if isinstance(column, MetricColumn) else column
            if name is None or column is None:
                continue
            if name in found:
                self._note(f"metrics[{at}]", f"'{name}' stands twice")
            found[name] = column
            self._check_metric(name, f"metrics[{at}]")
        return list(found.values())

    def _read_metric(self, posted: Any, field: str) -> str | MetricColumn | None:
        if isinstance(posted, str):
            return posted
        if not isinstance(posted, Mapping):
            self._note(field, f"expected a metric, or a mapping with `metric`; found {shown(posted)}")
            return None
        try:
            return MetricColumn.model_validate(dict(posted), strict=True)
        except ValidationError as error:
            self._problems.extend(sentences(error, f"{self._source}.{field}", MetricColumn))
            return None

    def _check_metric(self, metric: str, field: str) -> None:
        if wrong := metric_problem(metric, self._catalog):
            self._note(field, wrong)
            return
        for dataset in self._datasets:
            declared = self._catalog.metrics(dataset)
            if declared and metric not in declared:
                self._note(field, f"dataset '{dataset}' does not compute '{metric}'; {meant(metric, declared)}")

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

    def _check_panel(self, panel: Mapping[str, Sequence[str]], field: str, table: TableSpec) -> None:
        for axis, labels in panel.items():
            if axis not in table.columns or axis not in self._spec.compare:
                columns = [column for column in table.columns if column in self._spec.compare]
                self._note(f"{field}.{axis}", f"'{axis}' is no compare axis in the columns; {meant(axis, columns)}")
                continue
            known = [choice.label for group in self._spec.compare[axis] for choice in group.choices]
            for label in labels:
                if label not in known:
                    self._note(f"{field}.{axis}", f"axis '{axis}' has no alternative '{label}'; {meant(label, known)}")


def _is_held(path: str, recipe: Patch) -> bool:
    """Whether the base recipe holds a value at a path, which is then the same in every cell."""
    field, dot, option = path.partition(".")
    value = recipe.get(field)
    if not dot:
        return value is not None
    return field in PARTS and isinstance(value, dict) and option in value
