"""A training's state: its parts, data, players, and what it is pinned to."""

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
from workers.catalog.inventory import Catalog, entry_at, inner_of, load, named, parse_metric
from workers.catalog.recipe import PRECISION_VERSIONS, UNKNOWN, code_of, former, need_of
from workers.contract import FOLDERS, CodeChangedError, DataMissingError, Place, Recipe
from workers.data.batches import Batches
from workers.data.file_content import below, content
from workers.data.images import files
from workers.evaluation.measures import Measures, QueryScores
from workers.figures.traces import AskedFigures
from workers.tasks import At, Diverged, Task, Terms
from workers.tasks._network import embedder
from workers.training import checkpoint, determinism
from workers.training.optimization import LateLosses, Length, Optimization, lateness, length


class Offers:
    """The parts of a recipe, built where its task asks for them."""

    def __init__(
        self, recipe: Recipe, place: Place, device: torch.device, batches: Batches | None, length: Length
    ) -> None:
        self._recipe, self._place, self._device = recipe, place, device
        self._batches, self._length = batches, length

    def task(self, measures: Measures) -> Task:
        """The task of the recipe; raises ValueError where it is of the form that tasks had in format 1."""
        recipe, parts = self._recipe, self._place.parts
        asks = _asks(recipe.task.name, parts)
        offers: dict[str, Any] = {
            "batches": self._batches, "measures": measures, "device": self._device,
            "figures": AskedFigures(recipe.figures, self._length.total, self._length.unit, recipe.distance),
            "seed": determinism.derived(recipe.seed, f"task/{recipe.task.name}"),
        }  # fmt: skip
        if "model" in asks:
            offers["model"] = self._model()
        for kind in ("loss", "regularizer"):
            if kind in asks:
                offers[kind] = self._made(kind) if kind in recipe.kinds else None
        if "eta" in asks:
            offers["eta"] = self._eta(offers.get("regularizer"))
        determinism.seed_everything(offers["seed"])  # for modules of the task's own
        made: Task = registry.build("task", recipe.task, parts, **offers)
        return made

    def _model(self) -> Any:
        if "backbone" not in self._recipe.kinds:
            return None
        backbone = self._made("backbone")
        return embedder(backbone, self._made("head", features=backbone.features), self._recipe)

    def _eta(self, regularizer: object) -> Any:
        """The weight of the regularizer by iteration; none where there is no regularizer."""
        eta, span = getattr(regularizer, "eta", None), self._length
        if eta is None:
            return None
        offers = {"eta": float(eta), "total": span.total, "epoch": span.epoch, "unit": span.unit}
        return registry.build("eta_schedule", self._recipe.eta_schedule, self._place.parts, **offers)

    def _made(self, kind: str, **more: Any) -> Any:
        """A part with weights or buffers; it is initialized from a seed of its own, whatever the others are."""
        determinism.seed_everything(determinism.derived(self._recipe.seed, kind))
        offers = {**self._of_images(), "root": self._place.data_root, "scratch": self._place.scratch, **more}
        return registry.build(kind, self._recipe.part(kind), self._place.parts, **offers).to(self._device)

    def _of_images(self) -> dict[str, Any]:
        if self._batches is None:
            return {"dim": self._recipe.embedding}
        train = self._batches.splits.train
        return {
            "channels": train.channels, "side": self._batches.augment.side, "classes": train.classes,
            "images": len(train), "dim": self._recipe.embedding, "batch": self._batches.batch,
            "epoch": self._length.epoch, "network": self._batches.network,
        }  # fmt: skip


def _asks(name: str, parts: Path | None) -> list[str]:
    """What the task `name` asks for; raises ValueError where it has not the form of a task."""
    entry = load(parts).get("task", name)
    if entry is not None and (message := former(entry)):
        raise ValueError(message)
    return entry.asks if entry else []


_EDITED: Final = "it was edited since the sweep was planned, or this machine has another copy of it"


def check(recipe: Recipe, parts: Path | None) -> None:
    """Raise ValueError where this machine's parts or data are not the ones that the recipe's fingerprint stands for.

    Raises CodeChangedError where that is the source of an own part.
    """
    versions = recipe.pins.versions
    wanted = [(kind, recipe.part(kind).name, versions.get(kind)) for kind in recipe.kinds]
    wanted += [(one.entry.kind, one.entry.name, versions.get(one.path)) for one in inner_of(recipe, load(parts))]
    computed = (*load(parts).metrics(recipe.dataset, recipe.task), *recipe.metrics, recipe.select.metric)
    metrics = {parse_metric(name)[0] for name in computed}
    # A metric in its first version is not pinned; a recipe without any pins was never completed.
    wanted += [("metric", name, versions.get(f"metric.{name}", 1 if versions else None)) for name in sorted(metrics)]
    for kind, name, pinned in wanted:
        here = getattr(registry.find(kind, name, parts), "version", 1)
        if pinned is not None and pinned != here:
            raise ValueError(f"pins: the recipe is for version {pinned} of {kind} {name!r}; this machine has {here}")
    _check_code(recipe, computed, load(parts))
    pinned, here = versions.get("precision", 1), PRECISION_VERSIONS.get(recipe.precision, 1)
    if versions and pinned != here:
        value = f"`precision: {recipe.precision}`"
        raise ValueError(f"pins: the recipe is for version {pinned} of {value}; this machine has {here}")
    if recipe.dataset is None:
        return
    dataset = registry.find("dataset", recipe.dataset.name, parts)
    for name, pinned_content in recipe.pins.manifests.items():
        if (content := getattr(dataset, "manifests", {}).get(name)) != pinned_content:
            wanted_set = f"content {pinned_content} of test set {name!r} of dataset {recipe.dataset.name!r}"
            raise ValueError(f"pins: the recipe is for {wanted_set}; this machine has {content}")
    manifest = getattr(dataset, "manifest", None)
    if recipe.pins.manifest is not None and recipe.pins.manifest != manifest:
        raise ValueError(
            f"pins: the recipe is for content {recipe.pins.manifest} of dataset {recipe.dataset.name!r}; "
            f"this machine has {manifest}"
        )


def own_sources(recipe: Recipe, parts: Path | None) -> dict[str, bytes]:
    """The sources of the own parts of a recipe by their paths below the own folder; empty where it has none."""
    found: dict[str, bytes] = {}
    names = named(recipe, load(parts)) if recipe.pins.code else {}
    for key in recipe.pins.code:
        kind, _, option = key.partition(".")
        entry = entry_at(key, names, load(parts)) if kind != "metric" else load(parts).get("metric", option)
        if entry is not None and entry.own and parts is not None:
            found |= own_code.sources(parts / FOLDERS[entry.kind] / f"{entry.name}.py", parts)
    return found


def check_content(recipe: Recipe, place: Place) -> str | None:
    """The content of the files that the recipe reads of the data root, where it is pinned.

    Raises DataMissingError where these are other files than the recipe's fingerprint stands for.
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


def _check_code(recipe: Recipe, metrics: Sequence[str], catalog: Catalog) -> None:
    """Raise CodeChangedError where an own part has another source here than the recipe's fingerprint stands for."""
    if not recipe.pins.versions:
        return  # a recipe that was never completed stands for whatever code there is
    parts = named(recipe, catalog)
    pinned, here = recipe.pins.code, code_of(parts, metrics, catalog)
    for key in {**pinned, **here}:
        if pinned.get(key) != here.get(key):
            kind, _, option = key.partition(".")
            part = f"{kind} {(option if kind == 'metric' else parts.get(key, option))!r}"
            found = f"the code of own {part} is {here.get(key)}, and the recipe is for {pinned.get(key)}"
            raise CodeChangedError(f"pins: {found}: {_EDITED}; submit the sweep again")


Weights = dict[str, dict[str, Any]]
"""The states of a task's modules by their names."""


@dataclass(frozen=True)
class Best:
    """The best point so far on one split."""

    step: int
    score: float
    modules: Weights


@dataclass
class FinalMetrics:
    """What is known of weights at the end of a training, by the step that they are of."""

    found: dict[int, dict[str, float]] = field(default_factory=dict)
    """Their metrics, keyed `test/map@r`."""
    over: list[int] = field(default_factory=list)
    """Those of which the task has measured all that it measures at the end."""
    now: int | None = None
    """Those of which it does."""
    queries: dict[int, dict[str, QueryScores]] = field(default_factory=dict)
    """What each query scored, by the split that tests."""


class Session:
    """The task of a recipe at work, after `step` iterations."""

    def __init__(
        self, recipe: Recipe, place: Place, device: torch.device, tell: Callable[[str], None] = lambda _: None
    ) -> None:
        """`tell` hears what takes its time before the first iteration."""
        self.recipe, self.device = recipe, device
        check(recipe, place.parts)
        seed = partial(determinism.derived, recipe.seed)
        views = getattr(registry.find("task", recipe.task.name, place.parts), "views", 1)
        self.batches = None if recipe.dataset is None else Batches(recipe, place, device, seed, views, tell)
        self.content = check_content(recipe, place)
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
        self.ended = tuple(name for name in measures.names if entry and catalog.at_the_end(name, entry))
        self.task: Task = Offers(recipe, place, device, self.batches, self.length).task(measures)
        self.weights_origin = self._origin()
        self._sign = self._selection(place.parts)
        self.cheap: tuple[str, ...] = getattr(self.task, "watched", ())
        self.ending = FinalMetrics()
        self.players = self._players(place.parts)
        self.step = self.unimproved = 0
        self.best: Best | None = None
        self.beside: Best | None = None  # on the test split, where the recipe asks for it
        self.curves: dict[str, list[tuple[int, float]]] = {}
        self._losses, self._late = LateLosses(), lateness(device)
        self._since = time.monotonic()
        determinism.seed_everything(determinism.derived(recipe.seed, "steps"))

    @property
    def read(self) -> dict[str, JsonValue]:
        """What it is made of, for the provenance: the images, the files that hold them, the weights, own code."""
        said: dict[str, JsonValue] = {"manifest": self.manifest, "weights": self.weights_origin}
        said |= {"content": self.content} if self.content else {}
        return said | ({"code": {**self.recipe.pins.code}} if self.recipe.pins.code else {})

    def _origin(self) -> str | None:
        """The hash of the pretrained weights; raises ValueError where the recipe is for others."""
        stated = (getattr(module, "origin", None) for module in self.task.modules().values())
        origin: str | None = next((one for one in stated if one is not None), None)
        wanted = self.recipe.pins.weights
        if wanted not in {None, origin}:
            raise ValueError(f"pins: the recipe is for weights {wanted} of the backbone; this machine has {origin}")
        return origin

    def _selection(self, parts: Path | None) -> int:
        """+1 or -1 where a higher or a lower metric is better; raises ValueError where nothing can be chosen by it."""
        select = self.recipe.select
        if select.split == "validation" and "validation" not in self.splits:
            raise ValueError("select.split is 'validation', but the recipe holds nothing out for it")
        better = registry.find("metric", parse_metric(select.metric)[0], parts).better
        if better == "none":
            raise ValueError(f"select.metric {select.metric!r} cannot choose: neither higher nor lower is better")
        if any(select.metric in self.task.late(split) for split in select.watched):
            raise ValueError(f"select.metric {select.metric!r} is dear of so many images, and computed at the end only")
        if select.split != "last" and select.metric in self.ended:
            raise ValueError(f"select.metric {select.metric!r} is measured at the end only; select by 'last'")
        return 1 if better == "higher" else -1

    def _players(self, parts: Path | None) -> dict[str, Optimization]:
        """The optimizer of each player."""
        every = self.task.modules().values()
        return {
            name: Optimization(self.recipe, self.length, one.modules, self.device, parts, every, one.rate)
            for name, one in self.task.optimized().items()
        }

    def turns(self) -> Iterator[Terms]:
        """What each player minimizes in the iteration that comes, of the next batch; resumed after its update."""
        rates = [player.prepare(self.step) for player in self.players.values()]
        batch = self.batches.next() if self.batches else None
        self._keep()
        optimizers = {name: player.optimizer for name, player in self.players.items()}
        for terms in self.task.step(batch, At(self.step, rates[0], optimizers)):
            yield terms
            if len(self.players) > 1:  # the next player computes with what this update has left
                self._keep()

    def _keep(self) -> None:
        for player in self.players.values():
            player.scale.keep()

    def finite(self, terms: Terms) -> bool:
        """Whether the player whose turn it is may move.

        Without float16 a loss that is not finite ends the training, and of a GPU's losses this is known late: what was
        computed since counts for nothing. Raises Diverged, with `step` as it was then.
        """
        if self.players[terms.player].scale.enabled:
            return bool(terms.total.isfinite())
        self._losses.note(self.step, terms.total)
        self._settle(self.step - self._late)
        return True

    def settle(self) -> None:
        """Wait until all losses so far are known to be finite, before anything is told of; raises Diverged."""
        self._settle(self.step)

    def _settle(self, step: int) -> None:
        diverged = self._losses.diverged(step)
        if diverged is not None:
            self.step = diverged
            raise Diverged("the loss is not finite")

    def descend(self, terms: Terms) -> None:
        """One step of the player's optimizer down the gradient of what it minimizes."""
        self.players[terms.player].down(terms.total)

    def skip(self, terms: Terms) -> str:
        """Leave out the turn of a player whose loss is not finite, where float16 may be why, and say so.

        Raises Diverged.
        """
        return self.players[terms.player].scale.skip()

    @property
    def over(self) -> bool:
        """Whether there is nothing more to train: at the end, or where patience is."""
        patience = self.recipe.patience
        return self.step >= self.total or (patience is not None and self.unimproved >= patience)

    def among(self, names: Sequence[str]) -> list[str]:
        """Those of the metrics `names` that an evaluation computes, and the one that selects."""
        declared = [name for name in names if name in self.metrics]
        return [name for name in dict.fromkeys([self.recipe.select.metric, *declared]) if name not in self.ended]

    def asked(self, values: Mapping[str, float]) -> dict[str, float]:
        """Those of `values`, keyed `test/map@r`, whose metrics are of this training; others only tell how it goes."""
        known = {*self.metrics, self.recipe.select.metric}
        return {key: value for key, value in values.items() if key.partition("/")[2] in known}

    def improves(self, score: float, on: float) -> bool:
        """Whether the selection metric prefers `score` to `on`; equal ones do not improve."""
        return (score - on) * self._sign > 0

    def keep_best(self, score: float) -> None:
        """Take the present weights as the best, which have the selection metric `score`."""
        self.best = Best(self.step, score, self.weights())

    def keep_beside(self, score: float) -> None:
        """Take them as the best on the test split; weights that are the best anyway are held once."""
        shared = self.best is not None and self.best.step == self.step
        self.beside = Best(self.step, score, self.best.modules if self.best and shared else self.weights())

    def weights(self) -> Weights:
        """A copy of the present weights."""
        return {name: _copied(module.state_dict()) for name, module in self.task.modules().items()}

    def load(self, weights: Mapping[str, Mapping[str, Any]]) -> None:
        """Take these weights; modules that they have nothing of stay."""
        for name, module in self.task.modules().items():
            if name in weights:
                module.load_state_dict(weights[name])

    @property
    def seconds(self) -> float:
        """The time spent training, over all attempts."""
        return time.monotonic() - self._since

    def state_dict(self) -> dict[str, Any]:
        """Everything that decides how the training goes on, and what it has found so far; raises Diverged."""
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
            "beside": vars(self.beside) if self.beside else None,
            "ending": asdict(self.ending),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where `state_dict` was taken; raises ValueError where that was with other images."""
        if state.get("content", self.manifest) != self.manifest:
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
        self.ending = FinalMetrics(**state.get("ending", {}))
        self.best, self.beside = (Best(**found) if found else None for found in (state["best"], state.get("beside")))

    def resume(self, path: Path) -> None:
        """Go on from a checkpoint file; raises CheckpointError where it is damaged or of another recipe."""
        with checkpoint.fitting(path, self.recipe) as state:
            self.load_state_dict(state)


def _copied(state: Mapping[str, Any]) -> dict[str, Any]:
    """The state of a module apart from it, on the CPU."""
    return {
        name: value.detach().cpu().clone() if isinstance(value, torch.Tensor) else copy.deepcopy(value)
        for name, value in state.items()
    }
