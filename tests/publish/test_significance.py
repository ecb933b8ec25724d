"""Comparisons against scipy and by simulation: tests, Holm's correction, verdicts between cells, and their words."""

import csv
import io
import json
import math
import random
import statistics as stdlib
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.publish.aggregate import interval, standard_error, statistic
from orchestrator.publish.formats import names, render
from orchestrator.publish.tables.build import build
from orchestrator.publish.tables.cells import Contender, best, find_doubts
from orchestrator.publish.verdicts import significance
from orchestrator.publish.verdicts.judge import Evidence, judge
from orchestrator.publish.verdicts.significance import (
    ANY,
    EXACT,
    HIGHER,
    LOWER,
    MIN_PAIRS,
    Comparison,
    Spending,
    boundary,
    compare,
    holm,
    planned,
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
    results = sweeps.grid(
        {"loss": ("triplet", "semihard"), "regularizer": REGULARIZERS},
        sweeps.spec(tables={"main": table}), seeds=seeds, metrics=("recall@1", "map@r"),
    )  # fmt: skip
    random_ = random.Random(3)
    by_seed = [random_.gauss(0.6, 0.1) for _ in range(seeds)]

    def moved(trial):
        labels = results.cells[trial.cell].labels
        shift = shifts.get((labels["loss"], labels["regularizer"]), 0.0)
        values = {key: by_seed[trial.repeat] + shift + random_.gauss(0, noise) for key in trial.values}
        return replace(trial, values=values)

    return replace(results, trials=tuple(moved(one) for one in results.trials))


def built(results):
    return build(results, "main", sweeps.catalog())


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
        found = significance.paired_t([one - other for one, other in pairs], 1e-9)
        if found is not None:
            assert found == pytest.approx(scipy.stats.ttest_rel(own, base).pvalue, rel=1e-6, abs=1e-12)

    def test_so_are_the_signed_ranks(self):
        differences = [0.02, 0.01, 0.03, -0.005, 0.04, 0.015, 0.025]
        assert wilcoxon(differences) == pytest.approx(scipy.stats.wilcoxon(differences).pvalue)
        assert wilcoxon([0.01, 0.02, 0.03, 0.04, 0.05, 0.06]) == pytest.approx(2 / 64)

    @pytest.mark.parametrize("differences", [
        [0.01] * 6, [0.01, 0.01, -0.01, 0.02, 0.03, 0.03, -0.04], [0.0, 0.01, 0.01, -0.02, 0.03, 0.05, 0.05],
        [0.1, 0.1, 0.1, -0.1, -0.1, -0.1],
    ])  # fmt: skip
    def test_so_are_those_that_share_a_rank(self, differences):
        exact = scipy.stats.wilcoxon([one for one in differences if one], method=scipy.stats.PermutationMethod())
        assert wilcoxon(differences) == pytest.approx(exact.pvalue)

    def test_what_does_not_vary_is_not_tested(self):
        assert significance.paired_t([0.1, 0.1, 0.1], 1e-12) is None
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
        found = significance.holm({at: Comparison(0, 3, 0.1, p) for at, p in enumerate(ps)})
        expected = [0.03, 0.06, 0.06, 0.02, None]
        assert [one.corrected for one in found.values()] == [pytest.approx(one) for one in expected]
        assert [one.sign for one in found.values()] == [HIGHER, "", "", HIGHER, ""]


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
        assert one.p < one.corrected < significance.LEVEL
        assert (
            "Compared with regularizer None run by run: two-sided paired t-test on 5 pairs with the same seed, "
            "p < 0.05 after Holm's correction for 8 comparisons."
        ) in table.words.folded
        meanings = {entry.symbol: entry.meaning for entry in table.legend}
        message = "than regularizer None at the level 0.05 (paired t-test, two-sided, Holm-corrected for 8 comparisons)"
        assert meanings == {HIGHER: f"significantly higher {message}", LOWER: f"significantly lower {message}"}

    def test_they_compare_the_runs_of_the_selected_candidates(self):
        results = shifted(SHIFTS, metrics=["recall@1", {"metric": "recall@1", "unit": "fraction", "label": "share"}])
        assert "for 4 comparisons" in built(results).words.folded[0], "a metric that stands twice is one comparison"
        one = cells(built(results))["Triplet", "SEC", "R@1"]
        chosen = built(results).summaries[one.cell].candidate
        values = {
            place: [it.values["best/test/recall@1"] for it in results.trials if (it.cell, it.candidate) == place]
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

    return find_doubts(contenders, best(contenders), runs)


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


FIVE = (0.010, 0.020, 0.015, 0.012, 0.017)
NONE = (0.010, -0.020, 0.015, 0.012, 0.010)


def student(differences, at=0.0, alternative="two-sided"):
    return scipy.stats.ttest_1samp(differences, at, alternative=alternative)


@pytest.mark.parametrize("spending", [ANY, planned(5), planned(10), Spending(7, 0.5)])
def test_the_first_look_is_a_t_test_at_what_it_may_spend(spending):
    critical = boundary(0.05, spending).at(spending.first)
    assert 2 * scipy.stats.t.sf(critical, spending.first - 1) == pytest.approx(0.05 * spending.share)
    assert boundary(0.05, spending).at(spending.first - 1) == math.inf


@pytest.mark.parametrize(("spending", "level"), [(ANY, 0.2), (planned(5), 0.05)])
def test_what_is_crossed_is_what_may_be_spent_whatever_the_variance(spending, level):
    many, most = 100_000, 12
    runs = np.random.default_rng(3).standard_normal((many, most))
    counts = np.arange(1, most + 1)
    mean = runs.cumsum(1) / counts
    spread = (runs**2).cumsum(1) - counts * mean**2
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.abs(mean) * np.sqrt(counts * (counts - 1) / spread)
    critical = [boundary(level, spending).at(int(n)) for n in counts]
    crossed = (t >= critical).cumsum(1).astype(bool).mean(0)
    for n in range(spending.first, most + 1):
        expected = level * spending.spent(n)
        assert crossed[n - 1] == pytest.approx(expected, abs=4 * math.sqrt(expected / many)), n


def test_the_second_look_is_that_of_a_double_integral():
    # t(3) and t(4) by hand: P(|t3| < c3, |t4| >= c4) over the angle at 3 and the t of the step, each integrated.
    spending = Spending(3, 0.5)
    first, second = boundary(0.1, spending).at(3), boundary(0.1, spending).at(4)

    def beyond(angle):
        step = np.linspace(-np.pi / 2, np.pi / 2, 4001)[1:-1]
        along = (np.sqrt(3) * np.sin(angle) * np.cos(step) + np.sin(step)) / 2
        t = np.sqrt(3) * along / np.sqrt(1 - np.minimum(along**2, 1 - 1e-15))
        density = scipy.stats.t.pdf(np.sqrt(3) * np.tan(step), 3) * np.sqrt(3) / np.cos(step) ** 2
        return np.trapezoid(np.where(np.abs(t) >= second, density, 0.0), step)

    edge = math.atan(first / math.sqrt(2))
    angles = np.linspace(-edge, edge, 401)
    mass = scipy.stats.t.pdf(np.sqrt(2) * np.tan(angles), 2) * np.sqrt(2) / np.cos(angles) ** 2
    found = np.trapezoid([m * beyond(angle) for m, angle in zip(mass, angles, strict=True)], angles)
    assert found == pytest.approx(0.1 * (spending.spent(4) - spending.spent(3)), rel=0.01)


@pytest.mark.parametrize("spending", [ANY, planned(5)])
def test_a_smaller_level_has_a_higher_boundary_at_every_look_as_holm_needs(spending):
    found = [[boundary(0.05 / count, spending).at(n) for n in range(5, 21)] for count in (1, 2, 3, 6, 12, 24, 96)]
    assert all(low < high for less, more in pairwise(found) for low, high in zip(less, more, strict=True))


def test_beyond_what_is_followed_exactly_each_look_is_a_test_of_its_own():
    n = EXACT + 2
    share = 0.05 * (ANY.spent(n) - ANY.spent(n - 1))
    assert 2 * scipy.stats.t.sf(boundary(0.05, ANY).at(n), n - 1) == pytest.approx(share)


@given(st.integers(MIN_PAIRS, 60), st.integers(1, 400))
def test_no_spending_reaches_the_level_and_none_falls(first, n):
    for spending in (ANY, planned(first)):
        assert 0 <= spending.spent(n) <= spending.spent(n + 1) < 1


def test_a_comparison_alone_is_scipys_t_test_at_the_share_of_the_first_look():
    found = judge({"sec": Evidence(FIVE, planned(5))}, 0.05)["sec"]
    assert (found.word, found.pairs, found.spent) == ("better", 5, pytest.approx(0.8))
    assert found.p == pytest.approx(student(FIVE).pvalue)
    assert found.needs == pytest.approx(0.04)
    low, high = student(FIVE).confidence_interval(0.96)
    assert found.interval == (pytest.approx(low), pytest.approx(high))


def test_lower_is_better_where_the_metric_says_so():
    assert judge({0: Evidence(FIVE, sign=-1), 1: Evidence([-one for one in FIVE], sign=-1)}, 0.05)[0].word == "worse"
    assert judge({0: Evidence([-one for one in FIVE], sign=-1)}, 0.05)[0].word == "better"


def test_holm_gives_what_is_left_to_the_others_and_counts_those_without_data():
    # p = 0.0011 and p = 0.0089: with both tested 0.04 / 2, then 0.04 / 1; with ten more that wait, 0.04 / 12.
    weaker = (0.010, 0.020, 0.008, 0.012, 0.025)
    assert 0.0033 < student(weaker).pvalue < 0.02
    pair = {"sec": Evidence(FIVE, planned(5)), "svmax": Evidence(weaker, planned(5))}
    found = judge(pair, 0.05)
    assert [one.word for one in found.values()] == ["better", "better"]
    assert found["svmax"].needs == pytest.approx(0.05 * 0.8)
    waiting = {n: Evidence(obstacle="not finished") for n in range(10)}
    found = judge(pair | waiting, 0.05)
    assert (found["sec"].word, found["svmax"].word) == ("better", "no clear difference")
    assert found["svmax"].needs == pytest.approx(0.05 * 0.8 / 11)


def test_equivalence_is_two_one_sided_tests():
    small = (0.001, -0.002, 0.0015, 0.0003, 0.0002)
    p = max(student(small, -0.005, "greater").pvalue, student(small, 0.005, "less").pvalue)
    for level, word in ((p / 0.8 * 1.01, "equivalent"), (p / 0.8 * 0.99, "no clear difference")):
        # One of the two sides at the level is both sides at twice the level.
        assert judge({0: Evidence(small, planned(5), margin=0.005)}, level)[0].word == word


def test_what_is_surely_too_small_to_matter_is_equivalent_though_it_is_surely_not_zero():
    tiny = tuple(one / 100 for one in FIVE)
    assert judge({0: Evidence(tiny, planned(5))}, 0.05)[0].word == "better"
    assert judge({0: Evidence(tiny, planned(5), margin=0.005)}, 0.05)[0].word == "equivalent"


def test_an_open_comparison_says_how_many_more_seeds_would_decide_it():
    found = judge({0: Evidence((0.01, 0.02, -0.01, 0.02, 0.01))}, 0.05)[0]
    assert found.word == "no clear difference"
    mean, std, n = 0.01, np.std((0.01, 0.02, -0.01, 0.02, 0.01), ddof=1), 5 + found.more
    critical = boundary(0.05, ANY)
    assert mean / std * math.sqrt(n) >= critical.at(n) + scipy.stats.norm.ppf(0.8) - 1e-4
    assert mean / std * math.sqrt(n - 1) < critical.at(n - 1) + scipy.stats.norm.ppf(0.8)
    assert judge({0: Evidence(NONE)}, 0.05)[0].more is None, "more than 48 seeds"


@pytest.mark.parametrize(
    ("evidence", "reason"),
    [
        (Evidence(), "no seed that both have"),
        (Evidence((0.1,)), "1 seed that both have, 3 are needed"),
        (Evidence((0.1, 0.2)), "2 seeds that both have, 3 are needed"),
        (Evidence((0.1, 0.1, 0.1)), "no variation: the difference is the same with every seed"),
        (Evidence((0.0, 0.0, 0.0, 0.0)), "no variation: the difference is the same with every seed"),
        (Evidence(FIVE, obstacle="the baseline diverged"), "the baseline diverged"),
    ],
)
def test_bad_input_gets_a_word_in_place_of_a_number(evidence, reason):
    found = judge({0: evidence}, 0.05)[0]
    assert (found.word, found.reason) == ("untested", reason)
    assert (found.p, found.interval, found.more) == (None, None, None)


def test_a_large_table_computes_few_boundaries():
    random = np.random.default_rng(5)
    many = {n: Evidence(list(random.normal(n / 250, 1, 9)), planned(5)) for n in range(2_000)}
    before = boundary.cache_info().misses
    found = judge(many, 0.05)
    assert boundary.cache_info().misses - before <= 32
    assert sum(one.word == "better" for one in found.values()) > 100


def test_looks_after_every_seed_are_wrong_as_often_as_promised_and_without_correction_too_often():
    """In 300 tables of two losses and four regularizers, each compared with `none`, none of which truly differ."""
    random_, wrong = np.random.default_rng(20_261_122), {"sequential": 0, "fixed": 0}
    for _ in range(300):
        runs = random_.standard_normal((2, 4, 10)) / 2**0.5 + random_.standard_normal(10)
        differences = (runs[:, 1:] - runs[:, :1]).reshape(6, 10)
        looks = [dict(enumerate(differences[:, :pairs])) for pairs in range(MIN_PAIRS, 11)]
        wrong["sequential"] += any(
            one.word in {"better", "worse"}
            for seen in looks
            for one in judge({place: Evidence(list(each), ANY) for place, each in seen.items()}, 0.05).values()
        )
        wrong["fixed"] += any(
            one.sign
            for seen in looks
            for one in holm({at: compare(dict(enumerate(each)), dict.fromkeys(range(len(each)), 0.0), 0, "t")
                             for at, each in seen.items()}).values()
        )  # fmt: skip
    chance = 2 * math.sqrt(0.05 * 0.95 / 300)
    assert wrong["sequential"] / 300 <= 0.05 + chance
    assert wrong["fixed"] / 300 > 0.05 + chance
