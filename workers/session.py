"""One training between two iterations: its parts, and all that a checkpoint holds of them."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import torch
from torch import nn

from workers import checkpoint, determinism, registry
from workers.catalog import parse_metric
from workers.contract import PART_FIELDS, CheckpointError, Place, Recipe
from workers.evaluate import evaluate
from workers.images import Images, Splits, splits
from workers.samplers import Sampler
from workers.tasks import Step, Task

NORMALIZATIONS: Final = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.GroupNorm, nn.LayerNorm)
"""The layers whose weights and biases are not decayed."""


class Embedder(nn.Module):
    """Images to embeddings: bytes to [-1, 1], backbone, head."""

    def __init__(self, backbone: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.backbone = backbone
        self.head = head

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Images uint8 [b, c, h, w] to embeddings [b, dim]."""
        embeddings: torch.Tensor = self.head(self.backbone(images.float().div_(127.5).sub_(1)))
        return embeddings


@dataclass(frozen=True)
class Best:
    """The best checkpoint so far."""

    step: int
    score: float
    model: dict[str, torch.Tensor]


class Session:
    """The parts of a recipe at work, after `step` iterations."""

    def __init__(self, recipe: Recipe, place: Place, device: torch.device) -> None:
        self.recipe, self.device = recipe, device
        self.total = recipe.iterations
        self.every = recipe.evaluate_every or max(1, recipe.iterations // 10)
        check_pins(recipe, place.parts)
        self.splits = _on(device, splits(recipe, place.data_root, place.scratch, place.parts))
        dataset = registry.find("dataset", recipe.dataset.name, place.parts)
        self.metrics = tuple(getattr(dataset, "metrics", ()))
        self.manifest: str | None = getattr(dataset, "manifest", None)
        self.watched, self._sign = self._selection(place.parts)
        self.model, self.loss, self.regularizer = self._modules(place.parts)
        self.generator = torch.Generator().manual_seed(determinism.derived(recipe.seed, "sampler"))
        self._build_rest(place.parts)
        self.step = 0
        self.best: Best | None = None
        self.curves: dict[str, list[tuple[int, float]]] = {}
        self._since = time.monotonic()
        determinism.seed_everything(determinism.derived(recipe.seed, "steps"))

    def _selection(self, parts: Path | None) -> tuple[str, int]:
        """The split that is evaluated on the way, and +1 or -1 where a higher or a lower selection metric is better."""
        select = self.recipe.select
        if select.split == "validation" and self.splits.validation is None:
            raise ValueError("select.split is 'validation', but the recipe holds no classes out for it")
        better = registry.find("metric", parse_metric(select.metric)[0], parts).better
        if better == "none":
            raise ValueError(f"select.metric {select.metric!r} cannot choose: neither higher nor lower is better")
        return "validation" if select.split == "validation" else "test", 1 if better == "higher" else -1

    def _modules(self, parts: Path | None) -> tuple[Embedder, nn.Module, nn.Module]:
        """The parts with weights or buffers; each is initialized from a seed of its own, whatever the others are."""
        recipe, train = self.recipe, self.splits.train

        def made(kind: str, **offers: Any) -> Any:
            determinism.seed_everything(determinism.derived(recipe.seed, kind))
            return registry.build(kind, recipe.part(kind), parts, **offers).to(self.device)

        _, channels, side, _ = train.images.shape
        backbone = made("backbone", channels=channels, side=side)
        head = made("head", features=backbone.features, dim=recipe.embedding)
        loss = made("loss", dim=recipe.embedding, classes=train.classes)
        return Embedder(backbone, head), loss, made("regularizer")

    def _build_rest(self, parts: Path | None) -> None:
        recipe = self.recipe
        labels = self.splits.train.labels.cpu()
        self.task: Task = registry.build(
            "task",
            recipe.task,
            parts,
            model=self.model,
            loss=self.loss,
            regularizer=self.regularizer,
            evaluate=partial(evaluate, parts=parts),
        )
        groups = list(parameter_groups({"backbone": self.model.backbone, "head": self.model.head, "loss": self.loss}))
        self.optimizer: torch.optim.Optimizer = registry.build("optimizer", recipe.optimizer, parts, groups=groups)
        self.rates = [float(group["lr"]) for group in self.optimizer.param_groups]
        self.schedule = registry.build("schedule", recipe.schedule, parts, total=recipe.iterations)
        self.sampler: Sampler = registry.build(
            "sampler", recipe.sampler, parts, labels=labels, generator=self.generator
        )

    def batch(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The images and labels of the next batch."""
        indices = self.sampler.draw().to(self.device)
        return self.splits.train.images[indices], self.splits.train.labels[indices]

    def set_rate(self) -> float:
        """Set the learning rate of this iteration; gives that of the first group."""
        factor = float(self.schedule(self.step))
        for group, rate in zip(self.optimizer.param_groups, self.rates, strict=True):
            group["lr"] = rate * factor
        return self.rates[0] * factor

    def descend(self, step: Step) -> None:
        """One step of the optimizer down the gradient of `step.total`."""
        self.optimizer.zero_grad(set_to_none=True)
        step.total.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        self.step += 1

    def among(self, names: Sequence[str]) -> list[str]:
        """Those of the metrics `names` that the data set declares, and the one that selects."""
        declared = [name for name in names if name in self.metrics]
        return list(dict.fromkeys([self.recipe.select.metric, *declared]))

    def improves(self, score: float, on: float) -> bool:
        """Whether the selection metric prefers `score` to `on`; equal ones do not improve."""
        return (score - on) * self._sign > 0

    def keep_best(self, score: float) -> None:
        """Take the present weights as the best, which have the selection metric `score`."""
        weights = {name: value.detach().cpu().clone() for name, value in self.model.state_dict().items()}
        self.best = Best(self.step, score, weights)

    @property
    def seconds(self) -> float:
        """The time spent training, over all attempts."""
        return time.monotonic() - self._since

    def state_dict(self) -> dict[str, Any]:
        """Everything that decides how the training goes on, and what it has found so far."""
        return {
            "fingerprint": self.recipe.fingerprint,
            "step": self.step,
            "seconds": self.seconds,
            "model": self.model.state_dict(),
            "loss": self.loss.state_dict(),
            "regularizer": self.regularizer.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "sampler": self.sampler.state_dict(),
            "generator": self.generator.get_state(),
            "random": determinism.random_state(self.device),
            "curves": self.curves,
            "best": vars(self.best) if self.best else None,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where `state_dict` was taken."""
        self.step = state["step"]
        self._since = time.monotonic() - state["seconds"]
        for name in ("model", "loss", "regularizer", "optimizer", "sampler"):
            getattr(self, name).load_state_dict(state[name])
        self.generator.set_state(state["generator"])
        determinism.restore_random_state(state["random"], self.device)
        self.curves = state["curves"]
        self.best = Best(**state["best"]) if state["best"] else None

    def resume(self, path: Path) -> None:
        """Go on from a checkpoint file; raises CheckpointError where it is damaged or of another recipe."""
        state = checkpoint.load(path)
        if state.get("fingerprint") != self.recipe.fingerprint:
            raise CheckpointError(f"checkpoint {path} belongs to another recipe")
        try:
            self.load_state_dict(state)
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            raise CheckpointError(f"checkpoint {path} does not fit: {error}") from error


def check_pins(recipe: Recipe, parts: Path | None) -> None:
    """Raise ValueError where this machine's parts or data are not the ones that the recipe's fingerprint stands for."""
    for kind in PART_FIELDS:
        name, pinned = recipe.part(kind).name, recipe.pins.versions.get(kind)
        here = getattr(registry.find(kind, name, parts), "version", 1)
        if pinned is not None and pinned != here:
            raise ValueError(f"pins: the recipe is for version {pinned} of {kind} {name!r}; this machine has {here}")
    manifest = getattr(registry.find("dataset", recipe.dataset.name, parts), "manifest", None)
    if recipe.pins.manifest is not None and recipe.pins.manifest != manifest:
        raise ValueError(
            f"pins: the recipe is for content {recipe.pins.manifest} of dataset {recipe.dataset.name!r}; "
            f"this machine has {manifest}"
        )


def parameter_groups(modules: Mapping[str, nn.Module]) -> Iterator[dict[str, Any]]:
    """One optimizer group for each module, and one without weight decay for its normalization layers (SEC's rule)."""
    for name, module in modules.items():
        decayed: list[nn.Parameter] = []
        exempt: list[nn.Parameter] = []
        for layer in module.modules():
            (exempt if isinstance(layer, NORMALIZATIONS) else decayed).extend(layer.parameters(recurse=False))
        if decayed:
            yield {"name": name, "params": decayed}
        if exempt:
            yield {"name": f"{name}/norm", "params": exempt, "weight_decay": 0.0}


def _on(device: torch.device, found: Splits) -> Splits:
    """The splits on the device: they are small, and a batch is then only an index."""
    validation: Images | None = found.validation.to(device) if found.validation else None
    return Splits(found.train.to(device), validation, found.test.to(device))
