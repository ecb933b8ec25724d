"""What tasks share that train a network of embeddings by a loss and a regularizer over them."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from workers import geometry
from workers.data.batches import Batches, LabelledBatch
from workers.data.images import Images
from workers.figures import arrays, traces
from workers.figures.arrays import BY_DISTANCE, FIGURES, Arrays
from workers.figures.options import FeatureMaps, Figure, Followed, Staged
from workers.figures.traces import AskedFigures, ClassVectors
from workers.geometry import batch_statistics
from workers.tasks import At, Diverged, Eta, Measured, Optimized, Task, Terms
from workers.tasks._network import Embedder


class Embedding(Task):
    """Trains by loss + eta x regularizer, both on raw embeddings.

    `eta` is none where there is no regularizer.
    """

    def __init__(
        self,
        model: Embedder,
        loss: nn.Module,
        regularizer: nn.Module,
        eta: Eta | None,
        batches: Batches,
        figures: AskedFigures,
    ) -> None:
        self.model, self.loss, self.regularizer, self.batches = model, loss, regularizer, batches
        self.eta, self._distance = eta, figures.distance
        self._together: Sequence[Mapping[str, Mapping[str, Any]]] = ()
        vectors: ClassVectors | None = getattr(loss, "class_vectors", None)
        self.traces = traces.asked(figures, batches.splits.train.labels.cpu(), vectors or (lambda: None))
        if any(isinstance(figure, FeatureMaps) for figure in figures.figures) and not model.shows_maps:
            raise ValueError("figures: 'feature_maps' shows maps, and the backbone gives none: it has no `maps`")
        self._labelled = bool(getattr(regularizer, "labelled", False))

    def modules(self) -> Mapping[str, nn.Module]:
        """The parts of the recipe that have weights or buffers."""
        model = self.model
        return {"backbone": model.backbone, "head": model.head, "loss": self.loss, "regularizer": self.regularizer}

    def optimized(self) -> Mapping[str, Optimized]:
        """The network together with what the loss learns."""
        return {"model": Optimized({name: one for name, one in self.modules().items() if name != "regularizer"})}

    def step(self, batch: LabelledBatch | None, at: At) -> Iterator[Terms]:
        """The value of a batch."""
        if batch is None:
            raise ValueError("embeddings are of images, and there is no batch of them")
        yield self.terms(at, self.model(batch.images), batch.labels)

    def terms(
        self, at: At, embeddings: torch.Tensor, labels: torch.Tensor, regularized: torch.Tensor | None = None
    ) -> Terms:
        """The value of embeddings [b, d] with labels [b]; the regularizer sees the first of them, `regularized`."""
        loss = total = self.loss(embeddings, labels)
        eta, regularizer = None if self.eta is None else float(self.eta(at.step)), None
        if eta is not None:
            seen = embeddings if regularized is None else regularized
            regularizer = self.regularizer(seen, labels[: len(seen)]) if self._labelled else self.regularizer(seen)
            total = loss + eta * regularizer

        def noted() -> dict[str, float]:
            values = {"loss": float(loss.detach()), "lr": at.rate}
            if regularizer is not None:
                values["regularizer"] = float(regularizer.detach())
            if eta is not None and getattr(self.eta, "moves", True):
                values["eta"] = eta
            return values | batch_statistics(embeddings, labels)

        return Terms("model", total, noted)

    def begin(self) -> None:
        """Tell the regularizer the norms that it starts from, where it asks."""
        begin: Callable[[Callable[[], float]], None] | None = getattr(self.regularizer, "begin", None)
        if begin is not None:
            begin(lambda: float(geometry.norms(self.look()).double().mean()))
        self.after(0)

    def after(self, step: int) -> None:
        """Show the figures that follow training images how these lie now, where it is time."""
        for trace in self.traces.values():
            if trace.due(step):
                trace.note(step, self.look(trace.index))

    def read(self, images: Images, chosen: torch.Tensor | None = None) -> Iterator[torch.Tensor]:
        """All images of a split in order, or those `chosen`, as an evaluation sees them and some at a time."""
        return self.batches.read(images, getattr(self.model.backbone, "preprocess", None), chosen)

    @torch.no_grad()
    def embed(self, images: Images, chosen: torch.Tensor | None = None, *, mirrored: bool = False) -> torch.Tensor:
        """The raw embeddings [n, dim] of a split, or of the images `chosen`; changes nothing of the training.

        With `mirrored` that of each image's mirror image is added to its own. Where models are joined theirs stand side
        by side, of unit length each and together unless the distance is Euclidean. Raises Diverged where they are not
        finite.
        """
        if not self._together:
            return self._embed(images, chosen, mirrored)
        found = []
        for weights in self._together:
            self.loaded(weights)
            one = self._embed(images, chosen, mirrored)
            found.append(one if self._distance == "euclidean" else geometry.unit(one))
        return torch.cat(found, dim=1) / math.sqrt(len(found))

    def _embed(self, images: Images, chosen: torch.Tensor | None, mirrored: bool) -> torch.Tensor:
        self.model.eval()
        try:
            embedded = []
            for batch in self.read(images, chosen):
                embedded.append(self.model(batch))
                if mirrored:
                    embedded[-1] = embedded[-1] + self.model(batch.flip(-1))
            embeddings = torch.cat(embedded)
        finally:
            self.model.train()
        if not bool(embeddings.isfinite().all()):
            raise Diverged("embeddings")
        return embeddings

    def joined(self, weights: Sequence[Mapping[str, Mapping[str, Any]]]) -> Measured:
        """Several models by their embeddings side by side, so that cosines are the mean of the models'.

        Where the distance is Euclidean its square is the mean of theirs.
        """
        return _Joined(self, weights)

    @contextmanager
    def together(self, weights: Sequence[Mapping[str, Mapping[str, Any]]]) -> Iterator[None]:
        """Within it embeddings are those of models with these weights, side by side; the last ones are left."""
        self._together = weights
        try:
            yield
        finally:
            self._together = ()

    def look(self, chosen: torch.Tensor | None = None) -> torch.Tensor:
        """The raw embeddings of all training images or those `chosen`, as an evaluation sees them."""
        return self.embed(self.batches.splits.train, chosen)

    def draw(self, figures: Sequence[Figure]) -> Mapping[str, Arrays]:
        """What figures show of embeddings."""
        drawn: dict[str, Arrays] = {}
        embedded: dict[str, torch.Tensor] = {}
        for figure in figures:
            if isinstance(figure, Followed | Staged):
                drawn[figure.file] = self.traces[figure.name].arrays(self.batches.splits.train.labels)
                continue
            images = self.batches.splits.named(figure.split)
            if isinstance(figure, FeatureMaps):
                drawn[figure.file] = self._maps(figure, images)
                continue
            if figure.split not in embedded:
                embedded[figure.split] = self.embed(images)
            options = figure.options | ({"distance": self._distance} if figure.name in BY_DISTANCE else {})
            made = FIGURES[figure.name](embedded[figure.split], images.labels, images.query, **options)
            drawn[figure.file] = made
        return drawn

    @torch.no_grad()
    def _maps(self, figure: FeatureMaps, images: Images) -> Arrays:
        """What a figure of feature maps shows of some images of a split."""
        index = arrays.drawn(len(images), images.query, figure)
        seen = torch.cat([batch.cpu() for batch in self.read(images, index)])
        self.model.eval()
        try:
            maps = torch.cat([self.model.maps(batch).float().cpu() for batch in self.read(images, index)])
        finally:
            self.model.train()
        return arrays.feature_maps(images.labels, index, seen, maps, figure.channels)

    def loaded(self, weights: Mapping[str, Mapping[str, Any]]) -> None:
        """Take the weights of the network from the states of modules."""
        self.model.backbone.load_state_dict(weights["backbone"])
        self.model.head.load_state_dict(weights["head"])

    def state_dict(self) -> dict[str, Any]:
        """What figures have followed so far."""
        return {"traces": {name: trace.state_dict() for name, trace in self.traces.items()}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where the state was taken."""
        for name, trace in self.traces.items():
            trace.load_state_dict(state["traces"][name])


class _Joined:
    """Several models, measured as one."""

    def __init__(self, task: Embedding, weights: Sequence[Mapping[str, Mapping[str, Any]]]) -> None:
        self._task, self._weights = task, weights

    def evaluate(self, split: str, names: Sequence[str]) -> Mapping[str, float]:
        """The metrics `names` of a split."""
        with self._task.together(self._weights):
            return self._task.evaluate(split, names)
