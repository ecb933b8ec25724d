"""Verification: whether two images are of one class, which the training may never have seen."""

from collections.abc import Sequence

import torch
from torch import nn

from workers.data.batches import Batches
from workers.embeddings import geometry
from workers.evaluation.measures import Measures
from workers.evaluation.verification_pairs import Scores, pairs
from workers.figures.traces import AskedFigures
from workers.tasks import Eta
from workers.tasks._embedding import Embedding
from workers.tasks._network import Embedder


class Verification(Embedding):
    """Train by loss + eta x regularizer as retrieval does; an evaluation compares the cosines of pairs of images.

    These are the pairs that a data set drew up, such as those of LFW, else pairs of a split in ten folds, the same
    in all trainings (workers/evaluation/verification_pairs.py).
    """

    label = "Verification"
    paper = "Huang et al. 2007 (Labeled Faces in the Wild)"
    version = 1
    metrics = ("accuracy",)
    selects = "accuracy"
    split = "validation"
    reads = "pairs"
    watched = ("accuracy",)
    curves = ("loss", "regularizer", "lr", "eta", "norm_mean", "norm_var", "s_mu", "cos_ap", "cos_an")
    views = 1
    figures = (
        "norms", "cosines", "panels", "tsne", "unit_circle", "spectrum", "heat_map", "direction_variation",
        "norm_traces",
    )  # fmt: skip

    def __init__(
        self,
        model: Embedder,
        loss: nn.Module,
        regularizer: nn.Module,
        eta: Eta | None,
        batches: Batches,
        measures: Measures,
        figures: AskedFigures,
    ) -> None:
        super().__init__(model, loss, regularizer, eta, batches, figures)
        self._measures = measures

    @torch.no_grad()
    def evaluate(self, split: str, names: Sequence[str]) -> dict[str, float]:
        """The metrics `names` of a split's pairs; raises Diverged where embeddings are not finite."""
        images = self.batches.splits.named(split)
        asked = pairs(images.labels) if images.pairs is None else images.pairs
        unit = geometry.unit(self.embed(images)).cpu()
        cosine = (unit[asked.first] * unit[asked.second]).sum(dim=1)
        return self._measures.of(Scores(cosine, asked.same, asked.fold), names)
