"""What each field of a recipe does to a training: rates, decay, clipping, lengths, precision, schedules."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tests.workers.recipes import batches, begun, flat, numbers, own_part, recipe, retrieval, run, same, weights
from tests.workers.test_checkpoint import cut_and_resumed
from workers import catalog, registry
from workers.catalog import load
from workers.catalog.recipe import changes, stamp
from workers.contract import Part, Recipe
from workers.data.augmentation import PRESETS
from workers.schedules.cosine import Cosine
from workers.schedules.polynomial import Polynomial
from workers.schedules.step import Step
from workers.tasks import Terms
from workers.training.optimization import LONGEST_RUN, LossScale, length, parameter_groups
from workers.training.session import Session, check

OWN = (
    "import torch\n\n\n"
    "class Proxies(torch.nn.Module):\n"
    '    """Cosines to learned proxies, with a count of the batches."""\n\n'
    '    order = "free"\n    lr_scale = 100\n\n'
    "    def __init__(self, dim, classes, images):\n        super().__init__()\n"
    "        self.proxies = torch.nn.Parameter(torch.randn(classes, dim))\n"
    "        self.register_buffer('seen', torch.zeros(()))\n\n"
    "    def forward(self, embeddings, labels):\n"
    "        self.seen += 1\n"
    "        logits = torch.nn.functional.normalize(embeddings) @ torch.nn.functional.normalize(self.proxies).T\n"
    "        return torch.nn.functional.cross_entropy((4 + 0.1 * self.seen) * logits, labels)\n"
)
"""A loss of one's own with parameters and a buffer that decides its value."""


def session(folder: Path, what: Recipe | None = None, **changes: Any) -> Session:
    parts = changes.pop("parts", None)
    return begun(what or recipe(parts, **changes), folder, parts=parts)


def descend(one: Session, steps: int = 1) -> Terms:
    for _ in range(steps):
        for terms in one.turns():
            one.players[terms.player].down(terms.total)
        one.step += 1
    return terms


def rates(one: Session) -> dict[str, float]:
    """The learning rate of each group as the optimizer has it."""
    return {group["name"]: group["lr"] for group in one.players["model"].optimizer.param_groups}


def test_learning_rates_of_backbone_and_loss(tmp_path: Path) -> None:
    what = own_part(
        tmp_path, "losses", "proxies", OWN, loss="proxies", backbone_rate=0.1, optimizer={"name": "adam", "lr": 0.01}
    )
    assert what.loss_rate == 100  # the loss's own, written out
    one = session(tmp_path, what, parts=tmp_path)
    assert one.players["model"].prepare(0) == 0.01
    expected = {"backbone": 0.001, "backbone/norm": 0.001, "head": 0.01, "loss": 1.0}
    assert rates(one) == pytest.approx(expected)
    other = session(tmp_path, recipe(tmp_path, loss="proxies", loss_rate=2), parts=tmp_path)
    other.players["model"].prepare(0)
    assert rates(other)["loss"] == pytest.approx(0.002)
    assert recipe().loss_rate == 1.0


def test_what_is_spared_by_weight_decay() -> None:
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))

    def sizes(undecayed: str) -> dict[str, int]:
        return {group["name"]: len(group["params"]) for group in parameter_groups({"net": net}, undecayed)}

    assert sizes("none") == {"net": 4}
    assert sizes("norm") == {"net": 2, "net/norm": 2}
    assert sizes("norm_and_bias") == {"net": 1, "net/norm": 3}
    net[0].weight.requires_grad_(False)
    assert sizes("norm") == {"net": 1, "net/norm": 2}
    net.decayed = False  # type: ignore[assignment]
    assert {group["weight_decay"] for group in parameter_groups({"net": net})} == {0.0}


def test_a_warm_up_moves_only_the_head_and_the_loss(tmp_path: Path) -> None:
    one = session(tmp_path, warmup=3, optimizer={"name": "adamw", "weight_decay": 0.5})
    parameters = dict(retrieval(one).model.named_parameters())
    before = {name: value.detach().clone() for name, value in parameters.items()}

    def moved() -> set[str]:
        return {name.split(".")[0] for name, value in parameters.items() if not torch.equal(value, before[name])}

    descend(one, 3)
    assert moved() == {"head"}
    descend(one)
    assert moved() == {"head", "backbone"}


def test_clipping_by_value_and_by_norm(tmp_path: Path) -> None:
    def gradients(**changes: Any) -> torch.Tensor:
        one = session(tmp_path, optimizer={"name": "sgd", "momentum": 0.0}, **changes)
        descend(one)
        held = [p.grad.flatten() for group in one.players["model"].optimizer.param_groups for p in group["params"]]
        return torch.cat(held)

    free = gradients()
    assert free.abs().max() > 0.05
    assert torch.equal(gradients(clip_value=0.01), free.clamp(-0.01, 0.01))
    assert torch.equal(gradients(clip_value=1e3), free)
    norm = free.norm()
    torch.testing.assert_close(gradients(clip_norm=0.1), free * 0.1 / norm, rtol=1e-4, atol=1e-9)
    assert torch.equal(gradients(clip_norm=1e3), free)
    both = gradients(clip_value=0.01, clip_norm=0.02)
    assert both.norm() == pytest.approx(0.02, rel=1e-3)


def test_epochs_are_as_many_whole_batches_as_the_images_fill(tmp_path: Path) -> None:
    what = recipe(iterations=None, epochs=3, evaluate_every=None, warmup=1, schedule={"name": "step", "at": [2]})
    assert (what.evaluate_every, what.iterations) == (1, None)
    one = session(tmp_path, what)
    each = len(batches(one).splits.train) // 12
    assert one.length == (3 * each, each, each, each, each)
    assert one.length._fields == ("total", "every", "warmup", "epoch", "unit")
    assert [one.players["model"].prepare(step) for step in (2 * each - 1, 2 * each)] == pytest.approx([1e-3, 1e-4])
    assert length(what, 5, 12).total == 3  # fewer images than a batch holds
    result, reports = run(recipe(iterations=None, epochs=2, sampler={"name": "shuffle", "batch": 100}), tmp_path)
    each = len(batches(one).splits.train) // 100
    assert result.steps == 2 * each
    assert reports[0].total == 2 * each
    assert [step for step, _ in result.curves["validation/map@r"]] == [2 * each]  # every 5 epochs of 2


def test_patience_ends_a_training(tmp_path: Path) -> None:
    still = {"optimizer": {"name": "sgd", "lr": 0.0}, "backbone": "mlp", "iterations": 20, "evaluate_every": 2}
    changes = {**still, "loss": "triplet"}
    result, reports = run(recipe(**changes, patience=3), tmp_path / "a")
    assert result.outcome == "ok"
    assert result.steps < 20
    assert reports[-1].step == result.steps
    scores = result.curves["validation/map@r"]
    assert [step for step, _ in scores] == list(range(2, result.steps + 1, 2))
    assert result.steps - (result.best_step or 0) == 3 * 2
    whole, _ = run(recipe(**changes, patience=99), tmp_path / "b")
    assert whole.steps == 20


PRECISE = (
    "import torch\n\n\n"
    "class Precise(torch.nn.Module):\n"
    '    """Refuses what is not in float32."""\n\n'
    '    order = "free"\n    labelled = True\n\n'
    "    def __init__(self{ask}):\n        super().__init__()\n{keep}\n"
    "    def forward(self, embeddings, labels):\n"
    "        similarity = embeddings @ embeddings.T\n"
    "        assert embeddings.dtype == similarity.dtype == torch.float32, similarity.dtype\n"
    "        return similarity.square().mean()\n"
)
"""A loss, or with an eta a regularizer, that multiplies embeddings with one another."""


@pytest.mark.parametrize(("precision", "outer"), [("none", True), ("bf16", False), ("fp16", False)])
def test_losses_and_regularizers_compute_in_float32(precision: str, outer: bool, tmp_path: Path) -> None:
    (tmp_path / "regularizers").mkdir()
    regularizer = PRECISE.format(ask=", *, eta: float = 0.5", keep="        self.eta = eta\n")
    (tmp_path / "regularizers/precise.py").write_text(regularizer)
    loss = PRECISE.format(ask="", keep="")
    what = own_part(tmp_path, "losses", "precise", loss, loss="precise", regularizer="precise", precision=precision)
    with torch.autocast("cpu", torch.bfloat16, enabled=outer):
        result, _ = run(what, tmp_path / "out", parts=tmp_path)
    assert result.outcome == "ok"
    assert [step for step, _ in result.curves["train/regularizer"]] == list(range(1, 13))
    images, _ = batches(plain := session(tmp_path)).next()
    found = retrieval(session(tmp_path, precision=precision)).model(images)
    assert found.dtype == torch.float32
    reference = retrieval(plain).model(images)
    assert torch.equal(found, reference) == (precision == "none")
    torch.testing.assert_close(found, reference, rtol=0.05, atol=0.05)


def test_channels_last_changes_the_layout_and_not_the_meaning(tmp_path: Path) -> None:
    plain, other = session(tmp_path), session(tmp_path, channels_last=True)
    assert same(flat(plain.weights()), flat(other.weights()))
    images, _ = batches(plain).next()
    network, changed = retrieval(plain).model, retrieval(other).model
    torch.testing.assert_close(changed(images), network(images), rtol=1e-4, atol=1e-5)
    kernel = next(p for p in changed.parameters() if p.ndim == 4 and p.shape[1] > 1)
    assert kernel.is_contiguous(memory_format=torch.channels_last)


def test_a_compiled_network_keeps_the_names_of_its_weights(tmp_path: Path) -> None:
    assert list(flat(session(tmp_path, compile=True).weights())) == list(flat(session(tmp_path).weights()))


def test_augmentation_is_random_in_training_only_and_repeats(tmp_path: Path) -> None:
    def pair() -> tuple[torch.Tensor, torch.Tensor]:
        one = session(tmp_path, augment="crop_flip", crop=6)
        return batches(one).next().images, torch.cat(list(retrieval(one).read(batches(one).splits.test)))

    (first, test), (second, again) = pair(), pair()
    assert first.shape[1:] == test.shape[1:] == (1, 6, 6)
    assert torch.equal(first, second)
    assert torch.equal(test, again)
    one = session(tmp_path, augment="crop_flip", crop=6)
    assert torch.equal(test, batches(one).splits.test.images[:, :, 1:7, 1:7])


def test_the_contract_knows_every_preset() -> None:
    schema = Recipe.model_json_schema()["properties"]["augment"]
    assert set(schema["enum"]) == set(PRESETS)


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


WILD = (
    "import torch\n\n\n"
    "class Wild(torch.nn.Module):\n"
    '    """Batch norm and a linear layer, of features that are now and then beyond what float16 holds."""\n\n'
    '    output = "raw"\n\n'
    "    def __init__(self, features, dim, *, chance: float = 0.3):\n        super().__init__()\n"
    "        self.chance, self.norm = chance, torch.nn.BatchNorm1d(features)\n"
    "        self.linear = torch.nn.Linear(features, dim)\n\n"
    "    def forward(self, features):\n"
    "        wild = self.training and float(torch.rand(())) < self.chance\n"
    "        return self.linear(self.norm(features * 1e8 if wild else features))\n"
)
"""A head that overflows in float16 by a draw of the training's own generator."""

STEEP = (
    "import torch\n\n\n"
    "class Steep(torch.nn.Module):\n"
    '    """Is 0, with an infinite slope."""\n\n    order = "free"\n\n'
    "    def forward(self, embeddings, labels):\n        return (embeddings - embeddings.detach()).abs().sum().sqrt()\n"
)
"""A loss that is finite where its gradient is not."""


def wild(folder: Path, chance: float, **changes: Any) -> Recipe:
    head = {"head": {"name": "wild", "chance": chance}, "precision": "fp16"}
    return own_part(folder, "heads", "wild", WILD, **{**head, **changes})


GPU = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")]


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=GPU)])
def test_an_overflow_makes_no_step_and_leaves_no_trace(device: str, tmp_path: Path) -> None:
    what = wild(tmp_path, 0.3, iterations=20, regularizer={"name": "sec_ema", "eta": 0.5})
    result, reports = run(what, tmp_path / "out", parts=tmp_path, device=device)
    assert (result.outcome, result.steps) == ("ok", 20)
    told = [line for report in reports for line in report.log.splitlines() if "is not finite" in line]
    assert len(told) == 1, "the first, and others only after a while"
    assert "no step, 1 in a row; gradients are scaled by " in told[0]
    steps = {step for step, _ in result.curves["train/loss"]}
    assert 0 < len(steps) < 20, "what was left out is no point of a curve"
    kept = weights(tmp_path / "out" / result.artifacts[0])
    assert all(value.isfinite().all() for value in kept.values())


def test_a_run_of_overflows_of_the_loss_or_the_gradient_is_a_divergence(tmp_path: Path) -> None:
    loss = wild(tmp_path, 1.0, iterations=30, validation="none", select={"split": "test"})
    gradient = own_part(tmp_path, "losses", "steep", STEEP, loss="steep", iterations=30, precision="fp16")
    row = "loss is not finite, in the 17th iteration in a row, in float16"
    for at, (what, said) in enumerate([(loss, row), (gradient, "gradient is not finite")]):
        result, reports = run(what, tmp_path / str(at), parts=tmp_path)
        assert (result.outcome, result.steps) == ("diverged", LONGEST_RUN), said
        assert f"the {said}" in reports[-1].log


def test_the_scale_of_gradients_does_not_fall_below_1() -> None:
    scale = LossScale(torch.device("cpu"), [], enabled=True)
    logs = [scale.skip() for _ in range(LONGEST_RUN)]
    assert [text.split()[-4] for text in (logs[0], logs[-1])] == ["32768", "1"]
    value = torch.nn.Parameter(torch.ones(()))
    scale.descend(2 * value, torch.optim.SGD([value], lr=0.1), lambda: None)
    assert value.item() == pytest.approx(0.8)
    assert scale.skip().endswith("1 in a row; gradients are scaled by 1 from now on")


@pytest.mark.parametrize(("chance", "cuts"), [(0.3, [1, 2, 3]), (1.0, [10])])
def test_it_resumes_bit_for_bit_with_its_count(chance: float, cuts: list[int], tmp_path: Path) -> None:
    what = wild(tmp_path, chance, iterations=20, clip_norm=0.5)
    whole, _ = run(what, tmp_path / "whole", parts=tmp_path)
    found = cut_and_resumed(what, tmp_path, cuts, parts=tmp_path)
    assert numbers(found) == numbers(whole)
    if whole.artifacts:
        assert same(weights(tmp_path / "end/best.safetensors"), weights(tmp_path / "whole/best.safetensors"))


def test_only_recipes_of_float16_have_another_version() -> None:
    assert "precision" not in {**recipe().pins.versions, **recipe(precision="bf16").pins.versions}
    half = recipe(precision="fp16")
    assert half.pins.versions["precision"] == 2
    check(half, None)
    versions = {name: version for name, version in half.pins.versions.items() if name != "precision"}
    older = half.model_copy(update={"pins": half.pins.model_copy(update={"versions": versions})})
    assert older.fingerprint != half.fingerprint
    said = changes(stamp(older.model_dump(mode="json")), load())
    assert [str(one) for one in said] == ["precision 'fp16' (version 1, now 2)"]
    with pytest.raises(ValueError, match="for version 1 of precision 'fp16'; this machine has 2"):
        check(older, None)


CHUNKED: dict[str, Any] = {
    "backbone": {"name": "mlp", "width": 16},
    "sampler": {"name": "balanced", "classes": 3, "per_class": 7},
    "regularizer": "sec",
}


def gradients(folder: Path, **changes: Any) -> dict[str, torch.Tensor]:
    """The gradient of the first step, by the names of parameters."""
    begun = session(folder, **{**CHUNKED, **changes})
    retrieval(begun).model.eval()  # as a network without batch norm
    (terms,) = begun.turns()
    terms.total.backward()
    modules = begun.task.modules().items()
    named = [(f"{name}.{key}", one.grad) for name, module in modules for key, one in module.named_parameters()]
    return {name: grad for name, grad in named if grad is not None}


def test_cached_gradients_are_those_of_the_whole_batch(tmp_path: Path) -> None:
    """Of any loss, with and without a remainder; the loss of a batch is not the sum of its chunks' losses."""
    for loss in ("recall_at_k", "sup_con", "multi_similarity", "proxy_anchor"):
        whole = gradients(tmp_path, loss=loss)
        assert len(whole) >= 4
        for chunk in (4, 7, 8, 30):
            cached = gradients(tmp_path, loss=loss, chunk=chunk)
            assert cached.keys() == whole.keys()
            for name, grad in whole.items():
                torch.testing.assert_close(cached[name], grad, rtol=1e-4, atol=1e-6)


def test_batch_norm_in_chunks_counts_each_chunk_once(tmp_path: Path) -> None:
    begun = session(tmp_path, **{**CHUNKED, "backbone": {"name": "mlp", "width": 16}, "head": "bn_fc", "chunk": 7})
    norm = next(module for module in retrieval(begun).model.modules() if isinstance(module, nn.BatchNorm1d))
    (terms,) = begun.turns()
    mean, count = norm.running_mean.clone(), int(norm.num_batches_tracked)
    assert count == 3
    terms.total.backward()
    assert torch.equal(norm.running_mean, mean)
    assert int(norm.num_batches_tracked) == count
