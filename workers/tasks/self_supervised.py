"""Self-supervision: two views of an image should be near each other; a probe judges the features."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Final, Literal

import torch
from annotated_types import Ge, Gt
from torch import nn

from workers.data.batches import Batches
from workers.evaluation.measures import Measures
from workers.evaluation.probe import Classified, Features, Schedule
from workers.figures.traces import AskedFigures
from workers.tasks import At, Eta
from workers.tasks._shared import Embedder, Layers, ProbedEmbedding, Probing

NEEDS: Final = "probe"
"""The fact `needs` of metrics of the linear classifier."""
_FEATURES: Final = "features"


class SelfSupervised(ProbedEmbedding):
    """Train by loss + eta x regularizer on raw embeddings of two views of each image, whose number is its only label.

    Features before the head are judged: during the training by their nearest neighbours (`knn`), at the end by a linear
    classifier (`top`) for each of `probe_lr`, which falls to `probe_factor` of itself after the epochs `probe_at`.
    `probe_reports: chosen` reports the rate that held-out images choose, after the last epoch; `best` reports the best
    on the test images in any epoch, as in SEC's author response.
    """

    label = "Self-supervision"
    paper = "SimCLR (SEC table 5)"
    metrics = ("top@1", "knn@200")
    selects = "top@1"
    split = "last"
    reads = "features"
    watched = ("knn@200",)
    ended = ("probe",)
    curves = ("loss", "regularizer", "lr", "eta", "norm_mean", "norm_var", "s_mu", "cos_ap", "cos_an", "probe_loss")
    validations = ("image_holdout",)
    views = 2
    probes = True
    figures = ("norms", "spectrum", "tsne", "direction_variation", "norm_traces")

    def __init__(  # noqa: PLR0913, PLR0917 - what it is offered, and the probe's choices
        self,
        model: Embedder,
        loss: nn.Module,
        regularizer: nn.Module,
        eta: Eta | None,
        batches: Batches,
        measures: Measures,
        figures: AskedFigures,
        device: torch.device,
        seed: int,
        *,
        probe_lr: tuple[Annotated[float, Gt(0)], ...] = (5.0,),
        probe_epochs: Annotated[int, Ge(1)] = 100,
        probe_batch: Annotated[int, Ge(1)] = 256,
        probe_at: tuple[Annotated[int, Ge(0)], ...] = (60, 75, 90),
        probe_factor: Annotated[float, Ge(0)] = 0.2,
        probe_views: Literal["centre", "crops"] = "centre",
        probe_reports: Literal["chosen", "best"] = "chosen",
    ) -> None:
        super().__init__(model, loss, regularizer, eta, batches, measures, figures)
        if batches.sampler.batch < 2:
            raise ValueError("self_supervised: a batch of one image has no other to tell it from; expected 2 at least")
        self._of_probe = tuple(name for name in measures.names if measures.attribute_of(name, "needs") == NEEDS)
        classes = batches.splits.test.classes
        for name in self._of_probe:
            if int(name.partition("@")[2] or 1) > classes:
                raise ValueError(f"self_supervised: metric {name!r} of {classes} classes has no meaning")
        schedule = Schedule(probe_lr, probe_epochs, probe_batch, probe_at, probe_factor, probe_views, probe_reports)
        self.probing = Probing(schedule, batches, self._encoded, self._judged, device, seed)

    @torch.no_grad()
    def evaluate(self, split: str, names: Sequence[str]) -> Mapping[str, float]:
        """The metrics `names` of the features of a split, next to those of the training images; raises Diverged."""
        asked, known = (
            (torch.cat([self._encoded(batch)[_FEATURES] for batch in self.read(images)]), images.labels)
            for images in (self.batches.splits.named(split), self.batches.splits.train)
        )
        return self._measures.of(Features(*asked, *known), names)

    def end(self, at: At) -> Iterator[Mapping[str, float]]:
        return super().end(at) if self._of_probe else iter(())

    def _encoded(self, images: torch.Tensor) -> Layers:
        return self.features(lambda images: {_FEATURES: self.model.encoded(images)}, images)

    def _judged(self, layer: str, classified: Classified) -> dict[str, float]:
        return self._measures.of(classified, self._of_probe)
