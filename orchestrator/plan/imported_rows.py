"""Reads the imported rows of a table: each number under its column, in a unit that it can have."""

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import Any

from pydantic import ValidationError

from orchestrator.plan.axes import match
from orchestrator.plan.nameable import Nameable
from orchestrator.plan.problems import DocumentPlace, sentences, spend
from orchestrator.spec.axes import applies, held, labels_of, number_of
from orchestrator.spec.layouts import MOST_NUMBERS, MOST_ROWS, ImportedNumber, ImportedRow, MetricColumn
from orchestrator.spec.spec import Spec
from workers.catalog import Catalog, listed, meant, metric_entry, shown


class ImportedRows:
    """Reads the imported rows of one table, noting what is wrong with them."""

    def __init__(self, place: DocumentPlace, spec: Spec, nameable: Nameable) -> None:
        self._place, self._note, self._spec, self._catalog = place, place.note, spec, nameable.catalog

    def read(self, posted: Any) -> list[ImportedRow]:
        """The rows that have a readable form; their numbers are checked once the table is known."""
        if not isinstance(posted, list) or len(posted) > MOST_ROWS:
            self._note("imported", f"expected a list of at most {MOST_ROWS} rows, found {shown(posted)}")
            return []
        found = [self._row(one, f"imported[{at}]") for at, one in enumerate(posted)]
        return [row for row in found if row is not None]

    def check(self, rows: Sequence[ImportedRow], table: "Layout") -> None:
        """Notes numbers that stand under no column, twice, or could not be what they say."""
        for at, row in enumerate(rows):
            field = f"imported[{at}]"
            if row.against is not None:
                self._check_against(row.against, f"{field}.against", table)
            seen: dict[tuple[Any, ...], int] = {}
            for k, number in enumerate(row.numbers):
                spend(1 + len(table.columns))
                where = f"{field}.numbers[{k}]"
                self._check_place(number, where, table)
                if wrong := implausible(number, row.unit, self._catalog):
                    self._note(where, wrong)
                key = (number.metric, number.split, *sorted(number.of.items()))
                if key in seen:
                    self._note(where, f"stands under the same column as numbers[{seen[key]}]")
                seen.setdefault(key, k)

    def _row(self, posted: Any, field: str) -> ImportedRow | None:
        if not isinstance(posted, Mapping):
            self._note(field, f"expected a mapping with `label`, `source`, `unit` and `numbers`, found {shown(posted)}")
            return None
        given = dict(posted)
        numbers = given.get("numbers")
        if isinstance(numbers, list) and len(numbers) <= MOST_NUMBERS:
            read = [self._number(one, f"{field}.numbers[{k}]") for k, one in enumerate(numbers)]
            given["numbers"] = [one for one in read if one is not None]
            if numbers and not given["numbers"]:
                return None
        for key in ("label", "source"):
            if isinstance(text := given.get(key), str) and not (text.isprintable() and (text.strip() or not text)):
                self._note(f"{field}.{key}", f"expected printable characters on one line, found {shown(text)}")
                return None
        if isinstance(given.get("against"), Mapping):
            given["against"] = self._labels(given["against"], f"{field}.against")
        try:
            return ImportedRow.model_validate(given, strict=True)
        except ValidationError as error:
            self._place.problems.extend(sentences(error, f"{self._place.path}.{field}", ImportedRow))
            return None

    def _number(self, posted: Any, field: str) -> ImportedNumber | None:
        if not isinstance(posted, Mapping):
            self._note(field, f"expected a mapping with `metric` and `mean`, found {shown(posted)}")
            return None
        given = dict(posted)
        if isinstance(given.get("of"), Mapping):
            given["of"] = self._labels(given["of"], f"{field}.of")
        try:
            return ImportedNumber.model_validate(given, strict=True)
        except ValidationError as error:
            self._place.problems.extend(sentences(error, f"{self._place.path}.{field}", ImportedNumber))
            return None

    def _labels(self, posted: Mapping[Any, Any], field: str) -> dict[str, str]:
        """One label for each axis, spelt as the axis does."""
        labels: dict[str, str] = {}
        for axis, value in posted.items():
            known = self._known.get(str(axis))
            if known is None and (value_held := held(str(axis), self._spec.recipe)) is not None:
                known = {value_held: None}
            if known is None:
                self._note(f"{field}.{axis}", f"there is no axis '{axis}'; {meant(str(axis), self._known)}")
            elif isinstance(value, Mapping | list) or value is None or (label := _meant(value, known)) is None:
                right = meant(str(value), known) if isinstance(value, str) else f"expected one of {listed(known)}"
                self._note(f"{field}.{axis}", f"axis '{axis}' has no alternative {shown(value)}; {right}")
            else:
                labels[str(axis)] = label
        return labels

    @cached_property
    def _known(self) -> dict[str, dict[str, None]]:
        return {axis: dict.fromkeys(labels_of(groups)) for axis, groups in self._spec.compare.items()}

    def _check_against(self, labels: Mapping[str, str], field: str, table: "Layout") -> None:
        for axis in labels:
            if axis not in table.rows:
                self._note(f"{field}.{axis}", f"'{axis}' is no axis of the rows; {meant(axis, table.rows)}")
        for axis in table.rows:
            if axis not in labels and len(self._known.get(axis, ())) > 1:
                self._note(field, f"names no label of '{axis}', which tells rows apart; add one")

    def _check_place(self, number: ImportedNumber, field: str, table: "Layout") -> None:
        for axis in number.of:
            if axis not in table.over:
                self._note(f"{field}.of.{axis}", f"'{axis}' is no axis of the columns; {meant(axis, table.over)}")
        for axis in table.over:
            if axis not in number.of and len(self._known.get(axis, ())) > 1:
                self._note(field, f"names no label of '{axis}', which tells columns apart; add `of: {{{axis}: ...}}`")
        alike = [one for one in table.columns if one.metric == number.metric]
        if not alike:
            names = list(dict.fromkeys(one.metric for one in table.columns))
            self._note(f"{field}.metric", f"'{number.metric}' is no metric of the table; {meant(number.metric, names)}")
        elif number.split not in (splits := [one.split for one in alike]):
            said = f"the table has no '{number.metric}' of the split '{number.split}'; {meant(number.split, splits)}"
            self._note(f"{field}.split", said)
        elif not any(applies(one.when, number.of) for one in alike if one.split == number.split):
            self._note(field, f"there is no column '{number.metric}' under {listed(number.of.values())}")


class Layout:
    """What rows and columns a table has, as far as an imported row must fit them."""

    def __init__(self, rows: Collection[str], over: Collection[str], columns: Sequence[MetricColumn]) -> None:
        self.rows, self.over = list(rows), list(over)
        self.columns = [one for one in columns if one.delta is None]


def _meant(value: Any, labels: Collection[str]) -> str | None:
    """The label that is meant: the same text, or an equal number in another spelling, also where it is a text."""
    found = match(value, labels)
    return match(number_of(value), labels) if found is None and isinstance(value, str) else found


def implausible(number: ImportedNumber, unit: str, catalog: Catalog) -> str | None:
    """Why a number cannot be what it says; none where it can."""
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
