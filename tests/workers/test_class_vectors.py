"""What losses learn of classes, as figures show it: the very vectors by which they judge an image."""

import pytest
import torch

from workers import registry
from workers.contract import Part
from workers.embeddings.geometry import unit

CLASSES, DIM = 6, 8
LOSSES = {
    "arcface": 1, "cosface": 1, "normface": 1, "proxy_anchor": 1, "proxy_gml": 12, "proxy_isa": 1, "proxy_nca": 1,
    "soft_triple": 10, "softmax": 1, "sphereface": 1,
}  # fmt: skip
"""Vectors a class."""
RAW = {"softmax"}  # judges by inner products, with a bias


def loss_of(name: str) -> torch.nn.Module:
    torch.manual_seed(0)
    offers = {"dim": DIM, "classes": CLASSES, "images": 60, "epoch": 3, "batch": 20}
    made: torch.nn.Module = registry.build("loss", Part(name=name), **offers)
    return made


@pytest.mark.parametrize("name", LOSSES)
def test_an_image_at_a_classs_vector_is_of_that_class(name: str) -> None:
    loss = loss_of(name).eval()
    vectors = loss.class_vectors()
    assert vectors.shape == (CLASSES, LOSSES[name], DIM)
    rows = unit(vectors.detach()[:, 0]) * (100.0 if name in RAW else 1.0)
    labels = torch.arange(CLASSES)
    right, wrong = (float(loss(rows, one).detach()) for one in (labels, labels.roll(1)))
    assert right < wrong


def test_every_loss_with_a_vector_a_class_shows_them() -> None:
    """A loss of ours that holds as many numbers as classes times dimensions without saying so is missed by figures."""
    from workers.catalog import load

    for entry in load().of("loss"):
        one = loss_of(entry.name)
        holds = any(parameter.numel() % (CLASSES * DIM) == 0 for parameter in one.parameters())
        assert hasattr(one, "class_vectors") is holds is (entry.name in LOSSES), entry.name
