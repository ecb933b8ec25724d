import math
import statistics as stdlib

import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.publish.statistics import interval, standard_error, statistic
from orchestrator.views.outcomes import Statistic

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
