"""Whether an own number reproduces a published one."""

import math

import pytest

from orchestrator.publish.papers import PrintedPlace, Units, read
from orchestrator.publish.statistics import statistic
from orchestrator.publish.tables.reproduction import compare
from orchestrator.views.outcomes import CellSummary


def summary(status="complete"):
    return CellSummary(0, status, None, {}, "", None, {}, 1)


def number(cell, unit="percent"):
    return read(cell, PrintedPlace({}, {}, "recall@1"), Units(unit, unit))


# The 0.975 quantile of Student's t: 12.7062 at 1 degree of freedom, 4.3027 at 2.
@pytest.mark.parametrize(
    ("values", "printed", "word"),
    [
        ([0.60, 0.61, 0.62], "60.82", "reproduced"),
        ([0.60, 0.61, 0.62], "63.48", "reproduced"),  # the half width is 4.3027 x 0.01 / sqrt(3) = 2.484 points
        ([0.60, 0.61, 0.62], "63.49", "below"),  # with half a printed digit 2.489: 63.489 is the limit
        ([0.60, 0.61, 0.62], "58.52", "reproduced"),
        ([0.60, 0.61, 0.62], "58.51", "above"),
        ([0.60, 0.61, 0.62], "63.5", "reproduced"),  # fewer digits tell less: half of them is 0.05
        ([0.5, 0.5], "50.00", "reproduced"),  # no spread at all leaves the printed digits
        ([0.5, 0.5], "50.01", "below"),
        ([0.50004, 0.50004], "50.00", "reproduced"),
    ],
)
def test_the_t_interval_of_the_mean_decides(values, printed, word):
    assert compare(statistic(values), summary(), number(printed)).word == word


def test_the_tolerance_is_half_an_interval_and_half_a_digit():
    found = compare(statistic([0.60, 0.61, 0.62]), summary(), number("60.82"))
    assert found.difference == pytest.approx(0.0018)
    assert found.tolerance == pytest.approx(4.302652729749 * 0.01 / math.sqrt(3) + 5e-5)


def test_a_norm_is_no_share():
    found = compare(statistic([3.19, 3.21]), summary(), number("3.20", "number"))
    assert (found.word, found.difference) == ("reproduced", pytest.approx(0.0))
    assert found.tolerance == pytest.approx(12.706204736 * 0.01 + 0.005)


@pytest.mark.parametrize(
    ("status", "printed", "word"),
    [
        ("missing", "60.82", "not run"),
        ("partial", "60.82", "not run"),
        ("complete", "60.82", "not run"),  # the metric was not computed
        ("failed", "60.82", "failed"),
        ("diverged", "60.82", "diverged"),
        ("diverged", "degenerate", "reproduced"),
        ("missing", "degenerate", "not run"),
    ],
)
def test_nothing_is_filled_in_without_an_own_number(status, printed, word):
    found = compare(None, summary(status), number(printed))
    assert (found.word, found.difference, found.tolerance) == (word, None, None)


def test_an_own_number_where_the_paper_has_a_word():
    found = compare(statistic([0.5, 0.6]), summary(), number("degenerate"))
    assert (found.word, found.difference, found.tolerance) == (None, None, None)
