"""The papers' numbers as data: all there, as printed, and found by the labels that a sweep gives its cells."""

import csv
import io
import re
from pathlib import Path
from typing import Any

import pytest

from orchestrator.publish.paper_tables import FORMATS, render, summary, view
from orchestrator.publish.papers import Number, PrintedPlace, Units, glossary, load, names, read
from orchestrator.views.errors import NotFoundError
from orchestrator.views.evidence import PublishedView
from workers import catalog

FACES_AND_SSL = {"SEC-T4", "SEC-T5", "SEC-T11", "SEC-T12", "REB-T1", "SVMax-T5"}
"""Tables that are not of retrieval: some of their data sets and losses are no parts of ours."""
NO_MINER = "multi_similarity mined=false"


def found(table: str, metric: str, **labels: str) -> Number:
    number = load(table).find({axis.replace("__", "."): label for axis, label in labels.items()}, metric)
    assert number is not None
    return number


def test_all_of_them_are_here():
    tables = [load(name) for name in names()]
    assert (len(tables), sum(len(one.numbers) for one in tables)) == (23, 1618)
    assert {one.paper for one in tables} == {"SEC", "REB", "SVMax", "ISA"}
    for one in tables:
        assert one.title
        assert one.citation
        assert set(one.axes) >= {"dataset", "loss", "regularizer"}
        assert {number.metric for number in one.numbers} == set(one.metrics)


def test_tables_of_retrieval_speak_of_our_parts_and_metrics() -> None:
    parts = catalog.load()
    for number in (number for name in names() if name not in FACES_AND_SSL for number in load(name).numbers):
        for kind in ("dataset", "loss", "regularizer", "head", "backbone"):
            label = number.labels.get(kind)
            assert label in {None, NO_MINER} or parts.get(kind, str(label)), (kind, label)
        metric = number.metric.removeprefix("delta:")
        assert catalog.metric_problem(metric, parts) is None, metric


def test_each_number_is_found_where_it_stands_and_nowhere_else() -> None:
    for table in map(load, names()):
        for number in table.numbers:
            assert table.find({axis: number.labels.get(axis, "") for axis in table.axes}, number.metric) is number


def test_an_unknown_table_is_told_its_near_miss() -> None:
    with pytest.raises(NotFoundError, match="did you mean 'SEC-T3'"):
        load("SECT3")
    with pytest.raises(NotFoundError, match="expected one of 'SEC-T2', 'SEC-T3'"):
        load("table seven")
    assert load("svmax-t1").id == "SVMax-T1"


class TestReading:
    def test_bold_deviation_and_words(self) -> None:
        place = PrintedPlace({}, {}, "recall@1")
        bold = read("*60.82*", place, Units("percent", "percent"))
        assert (bold.printed, bold.value, bold.bold) == ("60.82", 0.6082, True)
        spread = read("66.92±0.002", place, Units("percent", "fraction"))
        assert (spread.value, spread.std, spread.decimals) == (0.6692, 0.002, 2)
        word = read("degenerate", place, Units("percent", "percent"))
        assert (word.printed, word.value, word.std) == ("degenerate", None, None)
        assert read(".471", place, Units("fraction", "fraction")).value == 0.471
        assert read("-1.18", place, Units("percent", "percent")).value == -0.0118

    def test_half_a_printed_digit(self) -> None:
        halves = {
            ("60.82", "percent"): 5e-5, ("65.0", "percent"): 5e-4, ("0.435", "fraction"): 5e-4,
            ("3.20", "number"): 5e-3,
        }  # fmt: skip
        for (printed, unit), half in halves.items():
            number = read(printed, PrintedPlace({}, {}, "m"), Units(unit, unit))  # type: ignore[arg-type]
            assert number.rounding == pytest.approx(half)

    def test_shares_are_fractions_whatever_the_paper_prints(self) -> None:
        assert found("SEC-T3", "nmi", dataset="cub200", loss="triplet", regularizer="sec").value == 0.6424
        svmax = {"loss": "contrastive", "regularizer": "none", "optimizer__lr": "0.01"}
        assert found("SVMax-T1", "nmi", **svmax).value == 0.435
        assert found("SVMax-T1", "recall@1", **svmax).value == 0.2573
        norm = found("REB-T2", "norm_mean", regularizer="sec", regularizer__eta="0.5")
        assert (norm.value, norm.unit) == (3.2, "number")

    def test_what_was_quoted_from_elsewhere_says_so(self) -> None:
        assert "MLRC" in found("ISA-T2", "map@r", dataset="cub200", loss="margin").source
        assert found("ISA-T2", "map@r", dataset="cub200", loss="proxy_isa").source == ""


class TestFinding:
    def test_numbers_are_equal_however_they_are_spelt(self) -> None:
        for eta in ("1e-3", "0.001", "0.0010"):
            assert found("SEC-T8", "recall@1", regularizer="l2", regularizer__eta=eta).printed == "57.16"

    @pytest.mark.parametrize(
        ("labels", "printed"),
        [
            ({"dataset": "CUB", "loss": "SHT", "regularizer": "SEC"}, "67.35"),
            ({"data": "CUB-200-2011", "method": "Semihard triplet", "reg": "L2-reg"}, "65.60"),
            ({"dataset": "cub", "loss": "semihard_triplet", "regularizer": "vanilla"}, "65.31"),
            (
                {"dataset": "cub200", "loss": "semihard", "regularizer": "none", "seed": "0", "embedding": "512"},
                "65.31",
            ),
        ],
    )
    def test_the_papers_names_and_ours(self, labels: dict[str, str], printed: str) -> None:
        number = load("SEC-T3").find(labels, "R@1")
        assert number is not None
        assert number.printed == printed

    def test_a_name_may_mean_another_thing_in_another_paper(self) -> None:
        assert found("ISA-T2", "recall@1", dataset="cub200", loss="MS").printed == "65.0±0.3"
        assert found("ISA-T2", "recall@1", dataset="cub200", loss="multi_similarity").printed == "67.7±0.2"
        assert found("SEC-T3", "recall@1", dataset="cub200", loss="MS", regularizer="none").printed == "66.14"

    def test_an_axis_that_is_not_given_does_not_decide(self) -> None:
        table = load("SEC-T2")
        assert table.find({"regularizer": "none"}, "recall@1") is table.numbers[2]
        assert table.find({"regularizer": "sec"}, "recall@1") is None  # four weights are left

    def test_an_axis_that_does_not_apply_is_not_any(self) -> None:
        table = load("SVMax-T1")
        one = {"loss": "contrastive", "regularizer": "svmax", "optimizer.lr": "0.01"}
        assert table.find(one, "recall@1") is not None
        assert table.find({**one, "regularizer.eta": ""}, "recall@1") is None
        assert table.find({**one, "regularizer.eta": "10"}, "recall@1") is None

    def test_equal_trainings_are_one(self) -> None:
        assert found("SEC-T2", "nmi", regularizer="sec", regularizer__eta="0").printed == "56.66"
        for labels in ({"regularizer": "sec"}, {"regularizer": "sec_ema", "regularizer.rho": "1.0"}):
            number = load("SEC-T9").find(labels, "recall@1")
            assert number is not None
            assert number.printed == "67.89"

    def test_what_is_not_printed_is_not_found(self) -> None:
        table = load("SEC-T3")
        assert table.find({"dataset": "digits", "loss": "triplet", "regularizer": "sec"}, "recall@1") is None
        assert table.find({"dataset": "inshop", "loss": "triplet", "regularizer": "sec"}, "nmi") is None
        assert table.find({"dataset": "cub200", "loss": "triplet", "regularizer": "sec"}, "map@r") is None

    def test_a_printed_difference_has_a_name_of_its_own(self) -> None:
        labels = {"loss": "npair", "regularizer": "svmax", "optimizer__lr": "1e-2"}
        assert found("SVMax-T1", "delta:recall@1", **labels).value == 0.1567


OURS = {("ISA-T2", "multi_similarity"): "multi_similarity mined=false"}
"""What a row is called here that the shared folder calls otherwise."""
METRICS = {("REB-T4", "inshop", "recall@2"): "recall@10", ("REB-T4", "inshop", "recall@3"): "recall@20"}
"""Columns that stand here under another metric than the paper prints above them."""


def test_every_number_is_that_of_the_shared_folder_and_nothing_else_is_here(shared: Path) -> None:
    """The same tables as long CSVs, one line a number."""
    seen: dict[str, list[Number]] = {name: [] for name in names()}
    wrong: list[Any] = []
    for path in sorted((shared / "published").glob("*.csv")):
        for line in csv.DictReader(path.read_text(encoding="utf-8").splitlines()):
            if "hyperparameters" not in line:
                continue
            table, given = (
                load(line["table"]),
                dict(one.partition("=")[::2] for one in line["hyperparameters"].split(";") if one),
            )
            labels = {axis: OURS.get((table.id, line[axis]), line[axis]) for axis in ("dataset", "loss", "regularizer")}
            mine = glossary(table.paper).ours(labels | given)
            metric = glossary(table.paper).metric(line["metric"])
            metric = METRICS.get((table.id, mine.get("dataset", ""), metric), metric)
            number = table.find({axis: mine.get(axis, "") for axis in table.axes}, metric)
            if number is None:
                wrong.append(("not here", line))
                continue
            seen[table.id].append(number)
            told = [
                one
                for one in number.tuned.values()
                if re.search(rf"={re.escape(one)}(?=[;/]|$)", line["hyperparameters"])
            ]
            ours = (number.printed, scaled(number.value, number.unit), scaled(number.std, number.std_unit), number.bold,
                    table.bold_known, told)  # fmt: skip
            theirs = (line["printed"], value_of(line["value"]), value_of(line["std"]), line["bold"] == "1",
                      line["bold"] != "", [*number.tuned.values()])  # fmt: skip
            wrong += [(ours, theirs)] if ours != theirs else []
    assert wrong == []
    for name, numbers in seen.items():
        assert len({id(one) for one in numbers}) == len(numbers) == len(load(name).numbers), name


def scaled(value: float | None, unit: str) -> float | None:
    """A value in the unit in which it is printed."""
    return value if value is None or unit != "percent" else round(value * 100, 10)


def value_of(text: str) -> float | None:
    return float(text) if text not in {"", "nan"} else None


def test_every_number_is_shown() -> None:
    for table in map(load, names()):
        shown = view(table)
        assert [one.printed for one in shown.numbers] == [one.printed for one in table.numbers]
        assert summary(table).count == len(table.numbers) == shown.count
        rows = [line for line in render(table, "markdown").content.decode().splitlines() if line.startswith("|")][2:]
        cells = [cell.strip().strip("*").replace("\\", "") for row in rows for cell in row.split("|")]
        for number in table.numbers:
            cells.remove(number.printed)


def test_bold_is_none_where_it_is_not_known() -> None:
    assert {one.bold for one in view(load("SVMax-T1")).numbers} == {None}
    assert {one.bold for one in view(load("SEC-T3")).numbers} == {True, False}


def test_what_a_reader_must_know_stands_below() -> None:
    text = render(load("ISA-T2"), "markdown").content.decode()
    assert "**68.1±0.3**" in text
    assert "Quoted from MLRC (inferred): margin, proxy_nca" in text
    assert "- C21: " in text
    assert "is not known" in render(load("SVMax-T3"), "markdown").content.decode()


def test_csv_is_the_file_and_json_the_view() -> None:
    table = load("SEC-T2")
    lines = list(csv.DictReader(io.StringIO(render(table, "csv").content.decode(), newline="")))
    assert lines[1]["f1"] == "*26.50*"
    assert lines[0]["regularizer.eta"] == ""
    rendered = render(table, "json")
    assert PublishedView.model_validate_json(rendered.content) == view(table)
    assert (rendered.filename, rendered.media_type) == ("sec-t2.json", "application/json")


def test_another_format_needs_a_layout() -> None:
    with pytest.raises(NotFoundError, match=re.escape(f"formats: {', '.join(FORMATS)}")):
        render(load("SEC-T2"), "latex")
