"""Retrieval: images of one class shall lie near each other, also of classes never seen in training."""

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import nn

from workers.data.images import Images
from workers.tasks import Diverged, Step

Evaluate = Callable[..., dict[str, float]]
"""evaluate(embeddings, labels, names, gallery=...) of workers/evaluation/evaluate.py."""
Read = Callable[[Images], Iterator[torch.Tensor]]


class Retrieval:
    """Train by loss + eta x regularizer, both on raw embeddings.

    An evaluation searches every image of a split among all others, or the queries among the images of the gallery.
    """

    label = "Retrieval"
    version = 1

    def __init__(
        self, model: nn.Module, loss: nn.Module, regularizer: nn.Module, evaluate: Evaluate, read: Read
    ) -> None:
        self._model = model
        self._loss = loss
        self._regularizer = regularizer
        self._labelled = bool(getattr(regularizer, "labelled", False))
        self._evaluate = evaluate
        self._read = read

    def step(self, images: torch.Tensor, labels: torch.Tensor, eta: float | None) -> Step:
        """The value of a batch ([b, c, h, w] of 0 to 255, int64 [b]), to be differentiated."""
        embeddings = self._model(images)
        loss = self._loss(embeddings, labels)
        if eta is None:
            return Step(loss, loss, None, embeddings)
        regularizer = self._regularizer(embeddings, labels) if self._labelled else self._regularizer(embeddings)
        return Step(loss + eta * regularizer, loss, regularizer, embeddings)

    @torch.no_grad()
    def embed(self, images: Images) -> torch.Tensor:
        """The raw embeddings [n, dim] of a split; raises Diverged where they are not finite."""
        self._model.eval()
        try:
            embeddings = torch.cat([self._model(batch) for batch in self._read(images)])
        finally:
            self._model.train()
        if not bool(embeddings.isfinite().all()):
            raise Diverged("embeddings")
        return embeddings

    def evaluate(self, images: Images, names: Sequence[str]) -> dict[str, float]:
        """The metrics `names` of a split; raises Diverged where embeddings are not finite."""
        return self.judge(self.embed(images), images, names)

    @torch.no_grad()
    def judge(self, embeddings: torch.Tensor, images: Images, names: Sequence[str]) -> dict[str, float]:
        """The metrics `names` of a split with these embeddings, of this model or of several."""
        labels = images.labels.to(embeddings.device)
        if images.query is None:
            return self._evaluate(embeddings, labels, names)
        query = images.query.to(embeddings.device)
        gallery = (embeddings[~query], labels[~query])
        return self._evaluate(embeddings[query], labels[query], names, gallery=gallery)
