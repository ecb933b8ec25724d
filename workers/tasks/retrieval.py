"""Retrieval: images of one class shall lie near each other, also of classes never seen in training."""

from collections.abc import Callable, Sequence

import torch
from torch import nn

from workers.images import Images
from workers.tasks import Diverged, Step

Evaluate = Callable[[torch.Tensor, torch.Tensor, Sequence[str]], dict[str, float]]

_BATCH = 1024  # images embedded at a time in an evaluation


class Retrieval:
    """Train by loss + eta x regularizer, both on raw embeddings; evaluate every image of a split against all others."""

    label = "Retrieval"
    version = 1

    def __init__(self, model: nn.Module, loss: nn.Module, regularizer: nn.Module, evaluate: Evaluate) -> None:
        self._model = model
        self._loss = loss
        self._regularizer = regularizer
        self._evaluate = evaluate

    def step(self, images: torch.Tensor, labels: torch.Tensor) -> Step:
        """The value of a batch (uint8 [b, c, h, w], int64 [b]), to be differentiated."""
        embeddings = self._model(images)
        loss = self._loss(embeddings, labels)
        eta: float | None = getattr(self._regularizer, "eta", None)
        if eta is None:
            return Step(loss, loss, None, embeddings)
        regularizer = self._regularizer(embeddings)
        return Step(loss + eta * regularizer, loss, regularizer, embeddings)

    @torch.no_grad()
    def evaluate(self, images: Images, names: Sequence[str]) -> dict[str, float]:
        """The metrics `names` of a split; raises Diverged where embeddings are not finite."""
        self._model.eval()
        try:
            embeddings = torch.cat([self._model(batch) for batch in torch.split(images.images, _BATCH)])
        finally:
            self._model.train()
        if not bool(embeddings.isfinite().all()):
            raise Diverged("embeddings")
        return self._evaluate(embeddings, images.labels, names)
