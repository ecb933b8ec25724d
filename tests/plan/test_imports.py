"""Rows of other people: read from files, and checked in a spec, which reports all problems at once."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.plan import csv_import
from orchestrator.plan.csv_import import ImportOptions, imported
from orchestrator.plan.edit import with_rows
from orchestrator.plan.read import spec_document
from orchestrator.views.errors import InvalidImportError, InvalidSpecError, TooLargeError
from tests.plan.conftest import Cases, Missed

SUMMARY = ImportOptions(layout="summary", unit="percent", source="lab B", rows=("method",), axes={"dataset": "data"})
RUNS = ImportOptions(
    layout="wandb", unit="fraction", source="W&B", rows=("loss", "reg"), axes={"dataset": "data"},
    metrics={"recall@1": "test/R1"}, seed="seed",
)  # fmt: skip
LINES = "method,data,metric,mean,std,n\nSEC,cub200,recall@1,65.1,0.4,5\n"
WANDB = """Name,State,data,loss,reg,seed,test/R1
a,finished,cub200,triplet,sec,0,0.65
b,finished,cub200,triplet,sec,1,0.67
c,finished,cub200,triplet,none,0,0.60
d,crashed,cub200,triplet,none,1,0.10
e,running,cub200,triplet,none,2,
"""
MLFLOW = """run_id,status,params.loss,params.dataset.name,params.seed,metrics.test/recall_at_1
1,FINISHED,triplet,cub200,0,0.65
2,FINISHED,triplet,cub200,1,0.67
3,FAILED,triplet,cub200,2,0.01
"""


def told(text: str | bytes, asked: ImportOptions = SUMMARY) -> list[tuple[str, str]]:
    with pytest.raises(InvalidImportError) as caught:
        imported(text if isinstance(text, bytes) else text.encode(), asked)
    return [(one.path, one.message) for one in caught.value.problems]


def test_a_line_a_number_with_mean_deviation_and_n() -> None:
    lines = LINES + "SEC,cars196,recall@1,80,,\n\n , ,\nL2,cub200,recall@1,60.0,1e-1,3\n"  # blank lines are skipped
    found = imported(lines.encode(), replace(SUMMARY, against={"loss": "triplet"}))
    head = {"source": "lab B", "unit": "percent", "against": {"loss": "triplet"}}
    assert found.rows == [
        {"label": "SEC", **head, "numbers": [
            {"metric": "recall@1", "of": {"dataset": "cub200"}, "mean": 65.1, "std": 0.4, "n": 5},
            {"metric": "recall@1", "of": {"dataset": "cars196"}, "mean": 80.0},
        ]},
        {"label": "L2", **head, "numbers": [
            {"metric": "recall@1", "of": {"dataset": "cub200"}, "mean": 60.0, "std": 0.1, "n": 3}
        ]},
    ]  # fmt: skip
    assert found.notes == []


def test_columns_texts_and_metrics_may_be_called_otherwise() -> None:
    lines = "Data,what,value\nCUB-200-2011,R@1,0.65\nCUB-200-2011,R@2,0.7\nCars,R@1,0.8\n"
    asked = ImportOptions(
        layout="summary", unit="fraction", source="x", label="Theirs", axes={"dataset": "Data"},
        metrics={"recall@1": "R@1"}, renamed={"CUB-200-2011": "cub200"}, where={"Data": "CUB-200-2011"},
        columns={"metric": "what", "mean": "value"},
    )  # fmt: skip
    (row,) = imported(lines.encode(), asked).rows
    assert (row["label"], row["numbers"]) == (
        "Theirs", [{"metric": "recall@1", "of": {"dataset": "cub200"}, "mean": 0.65}]
    )  # fmt: skip


def test_runs_of_wandb_become_means_of_those_that_finished() -> None:
    found = imported(WANDB.encode(), RUNS)
    first, second = found.rows
    assert (first["label"], second["label"]) == ("triplet sec", "triplet none")
    (number,) = first["numbers"]
    assert (number["mean"], number["std"], number["n"]) == (pytest.approx(0.66), pytest.approx(0.0141421356), 2)
    assert second["numbers"] == [{"metric": "recall@1", "of": {"dataset": "cub200"}, "mean": 0.6, "n": 1}]
    assert found.notes == ["runs that did not finish are left out: 1 crashed, 1 running"]


def test_runs_of_mlflow_are_found_without_their_prefixes() -> None:
    asked = ImportOptions(
        layout="mlflow", unit="fraction", source="x", rows=("loss",), axes={"dataset": "dataset.name"},
        metrics={"recall@1": "test/recall_at_1"}, seed="seed",
    )  # fmt: skip
    found = imported(MLFLOW.encode(), asked)
    assert found.rows[0]["numbers"][0] | {"std": 0} == {
        "metric": "recall@1", "of": {"dataset": "cub200"}, "mean": pytest.approx(0.66), "std": 0, "n": 2,
    }  # fmt: skip
    assert found.notes == ["runs that did not finish are left out: 1 failed"]


def test_omissions_are_reported() -> None:
    found = imported(WANDB.replace("State,", "X,").replace(",2,\n", ",2,0.3\n").replace("0.65", "").encode(), RUNS)
    assert found.notes == [
        "the file has no column that says which runs finished; all of them count",
        "finished runs without 'test/R1', which may have diverged, are left out: 1, line 2",
    ]


def test_all_problems_are_reported_at_once_with_line_and_column() -> None:
    lines = (
        LINES + "SEC,cub200,recall@1,66,1,5\n,cub200,nmi,nan,-1,0\nL2,cub200,nmi,65%,0.4±1,2.5\nA,cub200,nmi,1,2,1\n"
    )
    assert told(lines + 'B,cub200,nmi\nC,cub200,nmi,"=1+1",,\nD,cub200,,1e999,,\n') == [
        ("line 7", "has 3 cells, where the first line has 6")
    ], "the form first: cells would be told of under wrong columns"
    assert told(lines + 'C,cub200,nmi,"=1+1",,\nD,cub200,,1e999,,\nE,cub200,nmi,,,\n') == [
        ("line 3", "gives the same number as line 2"),
        ("line 4, column 'method'", "the row has no label; name a column by --row, or give --label"),
        ("line 4, column 'mean'", "'nan' is no finite number; a run that diverged has no mean: take its line away, "
         "and say so"),
        ("line 4, column 'std'", "a deviation is not below zero, found -1"),
        ("line 4, column 'n'", "expected a number of runs, 1 or more, found 0"),
        ("line 5, column 'mean'", "expected a number, found '65%'; write it without the sign, and say `percent` as "
         "the unit"),
        ("line 5, column 'std'", "expected a number, found '0.4±1'; write mean and deviation in columns of their own"),
        ("line 5, column 'n'", "expected a number of runs, 1 or more, found 2.5"),
        ("line 6, column 'std'", "is given of one run, which has no deviation; leave it empty"),
        ("line 7, column 'mean'", "expected a number such as 65.1 or 6.51e1, found '=1+1'"),
        ("line 8, column 'metric'", "is empty; expected the name of a metric"),
        ("line 9, column 'mean'", "is empty; expected a number"),
    ]  # fmt: skip


def test_says_what_is_wrong_and_where() -> None:
    cases: list[tuple[str | bytes, str, str]] = [
        (b"", "", "the file is empty; expected a line of column names"),
        (b"\n\n", "", "the file is empty"),
        (b"method,data,metric,mean\n", "", "there is no line below that of the column names"),
        (b"\xff\xfem\x00", "", "the text is UTF-16; save it as UTF-8"),
        (b"method\nab\xff\n", "line 2", "the text is not UTF-8: byte 0xff"),
        (LINES.replace("SEC", "S\x1b[31mEC"), "line 2", "the character U+001B is not allowed"),
        (LINES.replace("SEC", "S\x00C"), "line 2", "the character U+0000 is not allowed"),
        (LINES.replace("\n", "\r"), "", "lines end with a carriage return alone"),
        (LINES.replace(",", ";"), "line 1", "the columns are not separated by commas"),
        (LINES.replace("SEC", '"SEC'), "line 2", "is no CSV: unexpected end of data"),
        (LINES.replace("mean", "maen"), "line 1", "there is no column 'mean'; did you mean 'maen'?"),
        (LINES.replace(",n\n", ",mean\n"), "line 1", "the column 'mean' stands twice"),
        (LINES.replace("65.1", "Infinity"), "line 2, column 'mean'", "'Infinity' is no finite number"),
        (LINES.replace("65.1", "1e999"), "line 2, column 'mean'", "'1e999' is beyond what a number holds"),
        (LINES.replace("65.1", "65,1"), "line 2", "has 7 cells, where the first line has 6"),
        (LINES.replace("0.4", "-0.4"), "line 2, column 'std'", "a deviation is not below zero, found -0.4"),
        (LINES.replace(",5", ",2.5"), "line 2, column 'n'", "expected a number of runs, 1 or more, found 2.5"),
        (LINES.replace("SEC", "x" * 201), "line 2", "the label of its row has more than 200 characters"),
    ]  # fmt: skip
    found = [(where, message, told(text)[0]) for text, where, message in cases]
    assert [one for one in found if (one[0], one[1]) != (one[2][0], one[2][1][: len(one[1])])] == []


def test_two_runs_of_one_seed_are_no_two_runs() -> None:
    ((where, said),) = told(WANDB.replace("sec,1", "sec,0"), RUNS)
    assert where == "line 3, column 'seed'"
    assert said.startswith("'0' is that of line 2 already, which counts to the same number")
    ((_, said),) = told(WANDB, replace(RUNS, metrics={}))
    assert said == "no metric is named; say which column has which, such as recall@1=test/R1"
    ((_, said),) = told(WANDB, replace(RUNS, where={"Name": "nobody"}))
    assert said == "no line has a number of the requested metrics"


def test_what_is_too_large_is_refused_before_it_is_read() -> None:
    for text in ("x" * (csv_import.MAX_BYTES + 1), "a\n" + "1\n" * 20_001, "a," * 5_001 + "a\n1\n",
                 ",".join(map(str, range(3000))) + "\n" + (",".join("1" * 3000) + "\n") * 170):  # fmt: skip
        with pytest.raises(TooLargeError):
            imported(text.encode(), SUMMARY)
    many = told("method,data,metric,mean\n" + "".join(f"m{n},d,nmi,1\n" for n in range(101)))
    assert many == [("", "there are 101 rows; a table takes 100: name others by --where")]
    assert len(told("method,data,metric,mean\n" + "m,d,nmi,x\n" * 5000)) == 201


SPEC = b"""name: x  # mine
tables:
  main:
    rows: [loss]  # the losses
  other: {rows: [loss]}
"""
ROW = {"label": "A", "source": "s", "unit": "percent", "numbers": [{"metric": "nmi", "mean": 1.0}]}


def test_rows_are_put_into_a_spec_and_take_the_place_of_their_former_selves() -> None:
    once = with_rows(SPEC, None, [ROW])
    assert once.startswith(b"name: x  # mine\ntables:\n  main:\n    rows: [loss]  # the losses\n    imported: [")
    twice = with_rows(once, "main", [{**ROW, "unit": "fraction"}, {**ROW, "label": "B"}])
    assert [(one["label"], one["unit"]) for one in spec_document(twice).value["tables"]["main"]["imported"]] == [
        ("A", "fraction"), ("B", "percent")
    ]  # fmt: skip
    assert spec_document(with_rows(SPEC, "other", [ROW])).value["tables"]["other"]["imported"] == [ROW]
    for text, table, message in (
        (b"name: x", None, "the spec has no `tables` to import rows into"),
        (SPEC, "mian", "there is no such table; did you mean 'main'?"),
    ):
        with pytest.raises(InvalidSpecError, match=message.replace("?", r"\?")):
            with_rows(text, table, [ROW])


NUMBER = {"metric": "nmi", "of": {"dataset": "digits"}, "mean": 65.1, "std": 0.4, "n": 5}
THEIRS = {"label": "Theirs", "source": "lab B", "unit": "percent", "numbers": [NUMBER]}


def document(small: Callable[..., dict[str, Any]], *rows: Any, **table: Any) -> dict[str, Any]:
    axes = {"loss": ["triplet", "semihard"], "iterations": [10, 20]}
    layout = {"rows": ["loss"], "columns": ["iterations"], "metrics": ["nmi", "norm_var"], "imported": list(rows)}
    return small(compare=axes, tables={"main": layout | table})


def row(**given: Any) -> dict[str, Any]:
    return {**THEIRS, "numbers": [number()], **given}


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


def test_wrong_rows_of_a_spec_are_reported(small: Any, missed: Missed) -> None:
    cases: Cases = [
        (3, "", "expected a mapping with `label`, `source`, `unit`, `numbers`, found 3"),
        ({**THEIRS, "unit": "cm"}, ".unit", "expected 'percent' or 'fraction', found 'cm'"),
        (row(label="a\x07b"), ".label", "expected 1 to"),
        (row(source="a\nb"), ".source", "expected 1 to"),
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
        (one(of={"iterations": 30}), ".numbers[0].of.iterations", "axis 'iterations' has no"),
        (one(of={"iterations": 10, "loss": "triplet"}), ".numbers[0].of.loss", "'loss' is no axis of the columns; "),
        (row(numbers=[number(), number()]), ".numbers[1]", "stands under the same column"),
        (one(metric="nmj"), ".numbers[0].metric", "'nmj' is no metric of the table; did you mean 'nmi'?"),
        (one(split="train"), ".numbers[0].split", "the table has no 'nmi' of the split 'train'"),
        (row(against={"iterations": 10}), ".against", "names no label of 'loss', which tells rows apart"),
    ]  # fmt: skip
    found = ((document(small, one), f"tables.main.imported[0]{path}", said) for one, path, said in cases)
    assert missed(found, alone=False) == []
    no_list = document(small, imported={"label": "x"})
    assert missed([(no_list, "tables.main.imported", "expected a list, found")]) == []
