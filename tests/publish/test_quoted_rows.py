"""Rows that a layout quotes from a printed table: marked, in every format, and never a number of the sweep."""

import csv
import io
import json

from orchestrator.publish.formats import render
from orchestrator.publish.tables.build import build
from tests.publish import presets, sweeps

QUOTED = [
    {"of": {"loss": "supervised"}, "label": "Supervised"},
    {"of": {"loss": "split_brain"}, "label": "Split-Brain"},
]


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


def text(format_name, numbers="own"):
    return render(built(numbers), format_name).content.decode()


def test_they_are_no_numbers_of_the_sweep():
    table, plain = built(), built(given=outcomes([]))
    quoted = [cell for row in table.panels[0].rows[:2] for cell in row.cells]
    assert all(cell.statistic is None and cell.cell is None and not cell.bold for cell in quoted)
    assert table.summaries == plain.summaries
    assert table.panels[0].rows[3:] == plain.panels[0].rows[1:], "neither bold nor counts have changed"
    assert any(cell.bold for row in table.panels[0].rows for cell in row.cells), (
        "of the own, though supervised is better"
    )


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
