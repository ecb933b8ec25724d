"""Neighbours equal brute force with a gallery and without, for few classes and many, on every path, and with ties."""

import itertools
import math

import pytest
import torch
from torch import Tensor

from tests.workers.inputs import random_batch
from workers.evaluate import Evaluation, evaluate
from workers.ranking import Neighbours, _keys, _nearest, _some


def _brute_force(evaluation: Evaluation, gallery: tuple[Tensor, Tensor] | None) -> Neighbours:
    """The definitions, one query at a time; of equally close images those of other classes come first."""
    others, labels = gallery or (evaluation.embeddings, evaluation.labels)
    unit = torch.nn.functional.normalize(others)
    ranks, precisions, shares = [], [], []
    for query, label in enumerate(evaluation.labels.tolist()):
        cosines = (unit @ evaluation.unit[query]).tolist()
        rest = [i for i in range(len(unit)) if gallery is not None or i != query]
        relevant = sum(int(labels[i]) == label for i in rest)
        if not relevant:
            continue
        best = max(cosines[i] for i in rest if int(labels[i]) == label)
        ranks.append(1.0 + sum(cosines[i] > best for i in rest if int(labels[i]) != label))
        rest.sort(key=lambda i: (-cosines[i], int(labels[i]) == label))
        hits = [int(labels[i]) == label for i in rest[:relevant]]
        precisions.append(sum(sum(hits[: j + 1]) / (j + 1) for j in range(len(hits)) if hits[j]) / relevant)
        shares.append(sum(hits) / relevant)
    return Neighbours(*(torch.tensor(column, dtype=torch.float64) for column in (ranks, precisions, shares)))


def _uneven(seed: int, sizes: tuple[int, ...], separation: float = 0.6) -> tuple[Tensor, Tensor]:
    embeddings, labels = random_batch(seed, classes=len(sizes), per_class=max(sizes), separation=separation)
    kept = torch.cat([torch.arange(max(sizes) * c, max(sizes) * c + size) for c, size in enumerate(sizes)])
    order = kept[torch.randperm(len(kept), generator=torch.Generator().manual_seed(seed))]
    return embeddings[order], 5 + 3 * labels[order]


@pytest.mark.parametrize("sizes", [(40, 30), (70, 2), (3,) * 20, (1, 25, 2, 9), (30,), (1, 1, 2)])
@pytest.mark.parametrize("chunk", [1, 300, 2**23])
def test_neighbours_are_those_of_the_definition(sizes: tuple[int, ...], chunk: int) -> None:
    evaluation = Evaluation(*_uneven(0, sizes), chunk=chunk)
    for expected, found in zip(_brute_force(evaluation, None), evaluation.neighbours, strict=True):
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("sizes", [(12, 30), (3,) * 12, (1, 20, 2, 9), (1, 1, 1, 40)])
@pytest.mark.parametrize("chunk", [1, 2**23])
def test_a_gallery_holds_the_neighbours_and_leaves_no_image_out(sizes: tuple[int, ...], chunk: int) -> None:
    gallery = _uneven(1, sizes)
    embeddings, labels = _uneven(2, (4, 5, 6, 7, 8))  # the last class may not be in the gallery
    evaluation = Evaluation(embeddings, labels, gallery=gallery, chunk=chunk)
    for expected, found in zip(_brute_force(evaluation, gallery), evaluation.neighbours, strict=True):
        torch.testing.assert_close(found, expected)


def test_a_copy_of_the_query_in_the_gallery_is_its_neighbour() -> None:
    embeddings, labels = random_batch(separation=0.0)
    found = evaluate(embeddings, labels, ["recall@1"], gallery=(embeddings.clone(), labels.clone()))
    assert found == {"recall@1": 1.0}


def test_a_gallery_without_the_queries_classes_has_no_neighbours() -> None:
    embeddings, labels = random_batch()
    found = evaluate(embeddings, labels, ["recall@1", "map@r"], gallery=(embeddings, labels + 100))
    assert all(math.isnan(value) for value in found.values())


def test_a_gallery_of_another_width_is_refused() -> None:
    embeddings, labels = random_batch()
    with pytest.raises(ValueError, match="expected embeddings"):
        Evaluation(embeddings, labels, gallery=(embeddings[:, :3], labels))


def test_a_gallery_that_is_not_finite_has_no_metrics() -> None:
    embeddings, labels = random_batch()
    names = ["recall@1", "map@r", "cos_ap"]
    found = evaluate(embeddings, labels, names, gallery=(embeddings * math.nan, labels))
    assert all(math.isnan(value) for value in found.values())


def test_recall_at_any_k_is_a_hit_rate() -> None:
    embeddings, labels = random_batch(classes=60, per_class=2, separation=0.1)
    similarity = torch.nn.functional.normalize(embeddings) @ torch.nn.functional.normalize(embeddings).T
    nearest = similarity.fill_diagonal_(-math.inf).argsort(dim=1, descending=True)
    for k in (1, 10, 100, 119, 1000):
        expected = (labels[nearest[:, : min(k, 119)]] == labels[:, None]).any(dim=1).double().mean().item()
        assert evaluate(embeddings, labels, [f"recall@{k}"])[f"recall@{k}"] == expected


def test_of_equally_close_images_those_of_other_classes_come_first() -> None:
    # Seen from image 0, its own class and another are equally close, and image 3 is far.
    rows, labels = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [-1.0, 0.0]]), torch.tensor([0, 0, 1, 2])
    assert Evaluation(rows, labels).neighbours.average_precision.tolist() == [0.0, 0.0]
    collapsed = Evaluation(torch.ones(60, 5), torch.arange(60) % 3).neighbours
    assert collapsed.average_precision.max() == collapsed.precision.max() == 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_keys_are_in_the_order_of_cosines(dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(0)
    cosines = 2 * torch.rand(500, generator=generator, dtype=dtype) - 1
    tiny = torch.tensor([0.0, -0.0, 1e-40, -1e-40, 1.0, -1.0, 1.0000002, -1.5], dtype=dtype)
    near = cosines[:100].nextafter(torch.tensor(2.0, dtype=dtype))  # one apart: nothing of a cosine is lost
    values = torch.cat([cosines, tiny, near, cosines[:50]])
    keys = _keys(values.clone())
    assert not (keys & 1).any()
    assert torch.equal(keys[:, None] < keys[None, :], values[:, None] < values[None, :])
    # An equally close image of another class comes first, and before nothing that is closer.
    assert torch.equal(keys[:, None] + 1 > keys[None, :], values[:, None] >= values[None, :])


@pytest.mark.parametrize(
    ("rows", "width", "count"),
    [(7, 50, 3), (5, 20, 20), (4, 30, 6), (1, 1, 1), (3, 40, 20), (4, 1234, 2), (2, 1280, 4)],
)
@pytest.mark.parametrize("threads", [1, 3])
def test_the_largest_of_each_row(rows: int, width: int, count: int, threads: int) -> None:
    values = torch.randn(rows, width, generator=torch.Generator().manual_seed(width))
    values[:, : width // 2] = -1.5
    expected = values.topk(count, dim=1).values
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        assert torch.equal(_some(values.clone(), count).topk(count, dim=1).values, expected)
        assert torch.equal(_nearest(values.clone(), count), expected)
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("sizes", [(300, 300), (400, 150, 50), (10,) * 60, (3, 2) * 150])
def test_many_images_with_many_ties(sizes: tuple[int, ...]) -> None:
    """Of vectors whose cosines are multiples of 1/4, and so exact, in both ways to find the nearest."""
    corners = torch.tensor(list(itertools.product((-0.5, 0.5), repeat=4)))
    vectors = torch.cat([torch.eye(4), -torch.eye(4), corners])
    labels = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
    generator = torch.Generator().manual_seed(0)
    labels = labels[torch.randperm(len(labels), generator=generator)]
    rows = vectors[torch.randint(len(vectors), (len(labels),), generator=generator)]
    same = labels[:, None] == labels
    closeness = (8 * rows @ rows.T - 1.0 * same).fill_diagonal_(-math.inf)
    hits = same.gather(1, closeness.argsort(dim=1, descending=True)).double()
    relevant = same.sum(dim=1, keepdim=True) - 1
    places = torch.arange(1, len(labels) + 1)
    hits *= places <= relevant
    found = Evaluation(rows, labels, chunk=2**15).neighbours
    assert torch.equal(found.precision, hits.sum(dim=1) / relevant[:, 0])
    precisions = (hits * hits.cumsum(dim=1) / places).sum(dim=1)
    torch.testing.assert_close(found.average_precision, precisions / relevant[:, 0])


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("sizes", [(40, 30), (3,) * 20])
def test_a_gpu_finds_the_same_neighbours(sizes: tuple[int, ...]) -> None:
    embeddings, labels = _uneven(0, sizes)
    expected = Evaluation(embeddings, labels).neighbours
    for one, other in zip(expected, Evaluation(embeddings.cuda(), labels.cuda()).neighbours, strict=True):
        torch.testing.assert_close(other.cpu(), one)
