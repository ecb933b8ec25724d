"""One training between two iterations: its task, its optimizers, and all that a checkpoint holds of them."""

import copy
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
from pydantic import JsonValue

from workers import registry
from workers.catalog import load, parse_metric
from workers.contract import Place, Recipe
from workers.data.batches import Batches
from workers.evaluation.measures import Measures
from workers.evaluation.query_scores import QueryScores
from workers.tasks import At, Diverged, Task, Terms
from workers.training import checkpoint, determinism, pins
from workers.training.late_losses import LateLosses, lateness
from workers.training.length import Length, length
from workers.training.offers import Offers
from workers.training.optimization import Optimization

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
        pins.check(recipe, place.parts)
        seed = partial(determinism.derived, recipe.seed)
        views = getattr(registry.find("task", recipe.task.name, place.parts), "views", 1)
        self.batches = None if recipe.dataset is None else Batches(recipe, place, device, seed, views, tell)
        self.content = pins.check_content(recipe, place)
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
