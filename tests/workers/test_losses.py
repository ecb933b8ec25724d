"""Every loss that exists conforms: a new file in workers/losses is tested by existing, but for its naive loop."""

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
import torch
from pytorch_metric_learning import losses as reference
from pytorch_metric_learning.miners import MultiSimilarityMiner
from torch import Tensor

from tests.workers import inputs, naive_pairs
from tests.workers.inputs import CLASSES, PER_CLASS, part, random_batch, value_and_gradient
from tests.workers.naive_pairs import directions, dot, euclid, mean, ordered_pairs, others
from tests.workers.naive_proxies import NAIVE_PROXIES, cosines, proxy_nca
from workers import geometry
from workers.losses.arcface import ArcFace
from workers.losses.normalized_npair import NormalizedNPair
from workers.losses.semihard import Semihard
from workers.losses.soft_triple import SoftTriple
from workers.losses.triplet import Triplet

LOSSES = inputs.part_names("loss")


def _naive_triplet(embeddings: Tensor, labels: Tensor, margin: float = 1.0) -> float:
    f, y = directions(embeddings), labels.tolist()
    return mean(
        [
            max(0.0, euclid(f[a], f[p]) ** 2 - euclid(f[a], f[n]) ** 2 + margin)
            for a, p in ordered_pairs(y)
            for n in others(y, a)
        ]
    )


def _naive_library_triplet(embeddings: Tensor, labels: Tensor) -> float:
    f, y = directions(embeddings), labels.tolist()
    terms = [euclid(f[a], f[p]) - euclid(f[a], f[n]) + 0.05 for a, p in ordered_pairs(y) for n in others(y, a)]
    return mean([term for term in terms if term > 0])


def _naive_semihard(embeddings: Tensor, labels: Tensor, margin: float = 0.2) -> float:
    f, y = directions(embeddings), labels.tolist()
    terms = []
    for a, p in ordered_pairs(y):
        negatives = [euclid(f[a], f[n]) ** 2 for n in others(y, a)]
        positive = euclid(f[a], f[p]) ** 2
        farther = [negative for negative in negatives if negative > positive]
        terms.append(max(0.0, margin + positive - (min(farther) if farther else max(negatives))))
    return mean(terms)


def _naive_normalized_npair(embeddings: Tensor, labels: Tensor, scale: float = 25.0) -> float:
    f, y = directions(embeddings), labels.tolist()
    firsts = [y.index(c) for c in sorted(set(y))]
    terms = []
    for a in firsts:
        own = scale * dot(f[a], f[a + 1])
        terms.append(math.log(1 + sum(math.exp(scale * dot(f[a], f[n + 1]) - own) for n in firsts if n != a)))
    return mean(terms)


def _naive_multi_similarity(embeddings: Tensor, labels: Tensor) -> float:
    alpha, beta, base, epsilon = 2.0, 40.0, 0.5, 0.1
    f, y = directions(embeddings), labels.tolist()
    total = 0.0
    for i in range(len(f)):
        positives = [dot(f[i], f[j]) for j in range(len(f)) if j != i and y[j] == y[i]]
        positives = [s for s in positives if s < 1 - 1e-5]
        negatives = [dot(f[i], f[n]) for n in others(y, i)]
        if not positives:
            continue
        hard_negatives = [s for s in negatives if s + epsilon > min(positives)]
        hard_positives = [s for s in positives if s - epsilon < max(negatives)]
        total += math.log(1 + sum(math.exp(-alpha * (s - base)) for s in hard_positives)) / alpha
        total += math.log(1 + sum(math.exp(beta * (s - base)) for s in hard_negatives)) / beta
    return total / len(f)


NAIVE: dict[str, Callable[[Tensor, Tensor], float]] = {
    "triplet": _naive_triplet,
    "semihard": _naive_semihard,
    "normalized_npair": _naive_normalized_npair,
    "multi_similarity": _naive_multi_similarity,
    "pml": _naive_library_triplet,
    **naive_pairs.LOSSES,
    **NAIVE_PROXIES,
}


def check_gradients(name: str) -> None:
    """A scalar with a gradient in every float, which is that of finite differences, and along which it falls."""
    embeddings, labels = random_batch()
    loss = part("loss", name)
    expected, slope = value_and_gradient(loss, embeddings, labels)
    assert expected.shape == ()
    for dtype, tolerance in {torch.float32: 1e-4, torch.bfloat16: 0.2, torch.float16: 0.02}.items():
        value, gradient = value_and_gradient(part("loss", name).float(), embeddings.to(dtype), labels)
        assert (value.dtype, gradient.dtype) == (torch.float32, dtype)
        assert gradient.isfinite().all()
        assert value.item() == pytest.approx(expected.item(), rel=tolerance)
        if dtype == torch.float32:
            torch.testing.assert_close(gradient.double(), slope, rtol=1e-3, atol=1e-5)
    assert loss(embeddings - 1e-3 * slope / slope.norm(), labels) < expected
    assert torch.autograd.gradcheck(lambda f: loss(f, labels), embeddings.requires_grad_(), fast_mode=True)


def check_order(loss: Any) -> None:
    """It is invariant to what its order says, but for what is drawn for a pair by where the pair stands."""
    embeddings, labels = random_batch()
    if getattr(loss, "random", False):
        return
    expected = loss(embeddings, labels)
    generator = torch.Generator().manual_seed(1)
    together = 2 if loss.order == "paired" else 1  # classes whose order does not change
    for _ in range(5):
        groups = torch.arange(len(labels)).view(CLASSES // together, together * PER_CLASS)
        rows = groups[torch.randperm(len(groups), generator=generator)].view(CLASSES, PER_CLASS)
        if loss.order == "within_class":
            rows = torch.stack([row[torch.randperm(PER_CLASS, generator=generator)] for row in rows])
        order = rows.flatten()
        if loss.order == "free":
            order = torch.randperm(len(labels), generator=generator)
        torch.testing.assert_close(loss(embeddings[order], labels[order]), expected)


def check_degenerate(name: str) -> None:
    for case, batch in inputs.degenerate_batches().items():
        value, gradient = value_and_gradient(part("loss", name).float(), *batch)
        assert value.isfinite(), case
        assert gradient.isfinite().all(), case
        assert gradient.abs().max() < 1e8, case  # not what 1 / 1e-12 leaves behind
    embeddings, labels = random_batch()
    assert part("loss", name)(torch.full_like(embeddings, math.nan), labels).isnan()


def test_every_loss_equals_its_naive_loop() -> None:
    missing = set(LOSSES) - set(NAIVE)
    assert not missing, "write these losses as naive loops and add them to NAIVE"
    wrong = []
    for name in LOSSES:
        for seed in (0, 1, 2):
            embeddings, labels = random_batch(seed)
            found, expected = part("loss", name)(embeddings, labels).item(), NAIVE[name](embeddings, labels)
            if found != pytest.approx(expected, rel=1e-9):
                wrong.append((name, seed, found, expected))
    assert wrong == []


def test_equals_the_library_where_its_form_is_the_papers() -> None:
    f, y = random_batch()
    unit = geometry.unit(f)
    for name, options, theirs in (
        ("tuplet", {}, reference.NTXentLoss(temperature=1 / 25)),
        ("tuplet", {}, reference.TupletMarginLoss(margin=0, scale=25)),
        ("nt_xent", {}, reference.NTXentLoss(temperature=0.5)),
        ("tuplet_margin", {"intra": 0.0}, reference.TupletMarginLoss(margin=math.degrees(0.1), scale=64)),
        ("angular", {"pairs": "all"}, reference.AngularLoss(alpha=45)),
    ):
        torch.testing.assert_close(part("loss", name, **options)(f, y), theirs(unit, y), rtol=1e-9, atol=0)
    apart = part("loss", "tuplet_margin")(f, y) - part("loss", "tuplet_margin", intra=0.0)(f, y)
    torch.testing.assert_close(apart, 0.5 * reference.IntraPairVarianceLoss(pos_eps=0.01, neg_eps=0.01)(unit, y))
    for margin in (0.0, 0.45, 1.2):
        ours, library = (
            part("loss", "arcface", margin=margin),
            reference.ArcFaceLoss(4, 8, margin=math.degrees(margin), scale=64),
        )
        library.W.data = ours.weight.data.T.contiguous()
        torch.testing.assert_close(ours(f, y), library(f, y))
    ours, proxy_library = (
        part("loss", "proxy_nca", scale=8.0, positive="included"),
        reference.ProxyNCALoss(4, 8, softmax_scale=8.0),
    )
    proxy_library.proxies.data = ours.proxies.data.clone()
    torch.testing.assert_close(ours(f, y), proxy_library(f, y))


@pytest.mark.parametrize("name", LOSSES)
def test_every_loss_conforms(name: str) -> None:
    check_gradients(name)
    check_order(part("loss", name))
    if name != "pml":  # the library gives a zero row a gradient of 1e12
        check_degenerate(name)


def test_triplet_counts_triplets_without_violation() -> None:
    embeddings, labels = random_batch(separation=2.0)
    for margin in (0.0, 0.2, 1.0):
        expected = _naive_triplet(embeddings, labels, margin)
        assert Triplet(margin=margin)(embeddings, labels).item() == pytest.approx(expected, rel=1e-9)


def test_semihard_falls_back_to_the_farthest_negative() -> None:
    # On a circle, seen from a at 0 degrees: p at 120, negatives at 30 and 60, both nearer than p.
    angles = torch.tensor([0.0, 120.0, 30.0, 60.0], dtype=torch.float64).deg2rad()
    embeddings, labels = torch.stack([angles.cos(), angles.sin()], dim=1), torch.tensor([0, 0, 1, 1])
    assert Semihard()(embeddings, labels).item() == pytest.approx(_naive_semihard(embeddings, labels), rel=1e-12)
    embeddings = inputs.golden_embeddings(9, 6)  # unequal classes
    labels = torch.tensor([2, 0, 2, 2, 1, 0, 5, 2, 1])
    assert Semihard()(embeddings, labels).item() == pytest.approx(_naive_semihard(embeddings, labels), rel=1e-12)


@pytest.mark.parametrize("repeated", [{1: 0}, {1: 0, 4: 3, 5: 3, 8: 7}])
def test_multi_similarity_leaves_out_copies(repeated: dict[int, int]) -> None:
    embeddings, labels = random_batch(width=2)  # close quarters, in which copies are mined too
    for copy, image in repeated.items():
        embeddings[copy] = 2.5 * embeddings[image]  # the direction is what counts
    expected = _naive_multi_similarity(embeddings, labels)
    assert part("loss", "multi_similarity")(embeddings, labels).item() == pytest.approx(expected, rel=1e-9)
    library = reference.MultiSimilarityLoss(alpha=2, beta=40, base=0.5)
    mined = library(geometry.unit(embeddings), labels, MultiSimilarityMiner(epsilon=0.1)(embeddings, labels))
    kept = part("loss", "multi_similarity", copies=True)
    torch.testing.assert_close(kept(embeddings, labels), mined)
    assert kept(embeddings, labels).item() != pytest.approx(expected, rel=1e-3)
    unmined = part("loss", "multi_similarity", mined=False, copies=True)(embeddings, labels)
    torch.testing.assert_close(unmined, library(geometry.unit(embeddings), labels))
    assert part("loss", "multi_similarity", mined=False)(embeddings, labels) < unmined


def test_normalized_npair_in_its_other_forms() -> None:
    loss, (embeddings, labels) = NormalizedNPair(), random_batch(per_class=4)
    firsts = torch.arange(len(labels)).view(-1, 4)[:, :2].flatten()  # the first two of each class count
    torch.testing.assert_close(loss(embeddings, labels), loss(embeddings[firsts], inputs.block_labels(CLASSES, 2)))
    expected = _naive_normalized_npair(embeddings, labels, 64.0)
    assert NormalizedNPair(scale=64.0)(embeddings, labels).item() == pytest.approx(expected, rel=1e-9)
    for per_class in (2, 3):  # equation 3 of the paper
        embeddings, labels = random_batch(per_class=per_class)
        found = NormalizedNPair(pairs="paper")(embeddings, labels)
        assert found.item() == pytest.approx(naive_pairs.tuplet(embeddings, labels, 25.0), rel=1e-9)
        assert torch.equal(found, part("loss", "tuplet")(embeddings, labels))


NAMES = sorted(NAIVE_PROXIES)


def test_initializes_from_the_global_seed_and_states_its_learning_rate() -> None:
    for name in NAMES:
        first, second = part("loss", name), part("loss", name)
        assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True)), name
    for name, factor in {"proxy_anchor": 100, "proxy_isa": 100, "soft_triple": 100, "proxy_gml": 300}.items():
        assert part("loss", name).lr_scale == factor
    for name in ("proxy_nca", "proxy_isa"):
        with pytest.raises(ValueError, match="found 1 class"):
            part("loss", name, classes=1)


def test_only_softmax_depends_on_norms() -> None:
    embeddings, labels = random_batch()
    scaled = embeddings * torch.arange(1, 13)[:, None]
    values = {name: [part("loss", name)(f, labels).item() for f in (embeddings, scaled)] for name in NAMES}
    differ = {name for name, (first, second) in values.items() if second != pytest.approx(first, rel=1e-6)}
    assert differ == {"softmax"}


@pytest.mark.parametrize("name", ["arcface", "sphereface", "cosface"])
def test_has_a_gradient_where_an_embedding_coincides_with_its_class(name: str) -> None:
    loss = part("loss", name).float()
    for aligned in (1.0, -1.0):
        for row in range(4):
            embeddings = (aligned * vectors(loss).detach()[row : row + 1]).clone().requires_grad_()
            loss(embeddings, torch.tensor([row])).backward()
            assert embeddings.grad is not None
            assert embeddings.grad.isfinite().all()


CLASS_VECTORS = ("normface", "sphereface", "cosface", "arcface")


def vectors(loss: torch.nn.Module) -> torch.Tensor:
    """The class vectors of a loss, [classes, d]."""
    (parameter,) = loss.parameters()
    return parameter if isinstance(loss, ArcFace) else parameter.T


@pytest.mark.parametrize("name", CLASS_VECTORS)
def test_class_vectors_have_the_requested_deviation(name: str) -> None:
    small, large = (vectors(part("loss", name, classes=50, dim=40, **asked)) for asked in ({}, {"init_std": 1.0}))
    assert small.std().item() == pytest.approx(0.01, rel=0.05)
    torch.testing.assert_close(small, large * 0.01, rtol=1e-5, atol=1e-9)  # the same draws, and so the same directions


def test_arcface_falls_beyond_pi_minus_margin_too() -> None:
    loss = ArcFace(2, 2, scale=1.0).double()
    loss.weight.data = torch.tensor([[1.0, 0.0], [0.0, 1.0]], dtype=torch.float64)
    angles = torch.linspace(0.0, math.pi, 50, dtype=torch.float64)
    # Both classes' vectors are mirror images, so that the other class's cosine can be taken out.
    logits = []
    for angle in angles:
        f = torch.stack([angle.cos(), -angle.sin()])[None]
        other = -angle.sin()
        logits.append((other - (loss(f, torch.tensor([0])).expm1()).log()).item())
    assert all(a > b for a, b in pairwise(logits))


def test_proxy_nca_does_not_lose_far_images_to_underflow() -> None:
    loss = part("loss", "proxy_nca", scale=60.0, positive="included").float()
    loss.proxies.data = torch.eye(8)[:4]
    embeddings = -torch.eye(8)[:1] + 0.9 * torch.eye(8)[1:2]
    value = loss(embeddings, torch.tensor([0]))
    expected = proxy_nca(cosines(embeddings, loss.proxies.tolist()), torch.tensor([0]), 60, True)
    assert value.item() == pytest.approx(expected)


def test_soft_triple_has_a_gradient_where_centers_coincide() -> None:
    loss, (embeddings, labels) = SoftTriple(8, 4, centers=3), random_batch()
    loss.loss.fc.data[:, 1] = loss.loss.fc.data[:, 0]
    loss(embeddings.float(), labels).backward()
    assert loss.loss.fc.grad.isfinite().all()
