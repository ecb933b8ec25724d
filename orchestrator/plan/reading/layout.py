"""Reads the tables of a spec: what stands in rows and columns, and which metrics."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pydantic import ValidationError

from orchestrator.plan.problems import effort
from orchestrator.plan.problems.wording import listed, meant, sentences, shown
from orchestrator.plan.reading.columns import ColumnReader, default_metrics
from orchestrator.plan.reading.naming import Naming, published_problem
from orchestrator.plan.reading.reader import SpecDraft
from orchestrator.spec.patch import Patch
from orchestrator.spec.recipe import PARTS, held
from orchestrator.spec.table import MetricColumn, TableSpec
from orchestrator.views.errors import Problem
from workers.catalog import Catalog

DEFAULT: Final = "main"
"""The table of a spec that asks for none."""

MOST_TABLES: Final = 100

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


def read_tables(
    draft: SpecDraft, datasets: Sequence[str], catalog: Catalog, problems: list[Problem]
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
        return {DEFAULT: TableSpec(rows=rows, columns=columns, metrics=[*default_metrics(datasets, catalog)])}
    if len(posted) > MOST_TABLES:
        problems.append(Problem("tables", f"there are {len(posted):,} tables; at most {MOST_TABLES} are allowed"))
        return {}
    tables: dict[str, TableSpec] = {}
    for name, given in posted.items():
        source = f"tables.{name}"
        if not NAME.fullmatch(name):
            problems.append(Problem(source, "expected a name of 1 to 64 letters, digits, '-' and '_'"))
        table = _Table(source, draft, datasets, catalog, problems).read(given)
        if table:
            tables[name] = table
    return tables


class _Table:
    """Reads one table, noting what is wrong with it."""

    def __init__(
        self, source: str, draft: SpecDraft, datasets: Sequence[str], catalog: Catalog, problems: list[Problem]
    ) -> None:
        self._source = source
        self._spec = draft.spec
        self._unreadable = draft.unreadable
        self._columns = ColumnReader(source, draft.spec, datasets, catalog, problems)
        self._problems = problems

    def _note(self, field: str, message: str) -> None:
        self._problems.append(Problem(f"{self._source}.{field}" if field else self._source, message))

    def read(self, posted: Any) -> TableSpec | None:
        if not isinstance(posted, Mapping):
            self._note("", f"expected a mapping with `rows`, `columns` and `metrics`, found {shown(posted)}")
            return None
        naming = Naming(self._source, self._spec, self._problems)
        given = {**posted, "metrics": self._columns.read(posted.get("metrics"), posted.get("columns", []))}
        if "labels" in posted:
            given["labels"] = naming.labels(posted["labels"])
        if posted.get("against") is not None:
            given["against"] = self._columns.one_label_each(posted["against"], "against")
        try:
            table = TableSpec.model_validate(given, strict=True)
        except ValidationError as error:
            self._problems.extend(sentences(error, self._source, TableSpec))
            return None
        self._check_axes(table)
        self._check_bold(table)
        self._check_selections(table)
        self._check_spread(table)
        naming.check(table, self._unreadable)
        for at, panel in enumerate(table.panels or ()):
            self._check_panel(panel, f"panels[{at}]", table)
        if table.published is not None and (wrong := published_problem(table.published)):
            self._note("published", wrong)
        return table

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
        if table.center != "mean" and table.spread in {"se", "ci95"}:
            self._note("spread", f"'{table.spread}' is that of a mean, and `center` is '{table.center}'")

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
