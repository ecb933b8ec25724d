"""Imported rows of a spec: each number under its column, in a unit that it can have, or every problem at once."""

from collections.abc import Callable
from typing import Any

from tests.plan.conftest import Cases, Missed

NUMBER = {"metric": "nmi", "of": {"dataset": "digits"}, "mean": 65.1, "std": 0.4, "n": 5}
ROW = {"label": "Theirs", "source": "lab B", "unit": "percent", "numbers": [NUMBER]}


def document(small: Callable[..., dict[str, Any]], *rows: Any, **table: Any) -> dict[str, Any]:
    axes = {"loss": ["triplet", "semihard"], "iterations": [10, 20]}
    layout = {"rows": ["loss"], "columns": ["iterations"], "metrics": ["nmi", "norm_var"], "imported": list(rows)}
    return small(compare=axes, tables={"main": layout | table})


def row(**given: Any) -> dict[str, Any]:
    return {**ROW, "numbers": [number()], **given}


def one(**given: Any) -> dict[str, Any]:
    """A row of one number."""
    return row(numbers=[number(**given)])


def number(**given: Any) -> dict[str, Any]:
    return {**NUMBER, "of": {"iterations": 10}, **given}


def test_they_are_kept_with_labels_as_the_axes_spell_them(small: Any, checked: Any) -> None:
    against = {"loss": "triplet"}
    found = checked(document(small, row(against=against, numbers=[number(of={"iterations": "1e1"})])))
    (kept,) = found.tables["main"].imported
    assert kept.numbers[0].of == {"iterations": "10"}
    assert (kept.label, kept.source, kept.unit, kept.against) == ("Theirs", "lab B", "percent", against)
    assert "imported" not in checked(document(small)).tables["main"].model_dump(mode="json")


def test_a_subset_keeps_what_stands_under_what_is_left(small: Any, checked: Any) -> None:
    rows = (
        row(against={"loss": "semihard"}, numbers=[number(), number(of={"iterations": 20})]),
        row(label="Gone", numbers=[number(of={"iterations": 20})]),
    )
    (kept,) = checked(document(small, *rows) | {"only": {"iterations": 10, "loss": "triplet"}}).tables["main"].imported
    assert ([one.of for one in kept.numbers], kept.against) == ([{"iterations": "10"}], None)


def test_says_what_is_wrong_and_where(small: Any, missed: Missed) -> None:
    cases: Cases = [
        (3, "", "expected a mapping with `label`, `source`, `unit` and `numbers`, found 3"),
        ({**ROW, "unit": "cm"}, ".unit", "expected 'percent' or 'fraction', found 'cm'"),
        (row(label="a\x07b"), ".label", "expected printable characters on one line"),
        (row(source="a\nb"), ".source", "expected printable characters on one line"),
        (row(source=""), ".source", "expected at least one character"),
        (row(numbers=[]), ".numbers", "expected entries, at least 1"),
        (row(weight=1), ".weight", "there is no key 'weight' here; expected one of"),
        (one(mean="65"), ".numbers[0].mean", "expected a number, found"),
        (one(std=-1.0), ".numbers[0].std", "expected at least 0, found"),
        (one(n=0), ".numbers[0].n", "expected at least 1, found 0"),
        (one(n=2.5), ".numbers[0].n", "expected a whole number"),
        (one(n=1), ".numbers[0]", "is of one run, which has no deviation"),
        (
            row(unit="fraction"), ".numbers[0]",
            "its mean 65.1 is more than 1, the most that a share in fractions is; is it in percent?",
        ),
        (one(mean=1e300), ".numbers[0].mean", "expected at most 1,000,0"),
        (one(of={}), ".numbers[0]", "names no label of 'iterations'"),
        (one(of={"iterations": 30}), ".numbers[0].of.iterations", "axis 'iterations' has no alternative 30; expected"),
        (one(of={"iterations": 10, "loss": "triplet"}), ".numbers[0].of.loss", "'loss' is no axis of the columns; "),
        (row(numbers=[number(), number()]), ".numbers[1]", "stands under the same column"),
        (one(metric="nmj"), ".numbers[0].metric", "'nmj' is no metric of the table; did you mean 'nmi'?"),
        (one(split="train"), ".numbers[0].split", "the table has no 'nmi' of the split 'train'"),
        (row(against={"iterations": 10}), ".against", "names no label of 'loss', which tells rows apart"),
    ]  # fmt: skip
    found = ((document(small, one), f"tables.main.imported[0]{path}", said) for one, path, said in cases)
    assert missed(found, alone=False) == []
    no_list = document(small, imported={"label": "x"})
    assert missed([(no_list, "tables.main.imported", "expected a list of at most 100 rows, found")]) == []


def test_all_rows_are_told_of_at_once(small: Any, told: Any) -> None:
    found = told(document(small, row(unit="cm"), row(numbers=[number(mean=True), number(std="x")]), 7))
    assert [path for path, _ in found] == [
        "tables.main.imported[0].unit", "tables.main.imported[1].numbers[0].mean",
        "tables.main.imported[1].numbers[1].std", "tables.main.imported[2]",
    ]  # fmt: skip
