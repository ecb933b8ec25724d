"""The state of a training: its parts, data and players, and the check of its pins."""

import copy
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import torch
from pydantic import JsonValue

from workers import registry
from workers.catalog import own_code
from workers.catalog.inventory import Catalog, Entry, entry_at, named, parse_metric
from workers.catalog.recipe import UNKNOWN, changes, code_of, need_of, stamp
from workers.catalog.source import load
from workers.catalog.validation import incomplete
from workers.contract import FOLDERS, CodeChangedError, DataMissingError, Place, Recipe
from workers.data.augmentation import SIGNED, Preprocess
from workers.data.batches import Batches
from workers.data.file_content import below, content
from workers.data.images import files
from workers.data.pictures import Form
from workers.evaluation.measures import Measures, NotedScores, QueryScores
from workers.figures.traces import AskedFigures
from workers.tasks import At, Diverged, Task, Terms
from workers.tasks._shared import Embedder, embedder
from workers.training import checkpoint, determinism
from workers.training.optimization import LateLosses, Length, Optimization, lateness, length

_MOST_SKIPPED: Final = 1_000  # names of skipped images in a result
_EDITED: Final = "it was edited since the sweep was planned, or this machine has another copy of it"

Weights = dict[str, dict[str, Any]]
"""The states of a task's modules by their names."""


class Session:
    """The task of a recipe in training, after `step` iterations."""

    def __init__(
        self, recipe: Recipe, place: Place, device: torch.device, log: Callable[[str], None] = lambda _: None
    ) -> None:
        """`log` receives lines of the log about slow preparations."""
        self.recipe, self.device = recipe, device
        check(recipe, place.parts)
        seed = partial(determinism.derived, recipe.seed)
        views = getattr(registry.find("task", recipe.task.name, place.parts), "views", 1)
        self.batches = None if recipe.dataset is None else Batches(recipe, place, device, seed, views, log)
        self.content = _check_content(recipe, place)
        self.remarks = self.batches.remarks if self.batches else ()
        images, batch = (len(self.batches.splits.train), self.batches.sampler.batch) if self.batches else (1, 1)
        self.length: Length = length(recipe, images, batch)
        self.total = self.length.total
        self.manifest = self.batches.splits.content if self.batches else None
        self.splits = self.batches.splits.names if self.batches else ("test",)
        self.tests = tuple(name for name in self.splits if name.startswith("test"))
        catalog = load(place.parts)
        declared = catalog.metrics(recipe.dataset, recipe.task)
        self.metrics = tuple(dict.fromkeys([*declared, *recipe.metrics]))
        names = dict.fromkeys([*self.metrics, recipe.select.metric])
        self.measures = measures = Measures(names, place.parts, seed("clusters"), recipe.distance)
        entry = catalog.get("task", recipe.task.name)
        assert entry is not None
        self.ended = tuple(name for name in measures.names if catalog.at_the_end(name, entry))
        self._place = place
        self.task: Task = self._task(entry, measures)
        self.weights_origin = self._origin()
        self._sign = self._selection(place.parts)
        self.cheap: tuple[str, ...] = getattr(self.task, "watched", ())
        self.ending = FinalMetrics()
        self.players = self._players(place.parts)
        self.step = self.unimproved = 0
        self.best: Best | None = None
        self.best_test: Best | None = None  # on the test split, if the recipe asks for it
        self.curves: dict[str, list[tuple[int, float]]] = {}
        self._losses, self._late = LateLosses(), lateness(device)
        self._since = time.monotonic()
        determinism.seed_everything(determinism.derived(recipe.seed, "steps"))

    def scored(self, scores: dict[str, QueryScores]) -> NotedScores:
        """The scores of test queries with the names of their classes."""
        named = {split: self.batches.splits.named(split).names for split in self.tests} if self.batches else {}
        return NotedScores(scores, {split: names for split, names in named.items() if names}, self.manifest)

    @property
    def read(self) -> dict[str, JsonValue]:
        """Provenance: hashes of images, files, weights and own code, and the images that were skipped."""
        facts: dict[str, JsonValue] = {"manifest": self.manifest, "weights": self.weights_origin}
        facts |= {"content": self.content} if self.content else {}
        if self.batches and (names := self.batches.skipped):
            facts["skipped"] = {"images": len(names), "names": [*names[:_MOST_SKIPPED]]}
        return facts | ({"code": {**self.recipe.pins.code}} if self.recipe.pins.code else {})

    @property
    def network(self) -> dict[str, JsonValue]:
        """What builds the embedding network again without the data set, and how images are prepared for it.

        Empty if the task has no embedding network (workers/model.py).
        """
        model, batches = getattr(self.task, "model", None), self.batches
        if batches is None or not isinstance(model, Embedder):
            return {}
        pictures = batches.pictures.train
        form = pictures.form or Form("keep", mode="RGB" if pictures.channels == 3 else "L")
        preprocess = getattr(model.backbone, "preprocess", SIGNED)
        return {
            "offers": self._offers(),
            "decode": asdict(form),
            # Of images from arrays of one shape, which nothing resizes.
            "shape": None if pictures.form or pictures.shapes is not None else [*pictures.images.shape[1:]],
            "channels": pictures.channels,
            "centre_crop": batches.crop,
            "normalize": asdict(preprocess) if isinstance(preprocess, Preprocess) else None,
            "mirrored": bool(getattr(self.task, "mirrored", False)),
        }

    def _task(self, entry: Entry, measures: Measures) -> Task:
        """Builds the task of the recipe with the parts that it asks for; raises ValueError if it lacks facts."""
        recipe, parts, length = self.recipe, self._place.parts, self.length
        if message := incomplete(entry):
            raise ValueError(message)
        offers: dict[str, Any] = {
            "batches": self.batches, "measures": measures, "device": self.device,
            "figures": AskedFigures(recipe.figures, length.total, length.unit, recipe.distance),
            "seed": determinism.derived(recipe.seed, f"task/{recipe.task.name}"),
        }  # fmt: skip
        if "model" in entry.inputs:
            offers["model"] = self._model()
        for kind in ("loss", "regularizer"):
            if kind in entry.inputs:
                offers[kind] = self._made(kind) if kind in recipe.kinds else None
        if "eta" in entry.inputs:
            offers["eta"] = self._eta(offers.get("regularizer"))
        determinism.seed_everything(offers["seed"])  # for modules of the task's own
        made: Task = registry.build("task", recipe.task, parts, **offers)
        return made

    def _model(self) -> Embedder | None:
        if "backbone" not in self.recipe.kinds:
            return None
        backbone = self._made("backbone")
        return embedder(backbone, self._made("head", features=backbone.features), self.recipe)

    def _eta(self, regularizer: object) -> Any:
        """The schedule of the regularizer's weight; None if there is no regularizer."""
        eta, span = getattr(regularizer, "eta", None), self.length
        if eta is None:
            return None
        offers = {"eta": float(eta), "total": span.total, "epoch": span.epoch, "unit": span.unit}
        return registry.build("eta_schedule", self.recipe.eta_schedule, self._place.parts, **offers)

    def _made(self, kind: str, **more: Any) -> Any:
        """A part with weights or buffers, initialized from a seed of its own."""
        determinism.seed_everything(determinism.derived(self.recipe.seed, kind))
        offers = {**self._offers(), "root": self._place.data_root, "scratch": self._place.scratch, **more}
        return registry.build(kind, self.recipe.part(kind), self._place.parts, **offers).to(self.device)

    def _offers(self) -> dict[str, Any]:
        """What parts with weights are offered of the images."""
        if self.batches is None:
            return {"dim": self.recipe.embedding}
        train = self.batches.splits.train
        return {
            "channels": train.channels, "side": self.batches.augment.side, "classes": train.classes,
            "images": len(train), "dim": self.recipe.embedding, "batch": self.batches.batch,
            "epoch": self.length.epoch, "network": self.batches.network,
        }  # fmt: skip

    def _origin(self) -> str | None:
        """The hash of the pretrained weights; raises ValueError if the recipe requires others."""
        stated = (getattr(module, "origin", None) for module in self.task.modules().values())
        origin: str | None = next((origin for origin in stated if origin is not None), None)
        wanted = self.recipe.pins.weights
        if wanted not in {None, origin}:
            raise ValueError(f"pins: the recipe is for weights {wanted} of the backbone; this machine has {origin}")
        return origin

    def _selection(self, parts: Path | None) -> int:
        """+1 if a higher value of the metric is better, or -1; raises ValueError if it costs too much to select by."""
        select = self.recipe.select
        if any(select.metric in self.task.late(split) for split in select.watched):
            raise ValueError(
                f"select.metric {select.metric!r} is expensive for so many images, and computed at the end only"
            )
        better = registry.find("metric", parse_metric(select.metric)[0], parts).better
        return 1 if better == "higher" else -1

    def _players(self, parts: Path | None) -> dict[str, Optimization]:
        every = self.task.modules().values()
        return {
            name: Optimization(self.recipe, self.length, player.modules, self.device, parts, every, player.rate)
            for name, player in self.task.optimized().items()
        }

    def turns(self) -> Iterator[Terms]:
        """Yields the terms that each player minimizes in the next iteration; resumed after the player's update."""
        rates = [player.prepare(self.step) for player in self.players.values()]
        batch = self.batches.next() if self.batches else None
        self._keep()
        optimizers = {name: player.optimizer for name, player in self.players.items()}
        for terms in self.task.step(batch, At(self.step, rates[0], optimizers)):
            yield terms
            if len(self.players) > 1:  # the next player computes after this update
                self._keep()

    def _keep(self) -> None:
        for player in self.players.values():
            player.scale.keep()

    def finite(self, terms: Terms) -> bool:
        """Whether the loss terms are finite, so that the player may make its step.

        Without float16, a loss that is not finite ends the training. On a GPU this is known later; what was computed
        since does not count. Raises Diverged, with `step` as it was then.
        """
        if self.players[terms.player].scale.enabled:
            return bool(terms.total.isfinite())
        self._losses.note(self.step, terms.total)
        self._settle(self.step - self._late)
        return True

    def settle(self) -> None:
        """Wait until all losses so far are known to be finite, before anything is reported; raises Diverged."""
        self._settle(self.step)

    def _settle(self, step: int) -> None:
        diverged = self._losses.diverged(step)
        if diverged is not None:
            self.step = diverged
            raise Diverged("the loss is not finite")

    @property
    def over(self) -> bool:
        """Whether the training has ended, by its length or by patience."""
        patience = self.recipe.patience
        return self.step >= self.total or (patience is not None and self.unimproved >= patience)

    def among(self, names: Sequence[str]) -> list[str]:
        """The metrics among `names` that an evaluation computes, with the metric that selects."""
        declared = [name for name in names if name in self.metrics]
        return [name for name in dict.fromkeys([self.recipe.select.metric, *declared]) if name not in self.ended]

    def asked(self, values: Mapping[str, float]) -> dict[str, float]:
        """The `values`, keyed `test/map@r`, that are metrics of this training; others only show progress."""
        known = {*self.metrics, self.recipe.select.metric}
        return {key: value for key, value in values.items() if key.partition("/")[2] in known}

    def improves(self, score: float, on: float) -> bool:
        """Whether `score` is strictly better than the score `on`."""
        return (score - on) * self._sign > 0

    def keep_best_test(self, score: float) -> None:
        """Keep the current weights as the best on the test split; equal weights are stored once."""
        shared = self.best is not None and self.best.step == self.step
        self.best_test = Best(self.step, score, self.best.modules if self.best and shared else self.weights())

    def weights(self) -> Weights:
        """A copy of the current weights."""
        return {name: _copied(module.state_dict()) for name, module in self.task.modules().items()}

    def load(self, weights: Mapping[str, Mapping[str, Any]]) -> None:
        """Load weights into the modules; modules without weights stay as they are."""
        for name, module in self.task.modules().items():
            if name in weights:
                module.load_state_dict(weights[name])

    @property
    def seconds(self) -> float:
        """The training time of all attempts, in seconds."""
        return time.monotonic() - self._since

    def state_dict(self) -> dict[str, Any]:
        """The state of the training for a checkpoint, including its results so far; raises Diverged."""
        self.settle()
        return {
            "fingerprint": self.recipe.fingerprint,
            "content": self.manifest,
            "step": self.step,
            "unimproved": self.unimproved,
            "seconds": self.seconds,
            "modules": {name: module.state_dict() for name, module in self.task.modules().items()},
            "players": {name: player.state_dict() for name, player in self.players.items()},
            "batches": self.batches.state_dict() if self.batches else None,
            "task": self.task.state_dict(),
            "random": determinism.random_state(self.device),
            "curves": self.curves,
            "best": vars(self.best) if self.best else None,
            "beside": vars(self.best_test) if self.best_test else None,
            "ending": asdict(self.ending),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state of the training; raises ValueError if it belongs to other images."""
        if state["content"] != self.manifest:
            raise ValueError(f"it was trained on {state['content']}, and the data set is {self.manifest} now")
        self.step, self.unimproved = state["step"], state["unimproved"]
        self._since = time.monotonic() - state["seconds"]
        for name, module in self.task.modules().items():
            module.load_state_dict(state["modules"][name])
        for name, player in self.players.items():
            player.load_state_dict(state["players"][name])
        if self.batches:
            self.batches.load_state_dict(state["batches"])
        self.task.load_state_dict(state["task"])
        determinism.restore_random_state(state["random"], self.device)
        self.curves = state["curves"]
        self.ending = FinalMetrics(**state["ending"])
        self.best, self.best_test = (Best(**best) if best else None for best in (state["best"], state["beside"]))

    def resume(self, path: Path) -> None:
        """Resume from a checkpoint file; raises CheckpointError if it is damaged or of another recipe."""
        with checkpoint.fitting(path, self.recipe) as state:
            self.load_state_dict(state)


def check(recipe: Recipe, parts: Path | None) -> None:
    """Raise ValueError if parts or data here differ from the recipe's pins, CodeChangedError for code of own parts."""
    catalog = load(parts)
    for change in changes(stamp(recipe.model_dump(mode="json")), catalog):
        content = change.what.removeprefix("content of ")
        if not change.own_code:
            wanted = f"{change.then} of" if content == change.what else f"content {change.then} of"
            raise ValueError(f"pins: the recipe is for {wanted} {content}; this machine has {change.now}")
    declared = catalog.metrics(recipe.dataset, recipe.task)
    _check_code(recipe, [*declared, *recipe.metrics, recipe.select.metric], catalog)


def _check_code(recipe: Recipe, metrics: Sequence[str], catalog: Catalog) -> None:
    """Raise CodeChangedError if the source of an own part differs from the recipe's pins."""
    if not recipe.pins.versions:
        return  # the recipe was not completed, so that any code will do
    parts = named(recipe, catalog)
    pinned, here = recipe.pins.code, code_of(parts, metrics, catalog)
    for key in {**pinned, **here}:
        if pinned.get(key) != here.get(key):
            kind, _, option = key.partition(".")
            part = f"{kind} {(option if kind == 'metric' else parts.get(key, option))!r}"
            found = f"the code of own {part} is {here.get(key)}, and the recipe is for {pinned.get(key)}"
            raise CodeChangedError(f"pins: {found}: {_EDITED}; submit the sweep again")


def _check_content(recipe: Recipe, place: Place) -> str | None:
    """The content of the files that the recipe reads in the data root, if it is pinned.

    Raises DataMissingError if the files are others.
    """
    pinned = recipe.pins.content
    if pinned is None or pinned.startswith(UNKNOWN):
        return None
    need = need_of(recipe.dataset, recipe.backbone, load(place.parts))
    read = set() if need is None else below(place.data_root, need.files).files
    if need is not None and need.dataset is not None and recipe.dataset is not None:
        read |= files(recipe.dataset, place.data_root, place.scratch, place.parts)
    here = content(read, place.scratch)
    if here != pinned:
        raise DataMissingError(
            f"{need} in {place.data_root.absolute()}: other files than when the sweep was planned (content "
            f"{here[:15]}, expected {pinned[:15]}); put these back, or submit the sweep again"
        )
    return here


@dataclass
class FinalMetrics:
    """The final metrics of a training, by the step of the weights."""

    found: dict[int, dict[str, float]] = field(default_factory=dict)  # keyed `test/map@r`
    over: list[int] = field(default_factory=list)  # the steps for which the task has measured everything at the end
    now: int | None = None  # the step for which it is measuring
    queries: dict[int, dict[str, QueryScores]] = field(default_factory=dict)  # the scores of queries, by test split


@dataclass(frozen=True)
class Best:
    """The best evaluation so far on a split: its step, score and weights."""

    step: int
    score: float
    modules: Weights


def _copied(state: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of a module's state on the CPU."""
    return {
        name: value.detach().cpu().clone() if isinstance(value, torch.Tensor) else copy.deepcopy(value)
        for name, value in state.items()
    }


def own_sources(recipe: Recipe, parts: Path | None) -> dict[str, bytes]:
    """The sources of a recipe's own parts by their paths below the folder `parts`."""
    found: dict[str, bytes] = {}
    names = named(recipe, load(parts)) if recipe.pins.code else {}
    for key in recipe.pins.code:
        kind, _, option = key.partition(".")
        entry = entry_at(key, names, load(parts)) if kind != "metric" else load(parts).get("metric", option)
        if entry is not None and entry.own and parts is not None:
            found |= own_code.sources(parts / FOLDERS[entry.kind] / f"{entry.name}.py", parts)
    return found
