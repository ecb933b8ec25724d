"""Checks the tables of a spec, by its axes and by what its trainings compute."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from orchestrator.plan.points import spend
from orchestrator.plan.read import DocumentPlace, Known, SpecDraft, exclusive, match, matched, readable
from orchestrator.spec.fields import When
from orchestrator.spec.layouts import (
    PLACE,
    ImportedNumber,
    ImportedRow,
    MetricColumn,
    QuotedRow,
    TableSpec,
    VerdictSpec,
)
from orchestrator.spec.spec import PARTS, Spec, applies, labels_of, recipe_label
from workers.catalog import (
    Catalog,
    Entry,
    Problem,
    listed,
    metric_entry,
    metric_problem,
    not_computed,
    shown,
    suggestion,
)

DEFAULT: Final = "main"
"""The name of the table of a spec without tables."""


@dataclass(frozen=True, slots=True)
class Nameable:
    """The names that tables and figures may use in addition to the axes of their spec."""

    datasets: Sequence[str]
    """All data sets that the sweep trains on."""
    catalog: Catalog
    published: Collection[str] | None = None
    """The tables of papers that are known, perhaps with the labels of their lines; None if they are not known."""


def check_tables(
    tables: Mapping[str, TableSpec], draft: SpecDraft, nameable: Nameable, problems: list[Problem]
) -> dict[str, TableSpec]:
    """Checks the tables of a spec, appends to `problems`, and returns them (or a default table) with corrected
    labels.
    """
    if not tables:
        columns = ["dataset"] if "dataset" in draft.spec.compare else []
        rows = [axis for axis in draft.spec.compare if axis not in columns]
        return {DEFAULT: TableSpec(rows=rows, columns=columns, metrics=[*default_metrics(draft.spec, nameable)])}
    return {
        name: _Table(DocumentPlace(f"tables.{name}", problems), draft, nameable).checked(table)
        for name, table in readable(tables.items())
    }


def spelt_texts(axis: str, texts: Mapping[str, str], spec: Spec, place: DocumentPlace) -> dict[str, str]:
    """The printed texts of an axis's labels, keyed by the axis's own spelling; unknown labels are noted at `place`."""
    known: Collection[str] | None = None  # any label may occur
    if axis in (axes := spec.compare | spec.tune):
        known = ["", *labels_of(axes[axis])]
    elif (value := recipe_label(axis, spec.recipe)) is not None:
        known = ["", value]
    found: dict[str, str] = {}
    for label, printed in texts.items():
        right = label if known is None else match(label, known)
        if right is None:
            message = f"axis '{axis}' has no alternative {shown(label)}; {suggestion(label, known or ())}"
            place.note(f"labels.{axis}.{label}", message)
        else:
            found[right] = printed
    return found


class _Table:
    """Checks one table, noting what is wrong with it."""

    def __init__(self, place: DocumentPlace, draft: SpecDraft, nameable: Nameable) -> None:
        self._place, self._note = place, place.note
        self._spec, self._unreadable = draft.spec, draft.unreadable
        self._nameable, self._catalog, self._published = nameable, nameable.catalog, nameable.published
        self._compare = {
            axis: [choice.label for group in groups for choice in group.choices]
            for axis, groups in draft.spec.compare.items()
        }

    def checked(self, table: TableSpec) -> TableSpec:
        """The table with its labels spelt as their axes spell them."""
        columns = self._columns(table)
        labels = {axis: spelt_texts(axis, texts, self._spec, self._place) for axis, texts in table.labels.items()}
        quoted = list(readable(enumerate(table.quoted)))
        imported = [(at, self._spelt_row(row, f"imported[{at}]")) for at, row in readable(enumerate(table.imported))]
        table = table.model_copy(
            update={
                "metrics": [column for _, column in columns] or [*default_metrics(self._spec, self._nameable)],
                "labels": labels,
                "quoted": [row for _, row in quoted],
                "imported": [row for _, row in imported],
                "against": self._one_each(table.against, "against"),
                "verdicts": self._spelt_verdicts(table.verdicts),
            }
        )
        self._check_axes(table)
        self._check_bold(table)
        self._check_selections(table, columns)
        self._check_spread(table)
        self._check_judged(table)
        self._check_printed(table)
        for at, row in imported:
            self._check_imported(row, f"imported[{at}]", table)
        for at, panel in enumerate(table.panels or ()):
            self._check_panel(panel, f"panels[{at}]", table)
        if not (table.published is None or self._published is None or table.published in self._published):
            right = suggestion(table.published, self._published)
            self._note("published", f"there is no published table '{table.published}'; {right}")
        else:
            self._check_quoted(table, quoted)
        return table

    # Columns

    def _columns(self, table: TableSpec) -> list[tuple[str, str | MetricColumn]]:
        """The metrics by their place in the table, with the labels of conditions spelt as their axes spell them."""
        known = {axis: self._spec.labels_at(axis) for axis in table.columns}
        columns: list[tuple[str, str | MetricColumn]] = []
        for at, posted in readable(enumerate(table.metrics)):
            field, column = f"metrics[{at}]", posted
            if isinstance(posted, MetricColumn):
                when = self._matched(posted.when, f"{field}.when", known, "'{axis}' is no axis of the columns")
                delta = self._one_each(posted.delta, f"{field}.delta")
                column = posted.model_copy(update={"when": when, "delta": delta})
            whole = _whole(column)
            if any(_same(whole, _whole(earlier)) for _, earlier in columns):
                self._note(field, f"'{whole.metric}' stands twice")
            columns.append((field, column))
            self._check_metric(whole, field)
        return columns

    def _matched(self, when: When, field: str, known: Known, strange: str) -> When:
        """A condition on axes that are `known`."""
        for axis in [axis for axis in when if axis not in known]:
            self._note(f"{field}.{axis}", f"{strange.format(axis=axis)}; {suggestion(axis, known)}")
        right = {axis: labels for axis, labels in when.items() if axis in known}
        return matched(right, f"{self._place.path}.{field}", known, self._place.problems)

    def _one_each(self, labels: Mapping[str, str] | None, field: str) -> dict[str, str] | None:
        """One label of each compare axis that is named."""
        if labels is None:
            return None
        when = {axis: [label] for axis, label in labels.items()}
        found = self._matched(when, field, self._compare, "there is no compare axis '{axis}'")
        return {axis: label for axis, (label,) in found.items()}

    def _check_metric(self, column: MetricColumn, field: str) -> None:
        if wrong := metric_problem(column.metric, self._nameable.catalog):
            self._note(field, wrong)
            return
        trained = facts_of(tasks(self._spec, self._nameable.catalog), "trained")
        if column.split == "train" and column.metric not in trained:
            right = suggestion(column.metric, trained)
            self._note(f"{field}.split", f"'{column.metric}' is not computed of training images; {right}")
        if column.split == "test_separated" and not any(
            recipe_label("validation", patch) == "cross_validation" for patch in self._spec.patches()
        ):
            needed = "is the mean over the models of a cross-validation; add `validation: {name: cross_validation}`"
            self._note(f"{field}.split", f"'{column.split}' {needed}")
        known = test_sets(self._spec, self._nameable.catalog) if column.test_set else []
        if column.test_set and column.test_set not in known:
            right = suggestion(column.test_set, known) if known else "its data sets evaluate no further test sets"
            self._note(f"{field}.split", f"no data set of this sweep has a test set '{column.test_set}'; {right}")
        for dataset in self._reached(column.when):
            if wrong := missing(column.metric, dataset, self._spec, self._nameable.catalog):
                self._note(field, wrong)

    def _reached(self, when: When) -> Sequence[str]:
        """The data sets under which a column appears, according to its condition."""
        for axis, labels in when.items():
            choices = [choice for group in self._spec.compare.get(axis, []) for choice in group.choices]
            if choices and all("dataset" in choice.patch for choice in choices):
                return [part_name(choice.patch["dataset"]) for choice in choices if choice.label in labels]
        return self._nameable.datasets

    # Printed labels

    def _check_printed(self, table: TableSpec) -> None:
        """Notes axes that the table does not show, and templates that no cell could fill."""
        axes = list(dict.fromkeys((*table.rows, *table.columns, *self._spec.compare, *self._spec.tune)))
        for field, given in (("labels", table.labels), ("titles", table.titles)):
            for axis in given:
                if axis not in axes:
                    self._note(f"{field}.{axis}", f"'{axis}' is no axis of this table; {suggestion(axis, axes)}")
        paths = {path for texts in table.labels.values() for text in texts.values() for path in PLACE.findall(text)}
        for path in sorted(paths):
            known = path in axes or recipe_label(path, self._spec.recipe) is not None
            if not known and path.partition(".")[0] not in self._unreadable:
                self._note("labels", f"no cell has a label for '{{{path}}}'; {suggestion(path, axes)}")

    # Verdicts

    def _spelt_verdicts(self, verdicts: VerdictSpec | None) -> VerdictSpec | None:
        if verdicts is None:
            return None
        labels = {field: self._one_each(getattr(verdicts, field), f"verdicts.{field}") for field in ("against", "of")}
        return verdicts.model_copy(update=labels)

    def _check_judged(self, table: TableSpec) -> None:
        shown_metrics = [_whole(column).metric for column in table.metrics]
        for at, metric in enumerate(table.verdicts.metrics if table.verdicts else ()):
            if metric not in shown_metrics:
                message = f"'{metric}' is no metric of the table; {suggestion(metric, shown_metrics)}"
                self._note(f"verdicts.metrics[{at}]", message)

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
        field, dot, _ = axis.partition(".")
        if axis in self._spec.compare or field in self._unreadable:
            return None
        if (not dot or field in PARTS) and recipe_label(axis, self._spec.recipe) is not None:
            return None  # the same in every cell
        return f"there is no compare axis '{axis}'; {suggestion(axis, self._spec.compare)}"

    def _check_bold(self, table: TableSpec) -> None:
        laid_out = [*table.rows, *table.columns]
        for at, axis in enumerate(table.bold if isinstance(table.bold, list) else ()):
            if axis not in laid_out:
                self._note(f"bold[{at}]", f"'{axis}' is neither in rows nor in columns; {suggestion(axis, laid_out)}")

    def _check_selections(self, table: TableSpec, columns: Sequence[tuple[str, str | MetricColumn]]) -> None:
        if len(set(table.selections)) < len(table.selections):
            self._note("selections", f"expected each split once, found {listed(table.selections)}")
        if table.selections and self._spec.select.beside is None and "select" not in self._unreadable:
            self._note("selections", "needs `select: {beside: test}`: trainings keep what the test split would choose")
        if table.selection_gap and set(table.selections) != {"validation", "test"}:
            self._note("selection_gap", "compares the two of `selections: [validation, test]`; add that")
        for field, column in columns if table.selections else ():
            if isinstance(column, MetricColumn) and column.split not in ("test", "test_separated"):
                self._note(f"{field}.split", f"both `selections` have test metrics only, found '{column.split}'")

    def _check_spread(self, table: TableSpec) -> None:
        if table.std is False and table.spread not in {None, "none"}:
            self._note("spread", f"`std: false` prints no spread, and this asks for '{table.spread}'; take one away")
        if table.covers != "seeds" and not any(self._over_queries(column.metric) for column in table.metric_columns):
            self._note("covers", f"'{table.covers}' needs a metric that is a mean over queries, such as 'recall@1'")
        if table.center != "mean" and table.spread in {"se", "ci95"}:
            self._note("spread", f"'{table.spread}' is that of a mean, and `center` is '{table.center}'")

    def _over_queries(self, metric: str) -> bool:
        """Whether a metric is a mean over queries; of a metric that does not exist that is reported already."""
        entry = metric_entry(metric, self._catalog)
        return entry is None or entry.facts.get("over") == "queries"

    # Rows of other tables

    def _check_quoted(self, table: TableSpec, quoted: Sequence[tuple[int, QuotedRow]]) -> None:
        """Notes quoted rows that are not exactly one line of the printed table."""
        if quoted and table.published is None:
            self._note("quoted", "quotes a printed table; name it by `published`")
        if table.published is None or not isinstance(self._published, Mapping):
            return
        lines = self._published[table.published] if quoted else ()
        for at, row in quoted:
            known = {axis: {line[axis] for line in lines if axis in line} for axis in row.of}
            for axis, label in row.of.items():
                if label not in known[axis]:
                    right = suggestion(label, sorted(known[axis])) if known[axis] else "it has no such axis"
                    self._note(f"quoted[{at}].of.{axis}", f"{table.published} has no line '{label}'; {right}")

    def _spelt_row(self, row: ImportedRow, field: str) -> ImportedRow:
        """An imported row with its labels spelt as their axes spell them."""
        numbers = [
            (k, number.model_copy(update={"of": self._spelt_labels(number.of, f"{field}.numbers[{k}].of")}))
            for k, number in readable(enumerate(row.numbers))
        ]
        against = None if row.against is None else self._spelt_labels(row.against, f"{field}.against")
        return row.model_copy(update={"numbers": [number for _, number in numbers], "against": against})

    def _spelt_labels(self, labels: Mapping[str, str], field: str) -> dict[str, str]:
        found: dict[str, str] = {}
        for axis, label in labels.items():
            known = self._spec.labels_at(axis)
            if known is None:
                self._note(f"{field}.{axis}", f"there is no axis '{axis}'; {suggestion(axis, self._compare)}")
            elif (right := match(label, known)) is None:
                message = f"axis '{axis}' has no alternative {shown(label)}; {suggestion(label, known)}"
                self._note(f"{field}.{axis}", message)
            else:
                found[axis] = right
        return found

    def _check_imported(self, row: ImportedRow, field: str, table: TableSpec) -> None:
        """Notes numbers that stand under no column, twice, or could not be what they say."""
        if row.against is not None:
            self._check_against(row.against, f"{field}.against", table.rows)
        columns = [column for column in table.metric_columns if column.delta is None]
        seen: dict[tuple[Any, ...], int] = {}
        for k, number in enumerate(row.numbers):
            spend(1 + len(columns))
            where = f"{field}.numbers[{k}]"
            self._check_place(number, where, table.columns, columns)
            if wrong := _implausible(number, row.unit, self._catalog):
                self._note(where, wrong)
            key = (number.metric, number.split, *sorted(number.of.items()))
            if key in seen:
                self._note(where, f"stands under the same column as numbers[{seen[key]}]")
            seen.setdefault(key, k)

    def _check_against(self, labels: Mapping[str, str], field: str, axes: Sequence[str]) -> None:
        for axis in labels:
            if axis not in axes:
                self._note(f"{field}.{axis}", f"'{axis}' is no axis of the rows; {suggestion(axis, axes)}")
        for axis in axes:
            if axis not in labels and len(self._compare.get(axis, ())) > 1:
                self._note(field, f"names no label of '{axis}', which tells rows apart; add one")

    def _check_place(
        self, number: ImportedNumber, field: str, axes: Sequence[str], columns: Sequence[MetricColumn]
    ) -> None:
        for axis in number.of:
            if axis not in axes:
                self._note(f"{field}.of.{axis}", f"'{axis}' is no axis of the columns; {suggestion(axis, axes)}")
        for axis in axes:
            if axis not in number.of and len(self._compare.get(axis, ())) > 1:
                self._note(field, f"names no label of '{axis}', which tells columns apart; add `of: {{{axis}: ...}}`")
        alike = [column for column in columns if column.metric == number.metric]
        if not alike:
            names = list(dict.fromkeys(column.metric for column in columns))
            self._note(
                f"{field}.metric", f"'{number.metric}' is no metric of the table; {suggestion(number.metric, names)}"
            )
        elif number.split not in (splits := [column.split for column in alike]):
            message = (
                f"the table has no '{number.metric}' of the split '{number.split}'; {suggestion(number.split, splits)}"
            )
            self._note(f"{field}.split", message)
        elif not any(applies(column.when, number.of) for column in alike if column.split == number.split):
            self._note(field, f"there is no column '{number.metric}' under {listed(number.of.values())}")

    # Rows, columns and panels

    def _check_panel(self, panel: Mapping[str, Sequence[str]], field: str, table: TableSpec) -> None:
        for axis, labels in panel.items():
            if axis not in table.columns or axis not in self._spec.compare:
                columns = [column for column in table.columns if column in self._spec.compare]
                self._note(
                    f"{field}.{axis}", f"'{axis}' is no compare axis in the columns; {suggestion(axis, columns)}"
                )
                continue
            known = [choice.label for group in self._spec.compare[axis] for choice in group.choices]
            spend(len(labels) * (1 + len(known) // 8))
            for label in labels:
                if label not in known:
                    self._note(
                        f"{field}.{axis}", f"axis '{axis}' has no alternative '{label}'; {suggestion(label, known)}"
                    )


def _whole(column: str | MetricColumn) -> MetricColumn:
    return MetricColumn(metric=column) if isinstance(column, str) else column


def _same(one: MetricColumn, other: MetricColumn) -> bool:
    """Whether two columns would look the same side by side."""
    alike = (one.metric, one.split, one.delta, one.label) == (other.metric, other.split, other.delta, other.label)
    return alike and not exclusive(one.when, other.when)


def _implausible(number: ImportedNumber, unit: str, catalog: Catalog) -> str | None:
    """Why a number cannot be what it says; None where it can."""
    if number.n == 1 and number.std is not None:
        return "is of one run, which has no deviation; leave `std` out, or say of how many runs it is"
    entry = metric_entry(number.metric, catalog)
    if entry is None or entry.facts.get("unit") == "number" or entry.facts.get("better") == "none":
        return None
    most, word = (100.0, "percent") if unit == "percent" else (1.0, "fractions")
    given = (("mean", number.mean), ("std", number.std or 0.0))
    for what, value in given:
        if abs(value) > most:
            other = "; is it in percent?" if unit == "fraction" and abs(value) <= 100 else ""
            return f"its {what} {value:g} is more than {most:g}, the most that a share in {word} is{other}"
    return None


# What trainings compute


def missing(metric: str, dataset: str, spec: Spec, catalog: Catalog) -> str | None:
    """Explains why no training on `dataset` computes `metric`; None if a training does, or nothing declares metrics.

    The data set is empty where the task takes none.
    """
    known = declared(dataset, spec, catalog)
    if not known or metric in known or metric in _added(dataset, spec):
        return None
    owner = f"dataset {dataset!r}" if dataset else f"task {tasks(spec, catalog)[0].name!r}"
    return not_computed(owner, metric, known)


def declared(dataset: str, spec: Spec, catalog: Catalog) -> list[str]:
    """The metrics that the sweep's trainings on a data set compute, over all of its tasks."""
    found = (name for task in tasks(spec, catalog) for name in catalog.metrics(dataset or None, task.name))
    return list(dict.fromkeys(found))


def tasks(spec: Spec, catalog: Catalog) -> list[Entry]:
    """The catalog entries of a sweep's tasks: those that axes and rules set, or else the task of the base recipe."""
    entries = (catalog.get("task", name) for name in spec.named("task"))
    return [entry for entry in entries if entry is not None]


def facts_of(of: Iterable[Entry], fact: str) -> list[str]:
    """The names that tasks list under `fact`: their `curves`, metrics `watched` in training, or metrics of `trained`
    images.
    """
    return list(dict.fromkeys(name for task in of for name in task.fact_names(fact)))


def at_the_end(metric: str, of: Sequence[Entry], catalog: Catalog) -> bool:
    """Whether trainings of these tasks compute the metric only at their end."""
    return bool(of) and all(catalog.at_the_end(metric, task) for task in of)


def test_sets(spec: Spec, catalog: Catalog) -> list[str]:
    """The additional test sets of a sweep: those that recipes request, by default those that data sets declare."""
    found: dict[str, None] = {}
    for patch in spec.patches():
        tests, dataset = patch.get("dataset.tests"), patch.get("dataset")
        if isinstance(dataset, dict):
            entry = catalog.get("dataset", part_name(dataset))
            parameter = entry.parameter("tests") if entry else None
            tests = dataset.get("tests", parameter.default if parameter else None)
        found |= dict.fromkeys(name for name in tests if isinstance(name, str)) if isinstance(tests, list) else {}
    return [*found]


def _added(dataset: str, spec: Spec) -> Iterator[str]:
    """Metrics that are added by patches that name this data set or no data set."""
    for patch in spec.patches():
        added = patch.get("metrics")
        if patch is spec.recipe or part_name(patch.get("dataset")) in ("", dataset):
            yield from (one for one in added if isinstance(one, str)) if isinstance(added, list) else ()


def part_name(part: Any) -> str:
    """The name of a part of a patch; empty if it has none."""
    return str(part.get("name", "")) if isinstance(part, dict) else ""


def default_metrics(spec: Spec, nameable: Nameable) -> list[str]:
    """The metrics of a default table: computed by trainings on every data set, and with a better direction."""
    computed = [declared(dataset, spec, nameable.catalog) for dataset in nameable.datasets]
    if not computed:
        return []
    shared = [metric for metric in computed[0] if all(metric in other for other in computed[1:])]
    entries = {metric: metric_entry(metric, nameable.catalog) for metric in shared}
    return [metric for metric, entry in entries.items() if entry and entry.facts.get("better") != "none"]
