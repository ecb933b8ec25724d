"""Retrieval: images of a class should be near each other, also in classes that were never trained."""

from collections.abc import Iterator, Mapping, Sequence

import torch

from workers.catalog.compatibility import NEEDS, Clustering
from workers.data.images import Images
from workers.evaluation.evaluate import Evaluation
from workers.tasks import At
from workers.tasks._shared import Embedding


class Retrieval(Embedding):
    """Train by loss + eta x regularizer, both on raw embeddings.

    An evaluation searches every image of a split among all others, or the queries among the images of the gallery.
    """

    label = "Retrieval"
    metrics = (
        "recall@1", "recall@2", "recall@4", "recall@8", "map@r", "r_precision", "nmi", "f1", "norm_mean", "norm_var",
        "s_mu",
    )  # fmt: skip
    selects = "map@r"
    split = "validation"
    reads = "embeddings"
    watched = ("recall@1",)
    trained = ("norm_mean", "norm_var")  # SEC's table 9
    curves = ("loss", "regularizer", "lr", "eta", "norm_mean", "norm_var", "s_mu", "cos_ap", "cos_an")
    views = 1
    validations = ("class_holdout", "cross_validation")
    distances = ("cosine", "euclidean")
    figures = (
        "norms", "cosines", "panels", "feature_maps", "tsne", "unit_circle", "spectrum", "heat_map",
        "direction_variation", "norm_traces", "gradients", "tsne_stages", "heat_map_stages",
    )  # fmt: skip

    def evaluate(self, split: str, names: Sequence[str]) -> dict[str, float]:
        """The metrics `names` of a split; raises Diverged if embeddings are not finite."""
        images = self.batches.splits.named(split)
        return self.judge(self.embed(images), images, names)

    @torch.no_grad()
    def judge(self, embeddings: torch.Tensor, images: Images, names: Sequence[str]) -> dict[str, float]:
        """The metrics `names` of a split with these embeddings, of one model or several."""
        labels, gallery = images.labels.to(embeddings.device), None
        if images.query is not None:
            query = images.query.to(embeddings.device)
            gallery = (embeddings[~query], labels[~query])
            embeddings, labels = embeddings[query], labels[query]
        measures = self._measures
        evaluation = Evaluation(embeddings, labels, gallery=gallery, seed=measures.seed, distance=measures.distance)
        return self._measures.of(evaluation, names)

    def late(self, split: str) -> list[str]:
        """The metrics of a clustering that is expensive for so many images."""
        images = self.batches.splits.named(split)
        number = len(images) if images.query is None else int(images.query.sum())
        expensive = Clustering(number, images.classes, self.model.width).expensive
        return [
            name for name in self._measures.names if expensive and self._measures.attribute_of(name, "needs") == NEEDS
        ]

    def end(self, at: At) -> Iterator[Mapping[str, float]]:
        """The norms of the training images."""
        if names := [name for name in self.trained if name in self._measures.names]:
            yield {f"train/{name}": value for name, value in self.evaluate("train", names).items()}
