"""Neighbours equal brute force with a gallery and without, for few classes and many, on every path, and with ties."""

import math

import pytest
import torch
from torch import Tensor

from tests.workers.inputs import random_batch
from workers.evaluate import Evaluation, evaluate
from workers.ranking import Neighbours, _ahead, _ahead_on_cpu, _sorted


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


@pytest.mark.parametrize(("rows", "width", "depth"), [(7, 50, 3), (5, 20, 20), (4, 6, 30), (1, 1, 1)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_both_ways_to_count_agree(rows: int, width: int, depth: int, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(width)
    others = torch.randn(rows, width, generator=generator, dtype=dtype)
    others[:, : width // 3] = -math.inf
    own = _sorted(torch.randn(rows, depth, generator=generator, dtype=dtype))
    own[:, -1] = others.amax(dim=1).clamp(min=0)  # ties too
    closer, ahead = _ahead(others.clone(), own)
    assert torch.equal(closer, (others > own[:, -1:]).sum(dim=1))
    exact = (others[:, None, :] >= own[:, :, None]).sum(dim=2)
    assert torch.equal(ahead, exact.clamp(max=min(depth, width)))
    on_cpu = _ahead_on_cpu(others.clone(), own)
    assert torch.equal(on_cpu[0], closer)
    assert torch.equal(on_cpu[1], ahead)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("sizes", [(40, 30), (3,) * 20])
def test_a_gpu_finds_the_same_neighbours(sizes: tuple[int, ...]) -> None:
    embeddings, labels = _uneven(0, sizes)
    expected = Evaluation(embeddings, labels).neighbours
    for one, other in zip(expected, Evaluation(embeddings.cuda(), labels.cuda()).neighbours, strict=True):
        torch.testing.assert_close(other.cpu(), one)
