"""Neighbours equal brute force with a gallery and without, for few classes and many, and on every path."""

import math

import pytest
import torch
from torch import Tensor

from tests.workers.inputs import random_batch
from workers.evaluation.evaluate import Evaluation, evaluate
from workers.evaluation.neighbours import Neighbours


def _brute_force(
    evaluation: Evaluation, gallery: tuple[Tensor, Tensor] | None, *, raw: bool = False
) -> tuple[Tensor, ...]:
    """The images that are closer, average precision and precision at R, one query at a time, where nothing is tied.

    By the cosine, or by the Euclidean distance of `raw` embeddings.
    """
    others, labels = gallery or (evaluation.embeddings, evaluation.labels)
    unit = torch.nn.functional.normalize(others)
    ranks, precisions, shares = [], [], []
    for query, label in enumerate(evaluation.labels.tolist()):
        if raw:
            cosines = (-(others.double() - evaluation.embeddings[query].double()).norm(dim=1)).tolist()
        else:
            cosines = (unit @ evaluation.unit[query]).tolist()
        rest = [i for i in range(len(unit)) if gallery is not None or i != query]
        relevant = sum(int(labels[i]) == label for i in rest)
        if not relevant:
            continue
        best = max(cosines[i] for i in rest if int(labels[i]) == label)
        ranks.append(sum(cosines[i] > best for i in rest if int(labels[i]) != label))
        rest.sort(key=lambda i: -cosines[i])
        hits = [int(labels[i]) == label for i in rest[:relevant]]
        precisions.append(sum(sum(hits[: j + 1]) / (j + 1) for j in range(len(hits)) if hits[j]) / relevant)
        shares.append(sum(hits) / relevant)
    return tuple(torch.tensor(column, dtype=torch.float64) for column in (ranks, precisions, shares))


def _untied(found: Neighbours) -> tuple[Tensor, ...]:
    """The same of what was found, where nothing is tied."""
    assert not found.tied.any()
    return found.closer.double(), found.average_precision, found.precision


def _uneven(seed: int, sizes: tuple[int, ...], separation: float = 0.6) -> tuple[Tensor, Tensor]:
    embeddings, labels = random_batch(seed, classes=len(sizes), per_class=max(sizes), separation=separation)
    kept = torch.cat([torch.arange(max(sizes) * c, max(sizes) * c + size) for c, size in enumerate(sizes)])
    order = kept[torch.randperm(len(kept), generator=torch.Generator().manual_seed(seed))]
    return embeddings[order], 5 + 3 * labels[order]


@pytest.mark.parametrize("sizes", [(40, 30), (70, 2), (3,) * 20, (1, 25, 2, 9), (30,), (1, 1, 2)])
def test_neighbours_are_those_of_the_definition(sizes: tuple[int, ...]) -> None:
    """Whatever the chunks; without a gallery, and in one that lacks the last class."""
    queries, gallery = _uneven(2, (4, 5, 6, 7, 8)), _uneven(1, sizes)
    for given, among in ((_uneven(0, sizes), None), (queries, gallery)):
        expected = _brute_force(Evaluation(*given, gallery=among), among)
        for chunk in (1, 300, 2**23):
            found = _untied(Evaluation(*given, gallery=among, chunk=chunk).neighbours)
            torch.testing.assert_close(found, expected)


def test_neighbours_by_the_euclidean_distance_are_those_of_the_definition() -> None:
    wrong = []
    for sizes in ((40, 30), (3,) * 20, (1, 25, 2, 9)):
        for offset, outlier in ((0.0, 1.0), (5.0, 1.0), (0.0, 1e4)):
            embeddings, labels = _uneven(0, sizes)
            embeddings = (
                embeddings * torch.rand(len(embeddings), 1, generator=torch.Generator().manual_seed(1)) + offset
            )
            embeddings[0] *= outlier
            for gallery in (None, _uneven(1, (12, 30, 2))):
                evaluation = Evaluation(embeddings, labels, gallery=gallery, chunk=300, distance="euclidean")
                expected = _brute_force(evaluation, gallery, raw=True)
                found = _untied(evaluation.neighbours)
                if not all(torch.allclose(one, other) for one, other in zip(expected, found, strict=True)):
                    wrong.append((sizes, offset, outlier, gallery is not None))
    assert not wrong


def test_distances_of_unit_embeddings_rank_as_cosines_do() -> None:
    embeddings, labels = random_batch(classes=20, per_class=6, separation=0.4)
    unit = torch.nn.functional.normalize(embeddings)
    names = ["recall@1", "recall@4", "map@r", "r_precision", "nmi", "nmi_sec", "f1"]
    assert evaluate(unit, labels, names, distance="euclidean") == evaluate(unit, labels, names)


def test_images_at_one_point_are_in_random_order_by_the_euclidean_distance_too() -> None:
    labels = torch.arange(60) // 6
    noise = 1 + 1e-7 * torch.randn(60, 1, generator=torch.Generator().manual_seed(0))  # as rounding leaves it
    for point in (torch.zeros(60, 4), torch.full((60, 4), 7.0), torch.full((60, 4), 7.0) * noise):
        found = evaluate(point, labels, ["recall@1"], distance="euclidean")
        assert found["recall@1"] == pytest.approx(5 / 59)


def test_clusters_by_the_euclidean_distance_are_of_raw_embeddings() -> None:
    directions = torch.nn.functional.normalize(torch.randn(40, 8, generator=torch.Generator().manual_seed(0)))
    labels = torch.arange(40) % 2
    shells = directions * (1 + 0.0 * labels[:, None]) + 30.0 * labels[:, None]  # two clouds, told apart by place alone
    for name in ("nmi", "nmi_sec"):
        assert evaluate(shells, labels, [name], distance="euclidean")[name] == pytest.approx(1)
    lengths = torch.tensor([[1.0, 0.0]]) * (1 + 9 * labels[:, None])
    assert evaluate(lengths, labels, ["recall@1"], distance="euclidean") == {"recall@1": 1.0}
    assert evaluate(lengths, labels, ["recall@1"])["recall@1"] < 0.6  # all directions are the same


def test_galleries_at_their_edges() -> None:
    embeddings, labels = random_batch(separation=0.0)
    found = evaluate(embeddings, labels, ["recall@1"], gallery=(embeddings.clone(), labels.clone()))
    assert found == {"recall@1": 1.0}, "a copy of the query is its neighbour"
    names = ["recall@1", "map@r", "cos_ap"]
    for gallery in ((embeddings, labels + 100), (embeddings * math.nan, labels)):
        found = evaluate(embeddings, labels, names, gallery=gallery)
        assert all(math.isnan(value) for value in found.values()), "nothing to find"
    with pytest.raises(ValueError, match="expected embeddings"):
        Evaluation(embeddings, labels, gallery=(embeddings[:, :3], labels))


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 2e-4)])
def test_ranks_are_those_of_a_plain_sort_also_among_many_images(dtype: torch.dtype, tolerance: float) -> None:
    """In float32 some images lie within the tolerance of a tie, and count by their chance."""
    wrong = []
    for classes, per_class, threads in ((60, 2, 1), (1200, 2, 3), (210, 20, 1)):
        embeddings, labels = random_batch(classes=classes, per_class=per_class, separation=0.1)
        unit = torch.nn.functional.normalize(embeddings.to(dtype))
        order = (unit @ unit.T).fill_diagonal_(-math.inf).argsort(dim=1, descending=True)[:, :-1]
        hits = labels[order] == labels[:, None]
        expected = {f"recall@{k}": hits[:, :k].any(dim=1).double().mean().item() for k in (1, 10, 100, 119, 1000)}
        expected["r_precision"] = hits[:, : per_class - 1].double().mean().item()
        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        found = evaluate(embeddings.to(dtype), labels, list(expected))
        torch.set_num_threads(before)
        wrong += [] if found == pytest.approx(expected, abs=tolerance) else [(classes, per_class, found, expected)]
    assert wrong == []


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("tied", [False, True])
def test_a_gpu_finds_the_same_neighbours(tied: bool) -> None:
    for sizes in ((40, 30), (3,) * 40):
        embeddings, labels = _uneven(0, sizes)
        if tied:
            embeddings = embeddings[torch.arange(len(embeddings)) % 9].float()
        expected = Evaluation(embeddings, labels).neighbours
        found = Evaluation(embeddings.cuda(), labels.cuda()).neighbours
        for k in (1, 4):
            torch.testing.assert_close(found.hit_rate(k).cpu(), expected.hit_rate(k))
        torch.testing.assert_close(found.average_precision.cpu(), expected.average_precision)
        torch.testing.assert_close(found.precision.cpu(), expected.precision)
