"""Self-supervision: two views of an image shall lie near each other; what its features are good for, a probe tells."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, Literal

import torch
from annotated_types import Ge, Gt
from torch import nn

from workers.data.batches import Batches
from workers.evaluation.measures import Measures
from workers.evaluation.probe import Classified, Features, Schedule
from workers.figures.traces import AskedFigures
from workers.tasks import At, Diverged, Eta
from workers.tasks._embedding import Embedding
from workers.tasks._network import Embedder
from workers.tasks._probing import Layers, Probed, Probing

NEEDS: Final = "probe"
"""What a metric needs that the linear classifier computes."""
_FEATURES: Final = "features"


class SelfSupervised(Embedding):
    """Train by loss + eta x regularizer on raw embeddings of two views of each image, whose number is its only label.

    The head is dropped where features are judged: on the way by their nearest neighbours (`knn`), at the end by a
    linear classifier on them (`top`), of which there is one for each of `probe_lr`; the rate falls to `probe_factor` of
    itself after the epochs `probe_at`. `probe_reports: chosen` is the rate that held-out images choose, after the last
    epoch; `best` what is best on the test images in any epoch, as SEC's author response reports it.
    """

    label = "Self-supervision"
    paper = "SimCLR (SEC table 5)"
    version = 1
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
        super().__init__(model, loss, regularizer, eta, batches, figures)
        if batches.sampler.batch < 2:
            raise ValueError("self_supervised: a batch of one image has no other to tell it from; expected 2 at least")
        self._measures = measures
        self._of_probe = tuple(name for name in measures.names if measures.needs(name) == NEEDS)
        classes = batches.splits.test.classes
        for name in self._of_probe:
            if int(name.partition("@")[2] or 1) > classes:
                raise ValueError(f"self_supervised: metric {name!r} of {classes} classes has no meaning")
        schedule = Schedule(probe_lr, probe_epochs, probe_batch, probe_at, probe_factor)
        probed = Probed(schedule, probe_views, probe_reports)
        self._probing = Probing(probed, batches, self._encoded, self._judged, device, seed)

    @torch.no_grad()
    def evaluate(self, split: str, names: Sequence[str]) -> Mapping[str, float]:
        """The metrics `names` of the features of a split beside those of the training images; raises Diverged."""
        images = self.batches.splits
        told, known = (self._features(one) for one in (split, "train"))
        found = Features(told, images.named(split).labels, known, images.train.labels)
        return self._measures.of(found, names)

    def end(self, at: At) -> Iterator[Mapping[str, float]]:
        """The course of the linear probe; raises Diverged."""
        if self._of_probe:
            yield from self._probing.course()

    def state_dict(self) -> dict[str, Any]:
        """What figures have followed so far, and how far the probe is."""
        return super().state_dict() | {"probe": self._probing.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where the state was taken."""
        super().load_state_dict(state)
        self._probing.load_state_dict(state["probe"])

    def _features(self, split: str) -> torch.Tensor:
        return torch.cat([self._encoded(batch)[_FEATURES] for batch in self.read(self.batches.splits.named(split))])

    @torch.no_grad()
    def _encoded(self, images: torch.Tensor) -> Layers:
        self.model.eval()
        try:
            features = self.model.encoded(images)
        finally:
            self.model.train()
        if not bool(features.isfinite().all()):
            raise Diverged("features")
        return {_FEATURES: features}

    def _judged(self, layer: str, split: str, said: Classified) -> dict[str, float]:
        return self._measures.of(said, self._of_probe)
