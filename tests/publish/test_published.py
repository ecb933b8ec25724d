"""The papers' numbers as data: all there, as printed, and found by the labels that a sweep gives its cells."""

import csv
import io
import re
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.plan import grid
from orchestrator.plan.check import check
from orchestrator.plan.read import spec_document
from orchestrator.publish.paper_tables import FORMATS, render, summary, view
from orchestrator.publish.papers import completed_labels, load, names
from orchestrator.publish.tables.build import build
from orchestrator.publish.tables.table_data import Table
from orchestrator.views.errors import InvalidSpecError, NotFoundError
from orchestrator.views.evidence import PublishedNumber, PublishedView
from orchestrator.views.runs import NO_SWEEP, SweepResults
from workers import catalog

FACES_AND_SSL = {"SEC-T4", "SEC-T5", "SEC-T11", "SEC-T12", "REB-T1", "SVMax-T5"}
"""Tables that are not of retrieval: some of their data sets and losses are no parts of ours."""
NO_MINER = "multi_similarity mined=false"


def test_all_of_them_are_here():
    tables = [load(name) for name in names()]
    assert (len(tables), sum(len(one.numbers) for one in tables)) == (26, 1628)
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


def test_the_error_of_an_unknown_table_names_a_similar_table() -> None:
    with pytest.raises(NotFoundError, match="did you mean 'SEC-T3'"):
        load("SECT3")
    with pytest.raises(NotFoundError, match="expected one of 'SEC-T2', 'SEC-T3'"):
        load("table seven")
    assert load("svmax-t1").id == "SVMax-T1"


def test_bold_deviations_and_words_are_read() -> None:
    index = """
        papers = {Mine = "Mine, 2026"}
        tables = {M1 = {paper = "Mine", file = "m.csv", title = "T", std_unit = "fraction", units = {nmi = "fraction"}}}
    """
    lines = "loss,recall@1,nmi\na,*60.82*,.471\nb,66.92±0.002,\nc,degenerate,\nd,-1.18,\n"
    found = load("M1", {"index.toml": index, "m.csv": lines}).numbers
    assert [(one.printed, one.value, one.std, one.bold) for one in found] == [
        ("60.82", 0.6082, None, True), (".471", 0.471, None, False), ("66.92±0.002", 0.6692, 0.002, False),
        ("degenerate", None, None, False), ("-1.18", -0.0118, None, False),
    ]  # fmt: skip


def test_half_a_printed_digit() -> None:
    number = load("SEC-T3").numbers[0]
    for printed, unit, half in (
        ("60.82", "percent", 5e-5), ("65.0", "percent", 5e-4), ("0.435", "fraction", 5e-4), ("3.20", "number", 5e-3),
    ):  # fmt: skip
        assert replace(number, printed=printed, unit=unit).rounding == pytest.approx(half)


IN_TEXT = {"SEC-TEXT", "SVMax-F3", "SVMax-F15"}
"""Numbers of prose and captions."""


def test_numbers_in_the_text_are_those_of_the_shared_folder(shared: Path) -> None:
    said = tomllib.loads((shared / "published" / "intext_numbers.toml").read_text(encoding="utf-8"))
    bound = said["svmax"]["fig15_cub_test"]
    expected = {
        "SEC-TEXT": {("norm_mean", said["sec"]["initial_norm_cars"])},
        "SVMax-F3": {("delta:recall@1", said["svmax"]["fig3_lambda_1e-1_r1_change_percent"] / 100)},
        "SVMax-F15": {("s_mu_upper", bound["U"]), *(("s_mu", bound[name]) for name in ("b72", "b144", "vanilla"))},
    }
    assert {name: {(one.metric, one.value) for one in load(name).numbers} for name in IN_TEXT} == expected


FOUND: tuple[tuple[str, str, dict[str, str], str], ...] = (
    # Numbers are equal however they are spelt.
    *(("SEC-T8", "recall@1", {"regularizer": "l2", "regularizer.eta": eta}, "57.16") for eta in ("1e-3", "0.0010")),
    # The papers' names and ours.
    ("SEC-T3", "R@1", {"dataset": "CUB", "loss": "SHT", "regularizer": "SEC"}, "67.35"),
    ("SEC-T3", "R@1", {"data": "CUB-200-2011", "method": "Semihard triplet", "reg": "L2-reg"}, "65.60"),
    ("SEC-T3", "R@1", {"dataset": "cub", "loss": "semihard_triplet", "regularizer": "vanilla"}, "65.31"),
    ("SEC-T3", "R@1", {"dataset": "cub200", "loss": "semihard", "regularizer": "none", "seed": "0"}, "65.31"),
    # A name may mean another thing in another paper.
    ("ISA-T2", "recall@1", {"dataset": "cub200", "loss": "MS"}, "65.0±0.3"),
    ("ISA-T2", "recall@1", {"dataset": "cub200", "loss": "multi_similarity"}, "67.7±0.2"),
    ("SEC-T3", "recall@1", {"dataset": "cub200", "loss": "MS", "regularizer": "none"}, "66.14"),
    # Equal trainings are one.
    ("SEC-T2", "nmi", {"regularizer": "sec", "regularizer.eta": "0"}, "56.66"),
    ("SEC-T9", "recall@1", {"regularizer": "sec"}, "67.89"),
    ("SEC-T9", "recall@1", {"regularizer": "sec_ema", "regularizer.rho": "1.0"}, "67.89"),
    ("SVMax-T1", "recall@1", {"loss": "contrastive", "regularizer": "svmax", "optimizer.lr": "0.01"}, "41.26"),
)
ABSENT: tuple[tuple[str, str, dict[str, str]], ...] = (
    ("SEC-T2", "recall@1", {"regularizer": "sec"}),  # four weights are left
    *(("SVMax-T1", "recall@1", {"loss": "contrastive", "regularizer": "svmax", "optimizer.lr": "0.01",
                                "regularizer.eta": eta}) for eta in ("", "10")),
    ("SEC-T3", "recall@1", {"dataset": "digits", "loss": "triplet", "regularizer": "sec"}),
    ("SEC-T3", "nmi", {"dataset": "inshop", "loss": "triplet", "regularizer": "sec"}),
    ("SEC-T3", "map@r", {"dataset": "cub200", "loss": "triplet", "regularizer": "sec"}),
)  # fmt: skip
VALUES: tuple[tuple[str, str, dict[str, str], float], ...] = (
    ("SEC-T3", "nmi", {"dataset": "cub200", "loss": "triplet", "regularizer": "sec"}, 0.6424),
    ("SVMax-T1", "nmi", {"loss": "contrastive", "regularizer": "none", "optimizer.lr": "0.01"}, 0.435),
    ("SVMax-T1", "recall@1", {"loss": "contrastive", "regularizer": "none", "optimizer.lr": "0.01"}, 0.2573),
    ("SVMax-T1", "delta:recall@1", {"loss": "npair", "regularizer": "svmax", "optimizer.lr": "1e-2"}, 0.1567),
    ("REB-T2", "norm_mean", {"regularizer": "sec", "regularizer.eta": "0.5"}, 3.2),
)


def test_numbers_are_found_by_the_labels_of_a_sweep_and_shares_are_fractions() -> None:
    found = [load(table).find(labels, metric) for table, metric, labels, _ in FOUND]
    assert [one and one.printed for one in found] == [printed for *_, printed in FOUND]
    assert [load(table).find(labels, metric) for table, metric, labels in ABSENT] == [None] * len(ABSENT)
    numbers = [load(table).find(labels, metric) for table, metric, labels, _ in VALUES]
    assert [one and one.value for one in numbers] == [value for *_, value in VALUES]


def test_what_was_quoted_from_elsewhere_says_so() -> None:
    table = load("ISA-T2")
    quoted = {loss: table.find({"dataset": "cub200", "loss": loss}, "map@r") for loss in ("margin", "proxy_isa")}
    assert {loss: one and "MLRC" in (one.source or "") for loss, one in quoted.items()} == {
        "margin": True,
        "proxy_isa": False,
    }


OURS = {("ISA-T2", "multi_similarity"): "multi_similarity mined=false"}
"""What a row is called here that the shared folder calls otherwise."""
METRICS = {("REB-T4", "inshop", "recall@2"): "recall@10", ("REB-T4", "inshop", "recall@3"): "recall@20"}
"""Columns that stand here under another metric than the paper prints above them."""


def test_every_number_is_that_of_the_shared_folder_and_nothing_else_is_here(shared: Path) -> None:
    """The same tables as long CSVs, one line a number."""
    seen: dict[str, list[PublishedNumber]] = {name: [] for name in names()}
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
            mine = table.glossary.ours(labels | given)
            metric = table.glossary.metric(line["metric"])
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
            ours = (number.printed, scaled(number.value, number.unit), scaled(number.std, number.std_unit),
                    bool(number.bold), number.bold is not None, told)  # fmt: skip
            theirs = (line["printed"], value_of(line["value"]), value_of(line["std"]), line["bold"] == "1",
                      line["bold"] != "", [*number.tuned.values()])  # fmt: skip
            wrong += [(ours, theirs)] if ours != theirs else []
    assert wrong == []
    for name, numbers in ((name, numbers) for name, numbers in seen.items() if name not in IN_TEXT):
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


SPEC = """
version: 1
name: held
recipe:
  dataset: cars196
  backbone: {name: bn_inception}
  loss: {name: semihard}
  sampler: {name: balanced, classes: 4, per_class: 4}
  iterations: 10
  validation: {name: class_holdout, folds: 4, fold: 0}
"""
PARTS = catalog.load()


def labels_of(more: str, table: str = "REB-T2") -> list[dict[str, str]]:
    """What is found for each cell of the spec."""
    spec = check(spec_document((SPEC + more).encode()).value, PARTS)
    plain: dict[str, Any] = spec.model_dump(mode="json")
    return [dict(completed_labels(plain, cell.labels, load(table), PARTS)) for cell in grid.expand(spec, PARTS).cells]


def test_labels_come_from_axes_patches_rules_defaults_and_the_recipe():
    (found,) = labels_of("")
    assert found == {"dataset": "cars196", "loss": "semihard", "regularizer": "none", "regularizer.eta": ""}
    assert load("REB-T2").find(found, "recall@1").printed == "80.17"
    none, half, one = labels_of(
        "compare: {regularizer: [none, sec], regularizer.eta: [{values: [0.5, 1.0], when: {regularizer: sec}}]}\n"
    )
    assert (none["regularizer.eta"], half["regularizer.eta"], one["regularizer.eta"]) == ("", "0.5", "1.0")
    assert load("REB-T2").find(half, "nmi").printed == "72.67"
    assert load("REB-T2").find(one, "nmi") is None
    sec = "{label: SEC, patch: {regularizer: {name: sec, eta: 1.0}}}"
    method = f"compare: {{method: [{{label: plain, patch: {{regularizer: none}}}}, {sec}]}}\n"
    plain, ruled = labels_of(f"{method}rules: [{{when: {{method: SEC}}, patch: {{regularizer.eta: 0.5}}}}]\n")
    assert (plain["regularizer"], plain["regularizer.eta"]) == ("none", "")
    assert (ruled["regularizer"], ruled["regularizer.eta"]) == ("sec", "0.5")
    (default,) = labels_of("compare: {loss: [semihard], regularizer: [svmax], optimizer.lr: [0.01]}\n", "SVMax-T1")
    assert default["regularizer.eta"] == "1.0"


def test_an_axis_that_is_tuned_is_left_open():
    (found,) = labels_of("compare: {regularizer: [l2]}\ntune: {regularizer.eta: [0.1, 0.01]}\n")
    assert "regularizer.eta" not in found
    assert load("REB-T2").find(found, "nmi") is None  # four weights are printed, and none is chosen for us


POSTED = """
version: 1
name: held
recipe:
  dataset: digits
  backbone: {name: small_cnn, width: 8}
  loss: triplet
  sampler: {name: balanced, classes: 4, per_class: 4}
  iterations: 10
  channels_last: true
  validation: {name: class_holdout, folds: 3, fold: 0}
compare: {loss: [triplet, semihard]}
"""


def shown(table: str) -> Table:
    """A table as it is once the spec was checked and stored."""
    spec = check(spec_document(f"{POSTED}tables: {{main: {table}}}".encode()).value, PARTS)
    cells = tuple(grid.expand(spec, PARTS).cells)
    stored: dict[str, Any] = spec.model_dump(mode="json")
    return build(SweepResults(NO_SWEEP, "held", "queued", stored, cells, (), ()), "main", PARTS)


def texts(table: str) -> list[tuple[str, ...]]:
    """The headings of each of its rows."""
    return [row.texts for panel in shown(table).panels for row in panel.rows]


def test_a_held_boolean_has_one_label_in_rows_and_templates():
    assert [row[0] for row in texts("{rows: [channels_last, loss]}")] == ["true", "true"]
    with pytest.raises(InvalidSpecError, match="axis 'channels_last' has no alternative 'True'"):
        shown("{rows: [channels_last, loss], labels: {channels_last: {'True': fast}}}")
    called = "{channels_last: {'true': fast}, loss: {triplet: 'Triplet, {channels_last}'}}"
    assert texts(f"{{rows: [loss, channels_last], labels: {called}}}")[0] == ("Triplet, fast", "fast")
