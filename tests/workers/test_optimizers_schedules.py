"""Optimizers and schedules, backbones and heads: what the trainer expects of each, and their formulas."""

import math
from typing import Any

import pytest
import torch
from torch import nn

from workers import catalog, registry
from workers.contract import Part
from workers.schedules.constant import Constant
from workers.schedules.cosine import Cosine
from workers.schedules.polynomial import Polynomial
from workers.schedules.step import Step


def trained(optimizer: torch.optim.Optimizer, weight: nn.Parameter) -> torch.Tensor:
    """The weight after ten steps down a bowl."""
    target = torch.tensor([1.0, -2.0, 3.0])
    for _ in range(10):
        optimizer.zero_grad()
        (weight - target).square().sum().backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return weight.detach()


@pytest.mark.parametrize(
    ("part", "reference"),
    [
        (
            {"name": "adam", "lr": 0.1, "beta1": 0.8, "beta2": 0.9, "eps": 1e-3, "weight_decay": 0.1},
            lambda p: torch.optim.Adam([p], lr=0.1, betas=(0.8, 0.9), eps=1e-3, weight_decay=0.1, foreach=False),
        ),
        (
            {"name": "adamw", "lr": 0.1, "weight_decay": 0.2},
            lambda p: torch.optim.AdamW([p], lr=0.1, weight_decay=0.2, foreach=False),
        ),
        (
            {"name": "rmsprop", "lr": 0.05, "alpha": 0.9, "momentum": 0.5, "centered": True, "weight_decay": 0.1},
            lambda p: torch.optim.RMSprop(
                [p], lr=0.05, alpha=0.9, momentum=0.5, centered=True, weight_decay=0.1, foreach=False
            ),
        ),
        (
            {"name": "sgd", "lr": 0.05, "momentum": 0.5, "nesterov": True, "weight_decay": 0.1},
            lambda p: torch.optim.SGD([p], lr=0.05, momentum=0.5, nesterov=True, weight_decay=0.1, foreach=False),
        ),
    ],
    ids=lambda value: value["name"] if isinstance(value, dict) else "",
)
def test_an_optimizer_is_that_of_pytorch(part: dict[str, Any], reference: Any) -> None:
    ours, theirs = (nn.Parameter(torch.tensor([0.3, 0.2, -0.1])) for _ in range(2))
    optimizer = registry.build("optimizer", Part.model_validate(part), groups=[{"params": [ours]}])
    torch.testing.assert_close(trained(optimizer, ours), trained(reference(theirs), theirs))


@pytest.mark.parametrize("name", catalog.load().names("optimizer"))
def test_a_group_may_say_otherwise(name: str) -> None:
    decayed, exempt = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(2))
    groups = [{"params": [decayed]}, {"params": [exempt], "weight_decay": 0.0}]
    optimizer = registry.build("optimizer", Part(name=name, weight_decay=0.5), groups=groups)
    assert [group["weight_decay"] for group in optimizer.param_groups] == [0.5, 0.0]
    for parameter in (decayed, exempt):
        parameter.grad = torch.zeros(2)
    optimizer.step()
    assert torch.equal(exempt, torch.ones(2))
    assert (decayed < 1).all()


def test_constant() -> None:
    assert [Constant()(step) for step in (0, 5, 10**6)] == [1.0, 1.0, 1.0]


def test_step() -> None:
    schedule = Step(at=(6, 3), gamma=0.1)
    assert [round(schedule(step), 6) for step in (0, 2, 3, 5, 6, 100)] == [1.0, 1.0, 0.1, 0.1, 0.01, 0.01]
    assert Step(at=())(7) == 1.0
    assert [round(Step(every=10, gamma=0.5)(step), 6) for step in (0, 9, 10, 25)] == [1.0, 1.0, 0.5, 0.25]
    epochs = Step(100, at=(2,))  # epochs of 100 iterations
    assert [round(epochs(step), 6) for step in (0, 199, 200)] == [1.0, 1.0, 0.1]
    with pytest.raises(ValueError, match="give `at` or `every`"):
        Step(at=(3,), every=2)


def test_nesterov_without_momentum_is_plain_descent() -> None:
    after = []
    for nesterov in (False, True):
        weight = nn.Parameter(torch.ones(2))
        part = Part.model_validate({"name": "sgd", "momentum": 0.0, "nesterov": nesterov})
        optimizer = registry.build("optimizer", part, groups=[{"params": [weight]}])
        weight.square().sum().backward()
        optimizer.step()
        after.append(weight.tolist())
    assert after[0] == after[1]


def test_cosine() -> None:
    schedule = Cosine(100, floor=0.1)
    assert schedule(0) == 1.0
    assert schedule(50) == pytest.approx(0.55)
    assert schedule(100) == pytest.approx(0.1)
    warmed = Cosine(100, warmup=4)
    assert [warmed(step) for step in range(5)] == [0.25, 0.5, 0.75, 1.0, 1.0]
    assert warmed(52) == pytest.approx(0.5)
    assert [Cosine(100, 4, warmup=1)(step) for step in range(4)] == [0.25, 0.5, 0.75, 1.0]
    with pytest.raises(ValueError, match="warmup must be less than the 10 iterations"):
        Cosine(10, warmup=10)


def test_polynomial() -> None:
    schedule = Polynomial(100, power=1.0, floor=1e-5, hold=0.5)
    assert [schedule(step) for step in (0, 25, 50)] == [1.0, 1.0, 1.0]
    assert schedule(75) == pytest.approx(0.5, abs=1e-5)
    assert schedule(100) == pytest.approx(1e-5)
    assert Polynomial(100, power=2.0, hold=0.0)(50) == pytest.approx(0.25)


@pytest.mark.parametrize("name", catalog.load().names("schedule"))
def test_a_schedule_is_a_finite_factor_at_every_step(name: str) -> None:
    options = {"at": [3, 7]} if name == "step" else {}
    schedule = registry.build("schedule", Part(name=name, **options), total=20, unit=1)
    factors = [schedule(step) for step in range(20)]
    assert all(math.isfinite(factor) and 0 <= factor <= 1 for factor in factors)
    assert factors == [schedule(step) for step in range(20)]  # stateless


@pytest.mark.parametrize("side", [1, 2, 3, 8, 28])
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("name", ["mlp", "small_cnn"])  # those that need no pretrained weights take any side
def test_a_backbone_says_how_many_features_it_gives(name: str, channels: int, side: int) -> None:
    backbone = registry.build("backbone", Part(name=name), channels=channels, side=side)
    features = backbone(torch.rand(5, channels, side, side))
    assert features.shape == (5, backbone.features)
    features.sum().backward()
    assert all(parameter.grad is not None for parameter in backbone.parameters())
    backbone.eval()
    one = backbone(torch.rand(1, channels, side, side))
    assert one.isfinite().all()


@pytest.mark.parametrize("name", ["mlp", "small_cnn"])
def test_a_backbone_without_width_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        registry.build("backbone", Part(name=name, width=0), channels=1, side=8)


@pytest.mark.parametrize("name", catalog.load().names("head"))
def test_a_head_gives_what_its_output_says(name: str) -> None:
    head = registry.build("head", Part(name=name), features=6, dim=4)
    embeddings = head(10 * torch.rand(5, 6))
    assert embeddings.shape == (5, 4)
    norms = embeddings.norm(dim=1)
    assert torch.allclose(norms, torch.ones(5)) == (head.output == "unit")
