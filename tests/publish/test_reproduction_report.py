"""The reproduction of a paper: how its numbers stand, by which runs, in which protocol, and how often that is wrong."""

import csv
import io
import math

import pytest

from orchestrator.publish.aggregate import statistic
from orchestrator.publish.papers import load, names
from orchestrator.publish.reproduction import findings, judge, reproduction
from orchestrator.publish.reproduction_files import render
from orchestrator.publish.tables.other_rows import compare
from orchestrator.spec.fields import finite
from orchestrator.views.errors import NotFoundError
from orchestrator.views.evidence import PublishedNumber
from orchestrator.views.runs import CellSummary, Statistic
from tests.publish import sweeps
from tests.publish.test_imported_rows import compared as outcomes
from tests.publish.test_latex import compiled


def summary(status="complete"):
    return CellSummary(0, status, None, {}, "", None, {}, 1)


def number(cell, unit="percent"):
    value = finite(cell)
    value = value / 100 if value is not None and unit == "percent" else value
    return PublishedNumber({}, {}, "recall@1", cell, value, None, False, unit, unit, None)


# Half the 95 % interval of 5 runs is t(0.975, 4) s / sqrt(5) = 1.2417 s; one more run falls within 3.0414 s.
def test_a_number_stands_by_interval_margin_and_one_more_run():
    cases = (
        # s = 0.316 points, interval 0.39; 0.59 + 0.39 + 0.005 < 1; 0.962 + 0.005 from 60.4: one more run
        ([0.600, 0.602, 0.604, 0.606, 0.608], {
            "60.40": "reproduced", "60.99": "reproduced", "61.02": "underpowered", "61.36": "underpowered",
            "61.37": "not reproduced", "59.43": "not reproduced",
        }),
        ([0.56, 0.58, 0.60, 0.62, 0.64], {"60.00": "underpowered"}),  # the same mean, but too wide
        ([0.6, 0.6, 0.6], {"60.00": "underpowered"}),  # no variation says nothing of chance
        ([0.6], {"60.00": "underpowered"}),
        ([0.6, 0.7], {"10.00": "underpowered"}),  # two runs so far apart tell nothing
    )  # fmt: skip
    for values, said in cases:
        assert {one: judge(statistic(values), summary(), number(one)).status for one in said} == said, values


def test_what_has_no_number_says_why():
    assert judge(None, summary("missing"), number("60.0")).status == "not run"
    assert judge(None, summary("failed"), number("60.0")).why == "no candidate finished in every repeat"
    assert judge(None, summary("diverged"), number("60.0")).status == "not reproduced"
    assert judge(None, summary("diverged"), number("degenerate")).status == "reproduced"
    assert judge(statistic([0.5, 0.6]), summary(), number("degenerate")).status == "not reproduced"
    assert judge(Statistic(0.1, None, 3), summary(), number("10.0")).why.startswith("the difference of two cells")
    assert judge(statistic([0.6]), summary(), number("60.0")).why == "a single run: nothing to judge by"


def test_a_norm_has_a_margin_of_its_own_size():
    runs = statistic([8.69, 8.70, 8.71, 8.70])
    assert judge(runs, summary(), number("8.60", "number")).status == "reproduced"
    assert judge(runs, summary(), number("8.20", "number")).status == "not reproduced"


def book(given, within=1.0, paper="SEC"):
    return reproduction(paper, findings(given, sweeps.catalog(), within), within)


def statuses(view):
    return {
        (entry.labels["loss"], entry.labels["regularizer"], entry.metric): entry.status
        for table in view.tables if table.id == "SEC-T3"
        for entry in table.entries if entry.labels["dataset"] == "cub200"
    }  # fmt: skip


def test_a_reproduction_has_every_number_and_its_evidence():
    view = book(outcomes(seeds=10))
    assert (view.counts.total, view.sweeps) == (965, [7])
    found = statuses(view)
    assert found["triplet", "l2", "nmi"] == "not reproduced", "its loss diverged where the paper has a number"
    assert found["triplet", "none", "recall@4"] == "not run", "the table has no such column"
    assert found["normalized_npair", "none", "nmi"] == "not run", "the sweep has no such cell"
    assert found["triplet", "none", "recall@1"] == "underpowered"
    run = [entry for table in view.tables for entry in table.entries if entry.status != "not run"]
    assert {one.evidence[0].n for one in run if one.evidence[0].mean} == {10}
    assert view.counts.not_run == 965 - len(run)
    assert book(outcomes(seeds=10), 50).counts.reproduced > 0 == view.counts.reproduced
    assert reproduction("ISA", findings(outcomes(), sweeps.catalog(), 1), 1).sweeps == []


def test_the_protocol_is_printed_next_to_the_number():
    entry = next(
        entry for table in book(outcomes()).tables for entry in table.entries
        if entry.table == "SEC-T3" and entry.evidence and entry.metric == "nmi"
    )  # fmt: skip
    told = {one.what: (one.paper, one.here) for one in entry.evidence[0].protocol}
    assert told["runs"] == ("does not say", "mean of 3")
    assert told["selection"] == ("the test split (inferred)", "by the validation split")
    assert told["backbone"] == ("bn_inception", "")
    assert told["embedding"] == ("512", "64")
    assert told["clustering"] == ("nmi_sec", "nmi")
    assert "validation" not in told, "the sweep holds nothing out, as the paper"
    assert {load(name).protocol.runs.startswith("does not say") for name in names()} == {True}


def test_a_quoted_number_is_not_held_against_the_protocol_of_whom_quotes_it():
    given = outcomes(published="ISA-T2", metrics=["recall@1"])
    relabelled = sweeps.grid(
        {"dataset": ("cub200",), "loss": ("margin", "proxy_anchor"), "regularizer": ("none",)}, given.spec, seeds=3
    )
    told = {
        entry.labels["loss"]: [(one.what, one.paper) for one in entry.evidence[0].protocol]
        for table in book(relabelled, paper="ISA").tables for entry in table.entries if entry.evidence
    }  # fmt: skip
    assert told["margin"] == [("protocol", "that of MLRC (inferred), which is not known here")]
    assert ("backbone", "bn_inception") in told["proxy_anchor"]


def test_the_protocol_of_svmax_has_nothing_of_crops_and_augmentation():
    """Its paper says nothing of them."""
    recipes = {name: {*load(name).protocol.recipe} for name in names() if name.startswith("SVMax")}
    assert recipes
    assert [name for name, paths in recipes.items() if paths & {"crop", "augment"}] == []


def test_other_data_under_a_papers_label_are_no_evidence():
    given = outcomes()
    compare = {"dataset": [{"when": {}, "choices": [{"label": "cub200", "patch": {"dataset": {"name": "digits"}}}]}]}
    spec = {**given.spec, "compare": compare}
    relabelled = sweeps.grid(
        {"dataset": ("cub200",), "loss": ("triplet",), "regularizer": ("none",)}, spec, seeds=5, state="finished"
    )
    view = book(relabelled)
    assert view.counts.not_run == 965
    why = {one.why for table in view.tables for entry in table.entries for one in entry.evidence}
    assert why == {"the cell trains on digits, not on cub200"}


def test_the_closest_protocol_decides_and_not_the_nicest_number():
    many, close = outcomes(seeds=10), outcomes(seeds=3)
    like = {"dataset": {"name": "cub200"}, "backbone": {"name": "bn_inception"}, "embedding": 512, "seed": 0}
    close = type(close)(8, close.name, close.state, {**close.spec, "recipe": like}, close.cells, close.candidates, close.trials)  # fmt: skip  # noqa: E501
    both = [*findings(many, sweeps.catalog(), 1), *findings(close, sweeps.catalog(), 1)]
    entries = [entry for table in reproduction("SEC", both, 1).tables for entry in table.entries if entry.evidence]
    assert {tuple(one.sweep for one in entry.evidence) for entry in entries if entry.status == "underpowered"} == {
        (8, 7)
    }


def test_every_format_says_the_same(tmp_path):
    view = book(outcomes(seeds=5))
    rows = list(csv.DictReader(io.StringIO(render(view, "csv").content.decode())))
    assert len(rows) == 965
    triplet = next(row for row in rows if row["table"] == "SEC-T3" and row["status"] == "underpowered")
    assert (triplet["runs"], triplet["sweep"]) == ("5", "7/0")
    assert "selection: by the validation split (paper: the test split (inferred))" in triplet["protocol"]
    assert "& 5 & $-$" in render(view, "latex").content.decode(), "a hyphen is no minus"
    text = render(view, "markdown").content.decode()
    assert "| SEC-T3 | 0 |" in text
    assert "- sweep 7, embedding: 64 (paper: 512)" in text
    assert view.model_validate_json(render(view, "json").content) == view
    with pytest.raises(NotFoundError, match="no format of a reproduction"):
        render(view, "pdf")


def test_papers_are_known_by_name():
    assert reproduction("svmax", [], 1.0).paper == "SVMax"
    with pytest.raises(NotFoundError, match="did you mean 'SVMax'"):
        reproduction("SVMaxx", [], 1.0)


@pytest.mark.latex
def test_latex_compiles(tmp_path):
    body = render(book(outcomes(seeds=5)), "latex").content.decode("ascii")
    document = (
        "\\documentclass{article}\\usepackage{booktabs,longtable,array}\\begin{document}\n" + body + "\\end{document}\n"
    )
    assert "Overfull" not in compiled(document.encode(), tmp_path)


# The 0.975 quantile of Student's t: 12.7062 at 1 degree of freedom, 4.3027 at 2.
def test_the_t_interval_of_the_mean_decides():
    cases = (
        # the half width is 4.3027 x 0.01 / sqrt(3) = 2.484 points, with half a printed digit 2.489: 63.489 is the limit
        ([0.60, 0.61, 0.62], {
            "60.82": "reproduced", "63.48": "reproduced", "63.49": "below", "58.52": "reproduced", "58.51": "above",
            "63.5": "reproduced",  # fewer digits tell less: half of them is 0.05
        }),
        ([0.5, 0.5], {"50.00": "reproduced", "50.01": "below"}),  # no spread at all leaves the printed digits
        ([0.50004, 0.50004], {"50.00": "reproduced"}),
    )  # fmt: skip
    for values, said in cases:
        assert {one: compare(statistic(values), summary(), number(one)).word for one in said} == said, values


def test_the_tolerance_is_half_an_interval_and_half_a_digit():
    found = compare(statistic([0.60, 0.61, 0.62]), summary(), number("60.82"))
    assert found.difference == pytest.approx(0.0018)
    assert found.tolerance == pytest.approx(4.302652729749 * 0.01 / math.sqrt(3) + 5e-5)


def test_a_norm_is_no_share():
    found = compare(statistic([3.19, 3.21]), summary(), number("3.20", "number"))
    assert (found.word, found.difference) == ("reproduced", pytest.approx(0.0))
    assert found.tolerance == pytest.approx(12.706204736 * 0.01 + 0.005)


def test_nothing_is_filled_in_without_an_own_number():
    cases = (
        ("missing", "60.82", "not run"), ("partial", "60.82", "not run"), ("missing", "degenerate", "not run"),
        ("complete", "60.82", "not run"),  # the metric was not computed
        ("failed", "60.82", "failed"), ("diverged", "60.82", "diverged"), ("diverged", "degenerate", "reproduced"),
    )  # fmt: skip
    for status, printed, word in cases:
        found = compare(None, summary(status), number(printed))
        assert (found.word, found.difference, found.tolerance) == (word, None, None), status


def test_an_own_number_where_the_paper_has_a_word():
    found = compare(statistic([0.5, 0.6]), summary(), number("degenerate"))
    assert (found.word, found.difference, found.tolerance) == (None, None, None)
