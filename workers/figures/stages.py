"""Looks at training images beside a loss's class vectors at some stages of a training."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from workers.embeddings import geometry
from workers.figures.arrays import Arrays, in_the_plane, some
from workers.figures.options import HeatMapStages, Staged, TsneStages
from workers.recipe.selection import Distance

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
