"""Comparisons with a baseline: the tests against scipy's, Holm's correction, and what a table says of them."""

import csv
import io
import json
import math
import random
import statistics as stdlib
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.publish.aggregate import interval, standard_error, statistic
from orchestrator.publish.formats import names, render
from orchestrator.publish.tables.build import build_own
from orchestrator.publish.tables.cells import Contender, best, doubts
from orchestrator.publish.verdicts.significance import (
    HIGHER,
    LEVEL,
    LOWER,
    Comparison,
    compare,
    holm,
    paired_t,
    wilcoxon,
)
from orchestrator.views.runs import Statistic
from tests.publish import sweeps

REGULARIZERS = ("none", "sec", "svmax")


def numbered(values):
    return dict(enumerate(values))


def shifted(shifts, seeds=5, noise=0.01, **layout):
    """Two losses and three regularizers whose runs follow the seed, each moved by what `shifts` says."""
    table = {
        "rows": ["loss", "regularizer"], "columns": [], "metrics": ["recall@1", "map@r"],
        "against": {"regularizer": "none"}, "bold": "none", **layout,
    }  # fmt: skip
    outcomes = sweeps.grid(
        {"loss": ("triplet", "semihard"), "regularizer": REGULARIZERS},
        sweeps.spec(tables={"main": table}), seeds=seeds, metrics=("recall@1", "map@r"),
    )  # fmt: skip
    random_ = random.Random(3)
    by_seed = [random_.gauss(0.6, 0.1) for _ in range(seeds)]

    def moved(trial):
        labels = outcomes.cells[trial.cell].labels
        shift = shifts.get((labels["loss"], labels["regularizer"]), 0.0)
        values = {key: by_seed[trial.repeat] + shift + random_.gauss(0, noise) for key in trial.values}
        return replace(trial, values=values)

    return replace(outcomes, trials=tuple(moved(one) for one in outcomes.trials))


def built(outcomes):
    return build_own(outcomes, "main", sweeps.catalog())


def cells(table):
    return {
        (*row.texts, column.title): cell
        for panel in table.panels
        for row in panel.rows
        for column, cell in zip(panel.columns, row.cells, strict=True)
    }


SHIFTS = {("triplet", "sec"): 0.2, ("semihard", "sec"): -0.2}


class TestTests:
    @given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=3, max_size=20))
    def test_the_t_test_is_scipys(self, pairs):
        own, base = zip(*pairs, strict=True)
        found = paired_t([one - other for one, other in pairs], 1e-9)
        if found is not None:
            assert found == pytest.approx(scipy.stats.ttest_rel(own, base).pvalue, rel=1e-6, abs=1e-12)

    def test_so_are_the_signed_ranks(self):
        differences = [0.02, 0.01, 0.03, -0.005, 0.04, 0.015, 0.025]
        assert wilcoxon(differences) == pytest.approx(scipy.stats.wilcoxon(differences).pvalue)
        assert wilcoxon([0.01, 0.02, 0.03, 0.04, 0.05, 0.06]) == pytest.approx(2 / 64)

    @pytest.mark.parametrize(
        "differences",
        [
            [0.01] * 6, [0.01, 0.01, -0.01, 0.02, 0.03, 0.03, -0.04], [0.0, 0.01, 0.01, -0.02, 0.03, 0.05, 0.05],
            [0.1, 0.1, 0.1, -0.1, -0.1, -0.1],
        ],
    )  # fmt: skip
    def test_so_are_those_that_share_a_rank(self, differences):
        exact = scipy.stats.wilcoxon([one for one in differences if one], method=scipy.stats.PermutationMethod())
        assert wilcoxon(differences) == pytest.approx(exact.pvalue)

    def test_what_does_not_vary_is_not_tested(self):
        assert paired_t([0.1, 0.1, 0.1], 1e-12) is None
        assert compare(numbered([0.5, 0.6, 0.7]), numbered([0.4, 0.5, 0.6]), 0, "t").p is None  # but for rounding
        assert wilcoxon([0.0] * 6) is None

    def test_pairs_are_runs_of_the_same_repeat(self):
        own, base = {"a": 0.5, "b": 0.7, "c": 0.8, "d": 0.1}, {"c": 0.2, "b": 0.3, "a": 0.4, "e": 0.9}
        found = compare(own, base, 4, "t")
        assert (found.baseline, found.n) == (4, 3)
        assert found.difference == pytest.approx((0.1 + 0.4 + 0.6) / 3)
        assert found.p == pytest.approx(scipy.stats.ttest_rel([0.5, 0.7, 0.8], [0.4, 0.3, 0.2]).pvalue)
        assert compare({"a": 1.0}, {"b": 1.0}, 4, "t") == Comparison(4, 0, None)

    @pytest.mark.parametrize(("test", "least"), [("t", 3), ("wilcoxon", 6)])
    def test_fewer_pairs_are_not_tested(self, test, least):
        values = [0.1, 0.25, 0.3, 0.45, 0.5, 0.65]
        base = numbered([0.0] * least)
        assert compare(numbered(values[:least]), base, 0, test).p is not None
        assert compare(numbered(values[: least - 1]), base, 0, test).p is None


class TestHolm:
    def test_an_example_by_hand(self):
        ps = [0.01, 0.04, 0.03, 0.005, None]
        found = holm({at: Comparison(0, 3, 0.1, p) for at, p in enumerate(ps)})
        expected = [0.03, 0.06, 0.06, 0.02, None]
        assert [one.corrected for one in found.values()] == [pytest.approx(one) for one in expected]
        assert [one.sign for one in found.values()] == [HIGHER, "", "", HIGHER, ""]

    @given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
    def test_it_keeps_the_order_and_lies_between_p_and_bonferroni(self, ps):
        found = holm({at: Comparison(0, 3, 0.1, p) for at, p in enumerate(ps)})
        both = sorted((one.p, one.corrected) for one in found.values())
        assert all(p <= corrected <= min(1.0, p * len(ps)) + 1e-12 for p, corrected in both)
        assert all(one[1] <= other[1] for one, other in pairwise(both))


class TestTable:
    def test_marks_say_which_cells_differ_and_the_words_say_how(self):
        table = built(shifted(SHIFTS))
        found = cells(table)
        assert found["Triplet", "SEC", "R@1"].after == HIGHER
        assert found["Semihard triplet", "SEC", "MAP@R"].after == LOWER
        assert found["Triplet", "SVMax", "R@1"].after == ""
        base = found["Triplet", "None", "R@1"]
        assert base.comparison is None
        one = found["Triplet", "SEC", "R@1"].comparison
        assert (one.baseline, one.n) == (base.cell, 5)
        assert one.difference == pytest.approx(0.2, abs=0.02)
        assert one.p < one.corrected < LEVEL
        assert (
            "Compared with regularizer None run by run: two-sided paired t-test on 5 pairs with the same seed, "
            "p < 0.05 after Holm's correction for 8 comparisons."
        ) in table.caption
        meanings = {entry.symbol: entry.meaning for entry in table.legend}
        said = "than regularizer None at the level 0.05 (paired t-test, two-sided, Holm-corrected for 8 comparisons)"
        assert meanings == {HIGHER: f"significantly higher {said}", LOWER: f"significantly lower {said}"}

    def test_they_compare_the_runs_of_the_selected_candidates(self):
        outcomes = shifted(SHIFTS, metrics=["recall@1", {"metric": "recall@1", "unit": "fraction", "label": "share"}])
        assert "for 4 comparisons" in built(outcomes).caption, "a metric that stands twice is one comparison"
        one = cells(built(outcomes))["Triplet", "SEC", "R@1"]
        chosen = built(outcomes).summaries[one.cell].candidate
        values = {
            place: [it.values["best/test/recall@1"] for it in outcomes.trials if (it.cell, it.candidate) == place]
            for place in ((one.cell, chosen), (one.comparison.baseline, 0))
        }
        assert one.comparison.p == pytest.approx(scipy.stats.ttest_rel(*values.values()).pvalue)

    def test_every_format_writes_them(self):
        table = built(shifted(SHIFTS, counts="always"))
        texts = {name: render(table, name).content for name in names()}
        assert "↑(5)" in texts["markdown"].decode()
        assert '<sup class="runs">&#8593;(5)</sup>' in texts["html"].decode()
        assert "\\textsuperscript{$\\uparrow$(5)}" in texts["latex"].decode()
        lines = list(csv.DictReader(io.StringIO(texts["csv"].decode())))
        tested = next(one for one in lines if (one["loss"], one["regularizer"]) == ("triplet", "sec"))
        cell = cells(table)["Triplet", "SEC", "R@1"]
        assert tested["pairs"] == "5"
        assert float(tested["paired_difference"]) == cell.comparison.difference
        assert float(tested["corrected_p"]) == cell.comparison.corrected
        row = json.loads(texts["json"])["panels"][0]["rows"][1]["cells"][0]
        assert row["comparison"] == {
            "baseline": 0, "n": 5, "difference": cell.comparison.difference, "p": cell.comparison.p,
            "corrected_p": cell.comparison.corrected, "sign": "↑",
        }  # fmt: skip
        assert row["runs"] == 5


values = st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=20)


@given(values)
def test_mean_and_sample_deviation_are_those_of_the_standard_library(numbers):
    found = statistic(numbers)
    assert found.n == len(numbers)
    assert found.mean == pytest.approx(stdlib.fmean(numbers), abs=1e-9)
    assert found.std == pytest.approx(stdlib.stdev(numbers), abs=1e-6)


def test_one_value_has_no_deviation():
    assert statistic([0.5]) == Statistic(0.5, None, 1)
    assert standard_error(statistic([0.5])) is None
    assert interval(statistic([0.5])) is None


def test_what_is_no_number_is_refused():
    for numbers in ([], [math.nan], [1.0, math.inf]):
        with pytest.raises(ValueError, match="finite"):
            statistic(numbers)


def test_interval_is_students():
    numbers = [0.61, 0.64, 0.57, 0.6]
    for level in (0.9, 0.95, 0.99):
        expected = scipy.stats.t.interval(level, 3, stdlib.fmean(numbers), scipy.stats.sem(numbers))
        assert interval(statistic(numbers), level) == pytest.approx(expected)


Values = Mapping[tuple[int, ...], list[float]]


def doubted(values: Values, texts: Mapping[tuple[int, ...], str]) -> dict[tuple[int, ...], str]:
    contenders = [Contender(place, "block", "higher", texts[place], True) for place in values]

    def runs(place: tuple[int, ...]) -> dict[frozenset[tuple[str, str]], float]:
        return {frozenset({("seed", str(seed))}): value for seed, value in enumerate(values[place])}

    return doubts(contenders, best(contenders), runs)


def test_a_lead_is_doubted_unless_it_is_there_in_every_run() -> None:
    ahead = {(0,): [0.70, 0.71, 0.72, 0.705], (1,): [0.60, 0.615, 0.61, 0.612]}
    assert doubted(ahead, {(0,): "70.9", (1,): "60.9"}) == {}
    near = {(0,): [0.70, 0.60, 0.72, 0.61], (1,): [0.60, 0.71, 0.61, 0.70], (2,): [0.1, 0.1, 0.1, 0.1]}
    found = doubted(near, {(0,): "65.8", (1,): "65.5", (2,): "10.0"})
    assert list(found) == [(0,)]
    assert "paired t-test over 4 runs, p = " in found[0,]
    assert "3 are needed" in doubted({(0,): [0.70, 0.71], (1,): [0.60, 0.61]}, {(0,): "70.5", (1,): "60.5"})[0,]
    assert "1 run that both have" in doubted({(0,): [0.70], (1,): [0.60]}, {(0,): "70.0", (1,): "60.0"})[0,]
    tied = doubted({(0,): [0.5] * 3, (1,): [0.5] * 3}, {(0,): "50.0", (1,): "50.0"})
    assert set(tied) == {(0,), (1,)}
    assert "does not differ" in tied[0,]
