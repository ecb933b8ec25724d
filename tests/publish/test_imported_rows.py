"""Rows of other people's numbers: marked, tested where they can be, and never numbers of the sweep."""

import csv
import io
import json

import pytest
from scipy.stats import ttest_ind

from orchestrator.publish.formats import render
from orchestrator.publish.macros import macros_of
from orchestrator.publish.statistics import statistic
from orchestrator.publish.tables.build import build
from orchestrator.publish.tables.significance import holm
from orchestrator.publish.tables.significance import tested as welch
from orchestrator.views.outcomes import Statistic
from tests.publish import sweeps

AGAINST = {"loss": "triplet", "regularizer": "none"}
AT = {"dataset": "digits"}
THEIRS = {
    "label": "SEC (lab B)", "source": "lab_b.csv", "unit": "percent", "against": AGAINST,
    "numbers": [
        {"metric": "recall@1", "of": AT, "mean": 99.1, "std": 0.4, "n": 5},
        {"metric": "norm_var", "of": AT, "mean": 0.5, "std": 0.1, "n": 5},
    ],
}  # fmt: skip
BARE = {
    "label": "Bare", "source": "a talk", "unit": "fraction", "against": AGAINST,
    "numbers": [{"metric": "recall@1", "of": AT, "mean": 0.7}],
}  # fmt: skip
LAYOUT = {"rows": ["loss", "regularizer"], "columns": ["dataset"], "metrics": ["recall@1", "map@r", "norm_var"]}
COMPARE = {"loss": ("triplet",), "regularizer": ("none", "sec"), "dataset": ("digits", "omniglot")}


def outcomes(*rows, seeds=3, fate=sweeps.ok, **layout):
    table = {**LAYOUT, **layout, **({"imported": list(rows)} if rows else {})}
    return sweeps.grid(COMPARE, sweeps.spec(tables={"main": table}), seeds=seeds, fate=fate)


def built(*rows, numbers="own", **given):
    return build(outcomes(*rows, **given), "main", sweeps.catalog(), numbers=numbers)


def text(format_name, *rows, **given):
    return render(built(*rows, **given), format_name).content.decode()


def imported(table):
    return [row for row in table.panels[0].rows if row.imported is not None]


def test_they_are_no_numbers_of_the_sweep():
    table, plain = built(THEIRS), built()
    assert all(cell.statistic is None and cell.cell is None and not cell.bold for cell in imported(table)[0].cells)
    assert table.summaries == plain.summaries
    assert table.panels[0].rows[2:] == plain.panels[0].rows[1:], "neither bold nor counts have changed"
    named = [macros_of(outcomes(*rows), "uid", "main", sweeps.catalog(), "ms").numbers for rows in ((), (THEIRS,))]
    assert named[0] == named[1]


def test_they_are_tested_by_what_they_tell():
    table = built(THEIRS, BARE, {**THEIRS, "label": "Like ours", "numbers": [
        {"metric": "map@r", "of": AT, "mean": 60.0, "std": 9.0, "n": 3}
    ]})  # fmt: skip
    tests = {(row.texts[0][:-1], c): cell.imported.test
             for row in imported(table) for c, cell in enumerate(row.cells) if cell.imported}  # fmt: skip
    words = {place: one.word for place, one in tests.items()}
    assert words == {
        ("SEC (lab B)", 0): "higher", ("SEC (lab B)", 2): "higher", ("Bare", 0): "untested",
        ("Like ours", 1): "not told apart",
    }  # fmt: skip
    assert tests["Bare", 0].said == "untested against Triplet None: the import gives no n and no std"
    assert imported(table)[0].cells[0].after == "⇑"
    assert "1 of 4 imported numbers could not be tested: the import gives no n and no std." in table.caption
    assert (
        "for numbers of runs that were fixed beforehand, p < 0.05 after Holm's correction for 3 comp" in table.caption
    )


def test_welchs_test_is_that_of_the_runs_themselves():
    theirs, own = [0.61, 0.63, 0.66, 0.60], [0.55, 0.58, 0.52]
    found = welch(statistic(theirs), statistic(own), "ours")
    assert found.p == pytest.approx(ttest_ind(theirs, own, equal_var=False).pvalue, rel=1e-9)
    assert found.difference == pytest.approx(0.075)


def test_a_word_stands_where_nothing_can_be_tested():
    own = Statistic(0.5, 0.1, 3)
    for theirs, mine, why in (
        (Statistic(0.6, None, 1), own, "a single imported run"), (Statistic(0.6, 0.1, 0), own, "the import gives no n"),
        (Statistic(0.6, None, 5), own, "the import gives no std"),
        (Statistic(0.6, 0.1, 5), None, "no finished own number"),
        (Statistic(0.6, 0.1, 5), Statistic(0.5, None, 1), "a single own run"),
        (Statistic(0.6, 0.0, 5), Statistic(0.5, 0.0, 3), "no variation between runs"),
    ):  # fmt: skip
        (found,) = holm({(0,): welch(theirs, mine, "ours")}).values()
        assert (found.word, found.why, found.p, found.corrected, found.sign) == ("untested", why, None, None, "")


def test_an_own_cell_that_has_not_ended_is_not_tested_against():
    def waiting(labels, candidate, repeat):
        return "waiting" if repeat == 2 else "ok"

    tests = [cell.imported.test for cell in imported(built(THEIRS, fate=waiting))[0].cells if cell.imported]
    assert {one.why for one in tests} == {"no finished own number"}
    gone = {**THEIRS, "against": {"loss": "triplet", "regularizer": "l2"}}
    assert imported(built(gone))[0].cells[0].imported.test.said == "untested against triplet, l2: no such own row"


def test_every_format_says_what_they_are():
    latex = text("latex", THEIRS)
    assert "SEC (lab B)\\dag{} &" in latex
    assert "$\\Uparrow$" in latex
    assert "\\dag{}: imported from lab\\_b.csv (n = 5); not trained here." in latex
    html = text("html", THEIRS)
    assert '<tr class="imported">' in html
    assert 'title="imported from lab_b.csv; mean of 5 runs; significantly higher than Triplet None' in html
    assert '<span class="verdict higher"' in html
    line = next(csv.DictReader(io.StringIO(text("csv", {**THEIRS, "source": "=cmd()"}))))
    assert (line["imported_row"], line["status"], line["mean"], line["std"], line["n"]) == (
        "SEC (lab B)", "imported", "0.991", "0.004", "5",
    )  # fmt: skip
    assert (line["source"], line["against"], line["tested"]) == ("'=cmd()", "Triplet None", "higher")
    told = json.loads(text("json", THEIRS))["panels"][0]["rows"]
    assert [row.get("imported", False) for row in told] == [True, False, False]
    assert told[0]["cells"][0]["value"] is None
    assert told[0]["cells"][0]["imported"] | {"test": None} == {
        "label": "SEC (lab B)", "source": "lab_b.csv", "mean": 0.991, "std": 0.004, "n": 5, "test": None,
    }  # fmt: skip
    assert told[0]["cells"][0]["imported"]["test"]["word"] == "higher"
