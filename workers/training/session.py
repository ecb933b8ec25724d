"""One training between two iterations: its parts, and all that a checkpoint holds of them."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import torch
from torch import nn

from workers import registry
from workers.catalog import parse_metric
from workers.catalog.clustering_cost import NEEDS, Clustering
from workers.contract import Place, Recipe
from workers.data.augmentation import Augment
from workers.data.images import Images, Splits, splits
from workers.embeddings import geometry
from workers.evaluation.evaluate import evaluate
from workers.figures import traces
from workers.samplers import Sampler
from workers.tasks import Diverged, Step, Task
from workers.training import checkpoint, determinism, pins
from workers.training.embedder import Embedder, embedder
from workers.training.length import Length, length
from workers.training.optimization import Optimization

_PIXELS: Final = 2**24  # bytes of images embedded at a time in an evaluation
_BATCH: Final = 1024  # images at most
_SHARE: Final = 16  # the part of the free memory of a device that images may take: others train there too


@dataclass(frozen=True)
class Best:
    """The best point so far on one split."""

    step: int
    score: float
    model: dict[str, torch.Tensor]


class Session:
    """The parts of a recipe at work, after `step` iterations."""

    def __init__(self, recipe: Recipe, place: Place, device: torch.device) -> None:
        self.recipe, self.device = recipe, device
        pins.check(recipe, place.parts)
        self.splits = _on(device, splits(recipe, place.data_root, place.scratch, place.parts))
        declared = getattr(registry.find("dataset", recipe.dataset.name, place.parts), "metrics", ())
        self.metrics = tuple(dict.fromkeys([*declared, *recipe.metrics]))
        self._clustered = {name for name in self.among(self.metrics) if _clusters(name, place.parts)}
        self.manifest = self.splits.content
        self.watched, self._sign = self._selection(place.parts)
        self.augment = Augment(recipe.augment, stored=self.splits.train.side, crop=recipe.crop)
        self._drawn = torch.Generator().manual_seed(determinism.derived(recipe.seed, "augment"))
        self.generator = torch.Generator().manual_seed(determinism.derived(recipe.seed, "sampler"))
        self.sampler: Sampler = registry.build(
            "sampler", recipe.sampler, place.parts, labels=self.splits.train.labels.cpu(), generator=self.generator
        )
        self.length: Length = length(recipe, len(self.splits.train), self.sampler.batch)
        self.total = self.length.total
        self.model, self.loss, self.regularizer = self._modules(place)
        self.weights_origin: str | None = getattr(self.model.backbone, "origin", None)
        if recipe.pins.weights not in {None, self.weights_origin}:
            found = f"this machine has {self.weights_origin}"
            raise ValueError(f"pins: the recipe is for weights {recipe.pins.weights} of the backbone; {found}")
        self._build_rest(place.parts)
        self.traces = traces.asked(recipe.figures, len(self.splits.train), self.total)
        self.step = self.unimproved = 0
        self.best: Best | None = None
        self.beside: Best | None = None  # on the test split, where the recipe asks for it
        self.curves: dict[str, list[tuple[int, float]]] = {}
        self._since = time.monotonic()
        determinism.seed_everything(determinism.derived(recipe.seed, "steps"))

    def _selection(self, parts: Path | None) -> tuple[tuple[str, ...], int]:
        """The splits that are evaluated on the way, and +1 or -1 where a higher or a lower metric is better."""
        select = self.recipe.select
        if select.split == "validation" and self.splits.validation is None:
            raise ValueError("select.split is 'validation', but the recipe holds no classes out for it")
        better = registry.find("metric", parse_metric(select.metric)[0], parts).better
        if better == "none":
            raise ValueError(f"select.metric {select.metric!r} cannot choose: neither higher nor lower is better")
        watched = (select.split, *([select.beside] if select.beside else [])) if select.split != "last" else ("test",)
        if any(select.metric in self.dear(self.splits.named(split)) for split in watched):
            raise ValueError(f"select.metric {select.metric!r} is dear of so many images, and computed at the end only")
        return watched, 1 if better == "higher" else -1

    def _modules(self, place: Place) -> tuple[Embedder, nn.Module, nn.Module]:
        """The parts with weights or buffers; each is initialized from a seed of its own, whatever the others are."""
        recipe, train = self.recipe, self.splits.train
        offers: dict[str, Any] = {
            "channels": train.channels, "side": self.augment.side, "classes": train.classes, "images": len(train),
            "dim": recipe.embedding, "batch": self.sampler.batch, "epoch": self.length.epoch,
            "root": place.data_root, "scratch": place.scratch,
        }  # fmt: skip

        def made(kind: str, **more: Any) -> Any:
            determinism.seed_everything(determinism.derived(recipe.seed, kind))
            return registry.build(kind, recipe.part(kind), place.parts, **offers, **more).to(self.device)

        backbone = made("backbone")
        head = made("head", features=backbone.features)
        return embedder(backbone, head, recipe), made("loss"), made("regularizer")

    def _build_rest(self, parts: Path | None) -> None:
        recipe, span = self.recipe, self.length
        eta = getattr(self.regularizer, "eta", None)
        self.eta_schedule = None
        if eta is not None:
            offers = {"eta": float(eta), "total": span.total, "epoch": span.epoch, "unit": span.unit}
            self.eta_schedule = registry.build("eta_schedule", recipe.eta_schedule, parts, **offers)
        self.task: Task = registry.build(
            "task",
            recipe.task,
            parts,
            model=self.model,
            loss=self.loss,
            regularizer=self.regularizer,
            evaluate=partial(evaluate, parts=parts, seed=determinism.derived(recipe.seed, "clusters")),
            read=self.read,
        )
        modules = {"backbone": self.model.backbone, "head": self.model.head, "loss": self.loss}
        self.descent = Optimization(recipe, span, modules, self.device, parts, [self.regularizer])

    def batch(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The images of the next batch, augmented, and their labels."""
        indices = self.sampler.draw()
        images, sizes = self.splits.train.take(indices)
        labels = self.splits.train.labels[indices.to(self.splits.train.labels.device)]
        return self.augment.train(images.to(self.device), self._drawn, sizes), labels.to(self.device)

    def read(self, images: Images, chosen: torch.Tensor | None = None) -> Iterator[torch.Tensor]:
        """All images of a split in order, or those `chosen`, as an evaluation sees them and some at a time."""
        # A backbone may enlarge images, and colour grey ones; that of a researcher's own says so by any callable.
        asked = getattr(self.model.backbone, "preprocess", None)
        side = max(self.augment.side, getattr(asked, "side", None) or 0)
        channels = max(images.channels, len(getattr(asked, "mean", ())))
        size = max(1, min(_BATCH, _PIXELS // (channels * side**2)))
        for indices in torch.split(torch.arange(len(images)) if chosen is None else chosen, size):
            batch, sizes = images.take(indices)
            yield self.augment.test(batch.to(self.device), sizes)

    @torch.no_grad()
    def look(self, chosen: torch.Tensor | None = None) -> torch.Tensor:
        """The raw embeddings [n, d] of all training images or those `chosen`, as an evaluation sees them.

        Changes nothing of the training. Raises Diverged where they are not finite.
        """
        self.model.eval()
        try:
            embeddings = torch.cat([self.model(batch) for batch in self.read(self.splits.train, chosen)])
        finally:
            self.model.train()
        if not bool(embeddings.isfinite().all()):
            raise Diverged("embeddings")
        return embeddings

    def begin(self) -> None:
        """What is done once, before the first iteration."""
        begin = getattr(self.regularizer, "begin", None)
        if begin is not None:
            begin(lambda: float(geometry.norms(self.look()).double().mean()))
        self.follow()

    def follow(self) -> None:
        """Show the figures that follow training images how these lie now, where it is time."""
        for trace in self.traces.values():
            if self.step % trace.every == 0:
                trace.note(self.step, self.look(trace.index))

    @property
    def eta(self) -> float | None:
        """The weight of the regularizer in the next iteration; none where there is no regularizer."""
        return None if self.eta_schedule is None else float(self.eta_schedule(self.step))

    def descend(self, step: Step) -> None:
        """One step of the optimizer down the gradient of `step.total`."""
        self.descent.down(step.total)
        self.step += 1

    def skip(self) -> str:
        """Leave out an iteration whose loss is not finite, where float16 may be why, and say so; raises Diverged."""
        said = self.descent.scale.skip()
        self.step += 1
        return said

    @property
    def over(self) -> bool:
        """Whether there is nothing more to train: at the end, or where patience is."""
        patience = self.recipe.patience
        return self.step >= self.total or (patience is not None and self.unimproved >= patience)

    def among(self, names: Sequence[str]) -> list[str]:
        """Those of the metrics `names` that are computed, and the one that selects."""
        declared = [name for name in names if name in self.metrics]
        return list(dict.fromkeys([self.recipe.select.metric, *declared]))

    def dear(self, images: Images) -> list[str]:
        """The metrics that are dear to compute of a split: only the weights that are kept are judged by them."""
        number = len(images) if images.query is None else int(images.query.sum())
        clustered = Clustering(number, images.classes, self.recipe.embedding)
        return [name for name in self.metrics if clustered.dear and name in self._clustered]

    def improves(self, score: float, on: float) -> bool:
        """Whether the selection metric prefers `score` to `on`; equal ones do not improve."""
        return (score - on) * self._sign > 0

    def keep_best(self, score: float) -> None:
        """Take the present weights as the best, which have the selection metric `score`."""
        self.best = Best(self.step, score, self.weights())

    def keep_beside(self, score: float) -> None:
        """Take them as the best on the test split; weights that are the best anyway are held once."""
        shared = self.best is not None and self.best.step == self.step
        self.beside = Best(self.step, score, self.best.model if self.best and shared else self.weights())

    def weights(self) -> dict[str, torch.Tensor]:
        """A copy of the present weights."""
        return {name: value.detach().cpu().clone() for name, value in self.model.state_dict().items()}

    @property
    def seconds(self) -> float:
        """The time spent training, over all attempts."""
        return time.monotonic() - self._since

    def state_dict(self) -> dict[str, Any]:
        """Everything that decides how the training goes on, and what it has found so far."""
        return {
            "fingerprint": self.recipe.fingerprint,
            "content": self.manifest,
            "step": self.step,
            "unimproved": self.unimproved,
            "seconds": self.seconds,
            **{name: getattr(self, name).state_dict() for name in _STATEFUL},
            "generators": [self.generator.get_state(), self._drawn.get_state()],
            "random": determinism.random_state(self.device),
            "curves": self.curves,
            "best": vars(self.best) if self.best else None,
            "beside": vars(self.beside) if self.beside else None,
            "traces": {name: trace.state_dict() for name, trace in self.traces.items()},
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where `state_dict` was taken; raises ValueError where that was with other images."""
        if state.get("content", self.manifest) != self.manifest:
            raise ValueError(f"it was trained on {state['content']}, and the data set is {self.manifest} now")
        self.step, self.unimproved = state["step"], state["unimproved"]
        self._since = time.monotonic() - state["seconds"]
        for name in _STATEFUL:
            getattr(self, name).load_state_dict(state[name])
        for generator, held in zip((self.generator, self._drawn), state["generators"], strict=True):
            generator.set_state(held)
        determinism.restore_random_state(state["random"], self.device)
        self.curves = state["curves"]
        self.best, self.beside = (Best(**found) if found else None for found in (state["best"], state.get("beside")))
        for name, trace in self.traces.items():
            trace.load_state_dict(state["traces"][name])

    def resume(self, path: Path) -> None:
        """Go on from a checkpoint file; raises CheckpointError where it is damaged or of another recipe."""
        with checkpoint.fitting(path, self.recipe) as state:
            self.load_state_dict(state)


_STATEFUL: Final = ("model", "loss", "regularizer", "descent", "sampler")


def _clusters(metric: str, parts: Path | None) -> bool:
    """Whether a metric is of the clustering that can be dear."""
    found = registry.find("metric", parse_metric(metric)[0], parts)
    return getattr(found, "needs", "") == NEEDS


def _on(device: torch.device, found: Splits) -> Splits:
    """The splits with their labels on the device, and their pixels too where they need little of its memory."""
    sets = [split for split in (found.train, found.validation, found.test) if split]
    size = sum(split.images.nbytes for split in sets)
    fits = device.type == "cuda" and size * _SHARE <= torch.cuda.mem_get_info(device)[0]

    def moved(split: Images) -> Images:
        return split.to(device) if fits else replace(split, labels=split.labels.to(device))

    validation = moved(found.validation) if found.validation else None
    return Splits(moved(found.train), validation, moved(found.test), found.content)
