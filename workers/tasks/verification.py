"""Verification: whether two images are of one class, also of classes that were never trained."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import torch
from torch import Tensor, nn

from workers import geometry
from workers.data.batches import Batches
from workers.data.images import Images, PairSet
from workers.evaluation.measures import Measures
from workers.evaluation.verification import Scores, checked, identified, pairs
from workers.figures.traces import AskedFigures
from workers.tasks import Eta
from workers.tasks._shared import Embedder, Embedding

_BLOCK: Final = 2**15  # distractors whose embeddings are in memory at a time


class Verification(Embedding):
    """Train by loss + eta x regularizer as retrieval does; an evaluation compares the cosines of pairs of images.

    These are the pairs of the data set, such as those of LFW, or else pairs of a split in ten folds, the same in all
    trainings. If the data set lists distractors instead, its queries are searched among them. With `flip` the embedding
    of an image is the sum of its own and its mirror image's, raw, as in InsightFace's evaluations.
    """

    label = "Verification"
    paper = "Huang et al. 2007 (Labeled Faces in the Wild)"
    added = ("flip",)
    metrics = ("accuracy",)
    selects = "accuracy"
    split = "validation"
    reads = ("pairs", "identification")
    watched = ("accuracy",)
    curves = ("loss", "regularizer", "lr", "eta", "norm_mean", "norm_var", "s_mu", "cos_ap", "cos_an")
    views = 1
    validations = ("class_holdout", "cross_validation", "image_holdout")
    figures = (
        "norms", "cosines", "panels", "tsne", "unit_circle", "spectrum", "heat_map", "direction_variation",
        "norm_traces",
    )  # fmt: skip

    def __init__(  # noqa: PLR0913 - what a task of embeddings is offered, and one choice
        self,
        model: Embedder,
        loss: nn.Module,
        regularizer: nn.Module,
        eta: Eta | None,
        batches: Batches,
        measures: Measures,
        figures: AskedFigures,
        *,
        flip: bool = False,
    ) -> None:
        super().__init__(model, loss, regularizer, eta, batches, measures, figures)
        self.mirrored = flip
        for split in batches.splits.names:
            images = batches.splits.named(split)
            if images.distractors is None:  # report before the training what cannot be judged
                _asked(images, split)

    def evaluate(self, split: str, names: Sequence[str]) -> dict[str, float]:
        """The metrics `names` of a split: of its pairs, or of its queries if it has distractors.

        Raises Diverged if embeddings are not finite.
        """
        images = self.batches.splits.named(split)
        given = "pairs" if images.distractors is None else "identification"
        read = [name for name in names if self._measures.attribute_of(name, "reads") == given]
        found = dict.fromkeys(names, math.nan)
        if read:
            judged = self._scores(images, split) if given == "pairs" else self._identified(images)
            found |= self._measures.of(judged, read)
        return found

    @torch.no_grad()
    def _scores(self, images: Images, split: str) -> Scores:
        asked = _asked(images, split)
        unit = self._directions(images).cpu()
        cosine = (unit[asked.first] * unit[asked.second]).sum(dim=1)
        return Scores(cosine, asked.same, asked.fold)

    @torch.no_grad()
    def _identified(self, images: Images) -> Mapping[int, Tensor]:
        """The searches of a split's queries among its distractors, whose embeddings are computed in blocks."""
        among = images.distractors or {}
        probes = (torch.ones(len(images)) if images.query is None else images.query).cpu().nonzero()[:, 0]
        unit = self._directions(images, probes)
        listed = torch.cat([*among.values(), torch.empty(0, dtype=torch.int64)]).unique()  # type: ignore[no-untyped-call]

        def blocks() -> Iterator[tuple[Tensor, Tensor]]:
            for numbers in torch.split(listed, _BLOCK):
                yield numbers, self._directions(images, numbers)

        return identified(unit, images.labels[probes.to(images.labels.device)].to(unit.device), blocks(), among)

    def _directions(self, images: Images, chosen: Tensor | None = None) -> Tensor:
        return geometry.unit(self.embed(images, chosen, mirrored=self.mirrored))


def _asked(images: Images, split: str) -> PairSet:
    """The pairs of a split to verify; raises ValueError if there are none."""
    try:
        return pairs(images.labels) if images.pairs is None else checked(images.pairs, len(images))
    except ValueError as error:
        raise ValueError(f"{error} (split {split!r})") from error
