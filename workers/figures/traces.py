"""What figures follow of a few training images while a training runs: their directions and their norms."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from workers.embeddings import geometry
from workers.embeddings.diagnostics import Directions, Variation
from workers.figures.arrays import Arrays, some
from workers.figures.options import (
    DirectionVariation,
    Followed,
    HeatMapStages,
    NormTraces,
    Staged,
    TsneStages,
)
from workers.figures.stages import ClassVectors, CosineLook, PlaneLook, StageTrace
from workers.recipe.selection import Distance


class AskedFigures(NamedTuple):
    """The figures that a recipe asks for, and the iterations over which they may follow something."""

    figures: Sequence[object]
    total: int
    unit: int = 1
    """The iterations of one step as the recipe counts: 1, or an epoch."""
    distance: Distance = "cosine"
    """What maps and rankings of images go by."""


class Trace(Protocol):
    """One figure's looks at the same images, in evaluation mode and by the transform of evaluations."""

    index: Tensor
    """Which training images, [n] on the CPU: drawn by the figure's seed, in the order of the data set."""

    def due(self, step: int) -> bool:
        """Whether to look after `step` iterations; 0 is before the first."""
        ...

    def note(self, step: int, embeddings: Tensor) -> None:
        """Take in their raw embeddings [n, d] after `step` iterations."""
        ...

    def arrays(self, labels: Tensor) -> Arrays:
        """What the figure shows, of training images with these labels [all]."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint must hold to go on."""
        ...

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where `state_dict` was taken."""
        ...


def asked(figures: AskedFigures, labels: Tensor, vectors: ClassVectors) -> dict[str, Trace]:
    """The traces that a recipe's figures ask for, of training images with these labels [all], by their name.

    `vectors` gives those of the loss at any time. Raises ValueError where the training is too short for a look.
    """
    traces: dict[str, Trace] = {}
    total, unit = figures.total, figures.unit
    for figure in figures.figures:
        if isinstance(figure, Followed | Staged):
            trouble = figure.trouble(total if isinstance(figure, Followed) else total // unit)
            if trouble:
                raise ValueError(f"figures: {figure.name!r} {trouble}")
        if isinstance(figure, DirectionVariation):
            traces[figure.name] = DirectionTrace(figure, len(labels))
        elif isinstance(figure, NormTraces):
            traces[figure.name] = NormTrace(figure, len(labels), total)
        elif isinstance(figure, TsneStages):
            traces[figure.name] = StageTrace(figure, unit, PlaneLook(figure, labels, vectors, figures.distance))
        elif isinstance(figure, HeatMapStages):
            traces[figure.name] = StageTrace(figure, unit, CosineLook(figure, labels, vectors))
    return traces


class DirectionTrace:
    """By what angle f^ of each image turned from look to look (SEC figure 7)."""

    def __init__(self, figure: DirectionVariation, count: int) -> None:
        self.index = some(torch.arange(count), figure.images, figure.seed)
        self._every, self._bins = figure.every, figure.bins
        self._directions = Directions()
        self._steps: list[int] = []
        self._seen: list[Variation] = []

    def due(self, step: int) -> bool:
        """Whether to look after `step` iterations."""
        return step % self._every == 0

    def note(self, step: int, embeddings: Tensor) -> None:
        """Take in the raw embeddings [n, d] after `step` iterations."""
        variation = self._directions.look(embeddings)
        if variation is not None:
            self._steps.append(step)
            self._seen.append(variation)

    def arrays(self, labels: Tensor) -> Arrays:
        """Of w windows, each up to iteration `step` [w], and n images `index` with `label` [n].

        `angle` and `one_minus_cos` [w, n], the angle's mean and population variance in each window (`window_mean`,
        `window_var` [w]), the histogram of all angles (`edges`, `counts`), and of both the mean and the variance over
        all windows, named as in `Variation.summary`.
        """
        angle, cosine = self._stacked()
        whole = Variation(angle.flatten(), cosine.flatten()).summary() if len(self._steps) else {}
        turned = angle.numpy()
        counts, edges = np.histogram(turned, bins=self._bins)
        return {
            "step": np.array(self._steps, dtype=np.int64), "index": self.index.numpy(),
            "label": labels.cpu()[self.index].numpy(), "angle": turned, "one_minus_cos": cosine.numpy(),
            "window_mean": turned.mean(axis=1), "window_var": turned.var(axis=1), "edges": edges, "counts": counts,
            **{name: np.array(value) for name, value in whole.items()},
        }  # fmt: skip

    def _stacked(self) -> Variation:
        """All windows, [w, n]."""
        if not self._seen:
            nothing = torch.empty(0, len(self.index), dtype=torch.float64)
            return Variation(nothing, nothing)
        return Variation(*(torch.stack(column) for column in zip(*self._seen, strict=True)))

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint must hold to go on: n x d numbers, and 2 x n a window."""
        return {"directions": self._directions.state_dict(), "steps": [*self._steps], "seen": [*self._stacked()]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where `state_dict` was taken."""
        self._directions.load_state_dict(state["directions"])
        self._steps = list(state["steps"])
        self._seen = [Variation(*pair) for pair in zip(*state["seen"], strict=True)]


class NormTrace:
    """||f|| of each image from look to look (rebuttal figure 1)."""

    def __init__(self, figure: NormTraces, count: int, total: int) -> None:
        self.index = some(torch.arange(count), figure.images, figure.seed)
        self._every = figure.interval(total)
        self._steps: list[int] = []
        self._norms: list[Tensor] = []

    def due(self, step: int) -> bool:
        """Whether to look after `step` iterations."""
        return step % self._every == 0

    def note(self, step: int, embeddings: Tensor) -> None:
        """Take in the raw embeddings [n, d] after `step` iterations."""
        self._steps.append(step)
        self._norms.append(geometry.norms(embeddings.detach()).cpu())

    def arrays(self, labels: Tensor) -> Arrays:
        """`norm` [w, n] at the iterations `step` [w], of n images `index` with `label` [n]."""
        return {
            "step": np.array(self._steps, dtype=np.int64), "index": self.index.numpy(),
            "label": labels.cpu()[self.index].numpy(), "norm": torch.stack(self._norms).numpy(),
        }  # fmt: skip

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint must hold to go on."""
        return {"steps": [*self._steps], "norms": [*self._norms]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where `state_dict` was taken."""
        self._steps, self._norms = list(state["steps"]), list(state["norms"])
