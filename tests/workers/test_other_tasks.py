"""Counting with an image and its tiles, and a generator against a discriminator."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import adaptive_avg_pool2d
from torchvision.models import alexnet

from tests.workers import naive_pairs
from tests.workers.inputs import part, random_batch
from tests.workers.recipes import begun, completed, problems, run
from workers import registry
from workers.backbones import averaged
from workers.backbones.alexnet import Alexnet
from workers.contract import Part, Recipe
from workers.evaluation.probe import Samples
from workers.metrics.high_quality import HighQuality
from workers.metrics.modes import Modes
from workers.metrics.reverse_kl import ReverseKL
from workers.tasks.counting import Counting
from workers.tasks.two_player import TwoPlayer, _ahead, _Parameters
from workers.training.session import Session

RAW: dict[str, Any] = {
    "task": {"name": "counting", "probe_epochs": 1, "probe_at": [], "probe_batch": 64},
    "dataset": "digits_halves",
    "backbone": {"name": "small_cnn", "widths": [4, 4, 4, 4, 4]},
    "head": {"name": "fc", "relu": True},
    "embedding": 8,
    "loss": "rep_cnt",
    "sampler": {"name": "shuffle", "batch": 8},
    "optimizer": {"name": "adam", "lr": 0.001},
    "iterations": 2,
    "evaluate_every": 2,
}


def counting(folder: Path, **changes: Any) -> Counting:
    task = begun(completed({**RAW, **changes}), folder).task
    assert isinstance(task, Counting)
    return task


def test_an_image_is_shown_at_half_size_with_its_four_quarters(tmp_path: Path) -> None:
    task = counting(tmp_path)
    task.model.eval()
    images = torch.randint(0, 256, (3, 1, 8, 8), generator=torch.Generator().manual_seed(0)).to(torch.uint8)
    whole, total = task.counted(images)
    for at, image in enumerate(images.float()):
        small = torch.stack([image[:, y : y + 2, x : x + 2].mean() for y in (0, 2, 4, 6) for x in (0, 2, 4, 6)])
        torch.testing.assert_close(whole[at], task.model(small.view(1, 1, 4, 4))[0])
        tiles = [image[None, :, y : y + 4, x : x + 4] for y in (0, 4) for x in (0, 4)]
        torch.testing.assert_close(total[at], sum(task.model(tile)[0] for tile in tiles))
    assert (whole >= 0).all()


def test_equation_19_is_the_first_term_alone() -> None:
    embeddings, labels = random_batch(3)
    near = naive_pairs.rep_cnt(embeddings, labels, margin=0)
    assert part("loss", "rep_cnt", contrast=False)(embeddings, labels).item() == pytest.approx(near, rel=1e-9)
    whole, tiles = embeddings[:2], embeddings[2:4]
    plain = part("loss", "rep_cnt", contrast=False, squared=False)
    found = plain(torch.cat([whole, tiles]), torch.tensor([0, 1, 0, 1])).item()
    assert found == pytest.approx((whole - tiles).norm(dim=1).sum().item() / 2, rel=1e-9)


def test_maps_are_averaged_as_adaptive_pooling_does() -> None:
    for height, width, side in ((7, 7, 3), (63, 63, 12), (2, 3, 6), (31, 30, 7)):
        maps = torch.randn(2, 3, height, width, generator=torch.Generator().manual_seed(0))
        torch.testing.assert_close(averaged(maps, side), adaptive_avg_pool2d(maps, side))


def test_alexnet_has_its_fully_connected_layers_and_the_maps_of_five_convolutions(tmp_path: Path) -> None:
    ours = Alexnet(3, 224, tmp_path, connected=True).eval()
    theirs = alexnet(weights=None).eval()
    whole = {f"net.{key}": value for key, value in theirs.state_dict().items()}
    ours.load_state_dict({key: value for key, value in whole.items() if not key.startswith("net.classifier.6.")})
    images = torch.randn(2, 3, 160, 160, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        torch.testing.assert_close(theirs.classifier[6](ours(images)), theirs(images), rtol=1e-4, atol=1e-5)
        found = ours.convolved(images)
        assert [*found] == ["conv1", "conv2", "conv3", "conv4", "conv5"]
        torch.testing.assert_close(found["conv5"], theirs.features[:12](images))
    assert (ours.features, Alexnet(3, 224, tmp_path).features) == (4096, 256)


def test_what_cannot_be_counted_is_refused_before_training(tmp_path: Path) -> None:
    changes: dict[str, Any]
    for changes, path, message in (
        ({"loss": "triplet"}, "loss", "'counting' compares an image with its tiles, which loss 'triplet' does not"),
        ({"sampler": "balanced"}, "sampler", "draws by classes, but task 'counting' looks at tiles of images"),
        ({"sampler": {"name": "shuffle", "batch": 1}}, "sampler.batch", "expected at least 2 for task 'counting'"),
        ({"task": "retrieval"}, "loss", "which task 'retrieval' does not make; take 'counting'"),
        ({"dataset": "digits"}, "dataset", "judges features by classes that a probe has learned"),
    ):
        assert message in problems({**RAW, **changes})[path]
    for changes, message in (
        ({"crop": 7}, "images of 7 pixels have no halves"),
        ({"backbone": {"name": "small_cnn", "widths": [4, 4]}}, "5 convolutions, and the backbone lacks conv3"),
        ({"backbone": "resnet18", "crop": 8}, "5 convolutions, and the backbone lacks conv1"),
    ):
        with pytest.raises(ValueError, match=message):
            counting(tmp_path, **changes)


def test_a_metric_without_its_k_is_measured_at_the_end_too(tmp_path: Path) -> None:
    result, _ = run(completed({**RAW, "metrics": ["linear_top1"], "select": {"metric": "linear_top1"}}), tmp_path)
    assert result.metrics["last/test/linear_top1"] == result.metrics["last/test/linear_top1@conv5"]


LR, BETAS, EPS = 0.025, (0.5, 0.999), 1e-8


def raw(more: dict[str, Any] | None = None, **task: Any) -> dict[str, Any]:
    held = {"name": "two_player", "batch": 16, **task}
    return {"task": held, "optimizer": {"name": "adam", "lr": LR, "beta1": BETAS[0]}, "iterations": 4, **(more or {})}


def recipe(more: dict[str, Any] | None = None, **task: Any) -> Recipe:
    return completed(raw(more, **task))


def session(tmp_path: Path, more: dict[str, Any] | None = None, **task: Any) -> tuple[Session, TwoPlayer]:
    made = begun(recipe(more, **task), tmp_path)
    assert isinstance(made.task, TwoPlayer)
    return made, made.task


# Looking ahead


def naive(
    module: nn.Linear, optimizer: torch.optim.Optimizer, x: Tensor, aim: Tensor, steps: int
) -> tuple[Tensor, Tensor]:
    """Adam's formula by hand, in one loop over steps and one over parameters, every operation differentiated."""
    now = [one.detach().clone().requires_grad_() for one in module.parameters()]
    state = [optimizer.state[one] for one in module.parameters()]
    first, second = [one["exp_avg"].clone() for one in state], [one["exp_avg_sq"].clone() for one in state]
    done = int(state[0]["step"])
    for step in range(done + 1, done + steps + 1):
        loss = (x @ now[0].T + now[1] - aim).square().mean()
        slopes = torch.autograd.grad(loss, now, create_graph=True)
        for at, slope in enumerate(slopes):
            first[at] = BETAS[0] * first[at] + (1 - BETAS[0]) * slope
            second[at] = BETAS[1] * second[at] + (1 - BETAS[1]) * slope * slope
            root = (second[at] / (1 - BETAS[1] ** step)).sqrt()
            now[at] = now[at] - LR * (first[at] / (1 - BETAS[0] ** step)) / (root + EPS)
    return now[0], now[1]


def stepped(kind: str = "adam") -> tuple[nn.Linear, torch.optim.Optimizer]:
    """A layer and its optimizer after two steps."""
    torch.manual_seed(3)
    module = nn.Linear(2, 3).double()
    part = Part(name=kind, lr=LR, **({"beta1": BETAS[0]} if kind == "adam" else {}))
    optimizer: torch.optim.Optimizer = registry.build("optimizer", part, groups=[{"params": [*module.parameters()]}])
    for _ in range(2):
        module(torch.randn(5, 2).double()).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    return module, optimizer


def test_the_unrolled_gradient_is_that_of_a_naive_double_loop() -> None:
    steps = 4
    module, optimizer = stepped()
    before = {name: one.clone() for name, one in module.state_dict().items()}
    x, aim = torch.randn(7, 2).double(), torch.randn(7, 3).double().requires_grad_()

    def loss(now: _Parameters) -> Tensor:
        return (x @ now["weight"].T + now["bias"] - aim).square().mean()

    found = _ahead(module, optimizer, loss, steps)
    wanted = naive(module, optimizer, x, aim, steps)
    torch.testing.assert_close(tuple(found.values()), wanted, rtol=1e-9, atol=1e-12)
    slopes = [torch.autograd.grad(sum(one.square().sum() for one in ends), aim)[0] for ends in (found.values(), wanted)]
    torch.testing.assert_close(*slopes, rtol=1e-7, atol=1e-12)
    assert float(slopes[0].abs().max()) > 0
    assert all(torch.equal(one, before[name]) for name, one in module.state_dict().items())
    assert {int(one["step"]) for one in optimizer.state.values()} == {2}


@pytest.mark.parametrize("kind", ["adam", "adamw", "rmsprop", "sgd"])
def test_ahead_is_where_the_optimizer_itself_would_be(kind: str) -> None:
    module, optimizer = stepped(kind)
    x, aim = torch.randn(7, 2).double(), torch.randn(7, 3).double().requires_grad_()

    def loss(now: _Parameters) -> Tensor:
        return (x @ now["weight"].T + now["bias"] - aim).square().mean()

    through, constant = (_ahead(module, optimizer, loss, 3, through=one) for one in (True, False))
    for _ in range(3):
        optimizer.zero_grad()
        loss(dict(module.named_parameters())).backward()
        optimizer.step()
    for name, one in module.named_parameters():
        torch.testing.assert_close(through[name], one, rtol=1e-9, atol=1e-12)
        torch.testing.assert_close(constant[name], one, rtol=1e-9, atol=1e-12)
    assert torch.autograd.grad(through["weight"].sum(), aim)[0].abs().max() > 0
    assert torch.autograd.grad(constant["weight"].sum(), aim, allow_unused=True) == (None,)


def test_a_dead_unit_makes_no_nan_of_the_gradient() -> None:
    """Adam divides by the root of a mean square, which is 0 for what never had a gradient."""
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1))
    with torch.no_grad():
        module[0].bias.copy_(torch.tensor([-1e3, 1.0]))
    optimizer = registry.build("optimizer", Part(name="adam"), groups=[{"params": [*module.parameters()]}])
    module(torch.randn(4, 2)).sum().backward()
    optimizer.step()
    x = torch.randn(4, 2, requires_grad=True)
    found = _ahead(
        module, optimizer, lambda now: torch.func.functional_call(module, dict(now), (x,)).square().mean(), 3
    )
    (slope,) = torch.autograd.grad(torch.func.functional_call(module, dict(found), (x,)).sum(), x)
    assert bool(slope.isfinite().all())
    assert float(slope.abs().max()) > 0


def test_the_unrolled_game_moves_the_generator_otherwise(tmp_path: Path) -> None:
    """And otherwise again where it knows that the steps depend on it."""
    moved = []
    for task in ({}, {"unrolled": 3, "through": False}, {"unrolled": 3}):
        made, game = session(tmp_path, **task)
        for terms in made.turns():
            made.players[terms.player].down(terms.total)
        moved.append(next(iter(game.generator.parameters())).detach().clone())
    assert len({float(one.double().sum()) for one in moved}) == 3


def test_svmax_acts_on_what_the_generator_makes(tmp_path: Path) -> None:
    """The golden value of the unbounded regularizer on the points themselves, weighted by eta."""
    more = {"regularizer": {"name": "svmax_unbounded", "eta": 0.5}}
    totals = []
    for one in ({}, more):
        made, game = session(tmp_path, one)
        _, generator = made.turns()
        totals.append(float(generator.total.detach()))
        noted = dict(generator.noted())
    torch.manual_seed(0)
    made, game = session(tmp_path, more)
    seen: list[Tensor] = []
    game.generator.register_forward_hook(lambda module, given, points: seen.append(points.detach().double()))
    *_, last = made.turns()
    s_mu = float(np.linalg.svd(seen[-1].numpy(), compute_uv=False).mean())
    assert noted["regularizer"] == pytest.approx(-s_mu, rel=1e-5)
    assert totals[1] - totals[0] == pytest.approx(-0.5 * s_mu, rel=1e-4)
    assert float(last.total.detach()) == pytest.approx(totals[1], rel=1e-6)


# The mixtures and their metrics


def centres(tmp_path: Path, **task: Any) -> Tensor:
    made, _ = session(tmp_path, {"figures": [{"name": "samples", "every": 4, "points": 400}]}, **task)
    made.task.begin()
    drawn = made.task.draw(made.recipe.figures)["samples"]
    assert (
        np.linalg.norm(drawn["target"][:, None] - drawn["centres"], axis=2).min(axis=1).max() < 5 * drawn["deviation"]
    )
    return torch.from_numpy(drawn["centres"])


def test_the_mixtures(tmp_path: Path) -> None:
    ring = centres(tmp_path)
    torch.testing.assert_close(ring.norm(dim=1), torch.full((8,), 2.0))
    assert centres(tmp_path, radius=5, deviation=0.5).norm(dim=1).tolist() == pytest.approx([5.0] * 8)
    grid = centres(tmp_path, layout="grid", gaussians=25)
    assert {tuple(one) for one in grid.tolist()} == {(x, y) for x in (-4, -2, 0, 2, 4) for y in (-4, -2, 0, 2, 4)}
    assert len(centres(tmp_path, layout="grid", gaussians=7).unique(dim=0)) == 7


def test_metrics_of_samples() -> None:
    ring = 2 * torch.stack([torch.arange(8) * (math.pi / 4)] * 2, dim=1)
    ring = torch.stack([ring[:, 0].cos(), ring[:, 1].sin()], dim=1) * 2
    even, one = Samples(ring.repeat(5, 1), ring, 0.02), Samples(ring[:1].repeat(5, 1), ring, 0.02)
    skewed = Samples(torch.cat([ring[:1].repeat(3, 1), ring[1:2] + 0.5]), ring, 0.02)
    found = [[metric(each) for metric in (Modes(), HighQuality(), ReverseKL())] for each in (even, one, skewed)]
    naive_kl = sum(share * math.log(share * 8) for share in (0.75, 0.25))
    assert found[0] == pytest.approx([1, 1, 0], abs=1e-12)
    assert found[1] == pytest.approx([1 / 8, 1, math.log(8)])
    assert found[2] == pytest.approx([1 / 8, 0.75, naive_kl])


def test_the_figure_has_a_look_before_the_first_iteration_and_at_each_that_is_due(tmp_path: Path) -> None:
    result, _ = run(recipe({"figures": [{"name": "samples", "every": 2, "points": 30}]}, unrolled=1), tmp_path)
    assert result.artifacts == ["final.safetensors", "samples.npz"]
    with np.load(tmp_path / "samples.npz", allow_pickle=False) as drawn:
        assert drawn["step"].tolist() == [0, 2, 4]
        assert drawn["xy"].shape == (3, 30, 2)
        assert drawn["target"].shape == (30, 2)
        assert np.abs(np.diff(drawn["xy"], axis=0)).max() > 0


# What is refused


def test_a_game_that_cannot_be_played_is_refused_with_its_path() -> None:
    for task, path, message in (
        ({"gaussians": 1}, "task.gaussians", "expected a whole number of at least 2 and at most 1,000; found 1"),
        ({"unrolled": -1}, "task.unrolled", "expected a whole number of at least 0 and at most 100; found -1"),
        ({"layout": "line"}, "task.layout", "expected one of 'circle', 'grid', found 'line'"),
        ({"layout": "grid", "radius": 2}, "task.radius",
         "is only for `layout: circle`, but layout is 'grid'; leave one of them out"),
    ):  # fmt: skip
        assert problems(raw(**task)) == {path: message}
    found = problems(raw({"figures": [{"name": "samples", "every": 5}]}))
    assert found == {"figures.0": "'samples' looks every 5 iterations, but the training has 4; set `every`"}
