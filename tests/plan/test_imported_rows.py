"""Imported rows of a spec: each number under its column, in a unit that it can have, or every problem at once."""

from collections.abc import Callable
from typing import Any

import pytest

NUMBER = {"metric": "nmi", "of": {"dataset": "digits"}, "mean": 65.1, "std": 0.4, "n": 5}
ROW = {"label": "Theirs", "source": "lab B", "unit": "percent", "numbers": [NUMBER]}


def document(small: Callable[..., dict[str, Any]], *rows: Any, **table: Any) -> dict[str, Any]:
    axes = {"loss": ["triplet", "semihard"], "iterations": [10, 20]}
    layout = {"rows": ["loss"], "columns": ["iterations"], "metrics": ["nmi", "norm_var"], "imported": list(rows)}
    return small(compare=axes, tables={"main": layout | table})


def row(**given: Any) -> dict[str, Any]:
    return {**ROW, "numbers": [number()], **given}


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


@pytest.mark.parametrize(
    ("given", "path", "message"),
    [
        ({"imported": {"label": "x"}}, "imported", "expected a list of at most 100 rows, found"),
        ({"imported": [3]}, "imported[0]", "expected a mapping with `label`, `source`, `unit` and `numbers`, found 3"),
        ({"imported": [{**ROW, "unit": "cm"}]}, "imported[0].unit", "expected 'percent' or 'fraction', found 'cm'"),
        ({"imported": [row(label="a\x07b")]}, "imported[0].label", "expected printable characters on one line"),
        ({"imported": [row(source="a\nb")]}, "imported[0].source", "expected printable characters on one line"),
        ({"imported": [row(source="")]}, "imported[0].source", "expected at least one character"),
        ({"imported": [row(numbers=[])]}, "imported[0].numbers", "expected entries, at least 1"),
        ({"imported": [row(weight=1)]}, "imported[0].weight", "there is no key 'weight' here; expected one of"),
        ({"imported": [row(numbers=[number(mean="65")])]}, "imported[0].numbers[0].mean", "expected a number, found"),
        ({"imported": [row(numbers=[number(std=-1.0)])]}, "imported[0].numbers[0].std", "expected at least 0, found"),
        ({"imported": [row(numbers=[number(n=0)])]}, "imported[0].numbers[0].n", "expected at least 1, found 0"),
        ({"imported": [row(numbers=[number(n=2.5)])]}, "imported[0].numbers[0].n", "expected a whole number"),
        ({"imported": [row(numbers=[number(n=1)])]}, "imported[0].numbers[0]", "is of one run, which has no deviation"),
        (
            {"imported": [row(unit="fraction")]},
            "imported[0].numbers[0]",
            "its mean 65.1 is more than 1, the most that a share in fractions is; is it in percent?",
        ),
        ({"imported": [row(numbers=[number(mean=1e300)])]}, "imported[0].numbers[0].mean", "expected at most 1,000,0"),
        ({"imported": [row(numbers=[number(of={})])]}, "imported[0].numbers[0]", "names no label of 'iterations'"),
        (
            {"imported": [row(numbers=[number(of={"iterations": 30})])]},
            "imported[0].numbers[0].of.iterations",
            "axis 'iterations' has no alternative 30; expected one of '10', '20'",
        ),
        (
            {"imported": [row(numbers=[number(of={"iterations": 10, "loss": "triplet"})])]},
            "imported[0].numbers[0].of.loss",
            "'loss' is no axis of the columns; ",
        ),
        ({"imported": [row(numbers=[number(), number()])]}, "imported[0].numbers[1]", "stands under the same column"),
        (
            {"imported": [row(numbers=[number(metric="nmj")])]},
            "imported[0].numbers[0].metric",
            "'nmj' is no metric of the table; did you mean 'nmi'?",
        ),
        (
            {"imported": [row(numbers=[number(split="train")])]},
            "imported[0].numbers[0].split",
            "the table has no 'nmi' of the split 'train'",
        ),
        (
            {"imported": [row(against={"iterations": 10})]},
            "imported[0].against",
            "names no label of 'loss', which tells rows apart",
        ),
    ],
)  # fmt: skip
def test_says_what_is_wrong_and_where(given: Any, path: str, message: str, small: Any, told: Any) -> None:
    found = told(document(small, **given))
    said = next((words for place, words in found if place == f"tables.main.{path}"), f"nothing, but {found}")
    assert said.startswith(message)


def test_all_rows_are_told_of_at_once(small: Any, told: Any) -> None:
    found = told(document(small, row(unit="cm"), row(numbers=[number(mean=True), number(std="x")]), 7))
    assert [path for path, _ in found] == [
        "tables.main.imported[0].unit", "tables.main.imported[1].numbers[0].mean",
        "tables.main.imported[1].numbers[1].std", "tables.main.imported[2]",
    ]  # fmt: skip
