"""The losses over proxies and class vectors: their forms, what they learn with, and where others become NaN."""

import math
from itertools import pairwise
from typing import Any

import pytest
import torch
from pytorch_metric_learning.losses import ArcFaceLoss, ProxyNCALoss

from tests.workers.golden_proxies import GOLDEN_PROXIES
from tests.workers.inputs import part, random_batch
from tests.workers.naive_proxies import NAIVE_PROXIES, cosines, proxy_nca
from workers.losses.arcface import ArcFace
from workers.losses.soft_triple import SoftTriple

NAMES = sorted(NAIVE_PROXIES)


def test_every_one_but_softmax_has_a_golden_value() -> None:
    assert not {name for name in NAMES if not any(key.startswith(name) for key in GOLDEN_PROXIES)} - {"softmax"}


def test_draws_a_class_together_and_apart_from_others() -> None:
    """Some are content as soon as each image is nearest to its own class."""
    gained = {}
    for name in NAMES:
        loss, (embeddings, labels) = part("loss", name).train(), random_batch(separation=0.0)
        embeddings.requires_grad_()
        same = labels[:, None] == labels[None, :]
        before = _gap(embeddings, same)
        optimizer = torch.optim.Adam([embeddings, *loss.parameters()], lr=0.05)
        for _ in range(40):
            optimizer.zero_grad()
            loss(embeddings, labels).backward()
            optimizer.step()
        gained[name] = _gap(embeddings, same) - before
    assert {name: gain for name, gain in gained.items() if gain <= 0.05} == {}


def _gap(embeddings: torch.Tensor, same: torch.Tensor) -> float:
    """How much more similar the images of one class are than those of two."""
    f = torch.nn.functional.normalize(embeddings.detach())
    cosines = f @ f.T
    return (cosines[same].mean() - cosines[~same].mean()).item()


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


def turned(name: str, **options: Any) -> float:
    """The mean angle in degrees by which 100 class vectors of 512 dimensions turn in 200 steps of SGD."""
    centers = torch.nn.functional.normalize(torch.randn(100, 512, generator=torch.Generator().manual_seed(1)))
    loss, draws = part("loss", name, classes=100, dim=512, **options).float(), torch.Generator().manual_seed(2)
    before = vectors(loss).detach().clone()
    optimizer = torch.optim.SGD(loss.parameters(), lr=0.1, momentum=0.9)
    for _ in range(200):
        labels = torch.randint(100, (128,), generator=draws)
        scatter = torch.nn.functional.normalize(torch.randn(128, 512, generator=draws))
        optimizer.zero_grad()
        loss(centers[labels] + scatter, labels).backward()
        optimizer.step()
    cosine = torch.nn.functional.cosine_similarity(before, vectors(loss).detach())
    return cosine.clamp(-1, 1).acos().mean().rad2deg().item()


def test_class_vectors_turn_under_sgd_since_they_start_small() -> None:
    assert turned("arcface") > 80
    assert turned("arcface", init_std=1.0) < 30  # as long as the library's: 9 degrees, SphereFace's 24


@pytest.mark.parametrize("name", CLASS_VECTORS)
def test_class_vectors_have_the_deviation_that_is_asked_for(name: str) -> None:
    small, large = (vectors(part("loss", name, classes=50, dim=40, **asked)) for asked in ({}, {"init_std": 1.0}))
    assert small.std().item() == pytest.approx(0.01, rel=0.05)
    torch.testing.assert_close(small, large * 0.01, rtol=1e-5, atol=1e-9)  # the same draws, and so the same directions


def test_arcface_equals_the_librarys() -> None:
    for margin in (0.0, 0.45, 1.2):
        ours, (embeddings, labels) = part("loss", "arcface", margin=margin), random_batch()
        theirs = ArcFaceLoss(4, 8, margin=math.degrees(margin), scale=64)
        theirs.W.data = ours.weight.data.T.contiguous()
        torch.testing.assert_close(ours(embeddings, labels), theirs(embeddings, labels))


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


def test_proxy_nca_with_its_positive_equals_the_librarys() -> None:
    ours, (embeddings, labels) = part("loss", "proxy_nca", scale=8.0, positive="included"), random_batch()
    theirs = ProxyNCALoss(4, 8, softmax_scale=8.0)
    theirs.proxies.data = ours.proxies.data.clone()
    torch.testing.assert_close(ours(embeddings, labels), theirs(embeddings, labels))


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
