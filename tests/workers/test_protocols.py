"""Linear probe, k-means and thresholds of pairs by their protocols: naive loops, and scikit-learn."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.cluster import KMeans
from sklearn.metrics import normalized_mutual_info_score, roc_curve
from sklearn.model_selection import KFold
from threadpoolctl import threadpool_limits
from torch import Tensor

from tests.workers.inputs import evaluate
from workers.evaluation import clustering
from workers.evaluation.probe import Classified, Features, Probe, Schedule
from workers.evaluation.verification import Roc, Scores
from workers.metrics.eer import EqualErrorRate
from workers.metrics.tar import TrueAcceptRate
from workers.metrics.verification_accuracy import VerificationAccuracy

CPU = torch.device("cpu")
SHORT = Schedule(rates=(0.5,), epochs=3, batch=16, at=(1, 2), factor=0.2)


def some(count: int = 48, width: int = 5, classes: int = 3) -> tuple[torch.Tensor, torch.Tensor]:
    drawn = torch.Generator().manual_seed(0)
    labels = torch.randint(classes, (count,), generator=drawn)
    return torch.randn(count, width, generator=drawn) + labels[:, None], labels


def trained(schedule: Schedule, features: torch.Tensor, labels: torch.Tensor, epochs: int | None = None) -> Probe:
    probe = Probe({"only": features.shape[1]}, int(labels.max()) + 1, schedule, CPU)
    return more(probe, features, labels, schedule.epochs if epochs is None else epochs)


def more(probe: Probe, features: torch.Tensor, labels: torch.Tensor, epochs: int) -> Probe:
    for _ in range(epochs):
        order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(probe.epoch))
        for chosen in order.split(probe.schedule.batch):
            probe.learn({"only": features[chosen]}, labels[chosen])
        probe.epoch += 1
    return probe


def naive(schedule: Schedule, features: torch.Tensor, labels: torch.Tensor) -> np.ndarray:
    """The scores after the training of one classifier with the first rate, by loops in NumPy."""
    x, y = features.double().numpy(), labels.numpy()
    classes = y.max() + 1
    weight, bias = np.zeros((classes, x.shape[1])), np.zeros(classes)
    speed_w, speed_b = np.zeros_like(weight), np.zeros_like(bias)
    rate = schedule.rates[0]
    for epoch in range(schedule.epochs):
        if epoch in schedule.at:
            rate *= schedule.factor
        order = torch.randperm(len(y), generator=torch.Generator().manual_seed(epoch)).numpy()
        for first in range(0, len(y), schedule.batch):
            chosen = order[first : first + schedule.batch]
            down_w, down_b = np.zeros_like(weight), np.zeros_like(bias)
            for one in chosen:
                likely = np.exp(weight @ x[one] + bias)
                likely /= likely.sum()
                likely[y[one]] -= 1
                down_w += np.outer(likely, x[one]) / len(chosen)
                down_b += likely / len(chosen)
            speed_w, speed_b = 0.9 * speed_w + down_w, 0.9 * speed_b + down_b
            weight, bias = weight - rate * speed_w, bias - rate * speed_b
    scores: np.ndarray = x @ weight.T + bias
    return scores


def test_it_equals_a_naive_loop() -> None:
    features, labels = some()
    (found,) = trained(SHORT, features, labels).scores({"only": features})
    np.testing.assert_allclose(found.numpy(), naive(SHORT, features, labels), atol=1e-4)


def test_side_by_side_each_is_what_it_is_alone() -> None:
    """Also if another candidate diverges."""
    features, labels = some()
    rates = (0.5, 1e38, 0.1)
    together = trained(SHORT._replace(rates=rates), features, labels).scores({"only": features})
    assert not together[1].isfinite().all()
    for place in (0, 2):
        (alone,) = trained(SHORT._replace(rates=(rates[place],)), features, labels).scores({"only": features})
        assert torch.equal(together[place], alone)


def test_it_goes_on_where_it_was() -> None:
    features, labels = some()
    (whole,) = trained(SHORT, features, labels).scores({"only": features})
    first = trained(SHORT, features, labels, epochs=1)
    again = Probe({"only": 5}, 3, SHORT, CPU)
    again.load_state_dict(first.state_dict())
    (found,) = more(again, features, labels, 2).scores({"only": features})
    assert torch.equal(found, whole)


def test_equal_scores_count_by_chance() -> None:
    labels = torch.tensor([0, 1, 2, 0])
    alike = Classified(torch.zeros(4, 4), labels)
    assert alike.hits(1).tolist() == [0.25] * 4
    assert alike.hits(2).tolist() == [0.5] * 4
    scores = torch.tensor([[3.0, 2, 1, 0], [3, 2, 2, 0], [3, 2, 1, 0], [torch.nan, 2, 1, 0]])
    told = Classified(scores, labels)
    assert told.hits(1).tolist() == [1, 0, 0, 0]
    assert told.hits(2).tolist() == [1, 0.5, 0, 0], "a row that is not finite counts as wrong"
    assert told.hits(3).tolist() == [1, 1, 1, 0]


@pytest.mark.parametrize("k", [1, 3, 200])
def test_votes_equal_a_naive_loop(k: int) -> None:
    known, labels = some(60)
    asked, wanted = some(20)
    votes = np.zeros((20, 3))
    for row, one in enumerate(asked.double()):
        cosines = [float(one @ other / one.norm() / other.norm()) for other in known.double()]
        for place in sorted(range(60), key=lambda other: -cosines[other])[:k]:
            votes[row, labels[place]] += np.exp((cosines[place] - 1) / 0.07)
    found = Features(asked, wanted, known, labels).voted(k)
    np.testing.assert_allclose(found.scores.numpy(), votes, rtol=1e-4, atol=1e-6)
    expected = (votes.argmax(axis=1) == wanted.numpy()).mean()
    assert float(found.hits(1).mean()) == pytest.approx(expected)


FEW = 3


def groups(classes: int, each: int, width: int, seed: int = 0, apart: float = 1.0) -> tuple[Tensor, Tensor]:
    """Points in classes that overlap, and the classes."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(classes).repeat_interleave(each)
    means = torch.randn(classes, width, generator=generator) * apart
    return means[labels] + torch.randn(classes * each, width, generator=generator), labels


def inertia(points: Tensor, clusters: Tensor) -> float:
    """The sum of squared distances from the clusters' means, in a naive loop."""
    rows = [points[clusters == one].double() for one in clusters.unique()]
    return float(sum((some - some.mean(dim=0)).square().sum() for some in rows))


def peer(points: Tensor, count: int, seed: int) -> KMeans:
    with threadpool_limits(1):  # its threads wait for one another where tests run side by side
        return KMeans(count, init="k-means++", n_init=10, max_iter=300, algorithm="lloyd", random_state=seed).fit(
            points
        )


def test_over_seeds_it_scores_what_scikit_learn_scores() -> None:
    points, labels = groups(classes=20, each=20, width=16, apart=0.8)
    pairs = [(clustering.k_means(points, 20, seed), peer(points, 20, seed).labels_) for seed in range(6)]
    found = np.array([[normalized_mutual_info_score(labels, one) for one in pair] for pair in pairs])
    spread = found.std(axis=0, ddof=1).max()
    assert abs(found[:, 0].mean() - found[:, 1].mean()) < max(0.01, 3 * spread / math.sqrt(len(found)))


def test_each_start_ends_where_comparing_all_with_all_ends() -> None:
    points, _ = groups(classes=15, each=30, width=6)
    centred = points - points.mean(dim=0)
    start = centred[clustering._first_centres(centred, 15, 1, torch.Generator().manual_seed(3))[0]]
    clusters, found = clustering._descended(centred, start, 0.0)
    theirs = KMeans(15, init=start.numpy(), n_init=1, max_iter=300, tol=0, algorithm="lloyd").fit(centred)
    assert torch.equal(clusters.int(), torch.from_numpy(theirs.labels_).int())
    assert found == pytest.approx(theirs.inertia_, rel=1e-5)


def test_it_repeats_and_follows_its_seed_alone() -> None:
    points, _ = groups(classes=8, each=25, width=4, apart=0.3)
    torch.manual_seed(1)
    expected, state = clustering.k_means(points, 8, 7), torch.get_rng_state()
    torch.manual_seed(2)
    assert torch.equal(clustering.k_means(points, 8, 7), expected)
    torch.manual_seed(1)
    assert torch.equal(torch.get_rng_state(), state)  # nothing was drawn from it
    assert any(not torch.equal(clustering.k_means(points, 8, seed), expected) for seed in range(3))


def test_as_many_clusters_as_points_and_one() -> None:
    points, _ = groups(classes=3, each=4, width=5)
    assert clustering.k_means(points, 12, 0, FEW).unique().numel() == 12
    assert clustering.k_means(points, 1, 0, FEW).tolist() == [0] * 12
    assert clustering.k_means(torch.full((50, 3), 0.7), 5, 0).unique().numel() == 1, "all points in one place"
    places = torch.eye(3).repeat_interleave(10, dim=0)
    assert inertia(places, clustering.k_means(places, 6, 0)) == pytest.approx(0, abs=1e-6), "fewer places than clusters"
    assert evaluate(torch.ones(40, 3), torch.arange(40) % 4, ["nmi_sec"]) == {"nmi_sec": 0}
    for count in (0, 13):
        with pytest.raises(ValueError, match="expected 1 to 12 clusters"):
            clustering.k_means(torch.ones(12, 2), count, 0)
    for bad in (math.nan, math.inf):
        with pytest.raises(ValueError, match="not finite"):
            clustering.k_means(torch.tensor([[0.0], [bad], [1.0]]), 2, 0)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_clusters_as_well() -> None:
    points, _ = groups(classes=12, each=25, width=8)
    found = clustering.k_means(points.cuda(), 12, 0)
    assert found.device.type == "cuda"
    assert inertia(points, found.cpu()) == pytest.approx(inertia(points, clustering.k_means(points, 12, 0)), rel=0.01)


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
