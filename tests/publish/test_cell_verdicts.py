"""Verdicts between cells: the boundary against scipy and simulation, the words, and how often they are wrong."""

import math
from itertools import pairwise

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.publish.verdicts.judge import Evidence, judge
from orchestrator.publish.verdicts.significance import (
    ANY,
    EXACT,
    MIN_PAIRS,
    Spending,
    boundary,
    compare,
    holm,
    planned,
)

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
    # p = 0.0011 and p = 0.0089: with both tested 0.04 / 2, then 0.04 / 1; beside ten that wait, 0.04 / 12.
    weaker = (0.010, 0.020, 0.008, 0.012, 0.025)
    assert 0.0033 < student(weaker).pvalue < 0.02
    pair = {"sec": Evidence(FIVE, planned(5)), "svmax": Evidence(weaker, planned(5))}
    found = judge(pair, 0.05)
    assert [one.word for one in found.values()] == ["better", "better"]
    assert found["svmax"].needs == pytest.approx(0.05 * 0.8)
    waiting = {n: Evidence(obstacle="not finished") for n in range(10)}
    found = judge(pair | waiting, 0.05)
    assert (found["sec"].word, found["svmax"].word) == ("better", "unresolved")
    assert found["svmax"].needs == pytest.approx(0.05 * 0.8 / 11)


def test_equivalence_is_two_one_sided_tests():
    small = (0.001, -0.002, 0.0015, 0.0003, 0.0002)
    p = max(student(small, -0.005, "greater").pvalue, student(small, 0.005, "less").pvalue)
    for level, word in ((p / 0.8 * 1.01, "equivalent"), (p / 0.8 * 0.99, "unresolved")):
        # One of the two sides at the level is both sides at twice the level.
        assert judge({0: Evidence(small, planned(5), margin=0.005)}, level)[0].word == word


def test_what_is_surely_too_small_to_matter_is_equivalent_though_it_is_surely_not_zero():
    tiny = tuple(one / 100 for one in FIVE)
    assert judge({0: Evidence(tiny, planned(5))}, 0.05)[0].word == "better"
    assert judge({0: Evidence(tiny, planned(5), margin=0.005)}, 0.05)[0].word == "equivalent"


def test_what_is_unresolved_says_how_many_more_seeds_would_decide_it():
    found = judge({0: Evidence((0.01, 0.02, -0.01, 0.02, 0.01))}, 0.05)[0]
    assert found.word == "unresolved"
    mean, std, n = 0.01, np.std((0.01, 0.02, -0.01, 0.02, 0.01), ddof=1), 5 + found.more
    critical = boundary(0.05, ANY)
    assert mean / std * math.sqrt(n) >= critical.at(n) + scipy.stats.norm.ppf(0.8) - 1e-4
    assert mean / std * math.sqrt(n - 1) < critical.at(n - 1) + scipy.stats.norm.ppf(0.8)
    assert judge({0: Evidence(NONE)}, 0.05)[0].more is None, "more than anybody trains"


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
