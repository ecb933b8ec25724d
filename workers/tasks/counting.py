"""Counting: what a network counts in an image should be the sum of what it counts in the image's four tiles."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Final, Literal

import torch
from annotated_types import Ge, Gt
from torch import nn
from torch.nn.functional import avg_pool2d

from workers.backbones import averaged
from workers.data.batches import Batches, LabelledBatch
from workers.evaluation.measures import Measures
from workers.evaluation.probe import Classified, Schedule
from workers.figures.traces import AskedFigures
from workers.tasks import At, Eta, Terms
from workers.tasks._shared import Embedder, Layers, ProbedEmbedding, Probing

LAYERS: Final = ("conv1", "conv2", "conv3", "conv4", "conv5")
MOST: Final = 9_999
"""The maximal dimensions of a layer's maps for a probe; larger maps are averaged."""


class Counting(ProbedEmbedding):
    """Train by loss + eta x regularizer: the loss of an image at half its side and of the sum over its four quarters.

    Both are embeddings by one network, which sees nothing larger than a quarter; the regularizer sees those of the
    images only. At the end linear classifiers on the maps of each convolution are trained and tested on whole images,
    as those of `self_supervised` are on features.
    """

    label = "Counting"
    paper = "Noroozi et al., ICCV 2017 (SVMax table 5)"
    metrics = (
        "linear_top1@conv1", "linear_top1@conv2", "linear_top1@conv3", "linear_top1@conv4", "linear_top1@conv5",
    )  # fmt: skip
    selects = "linear_top1@conv5"
    split = "last"
    reads = "layers"
    watched = ()
    ended = ("probe",)
    curves = ("loss", "regularizer", "lr", "eta", "norm_mean", "norm_var", "s_mu", "cos_ap", "cos_an", "probe_loss")
    validations = ("image_holdout",)
    views = 1
    tiles = True
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
        probe_lr: tuple[Annotated[float, Gt(0)], ...] = (0.01,),
        probe_epochs: Annotated[int, Ge(1)] = 100,
        probe_batch: Annotated[int, Ge(1)] = 256,
        probe_at: tuple[Annotated[int, Ge(0)], ...] = (60, 75, 90),
        probe_factor: Annotated[float, Ge(0)] = 0.2,
        probe_views: Literal["centre", "crops"] = "centre",
        probe_reports: Literal["chosen", "best"] = "chosen",
    ) -> None:
        super().__init__(model, loss, regularizer, eta, batches, measures, figures)
        if batches.augment.side % 2:
            raise ValueError(f"counting: images of {batches.augment.side} pixels have no halves; take an even `crop`")
        if batches.sampler.batch < 2:
            raise ValueError("counting: a batch of one image has no other to count differently; expected 2 at least")
        schedule = Schedule(probe_lr, probe_epochs, probe_batch, probe_at, probe_factor, probe_views, probe_reports)
        first = self._encoded(next(batches.read(batches.splits.test, chosen=torch.tensor([0]))))
        if missing := [name for name in LAYERS if name not in first]:
            raise ValueError(f"counting: probes are of {len(LAYERS)} convolutions, and the backbone lacks {missing[0]}")
        self.probing = Probing(schedule, batches, self._encoded, self._judged, device, seed)

    def step(self, batch: LabelledBatch | None, at: At) -> Iterator[Terms]:
        if batch is None:
            raise ValueError("counting needs a batch of images, found none")
        counts, total = self.counted(batch.images)
        numbers = torch.arange(len(counts), device=counts.device)
        yield self.terms(at, torch.cat([counts, total]), numbers.repeat(2), regularized=counts)

    def counted(self, images: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The embeddings of images [b, c, 2s, 2s] at half their side, and the sum over their quarters, [b, d] each."""
        whole, side = avg_pool2d(images.float(), 2), images.shape[-1] // 2
        tiles = [images.float()[:, :, top : top + side, left : left + side] for top in (0, side) for left in (0, side)]
        embeddings = self.model(torch.cat([whole, *tiles])).view(5, len(images), -1)
        return embeddings[0], embeddings[1:].sum(dim=0)

    def evaluate(self, split: str, names: Sequence[str]) -> Mapping[str, float]:
        """Nothing: everything is measured at the end."""
        return {}

    def _encoded(self, images: torch.Tensor) -> Layers:
        def compute(images: torch.Tensor) -> Layers:
            maps = self.model.convolved(images)
            return {name: _fewer(maps[name]) for name in LAYERS if name in maps}

        return self.features(compute, images)

    def _judged(self, layer: str, classified: Classified) -> dict[str, float]:
        values = self._measures.of({layer: classified}, self._measures.names)
        return {name: value for name, value in values.items() if not math.isnan(value)}  # NaN: of other layers


def _fewer(maps: torch.Tensor) -> torch.Tensor:
    """Maps [b, c, h, w] averaged to fewer than 10,000 values, [b, n]."""
    side = max(1, min(maps.shape[-1], int((MOST / maps.shape[1]) ** 0.5)))
    return averaged(maps, side).flatten(1)
