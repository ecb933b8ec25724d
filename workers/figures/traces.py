"""Figures that are recorded while a network trains: stages, samples, traces."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from workers import geometry
from workers.figures import options
from workers.figures.arrays import Arrays, in_the_plane, some
from workers.geometry import Variation, direction_variation

ClassVectors = Callable[[], Tensor | None]
"""Gives the current vectors that a loss learns of classes, [classes, k, dim]; None if it learns none."""


class AskedFigures(NamedTuple):
    """The figures that a recipe requests, and the length of the training."""

    figures: Sequence[object]
    total: int  # iterations
    unit: int = 1  # the iterations of what the recipe counts: 1, or an epoch
    distance: options.Distance = "cosine"


class Looks:
    """What a figure recorded after several iterations of a training, as kept in checkpoints."""

    def __init__(self) -> None:
        self._steps: list[int] = []
        self._seen: list[Any] = []

    @property
    def step(self) -> np.ndarray[Any, Any]:
        """The iterations [w] after which the figure recorded."""
        return np.array(self._steps, dtype=np.int64)

    def _add(self, step: int, seen: Any) -> None:
        self._steps.append(step)
        self._seen.append(seen)

    def state_dict(self) -> dict[str, Any]:
        return {"steps": [*self._steps], "seen": [*self._seen]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._steps, self._seen = list(state["steps"]), list(state["seen"])


class Trace(Looks):
    """A figure that records the same training images every so many iterations, in evaluation mode.

    `index` [n], on the CPU, are the images, drawn by the figure's seed and in the order of the data set.
    """

    def __init__(self, index: Tensor, every: int = 1) -> None:
        super().__init__()
        self.index, self._every = index, every

    def due(self, step: int) -> bool:
        """Whether the figure records after `step` iterations; 0 is before the first."""
        return step % self._every == 0

    def note(self, step: int, embeddings: Tensor) -> None:
        """Record the raw embeddings [n, d] of the images after `step` iterations."""
        raise NotImplementedError

    def arrays(self, labels: Tensor) -> Arrays:
        """The arrays of the figure's data file; `labels` are those of all training images.

        For w looks after iteration `step` [w], at n images `index` with `label` [n].
        """
        return {"step": self.step, "index": self.index.numpy(), "label": labels.cpu()[self.index].numpy()}


def asked(figures: AskedFigures, labels: Tensor, vectors: ClassVectors) -> dict[str, Trace]:
    """The recorders of a recipe's figures by name, for training images with these labels.

    Raises ValueError if the training is too short for one of them.
    """
    traces: dict[str, Trace] = {}
    total, unit = figures.total, figures.unit
    for figure in figures.figures:
        if isinstance(figure, options.Followed) and (trouble := figure.trouble(total)):
            raise ValueError(f"figures: {figure.name!r} {trouble}")
        if isinstance(figure, options.DirectionVariation):
            traces[figure.name] = DirectionTrace(figure, len(labels))
        elif isinstance(figure, options.NormTraces):
            traces[figure.name] = NormTrace(figure, len(labels), total)
        elif isinstance(figure, options.Gradients):
            traces[figure.name] = GradientTrace(figure, total)
        elif isinstance(figure, options.TsneStages):
            traces[figure.name] = PlaneTrace(figure, unit, labels, vectors, figures.distance)
        elif isinstance(figure, options.HeatMapStages):
            traces[figure.name] = CosineTrace(figure, unit, labels, vectors)
    return traces


class DirectionTrace(Trace):
    """The angle by which the direction f^ of each image turns between two looks (SEC figure 7)."""

    def __init__(self, figure: options.DirectionVariation, count: int) -> None:
        super().__init__(some(torch.arange(count), figure.images, figure.seed), figure.every)
        self._bins = figure.bins
        self._before: Tensor | None = None  # the directions at the last look

    def note(self, step: int, embeddings: Tensor) -> None:
        before, self._before = self._before, geometry.unit(embeddings.detach()).cpu()
        if before is not None:
            self._add(step, torch.stack([*direction_variation(before, self._before)]))

    def arrays(self, labels: Tensor) -> Arrays:
        """The angles by which n images turn in w windows, each up to iteration `step` [w].

        `angle` and `one_minus_cos` [w, n], the angle's mean and population variance in each window (`window_mean`,
        `window_var` [w]), the histogram of all angles (`edges`, `counts`), and the mean and variance of both over all
        windows, named as in `Variation.summary`.
        """
        nothing = torch.empty(2, 0, len(self.index), dtype=torch.float64)
        angle, cosine = torch.stack(self._seen, dim=1) if self._seen else nothing
        whole = Variation(angle.flatten(), cosine.flatten()).summary() if self._seen else {}
        turned = angle.numpy()
        counts, edges = np.histogram(turned, bins=self._bins)
        return super().arrays(labels) | {
            "angle": turned, "one_minus_cos": cosine.numpy(), "window_mean": turned.mean(axis=1),
            "window_var": turned.var(axis=1), "edges": edges, "counts": counts,
            **{name: np.array(value) for name, value in whole.items()},
        }  # fmt: skip

    def state_dict(self) -> dict[str, Any]:
        return super().state_dict() | {"before": self._before}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        super().load_state_dict(state)
        self._before = state["before"]


class NormTrace(Trace):
    """||f|| of each image over the iterations (rebuttal figure 1)."""

    def __init__(self, figure: options.NormTraces, count: int, total: int) -> None:
        super().__init__(some(torch.arange(count), figure.images, figure.seed), figure.interval(total))

    def note(self, step: int, embeddings: Tensor) -> None:
        self._add(step, geometry.norms(embeddings.detach()).cpu())

    def arrays(self, labels: Tensor) -> Arrays:
        """The norms of n images, `norm` [w, n]."""
        return super().arrays(labels) | {"norm": torch.stack(self._seen).numpy()}


class GradientTrace(Trace):
    """||f|| and ||dL/df|| of the images of a batch while it trains, L without its regularizer (SEC equation 6)."""

    def __init__(self, figure: options.Gradients, total: int) -> None:
        # It follows no image: each batch has its own.
        super().__init__(torch.empty(0, dtype=torch.int64), figure.interval(total))
        self._images = figure.images

    def due(self, step: int) -> bool:
        return False

    def see(self, step: int, loss: Tensor, embeddings: Tensor) -> None:
        """Record the gradients of `loss` by raw `embeddings` [b, d] after `step` iterations, if they are due."""
        if step % self._every == 0:
            (gradient,) = torch.autograd.grad(loss, embeddings, retain_graph=True)
            sizes = torch.stack([geometry.norms(embeddings.detach()), geometry.norms(gradient)])
            self._add(step, sizes[:, : self._images].cpu())

    def arrays(self, labels: Tensor) -> Arrays:
        """`norm` and `gradient` [w, n] after the iterations `step` [w], of the first n images of each batch.

        `turn` [w, n] is gradient / norm: the tangent of the angle by which a step of SGD with rate 1 turns f.
        """
        norm, gradient = torch.stack(self._seen, dim=1).numpy() if self._seen else np.empty((2, 0, 0))
        return {"step": self.step, "norm": norm, "gradient": gradient, "turn": gradient / norm}


class StageTrace(Trace):
    """A figure of images and of the loss's class vectors at the stages of a training that it names."""

    def __init__(self, figure: options.Staged, unit: int, index: Tensor, vectors: ClassVectors) -> None:
        super().__init__(index)
        self._stages = {at * unit: at for at in figure.at}
        self._vectors = vectors

    def due(self, step: int) -> bool:
        return step in self._stages

    def note(self, step: int, embeddings: Tensor) -> None:
        self._add(step, self.stage(embeddings.detach()))

    def stage(self, embeddings: Tensor) -> dict[str, Tensor]:
        """What the figure shows of the embeddings [n, d] of one stage."""
        raise NotImplementedError

    def shown_classes(self, count: int) -> Tensor:
        """Which of `count` classes have their vectors in the figure."""
        return torch.arange(count)

    def arrays(self, labels: Tensor) -> Arrays:
        """What `stage` gives, stacked, for the reached stages `at` [w].

        Also `proxy_label` [m], the class of each class vector.
        """
        arrays = super().arrays(labels) | {"at": np.array([self._stages[step] for step in self._steps], np.int64)}
        for name in self._seen[0] if self._seen else ():
            arrays[name] = torch.stack([seen[name] for seen in self._seen]).numpy()
        vectors = self._vectors()
        if vectors is not None:
            shown = self.shown_classes(len(vectors))
            arrays["proxy_label"] = shown.repeat_interleave(vectors.shape[1]).numpy()
        return arrays

    def class_vectors(self, *, raw: bool = False) -> Tensor | None:
        """The class vectors [classes, k, dim] on the CPU, of unit length unless `raw`."""
        vectors = self._vectors()
        if vectors is None:
            return None
        rows = vectors.detach().flatten(0, 1)
        return (rows if raw else geometry.unit(rows)).reshape(vectors.shape).float().cpu()


class PlaneTrace(StageTrace):
    """`xy` [w, n, 2] by t-SNE together with the class vectors, `proxy_xy` [w, m, 2] (ISA figure 2).

    Of directions, or of raw embeddings and vectors if the `distance` is Euclidean.
    """

    def __init__(
        self, figure: options.TsneStages, unit: int, labels: Tensor, vectors: ClassVectors, distance: options.Distance
    ) -> None:
        super().__init__(figure, unit, some(torch.arange(len(labels)), figure.points, figure.seed), vectors)
        self._raw, self._figure = distance == "euclidean", figure

    def stage(self, embeddings: Tensor) -> dict[str, Tensor]:
        rows = (embeddings if self._raw else geometry.unit(embeddings)).float().cpu()
        vectors = self.class_vectors(raw=self._raw)
        together = rows if vectors is None else torch.cat([rows, vectors.flatten(0, 1)])
        xy = torch.from_numpy(in_the_plane(together.numpy(), self._figure.perplexity, self._figure.seed))
        return {"xy": xy[: len(rows)]} | ({} if vectors is None else {"proxy_xy": xy[len(rows) :]})


class CosineTrace(StageTrace):
    """`cosine` [w, n, m] between images of some classes and the vectors of these classes (ISA figure 8).

    If the loss has no class vectors, between the images themselves.
    """

    def __init__(self, figure: options.HeatMapStages, unit: int, labels: Tensor, vectors: ClassVectors) -> None:
        self._classes = some(torch.unique(labels), figure.classes, figure.seed)
        drawn = [some((labels == label).nonzero()[:, 0], figure.per_class, figure.seed) for label in self._classes]
        super().__init__(figure, unit, torch.cat(drawn), vectors)

    def stage(self, embeddings: Tensor) -> dict[str, Tensor]:
        rows = geometry.unit(embeddings).float().cpu()
        vectors = self.class_vectors()
        others = rows if vectors is None else vectors[self._classes].flatten(0, 1)
        return {"cosine": rows @ others.T}

    def shown_classes(self, count: int) -> Tensor:
        return self._classes


class SampleLooks(Looks):
    """The samples that a generator makes of the same noise, from before the first iteration on (SVMax figure 5)."""

    def __init__(self, figure: options.FollowedSamples, total: int) -> None:
        super().__init__()
        self.file, self.points, self.every = figure.file, figure.points, figure.interval(total)

    def note(self, step: int, samples: Tensor) -> None:
        """Record the samples [n, 2] after `step` iterations."""
        self._add(step, samples.detach().float().cpu())

    def arrays(self, centres: Tensor, deviation: float) -> Arrays:
        """`xy` [w, n, 2] after the iterations `step` [w], and n points of the mixture itself, `target` [n, 2].

        `centres` [k, 2] and `deviation` are the mixture's; its points are the same in all trainings.
        """
        rule, middles = torch.Generator().manual_seed(0), centres.float().cpu()
        drawn = middles[torch.randint(len(middles), (self.points,), generator=rule)]
        target = drawn + deviation * torch.randn(drawn.shape, generator=rule)
        return {
            "step": self.step, "xy": torch.stack(self._seen).numpy(), "target": target.numpy(),
            "centres": middles.numpy(), "deviation": np.array(deviation),
        }  # fmt: skip
