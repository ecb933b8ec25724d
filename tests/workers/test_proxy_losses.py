"""The losses over proxies and class vectors: their forms, what they learn with, and where others become NaN."""

import math
from itertools import pairwise

import pytest
import torch

from tests.workers.inputs import part, random_batch
from tests.workers.naive_proxies import NAIVE_PROXIES, cosines, proxy_nca
from workers.losses.arcface import ArcFace
from workers.losses.soft_triple import SoftTriple

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
def test_class_vectors_have_the_deviation_that_is_asked_for(name: str) -> None:
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
