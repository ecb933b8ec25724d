"""k-means by the protocol of SEC's code, beside scikit-learn's own."""

import math

import numpy as np
import pytest
import torch
from sklearn.cluster import KMeans
from sklearn.metrics import normalized_mutual_info_score
from threadpoolctl import threadpool_limits
from torch import Tensor

from workers.evaluation import clustering
from workers.evaluation.clustering import Protocol
from workers.evaluation.evaluate import evaluate

FEW = Protocol(starts=3)


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
    start = centred[clustering.first_centres(centred, 15, 1, torch.Generator().manual_seed(3))[0]]
    clusters, found = clustering._Descent(centred, start).run(300, 0.0)
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
