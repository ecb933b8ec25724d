"""Numbers of papers and other people: imported, quoted or compared with, and never numbers of the sweep."""

import csv
import io
import json

import pytest
from scipy.stats import ttest_ind

from orchestrator.publish.aggregate import statistic
from orchestrator.publish.formats import render
from orchestrator.publish.macros import macros_of
from orchestrator.publish.tables.build import build
from orchestrator.publish.tables.cell import trace
from orchestrator.publish.verdicts.significance import holm
from orchestrator.publish.verdicts.significance import tested as welch
from orchestrator.views.errors import ConflictError, NotFoundError
from orchestrator.views.runs import Statistic
from tests.publish import presets, sweeps

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


def results(*rows, seeds=3, fate=sweeps.ok, **layout):
    table = {**LAYOUT, **layout, **({"imported": list(rows)} if rows else {})}
    return sweeps.grid(COMPARE, sweeps.spec(tables={"main": table}), seeds=seeds, fate=fate)


def built(*rows, numbers="own", **given):
    return build(results(*rows, **given), "main", sweeps.catalog(), numbers=numbers)


def text(format_name, *rows, **given):
    return render(built(*rows, **given), format_name).content.decode()


def imported(table):
    return [row for row in table.panels[0].rows if row.imported is not None]


def test_they_are_no_numbers_of_the_sweep():
    table, plain = built(THEIRS), built()
    assert all(cell.statistic is None and cell.cell is None and not cell.bold for cell in imported(table)[0].cells)
    assert table.summaries == plain.summaries
    assert table.panels[0].rows[2:] == plain.panels[0].rows[1:], "neither bold nor counts have changed"
    named = [macros_of(results(*rows), "uid", "main", sweeps.catalog(), "ms").numbers for rows in ((), (THEIRS,))]
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
    assert tests["Bare", 0].summary == "untested against Triplet None: the import gives no n and no std"
    assert imported(table)[0].cells[0].after == "⇑"
    assert "1 of 4 imported numbers could not be tested: the import gives no n and no std." in table.words.below
    test = "for numbers of runs that were fixed beforehand, p < 0.05 after Holm's correction for 3 comparisons."
    assert any(note.endswith(test) for note in table.words.below)


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
    assert imported(built(gone))[0].cells[0].imported.test.summary == "untested against triplet, l2: no such own row"


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


QUOTED = [
    {"of": {"loss": "supervised"}, "label": "Supervised"},
    {"of": {"loss": "split_brain"}, "label": "Split-Brain"},
]


def quoting(quoted=QUOTED, **layout):
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


def built_quoting(numbers="own", given=None):
    return build(given or quoting(), "main", presets.catalog(), numbers=numbers)


def quoting_text(format_name, numbers="own"):
    return render(built_quoting(numbers), format_name).content.decode()


def test_quoted_rows_are_no_numbers_of_the_sweep():
    table, plain = built_quoting(), built_quoting(given=quoting([]))
    quoted = [cell for row in table.panels[0].rows[:2] for cell in row.cells]
    assert all(cell.statistic is None and cell.cell is None and not cell.bold for cell in quoted)
    assert table.summaries == plain.summaries
    assert table.panels[0].rows[3:] == plain.panels[0].rows[1:], "neither bold nor counts have changed"
    assert any(cell.bold for row in table.panels[0].rows for cell in row.cells), (
        "of the own, though supervised is better"
    )


def test_every_format_marks_quoted_rows():
    assert "Supervised\\dag{} &  & 19.3" in quoting_text("latex")
    assert '<tr class="quoted"><th scope="row">Supervised&#8224;</th>' in quoting_text("html")
    assert "| Supervised† " in quoting_text("markdown")
    line = next(csv.DictReader(io.StringIO(quoting_text("csv"))))
    assert (line["loss"], line["metric"], line["mean"], line["n"], line["printed"]) == (
        "supervised", "linear_top1@conv1", "", "", "19.3",
    )  # fmt: skip
    assert (line["status"], line["published"], line["candidates"]) == ("quoted", "0.193", "")
    told = json.loads(quoting_text("json"))["panels"][0]["rows"]
    assert [row.get("quoted", False) for row in told] == [True, True, False, False]
    assert told[0]["cells"][0]["value"] is None
    assert told[0]["cells"][0]["published"]["source"] == "the methods' own papers"


COMPARED_LAYOUT = {"rows": ["loss", "regularizer"], "columns": ["dataset"], "metrics": ["nmi", "recall@1", "map@r"]}
FATES = {"l2": "diverged", "svmax": "waiting"}


def compared(published="SEC-T3", seeds=3, fate=lambda labels, *_: FATES.get(labels["regularizer"], "ok"), **layout):
    """SEC's table 3 on CUB, held in the recipe, with a loss that diverged and one that has not run."""
    table = {**COMPARED_LAYOUT, **({"published": published} if published else {}), **layout}
    spec = sweeps.spec(recipe={"dataset": {"name": "cub200"}, "seed": 0}, tables={"main": table})
    compare = {"loss": ("triplet", "semihard"), "regularizer": ("none", "l2", "sec", "svmax")}
    return sweeps.grid(compare, spec, fate=fate, seeds=seeds, state="running")


def built_compared(numbers, given=None):
    return build(given or compared(), "main", sweeps.catalog(), numbers=numbers)


def test_without_a_published_table_nothing_is_compared():
    plain = compared(published=None)
    assert built_compared("own", plain).published is None
    for numbers in ("published", "difference", "both", "verdict"):
        with pytest.raises(ConflictError, match=r"add `published: "):
            built_compared(numbers, plain)


def test_a_published_table_that_is_gone_spoils_no_own_table():
    gone = compared(published="SEC-T99")
    assert built_compared("own", gone).published is None
    with pytest.raises(NotFoundError, match="did you mean 'SEC-T9'"):
        built_compared("both", gone)


def test_the_page_of_a_cell_has_what_the_paper_prints():
    (nmi, *_) = trace(compared(), 2, (), sweeps.catalog()).numbers
    assert (nmi.published, nmi.printed, nmi.verdict) == ("SEC-T3", "64.24", "reproduced")
    assert nmi.difference == pytest.approx(nmi.mean - 0.6424)
    (own, *_) = trace(compared(published=None), 2, (), sweeps.catalog()).numbers
    assert (own.published, own.printed, own.verdict) == (None, None, None)


@pytest.mark.parametrize("numbers", ["own", "difference", "both", "verdict"])
def test_json_and_csv_carry_all_of_it_in_every_view(numbers):
    table = built_compared(numbers)
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
