"""Neighbours equal brute force, and ties count as their expectation under random order."""

import itertools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tests.workers.inputs import evaluate, random_batch
from workers.evaluation.evaluate import Evaluation
from workers.evaluation.neighbours import ROUNDING, Neighbours, Similarity, neighbours, tie_tolerance
from workers.geometry import unit

RETRIEVAL = ["recall@1", "recall@2", "recall@4", "map@r", "r_precision"]

Item = tuple[float, bool]
"""The cosine of an image, and whether it is of the query's class."""


class Expected(NamedTuple):
    """The means over all orders of what is tied."""

    hits: tuple[Fraction, ...]
    """Recall at 1, 2 and so on."""
    average_precision: Fraction
    precision: Fraction


def tied_groups(items: Sequence[Item], tolerance: float) -> list[list[bool]]:
    """Whether images are of the class, group by group from the closest on.

    The best of the class is tied with all within the tolerance of it; then the best of the class that is left.
    """
    rest = sorted(items, reverse=True)
    groups = []
    while rest:
        best = next((cosine for cosine, own in rest if own), None)
        if best is None or rest[0][0] > best + tolerance:
            groups.append([rest.pop(0)[1]])
            continue
        groups.append([own for cosine, own in rest if cosine >= best - tolerance])
        rest = [item for item in rest if item[0] < best - tolerance]
    return groups


def every_order(items: Sequence[Item], tolerance: float) -> Expected:
    """What to expect of one query, by enumeration: at most about eight images."""
    orders = [[*itertools.chain(*order)] for order in _orders(tied_groups(items, tolerance))]
    relevant = sum(own for _, own in items)

    def mean(values: Iterator[Fraction]) -> Fraction:
        return sum(values, Fraction(0)) / len(orders)

    def precision(order: list[bool]) -> Fraction:
        found = (Fraction(sum(order[: j + 1]), j + 1) for j in range(relevant) if order[j])
        return sum(found, Fraction(0)) / relevant

    return Expected(
        tuple(mean(Fraction(any(order[: k + 1])) for order in orders) for k in range(len(items))),
        mean(precision(order) for order in orders),
        mean(Fraction(sum(order[:relevant]), relevant) for order in orders),
    )


def by_probability(items: Sequence[Item], tolerance: float = 0.0) -> tuple[float, float, float]:
    """Recall at 1, average precision at R and precision at R of one query of any size, place by place."""
    relevant = sum(own for _, own in items)
    first, before, hit, average, share = True, 0, 0.0, 0.0, 0.0
    place = 0
    for group in tied_groups(items, tolerance):
        own, size = sum(group), len(group)
        if first:
            hit, first = own / size, False
        for j in range(size):
            place += 1
            if place <= relevant and own:
                earlier = j * (own - 1) / (size - 1) if size > 1 else 0.0
                average += own / size * (before + 1 + earlier) / place
                share += own / size
        before += own
    return hit, average / relevant, share / relevant


def _orders(groups: list[list[bool]]) -> list[tuple[tuple[bool, ...], ...]]:
    assert math.prod(math.factorial(len(group)) for group in groups) <= 50_000
    return [*itertools.product(*(itertools.permutations(group) for group in groups))]


def _asked(items: list[Item], dtype: torch.dtype, chunk: int = 2**23) -> Neighbours:
    """What one query's neighbours say, in a gallery with exactly these cosines; each other image has its own class."""
    cosines = torch.tensor([cosine for cosine, _ in items], dtype=dtype)
    gallery = torch.stack([cosines, (1 - cosines.square()).sqrt()], dim=1)
    classes = torch.tensor([0 if own else 1 + i for i, (_, own) in enumerate(items)])
    query = torch.tensor([[1.0, 0.0]], dtype=dtype)
    return neighbours(Similarity.cosine(query, gallery), torch.tensor([0]), classes, chunk)


def _items(step: float, most: int) -> st.SearchStrategy[list[Item]]:
    one = st.tuples(st.integers(0, 11).map(lambda level: 0.5 + step * level), st.booleans())
    return st.lists(one, min_size=1, max_size=most).filter(lambda items: any(own for _, own in items))


def _check(items: list[Item], dtype: torch.dtype) -> None:
    found, expected = _asked(items, dtype), every_order(items, tie_tolerance(dtype))
    for k, hit in enumerate(expected.hits, 1):
        assert found.hit_rate(k).item() == pytest.approx(float(hit), abs=1e-12)
    assert found.average_precision.item() == pytest.approx(float(expected.average_precision), abs=1e-12)
    assert found.precision.item() == pytest.approx(float(expected.precision), abs=1e-12)


@settings(deadline=None, max_examples=40)
@given(_items(1 / 32, 6))
def test_exact_ties_count_as_the_mean_over_every_order(items: list[Item]) -> None:
    _check(items, torch.float32)
    _check(items, torch.float64)


@settings(deadline=None, max_examples=40)
@given(_items(tie_tolerance(torch.float32) / 4, 6))
def test_cosines_within_the_tolerance_of_the_best_of_the_class_are_tied(items: list[Item]) -> None:
    """Also in chains of which the ends are further apart, and exactly at the tolerance."""
    _check(items, torch.float32)


@pytest.mark.parametrize(("dtype", "sign"), [(torch.float32, -1), (torch.float32, 1), (torch.float64, 1)])
def test_the_tolerance_has_an_edge(dtype: torch.dtype, sign: int) -> None:
    step, best = torch.finfo(dtype).eps, 0.5
    at = _asked([(best, True), (best + sign * ROUNDING * step, False)], dtype)
    beyond = _asked([(best, True), (best + sign * (ROUNDING + 1) * step, False)], dtype)
    for found, expected in ((at, 0.5), (beyond, 0.0 if sign > 0 else 1.0)):
        assert found.hit_rate(1).item() == found.precision.item() == pytest.approx(expected, abs=1e-12)
        assert found.average_precision.item() == pytest.approx(expected, abs=1e-12)
        assert found.sec_rank.item() == (2 if sign > 0 else 1)


def _points(images: int, classes: int, points: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Images at random on a few points, of classes at random."""
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randn(points, 64, generator=generator)[torch.randint(points, (images,), generator=generator)]
    return rows, torch.randint(classes, (images,), generator=generator)


@pytest.mark.parametrize(
    ("points", "sec", "scaled"), [(1, 1.0, False), (10, 0.864, False), (None, 0.496, False), (2, 1.0, True)]
)
def test_a_network_that_collapsed_in_part_scores_what_chance_gives(
    points: int | None, sec: float, scaled: bool
) -> None:
    """With labels at random of 100 classes; by SEC's rule it scores up to all."""
    rows, labels = _points(2000, 100, points or 1)
    generator = torch.Generator().manual_seed(1)
    if points is None:  # half of the images at one point
        rows = rows.where(torch.rand(2000, 1, generator=generator) < 0.5, torch.randn(2000, 64, generator=generator))
    if scaled:  # equal but for rounding
        rows = rows * (0.1 + torch.rand(2000, 1, generator=generator))
    found = evaluate(rows, labels, [*RETRIEVAL, "recall_sec@1"])
    assert found["recall@1"] == pytest.approx(0.01, abs=0.003)
    assert found["recall@4"] == pytest.approx(0.04, abs=0.006)
    assert found["r_precision"] == pytest.approx(0.01, abs=0.001)
    assert found["map@r"] == pytest.approx(0.0019, abs=0.0003)
    if not scaled:
        assert found["recall_sec@1"] == pytest.approx(sec, abs=0.02)


@pytest.mark.parametrize(("dtype", "width"), [(torch.float16, 64), (torch.bfloat16, 2), (torch.float32, 2048)])
def test_rounding_of_a_collapsed_embedding_says_nothing(dtype: torch.dtype, width: int) -> None:
    generator = torch.Generator().manual_seed(width)
    lengths = 0.1 + torch.rand(600, 1, generator=generator)
    # Powers of two, so that half precision has the same direction at each length.
    lengths = lengths if dtype == torch.float32 else (8 * lengths).ceil().log2().ceil().exp2()
    rows = (torch.randn(1, width, generator=generator).to(dtype) * lengths.to(dtype)).to(dtype)
    found = evaluate(rows, torch.arange(600) % 3, RETRIEVAL)
    assert [found["recall@1"], found["r_precision"]] == pytest.approx([199 / 599] * 2)


def test_copies_are_found_as_often_as_chance_finds_them() -> None:
    """Three copies, two of them of one class: each of the two sees its own and the other."""
    rows, labels = torch.eye(3)[[0, 0, 0, 1, 2]], torch.tensor([0, 0, 1, 2, 3])
    found = evaluate(rows, labels, ["recall@1", "recall@2", "map@r", "r_precision", "recall_sec@1"])
    half = dict.fromkeys(("recall@1", "map@r", "r_precision"), 0.5)
    assert found == pytest.approx({**half, "recall@2": 1.0, "recall_sec@1": 1.0})
    # Each has its copy in the other class, and its own other image has one there too.
    rows = torch.tensor([[1.0, 0.0], [0.6, 0.8]])[[0, 1, 0, 1]]
    names = ["recall@1", "recall@2", "recall@3", "recall_sec@1", "recall_sec@2"]
    found = evaluate(rows, torch.tensor([0, 0, 1, 1]), names)
    assert found == pytest.approx(dict(zip(names, (0.0, 0.5, 1.0, 0.0, 1.0), strict=True)))


@pytest.mark.parametrize(
    ("sizes", "chunk"), [((60, 60), 2**13), ((75, 40, 15), 2**23), ((5,) * 24, 2**13), ((1, 40, 2, 80), 2**13)]
)
def test_many_images_with_many_ties(sizes: tuple[int, ...], chunk: int) -> None:
    """On few points, whether all ties at the R-th place are in sight or reach far beyond."""
    labels = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
    rows = _points(len(labels), 1, 12)[0].double()
    found = Evaluation(rows, labels, chunk=chunk).neighbours
    cosines = (unit(rows) @ unit(rows).T).tolist()
    asked = [q for q in range(len(labels)) if (labels == labels[q]).sum() > 1]
    others = ([(cosines[q][i], bool(labels[i] == labels[q])) for i in range(len(labels)) if i != q] for q in asked)
    expected = torch.tensor([by_probability(items, tie_tolerance(torch.float64)) for items in others])
    hits, average, share = expected.double().T
    torch.testing.assert_close(found.hit_rate(1), hits, atol=1e-6, rtol=0)
    torch.testing.assert_close(found.average_precision, average, atol=1e-6, rtol=0)
    torch.testing.assert_close(found.precision, share, atol=1e-6, rtol=0)


def test_a_hit_rate_is_that_of_drawing_without_putting_back() -> None:
    for closer, tied, own in ((0, 0, 1), (2, 0, 5), (0, 1, 1), (3, 50_000, 7), (0, 9, 60_000)):
        counts = {"closer": closer, "tied": tied, "own": own}
        found = Neighbours.blank(1)._replace(**{name: torch.tensor([count]) for name, count in counts.items()})
        for k in (1, 2, 3, 4, 5, 10, 1000, 100_000):
            left = max(0, k - closer)
            missed = math.comb(tied, left) / math.comb(tied + own, left) if left <= tied else 0.0
            assert found.hit_rate(k).item() == pytest.approx(1 - missed, abs=1e-9)


def _by_the_code(unit_rows: Tensor, labels: Tensor, k: int, gallery: tuple[Tensor, Tensor] | None) -> float:
    """SEC's evaluation code: the identity is subtracted, and a query is a hit when fewer than k are strictly closer."""
    others, theirs = gallery or (unit_rows, labels)
    similarity = unit_rows @ others.T
    if gallery is None:
        similarity.fill_diagonal_(0)
    best = similarity.masked_fill(labels[:, None] != theirs, -math.inf).amax(dim=1)
    return (similarity > best[:, None]).sum(dim=1).lt(k).double().mean().item()


@pytest.mark.parametrize(("separation", "points", "apart"), [(0.5, None, False), (0.0, 9, False), (0.5, 9, True)])
def test_recall_sec_is_what_the_code_of_sec_computes(separation: float, points: int | None, apart: bool) -> None:
    embeddings, labels = random_batch(classes=20, per_class=3, width=4, separation=separation)
    if points:
        embeddings = embeddings[torch.arange(60) * 7 % points]
    other = (embeddings.flip(0)[:50], labels.flip(0)[:50])
    gallery = (unit(other[0]), other[1]) if apart else None
    kept = torch.isin(labels, other[1])
    embeddings, labels = embeddings[kept], labels[kept]
    for k in (1, 2, 8):
        name = f"recall_sec@{k}"
        found = evaluate(embeddings, labels, [name], gallery=other if apart else None)[name]
        assert found == pytest.approx(_by_the_code(unit(embeddings), labels, k, gallery))


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
    for asked, among in ((_uneven(0, sizes), None), (queries, gallery)):
        expected = _brute_force(Evaluation(*asked, gallery=among), among)
        for chunk in (1, 300, 2**23):
            found = _untied(Evaluation(*asked, gallery=among, chunk=chunk).neighbours)
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
    shells = directions * (1 + 0.0 * labels[:, None]) + 30.0 * labels[:, None]  # two clouds that differ by place alone
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
