"""The prototype that trains several seeds as one network trains each as the product does."""

from pathlib import Path

import pytest
import torch
from torch import nn

from benchmarks.fused import agreement
from benchmarks.fused.batched_losses import batched
from benchmarks.fused.recipes import Candidate
from benchmarks.fused.stacking import hand_back, stacked
from benchmarks.fused.training import FusedTraining
from workers.losses.semihard import Semihard
from workers.losses.triplet import Triplet

STEPS = 6
ROUNDING = 1e-5
"""Of losses around 1 in float32; what differs is the order of sums in gradients."""


def test_fused_seeds_have_the_losses_and_metrics_of_trainings_of_their_own(tmp_path: Path) -> None:
    candidate = Candidate("digits", "multi_similarity", "sec", 2, "cpu", tmp_path)
    own, fused = agreement.product(candidate, STEPS), agreement.fused(candidate, STEPS)
    assert [[*numbers.losses] for numbers in fused] == [[*range(1, STEPS + 1)]] * 2
    for one, other in zip(fused, own, strict=True):
        assert one.losses == pytest.approx(other.losses, abs=ROUNDING)
        assert one.metrics == pytest.approx(other.metrics, abs=1e-3)  # an image may find another neighbour
    assert own[0].losses[1] != pytest.approx(own[1].losses[1], abs=1e-3)


def test_weights_come_back_to_the_seeds_that_they_are_of() -> None:
    def network() -> nn.Module:
        return nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(8, 3))

    networks, others = [network(), network()], [network(), network()]
    images = torch.randn(5, 2, 4, 4)
    made = stacked(networks)
    hand_back(made, others)
    apart = torch.cat([one(images[:, [place]]) for place, one in enumerate(others)], dim=1)
    assert torch.allclose(made(images), apart, atol=1e-6)
    assert torch.equal(others[1][4].weight, networks[1][4].weight)  # type: ignore[index]


def test_what_was_never_stacked_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="Dropout"):
        stacked([nn.Sequential(nn.Dropout())] * 2)
    candidate = Candidate("digits", "normface", "none", 2, "cpu", tmp_path)
    with pytest.raises(TypeError, match="learn nothing"):
        FusedTraining(candidate.sessions(1), candidate.place("fused"))


def test_a_triplet_loss_of_all_seeds_at_once_has_the_values_of_each() -> None:
    embeddings, labels = torch.randn(3, 16, 8), torch.arange(4).repeat_interleave(4).repeat(3, 1)
    loss = Triplet(margin=0.7)
    apart = torch.stack([loss(*pair) for pair in zip(embeddings, labels, strict=True)])
    assert torch.allclose(batched(loss)(embeddings, labels), apart, atol=1e-6)
    with pytest.raises(TypeError, match="triplet"):
        batched(Semihard())
