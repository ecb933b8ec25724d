"""Rows that a layout quotes from a printed table: marked, in every format, and never a number of the sweep."""

import csv
import io
import json

import pytest

from orchestrator.publish.formats import render
from orchestrator.publish.tables.build import build
from tests.publish import presets, sweeps

QUOTED = [
    {"of": {"loss": "supervised"}, "label": "Supervised"},
    {"of": {"loss": "split_brain"}, "label": "Split-Brain"},
]
SAID = "Rows marked † are quoted from SVMax-T5 (Taha et al.: SVMax: A Feature Embedding Regularizer); none of their "


def outcomes(quoted=QUOTED, **layout):
    """SVMax's table 5 with own numbers of two cells."""
    metrics = [
        {"metric": f"linear_top1@conv{number}", "label": f"conv{number}", "decimals": 1, "split": "test"}
        for number in (1, 5)
    ]
    table = {"published": "SVMax-T5", "rows": ["loss", "regularizer"], "metrics": metrics, "bold": [], **layout}
    spec = sweeps.spec(
        recipe={"dataset": {"name": "imagenet"}, "seed": 0}, tables={"main": {**table, "quoted": quoted}}
    )
    names = ("map@r", "linear_top1@conv1", "linear_top1@conv5")
    return sweeps.grid({"loss": ("triplet",), "regularizer": ("none", "svmax")}, spec, metrics=names)


def built(numbers="own", given=None):
    return build(given or outcomes(), "main", presets.catalog(), numbers=numbers)


def rows(table):
    return [[row.texts[0], *(cell.text for cell in row.cells)] for row in table.panels[0].rows]


def text(format_name, numbers="own"):
    return render(built(numbers), format_name).content.decode()


def test_they_stand_above_the_own_rows_with_a_mark_and_the_caption_says_so():
    table = built()
    assert rows(table)[:2] == [["Supervised†", "19.3", "50.5"], ["Split-Brain†", "17.7", "32.8"]]
    assert [row.quoted for row in table.panels[0].rows] == [True, True, False, False]
    assert table.panels[0].rows[2].rule == 0
    assert SAID + "numbers is our own." in table.caption
    mark = table.legend[-1]
    assert (mark.symbol, mark.meaning) == (
        "†", "as printed in SVMax-T5, which has them from the methods' own papers; not trained here"
    )  # fmt: skip
    assert "19.3, from the methods' own papers; nothing is trained" in table.panels[0].rows[0].cells[0].note


def test_they_are_no_numbers_of_the_sweep():
    table, plain = built(), built(given=outcomes([]))
    quoted = [cell for row in table.panels[0].rows[:2] for cell in row.cells]
    assert all(cell.statistic is None and cell.cell is None and not cell.bold for cell in quoted)
    assert table.summaries == plain.summaries
    assert table.panels[0].rows[3:] == plain.panels[0].rows[1:], "neither bold nor counts have changed"
    assert any(cell.bold for row in table.panels[0].rows for cell in row.cells), (
        "of the own, though supervised is better"
    )


def test_a_label_that_has_the_mark_gets_another():
    table = built(given=outcomes([{**QUOTED[0], "label": "Supervised† once"}]))
    assert rows(table)[0][0] == "Supervised† once†"
    table = built(given=outcomes(labels={"loss": {"triplet": "Triplet†"}}))
    assert rows(table)[0][0] == "Supervised‡"


def test_bold_in_print_is_bold_where_the_layout_asks():
    layout = {"published": "SEC-T3", "metrics": ["recall@1"], "columns": ["dataset"], "rows": ["loss", "regularizer"]}
    for asked in (False, True):
        row = {"of": {"loss": "semihard", "regularizer": "sec"}, "label": "SHT, SEC", "bold": asked}
        spec = sweeps.spec(recipe={"dataset": {"name": "cub200"}}, tables={"main": {**layout, "quoted": [row]}})
        compare = {"loss": ("triplet",), "regularizer": ("none", "sec"), "dataset": ("cub200", "cars196")}
        cells = built(given=sweeps.grid(compare, spec)).panels[0].rows[0].cells
        assert [(cell.text, cell.bold) for cell in cells] == [("67.35", asked), ("85.19", asked)], "of each data set"


def test_numbers_of_the_paper_alone_have_them_as_any_rows():
    table = built("published")
    assert rows(table)[:2] == [["Supervised", "19.3", "50.5"], ["Split-Brain", "17.7", "32.8"]]
    assert table.panels[0].rows[0].cells[0].statistic.mean == pytest.approx(0.193)
    assert "quoted" not in table.caption


def test_beside_own_numbers_they_stand_in_the_papers_column():
    first = built("both").panels[0].rows[0]
    assert [cell.text for cell in first.cells] == ["–", "19.3", "–", "50.5"]
    for view in ("difference", "verdict"):
        assert not any(row.quoted for row in built(view).panels[0].rows)


def test_every_format_marks_them():
    assert "Supervised\\dag{} &  & 19.3" in text("latex")
    assert '<tr class="quoted"><th scope="row">Supervised&#8224;</th>' in text("html")
    assert "| Supervised† " in text("markdown")
    line = next(csv.DictReader(io.StringIO(text("csv"))))
    assert (line["loss"], line["metric"], line["mean"], line["n"], line["printed"]) == (
        "supervised", "linear_top1@conv1", "", "", "19.3",
    )  # fmt: skip
    assert (line["status"], line["published"], line["candidates"]) == ("quoted", "0.193", "")
    told = json.loads(text("json"))["panels"][0]["rows"]
    assert [row.get("quoted", False) for row in told] == [True, True, False, False]
    assert told[0]["cells"][0]["value"] is None
    assert told[0]["cells"][0]["published"]["source"] == "the methods' own papers"
