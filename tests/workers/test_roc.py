"""What metrics of pairs say of thresholds, against naive loops, InsightFace's rule and scikit-learn's curve."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_curve
from sklearn.model_selection import KFold

from workers.evaluation.verification import Roc, Scores
from workers.metrics.eer import EqualErrorRate
from workers.metrics.tar import TrueAcceptRate
from workers.metrics.verification_accuracy import VerificationAccuracy


def scores(seed: int, separation: float, steps: int = 10_000, count: int = 400) -> Scores:
    """Ten folds in order; with few `steps` many cosines are equal."""
    generator = torch.Generator().manual_seed(seed)
    same = torch.rand(count, generator=generator) < 0.4
    cosine = torch.tanh(torch.randn(count, generator=generator) / 2 + separation * same)
    return Scores((cosine * steps).round() / steps, same, torch.arange(count) * 10 // count)


CASES = [(0, 0.0, 3), (0, 0.5, 10_000), (1, 2.0, 3), (1, 2.0, 10_000)]


def naive_rates(found: Scores) -> list[tuple[float, float]]:
    """What every threshold accepts: the shares of pairs of two classes and of one."""
    rows = list(zip(found.cosine.tolist(), found.same.tolist(), strict=True))
    rates = []
    for threshold in [math.inf, *sorted({cosine for cosine, _ in rows}, reverse=True)]:
        accepted = [same for cosine, same in rows if cosine >= threshold]
        alike = sum(same for _, same in rows)
        rates.append(((len(accepted) - sum(accepted)) / (len(rows) - alike), sum(accepted) / alike))
    return rates


@pytest.mark.parametrize("case", CASES)
def test_rates_are_those_of_a_naive_loop_and_of_the_peer(case: Any) -> None:
    found = scores(*case)
    roc = Roc.of(found)
    ours = zip(roc.far.tolist(), roc.tar.tolist(), strict=True)
    assert np.array([*ours]) == pytest.approx(np.array(naive_rates(found)))
    far, tar, _ = roc_curve(found.same.numpy(), found.cosine.numpy(), drop_intermediate=False)
    assert (roc.far.numpy(), roc.tar.numpy()) == (pytest.approx(far), pytest.approx(tar))


@pytest.mark.parametrize("case", CASES)
def test_tar_is_that_of_a_naive_loop(case: Any) -> None:
    found = scores(*case)
    for k, share in (("1e-1", 0.1), ("1e-2", 0.01)):
        expected = max(tar for far, tar in naive_rates(found) if far <= share)
        assert TrueAcceptRate(k=k)(found) == expected  # type: ignore[arg-type]


def test_a_rate_that_no_pair_resolves_has_no_value() -> None:
    same = torch.arange(2_000) < 1_000
    found = Scores(torch.linspace(1, -1, 2_000), same, torch.zeros(2_000, dtype=torch.int64))
    assert TrueAcceptRate(k="1e-3")(found) == 1.0  # one of a thousand may be accepted
    assert math.isnan(TrueAcceptRate(k="1e-4")(found))


@pytest.mark.parametrize("case", CASES)
def test_the_equal_error_rate_is_where_the_peers_curve_meets_the_diagonal(case: Any) -> None:
    found = scores(*case)
    far, tar, _ = roc_curve(found.same.numpy(), found.cosine.numpy(), drop_intermediate=False)
    rate = EqualErrorRate()(found)
    meets = []
    for n in range(len(far) - 1):
        across, up = far[n + 1] - far[n], tar[n + 1] - tar[n]
        on_line = up * (rate - far[n]) == pytest.approx(across * (1 - rate - tar[n]), abs=1e-9)
        between = far[n] <= rate + 1e-12 <= far[n + 1] + 2e-12 and tar[n] <= 1 - rate + 1e-12 <= tar[n + 1] + 2e-12
        meets.append(on_line and between)
    assert any(meets)


def test_the_equal_error_rate_of_what_tells_all_and_nothing() -> None:
    same, fold = torch.arange(10) < 4, torch.zeros(10, dtype=torch.int64)
    assert EqualErrorRate()(Scores(same.float(), same, fold)) == 0.0
    assert EqualErrorRate()(Scores(1 - same.float(), same, fold)) == 1.0
    assert EqualErrorRate()(Scores(torch.ones(10), same, fold)) == 0.5


def insightface(found: Scores) -> float:
    """Its rule on squared distances, in loops: folds in order, the first of the best thresholds, strictly below."""
    distance, same = 2 - 2 * found.cosine.double().numpy(), found.same.numpy()
    grid, shares = np.arange(0, 4, 0.01), []
    for others, own in KFold(10, shuffle=False).split(distance):
        right = [np.mean((distance[others] < threshold) == same[others]) for threshold in grid]
        shares.append(np.mean((distance[own] < grid[int(np.argmax(right))]) == same[own]))
    return float(np.mean(shares))


@pytest.mark.parametrize("case", CASES)
def test_accuracy_on_the_grid_is_insightfaces(case: Any) -> None:
    found = scores(*case)
    assert VerificationAccuracy()(found) == pytest.approx(insightface(found), abs=1e-12)
