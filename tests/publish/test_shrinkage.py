"""What few seeds say of true differences together: less where nothing much differs, all of it where much does."""

from collections.abc import Sequence

import numpy as np
import pytest

from orchestrator.publish.verdicts.shrinkage import Shrinkage
from orchestrator.views.outcomes import Statistic


def drawn(seen: Sequence[Statistic], own: Statistic | None, number: int = 2000) -> tuple[list[float], list[float]]:
    random, shrunk = np.random.default_rng(1), Shrinkage(seen)
    truths = [shrunk.drawn(random, shrunk.width(random), own) for _ in range(number)]
    return [one.effect for one in truths], [one.std for one in truths]


def test_what_is_no_more_than_noise_is_taken_for_little() -> None:
    seen = [Statistic(mean, 1.0, 5) for mean in (0.6, -0.5, 0.3, -0.2, 0.45, 0.1)]
    effects, stds = drawn(seen, seen[0])
    assert abs(np.mean(effects)) < 0.35, "as it seems, 0.6"
    assert np.mean(stds) == pytest.approx(1.0, abs=0.1), "24 degrees of freedom, and not 4"


def test_what_differs_much_is_left_as_it_is() -> None:
    seen = [Statistic(mean, 1.0, 5) for mean in (5.0, -4.0, 3.0, 6.0)]
    effects, _ = drawn(seen, seen[0])
    assert np.mean(effects) == pytest.approx(5.0, abs=0.25)
    assert np.std(effects) == pytest.approx(5**-0.5, abs=0.15)


def test_spreads_that_differ_are_not_taken_for_one() -> None:
    seen = [Statistic(0.0, std, 30) for std in (0.01, 0.1, 1.0, 10.0)]
    _, narrow = drawn(seen, seen[0])
    _, wide = drawn(seen, seen[3])
    assert (np.median(narrow) < 0.02, np.median(wide) > 7) == (True, True)


def test_one_comparison_is_enough_and_one_that_was_not_seen_is_as_the_others() -> None:
    alone, _ = drawn([Statistic(1.0, 1.0, 5)], Statistic(1.0, 1.0, 5))
    assert 0.5 < np.mean(alone) < 1.0
    effects, stds = drawn([Statistic(3.0, 1.0, 5), Statistic(-3.0, 1.0, 5)], None)
    assert np.mean(effects) == pytest.approx(0.0, abs=0.5)
    assert (np.std(effects) > 2, np.median(stds) == pytest.approx(1.0, abs=0.15)) == (True, True)


@pytest.mark.parametrize("width", [0.3, 3.0])
def test_truths_lie_where_they_are_drawn(width: float) -> None:
    """Of truths that are so far apart, eight of ten are between the deciles of what is drawn for them."""
    random, inside = np.random.default_rng(3), []
    for _ in range(30):
        truths = random.normal(0, width, 6)
        runs = random.normal(truths[:, None], 1.0, (6, 5))
        seen = [Statistic(float(one.mean()), float(one.std(ddof=1)), 5) for one in runs]
        shrunk = Shrinkage(seen)
        draws = [[shrunk.drawn(random, shrunk.width(random), own).effect for _ in range(60)] for own in seen]
        low, high = np.quantile(draws, [0.1, 0.9], axis=1)
        inside += list((low <= truths) & (truths <= high))
    assert 0.66 < np.mean(inside) < 0.92, "of 180; of 1,500 it is 76 %, since the width is guessed too"
