"""Optimizers, schedules and the weight of the regularizer: formulas, and that the trainer applies them."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tests.workers.recipes import recipe, run
from workers import catalog, registry
from workers.contract import Part
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


OPTIMIZERS: dict[str, tuple[type[torch.optim.Optimizer], dict[str, Any]]] = {
    "adam": (torch.optim.Adam, {"lr": 0.1, "eps": 1e-3, "weight_decay": 0.1}),
    "adamw": (torch.optim.AdamW, {"lr": 0.1, "weight_decay": 0.2}),
    "rmsprop": (
        torch.optim.RMSprop,
        {"lr": 0.05, "alpha": 0.9, "momentum": 0.5, "centered": True, "weight_decay": 0.1},
    ),
    "sgd": (torch.optim.SGD, {"lr": 0.05, "momentum": 0.5, "nesterov": True, "weight_decay": 0.1}),
}


def test_an_optimizer_is_that_of_pytorch() -> None:
    for name, (reference, options) in OPTIMIZERS.items():
        ours, theirs = (nn.Parameter(torch.tensor([0.3, 0.2, -0.1])) for _ in range(2))
        betas: dict[str, Any] = {"beta1": 0.8, "beta2": 0.9} if name == "adam" else {}
        part = Part.model_validate({"name": name, **options, **betas})
        optimizer = registry.build("optimizer", part, groups=[{"params": [ours]}])
        their_betas: dict[str, Any] = {"betas": (0.8, 0.9)} if name == "adam" else {}
        made = reference([theirs], foreach=False, **options, **their_betas)  # type: ignore[call-arg]
        torch.testing.assert_close(trained(optimizer, ours), trained(made, theirs))


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


def test_step() -> None:
    schedule = Step(at=(6, 3), gamma=0.1)
    assert [round(schedule(step), 6) for step in (0, 2, 3, 5, 6, 100)] == [1.0, 1.0, 0.1, 0.1, 0.01, 0.01]
    assert Step(at=())(7) == 1.0
    assert [round(Step(every=10, gamma=0.5)(step), 6) for step in (0, 9, 10, 25)] == [1.0, 1.0, 0.5, 0.25]
    epochs = Step(100, at=(2,))  # epochs of 100 iterations
    assert [round(epochs(step), 6) for step in (0, 199, 200)] == [1.0, 1.0, 0.1]
    with pytest.raises(ValueError, match="give `at` or `every`"):
        Step(at=(3,), every=2)


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


@pytest.mark.parametrize("name", catalog.load().names("head"))
def test_a_head_gives_what_its_output_says(name: str) -> None:
    head = registry.build("head", Part(name=name), features=6, dim=4)
    embeddings = head(10 * torch.rand(5, 6))
    assert embeddings.shape == (5, 4)
    norms = embeddings.norm(dim=1)
    assert torch.allclose(norms, torch.ones(5)) == (head.output == "unit")


def schedule(name: str, *, eta: float = 1.0, total: int = 1000, epoch: int = 100, **options: Any) -> Any:
    part = Part.model_validate({"name": name, **options})
    return registry.build("eta_schedule", part, eta=eta, total=total, epoch=epoch, unit=1)


@pytest.mark.parametrize("name", catalog.load().names("eta_schedule"))
def test_eta_is_between_zero_and_itself_at_every_step(name: str) -> None:
    made = schedule(name, eta=0.3)
    values = [made(step) for step in range(1000)]
    assert all(0 <= value <= 0.3 for value in values)
    assert values == sorted(values)
    assert values == [made(step) for step in range(1000)]  # stateless
    assert [schedule(name, eta=0.0)(step) for step in (0, 500, 999)] == [0, 0, 0]


def test_face_warmup() -> None:
    made = schedule("face_warmup", eta=2.0)
    assert [made(step) for step in (0, 299, 300, 350, 400, 999)] == [0, 0, 0, 1.0, 2.0, 2.0]
    assert [schedule("face_warmup", wait=0, rise=0)(step) for step in (0, 1)] == [1, 1]


def test_min_ramp_reaches_eta_at_a_five_hundredth() -> None:
    made = schedule("min_ramp", eta=2.0, total=30_000)
    assert made(119) < 2.0 == made(120) == made(29_999)


def test_the_trainer_weighs_by_it(tmp_path: Path) -> None:
    sec = {"name": "sec", "eta": 0.5}
    result, _ = run(recipe(regularizer=sec, eta_schedule="linear"), tmp_path / "a")
    assert [value for _, value in result.curves["train/eta"]] == pytest.approx([0.5 * t / 12 for t in range(12)])
    constant, _ = run(recipe(regularizer=sec), tmp_path / "b")
    assert "train/eta" not in constant.curves
    assert constant.metrics != result.metrics
    waits, _ = run(recipe(regularizer=sec, eta_schedule={"name": "face_warmup", "wait": 99.0}), tmp_path / "c")
    ignored, _ = run(recipe(eta_schedule="linear"), tmp_path / "d")  # no regularizer, nothing to weigh
    assert ignored.metrics == waits.metrics


def test_a_regularizer_that_asks_for_labels_gets_them(tmp_path: Path) -> None:
    (tmp_path / "regularizers").mkdir()
    (tmp_path / "regularizers/by_class.py").write_text(
        "import torch\n\n\n"
        "class ByClass(torch.nn.Module):\n"
        '    """The mean norm of the first class."""\n\n    labelled = True\n\n'
        "    def __init__(self, *, eta: float = 1.0):\n        super().__init__()\n        self.eta = eta\n\n"
        "    def forward(self, embeddings, labels):\n"
        "        assert labels.shape == embeddings.shape[:1]\n"
        "        return embeddings[labels == labels[0]].norm(dim=1).mean()\n"
    )
    result, _ = run(recipe(tmp_path, regularizer="by_class"), tmp_path / "out", parts=tmp_path)
    assert result.outcome == "ok"
    assert not any(torch.isnan(torch.tensor(value)) for value in result.metrics.values())
