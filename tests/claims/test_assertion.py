"""When a claim holds: the whole interval over the seeds is beyond its bound, or the one value of one seed."""

from math import nan

import pytest

from benchmarks.claims.assertion import Assertion, asserted
from benchmarks.claims.claim import Claim
from benchmarks.claims.twin import Pair


def claim(**changes: object) -> Claim:
    raw = {
        "says": "It falls.",
        "metric": "train/norm_var",
        "of": {"a": "x"},
        "against": {"a": "y"},
        "ratio": "below 0.5",
    }
    return Claim.model_validate({key: value for key, value in (raw | changes).items() if value is not None})


def judged(what: Claim, *values: list[tuple[float, float]]) -> Assertion:
    return asserted(what, [Pair({"a": "x"}, {"a": "y"}, list(one)) for one in values])


def test_the_whole_interval_counts() -> None:
    near, far = [(0.2, 1.0), (0.45, 1.0), (0.3, 1.0)], [(0.2, 1.0), (0.25, 1.0), (0.22, 1.0)]
    assert not judged(claim(), near).held, "its mean is 0.3, and its interval reaches beyond 0.5"
    found = judged(claim(), far)
    (effect,) = found.effects
    assert found.held
    assert effect.mean == pytest.approx((0.2 * 0.25 * 0.22) ** (1 / 3)), "a ratio is averaged by its logarithm"
    assert effect.low < effect.mean < effect.high < 0.5
    assert effect.errors == pytest.approx(12.5, abs=0.1)


def test_every_pair_counts_or_their_mean() -> None:
    rising = claim(ratio=None, difference="above 0")
    pairs = [[(0.9, 0.8), (0.9, 0.79)], [(0.80, 0.81), (0.80, 0.80)]]
    assert not judged(rising, *pairs).held
    assert judged(rising, *pairs).weakest.mean == pytest.approx(-0.005)
    pooled = judged(rising.model_copy(update={"over": "pairs"}), *pairs).effects
    assert [(one.of, one.against, one.mean) for one in pooled] == [
        (pytest.approx(0.85), pytest.approx(0.80), pytest.approx(0.05))
    ]


def test_one_seed_is_judged_by_its_value() -> None:
    found = judged(claim(), [(0.4, 1.0)])
    assert (found.held, found.weakest.errors) == (True, None)
    assert not judged(claim(), [(0.6, 1.0)]).held


def test_a_training_that_diverged_holds_nothing() -> None:
    assert not judged(claim(), [(0.1, 1.0), (nan, 1.0)]).held
