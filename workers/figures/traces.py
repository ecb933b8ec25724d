"""Figures that are recorded while a network trains: stages, samples, traces."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from workers import geometry
from workers.figures.arrays import Arrays, in_the_plane, some
from workers.figures.options import (
    DirectionVariation,
    Distance,
    Followed,
    FollowedSamples,
    HeatMapStages,
    NormTraces,
    Staged,
    TsneStages,
)
from workers.geometry import Directions, Variation


class SampleLooks:
    """The samples that a generator makes of the same noise, from before the first iteration on (SVMax figure 5)."""

    def __init__(self, figure: FollowedSamples, total: int) -> None:
        self.file, self.points, self.every = figure.file, figure.points, figure.interval(total)
        self._steps: list[int] = []
        self._seen: list[Tensor] = []

    def note(self, step: int, samples: Tensor) -> None:
        """Take in the samples [n, 2] after `step` iterations."""
        self._steps.append(step)
        self._seen.append(samples.detach().float().cpu())

    def arrays(self, centres: Tensor, deviation: float) -> Arrays:
        """`xy` [w, n, 2] after the iterations `step` [w], beside n points of the mixture itself, `target` [n, 2].

        `centres` [k, 2] and `deviation` are the mixture's; its points are the same in all trainings.
        """
        rule, middles = torch.Generator().manual_seed(0), centres.float().cpu()
        drawn = middles[torch.randint(len(middles), (self.points,), generator=rule)]
        target = drawn + deviation * torch.randn(drawn.shape, generator=rule)
        return {
            "step": np.array(self._steps, dtype=np.int64), "xy": torch.stack(self._seen).numpy(),
            "target": target.numpy(), "centres": middles.numpy(), "deviation": np.array(deviation),
        }  # fmt: skip

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint must hold to go on."""
        return {"steps": [*self._steps], "seen": [*self._seen]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where `state_dict` was taken."""
        self._steps, self._seen = list(state["steps"]), list(state["seen"])


ClassVectors = Callable[[], Tensor | None]
"""What a loss learns of classes, at the time of the call: [classes, k, dim]; none where it learns nothing of them."""


class StageLook(Protocol):
    """What one figure sees at a stage."""

    index: Tensor
    """Which training images, [n] on the CPU."""

    def seen(self, embeddings: Tensor) -> dict[str, Tensor]:
        """What it keeps of this stage, of their raw embeddings [n, d]."""
        ...

    def fixed(self) -> Arrays:
        """What is the same at every stage."""
        ...


class StageTrace:
    """One figure's looks at the stages that it names."""

    def __init__(self, figure: Staged, unit: int, look: StageLook) -> None:
        self.index, self._look = look.index, look
        self._stages = {at * unit: at for at in figure.at}
        self._steps: list[int] = []
        self._seen: list[dict[str, Tensor]] = []

    def due(self, step: int) -> bool:
        """Whether to look after `step` iterations."""
        return step in self._stages

    def note(self, step: int, embeddings: Tensor) -> None:
        """Take in the raw embeddings [n, d] after `step` iterations."""
        self._steps.append(step)
        self._seen.append(self._look.seen(embeddings))

    def arrays(self, labels: Tensor) -> Arrays:
        """The iterations `step` [w] and the stages `at` [w] that the training reached, and what was seen there."""
        at = [self._stages[step] for step in self._steps]
        found: Arrays = {"step": np.array(self._steps, dtype=np.int64), "at": np.array(at, dtype=np.int64)}
        for name in self._seen[0] if self._seen else ():
            found[name] = torch.stack([one[name] for one in self._seen]).numpy()
        return found | self._look.fixed()

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint must hold to go on."""
        return {"steps": [*self._steps], "seen": [*self._seen]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where `state_dict` was taken."""
        self._steps, self._seen = list(state["steps"]), list(state["seen"])


class PlaneLook:
    """`xy` [w, p, 2] of images `index` with `label` [p], by t-SNE together with `proxy_xy` [w, m, 2] (ISA figure 2).

    `proxy_label` [m] are the classes of the vectors; both are absent where the loss has none. Of directions, or of raw
    embeddings and vectors where the `distance` is Euclidean.
    """

    def __init__(
        self, figure: TsneStages, labels: Tensor, vectors: ClassVectors, distance: Distance = "cosine"
    ) -> None:
        self._raw = distance == "euclidean"
        self.index = some(torch.arange(len(labels)), figure.points, figure.seed)
        self._labels, self._figure, self._vectors = labels[self.index], figure, vectors

    def seen(self, embeddings: Tensor) -> dict[str, Tensor]:
        """Where the images lie in the plane of this stage, and the class vectors."""
        rows = (embeddings.detach() if self._raw else geometry.unit(embeddings.detach())).float().cpu()
        vectors = _directions(self._vectors, raw=self._raw)
        together = rows if vectors is None else torch.cat([rows, vectors.flatten(0, 1)])
        xy = torch.from_numpy(in_the_plane(together.numpy(), self._figure.perplexity, self._figure.seed))
        found = {"xy": xy[: len(rows)]}
        return found if vectors is None else found | {"proxy_xy": xy[len(rows) :]}

    def fixed(self) -> Arrays:
        """Which images, and whose vectors."""
        return {"index": self.index.numpy(), "label": self._labels.numpy()} | _owners(self._vectors)


class CosineLook:
    """`cosine` [w, n, m] between images `index` with `label` [n], class by class, and the vectors of their classes.

    `proxy_label` [m] are the classes of the vectors. Where the loss has none, the cosines are among the images (ISA
    figure 8).
    """

    def __init__(self, figure: HeatMapStages, labels: Tensor, vectors: ClassVectors) -> None:
        self._classes = some(torch.unique(labels), figure.classes, figure.seed)
        drawn = [some((labels == one).nonzero()[:, 0], figure.per_class, figure.seed) for one in self._classes]
        self.index = torch.cat(drawn)
        self._labels, self._vectors = labels[self.index], vectors

    def seen(self, embeddings: Tensor) -> dict[str, Tensor]:
        """The cosines at this stage."""
        rows = geometry.unit(embeddings.detach()).float().cpu()
        vectors = _directions(self._vectors)
        others = rows if vectors is None else vectors[self._classes].flatten(0, 1)
        return {"cosine": rows @ others.T}

    def fixed(self) -> Arrays:
        """Which images, and whose vectors."""
        return {"index": self.index.numpy(), "label": self._labels.numpy()} | _owners(self._vectors, self._classes)


def _directions(vectors: ClassVectors, *, raw: bool = False) -> Tensor | None:
    """The class vectors as unit rows on the CPU, or as they are: [classes, k, dim]."""
    found = vectors()
    if found is None:
        return None
    rows = found.detach().flatten(0, 1)
    return (rows if raw else geometry.unit(rows)).reshape(found.shape).float().cpu()


def _owners(vectors: ClassVectors, classes: Tensor | None = None) -> Arrays:
    """The classes [m] of the vectors that are shown: of all, or of some classes."""
    found = vectors()
    if found is None:
        return {}
    shown = torch.arange(len(found)) if classes is None else classes
    return {"proxy_label": shown.repeat_interleave(found.shape[1]).numpy()}


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
