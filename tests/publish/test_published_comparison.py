"""Own numbers beside the published ones, in every view and format."""

import csv
import io
import json

import pytest

from orchestrator.publish.formats import render
from orchestrator.publish.tables.build import build
from orchestrator.publish.tables.cell import trace
from orchestrator.publish.tables.table_data import Heading
from orchestrator.views.errors import ConflictError, NotFoundError
from tests.publish import sweeps

LAYOUT = {"rows": ["loss", "regularizer"], "columns": ["dataset"], "metrics": ["nmi", "recall@1", "map@r"]}
FATES = {"l2": "diverged", "svmax": "waiting"}


def fate(labels, candidate, repeat):
    return FATES.get(labels["regularizer"], "ok")


def outcomes(published="SEC-T3", seeds=3, fate=fate, **layout):
    """SEC's table 3 on CUB, held in the recipe, with a loss that diverged and one that has not run."""
    table = {**LAYOUT, **({"published": published} if published else {}), **layout}
    spec = sweeps.spec(recipe={"dataset": {"name": "cub200"}, "seed": 0}, tables={"main": table})
    compare = {"loss": ("triplet", "semihard"), "regularizer": ("none", "l2", "sec", "svmax")}
    return sweeps.grid(compare, spec, fate=fate, seeds=seeds, state="running")


def built(numbers, given=None):
    return build(given or outcomes(), "main", sweeps.catalog(), numbers=numbers)


def cells(table, row):
    return table.panels[0].rows[row].cells


def test_own_cells_know_what_is_printed_there():
    nmi, recall, precision = cells(built("own"), 2)
    assert (nmi.quotation.number.printed, nmi.quotation.number.bold) == ("64.24", True)
    assert recall.quotation.number.value == 0.6082
    assert recall.quotation.reproduction.difference == recall.statistic.mean - 0.6082
    assert precision.quotation is None
    assert "SEC-T3 prints 60.82 (regularizer.eta = 1.0), difference " in recall.note
    assert "tolerance " in recall.note


def test_without_a_published_table_nothing_is_compared():
    plain = outcomes(published=None)
    assert built("own", plain).published is None
    for numbers in ("published", "difference", "both", "verdict"):
        with pytest.raises(ConflictError, match=r"add `published: "):
            built(numbers, plain)


def test_a_published_table_that_is_gone_spoils_no_own_table():
    gone = outcomes(published="SEC-T99")
    assert built("own", gone).published is None
    with pytest.raises(NotFoundError, match="did you mean 'SEC-T9'"):
        built("both", gone)


def test_differences_are_own_minus_published():
    own, shown = built("own"), built("difference")
    assert [one.kind for one in shown.panels[0].columns] == ["difference"] * 3
    for mine, one in zip(cells(own, 0), cells(shown, 0), strict=True):
        if mine.quotation is None:
            assert one.text == "–"
        else:
            expected = 100 * (mine.statistic.mean - mine.quotation.number.value)
            assert float(one.text) == pytest.approx(expected, abs=0.005)
            assert one.text[0] in "+-"
    assert [one.text for one in cells(shown, 1)] == ["diverged"] * 3
    assert [one.text for one in cells(shown, 3)] == ["…"] * 3
    assert not any(one.bold or one.std for row in shown.panels[0].rows for one in row.cells)
    assert "own mean minus the number printed in SEC-T3" in shown.caption
    assert "Bold" not in shown.caption


def test_both_stand_side_by_side():
    shown = built("both")
    panel = shown.panels[0]
    assert [one.title for one in panel.columns] == ["NMI", "paper", "R@1", "paper", "MAP@R", "paper"]
    assert panel.groups == ((Heading("cub200", 6),),)
    assert [one.text for one in cells(shown, 0)[1::2]] == ["59.85", "53.34", "–"]
    assert [one.bold for one in cells(shown, 2)[1::2]] == [True, True, False]
    # What diverged stood across the metrics; each is a column of its own now, and the paper has its numbers.
    assert [(one.text, one.span) for one in cells(shown, 1)] == [
        ("diverged", 1), ("60.11", 1), ("diverged", 1), ("54.81", 1), ("diverged", 1), ("–", 1),
    ]  # fmt: skip


def test_verdicts_stand_beside_and_are_explained():
    shown = built("verdict")
    assert [one.title for one in shown.panels[0].columns] == ["NMI", "verdict", "R@1", "verdict", "MAP@R", "verdict"]
    verdicts = [[one.text for one in cells(shown, row)[1::2]] for row in range(4)]
    assert verdicts[1] == ["diverged", "diverged", "–"]
    assert verdicts[3] == ["–", "–", "–"]  # SEC's table has no SVMax
    assert {one for row in (0, 2) for one in verdicts[row][:2]} <= {"reproduced", "above", "below"}
    explained = {one.symbol: one.meaning for one in shown.legend}
    assert {one for row in verdicts for one in row} - {"–"} <= set(explained)
    assert len(explained) == len(shown.legend)


def test_what_has_not_run_is_not_run():
    shown = built("verdict", outcomes(fate=lambda *_: "waiting"))
    assert [one.text for one in cells(shown, 0)] == ["…", "not run", "…", "not run", "…", "–"]
    assert "not run: no own number yet." in render(shown, "markdown").content.decode()


def test_a_single_run_has_no_spread():
    assert cells(built("verdict", outcomes(seeds=1)), 0)[1].text == "no spread"


def test_the_page_of_a_cell_has_what_the_paper_prints():
    (nmi, *_) = trace(outcomes(), 2, (), sweeps.catalog()).numbers
    assert (nmi.published, nmi.printed, nmi.verdict) == ("SEC-T3", "64.24", "reproduced")
    assert nmi.difference == pytest.approx(nmi.mean - 0.6424)
    (own, *_) = trace(outcomes(published=None), 2, (), sweeps.catalog()).numbers
    assert (own.published, own.printed, own.verdict) == (None, None, None)


@pytest.mark.parametrize("numbers", ["own", "difference", "both", "verdict"])
def test_json_and_csv_carry_all_of_it_in_every_view(numbers):
    table = built(numbers)
    content = json.loads(render(table, "json").content)
    assert content["published"]["id"] == "SEC-T3"
    assert set(content["published"]["conflicts"]) >= {"C7", "C8"}
    quoted = [
        one["published"]
        for row in content["panels"][0]["rows"]
        for column, one in zip(content["panels"][0]["columns"], row["cells"], strict=True)
        if one.get("published") and column["kind"] in {"metric", "difference"}
    ]
    assert len(quoted) == 2 * 3 * 2  # losses, regularizers that SEC has, metrics that it prints
    sec = quoted[4]
    assert (
        sec["printed"], sec["value"], sec["bold"], sec["tuned"],
    ) == ("64.24", 0.6424, True, {"regularizer.eta": "1.0"})  # fmt: skip
    assert {one["verdict"] for one in quoted} >= {"diverged"}
    lines = list(csv.DictReader(io.StringIO(render(table, "csv").content.decode(), newline="")))
    assert len(lines) == 8 * 3
    line = next(one for one in lines if (one["regularizer"], one["metric"]) == ("sec", "nmi"))
    assert line["published"] == "0.6424"
    assert float(line["mean"]) - 0.6424 == pytest.approx(float(line["difference"]))
    assert line["verdict"] == sec["verdict"]
