"""The evaluation of embeddings: what metrics share is computed once, in chunks that bound the memory."""

import math
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import faiss
import numpy as np
import torch
from torch import Tensor

from workers import geometry
from workers.catalog import parse_metric
from workers.contract import Part
from workers.registry import build

_CHUNK = 2**23  # similarities held at a time: 32 MiB of float32
_ROUNDING = 8  # roundings by which all cosines of a query may differ and yet say nothing
_ITERATIONS = 20  # of k-means, with one start and a fixed seed: pytorch-metric-learning's protocol
_SEED = 1234


class Neighbours(NamedTuple):
    """What the neighbours of each query say, [queries] in float64; a query is an image that has another of its class.

    Neighbours are ranked by the cosine of embeddings; the query itself, known by its index, is left out. R is the
    number of other images of the query's class. There are no queries where an embedding is not finite, and the mean
    over none is NaN.
    """

    rank: Tensor
    """1 + the number of images of other classes that are strictly closer than the closest of its own (SEC's rule).
    Infinite where the query is equally far from all images, as when embeddings collapse to a point."""
    average_precision: Tensor
    """(1/R) sum over j <= R of precision(j) relevant(j); which of equally close neighbours comes first is arbitrary."""
    precision: Tensor
    """The share of the R nearest that are of its class, with ties as above."""


class Evaluation:
    """Raw embeddings [n, d] of the images of a split with their labels [n], and what metrics ask of them.

    Raises ValueError unless there is at least one image, and one label for each.
    """

    def __init__(self, embeddings: Tensor, labels: Tensor, *, chunk: int = _CHUNK) -> None:
        if embeddings.ndim != 2 or labels.shape != embeddings.shape[:1] or not embeddings.numel():
            raise ValueError(
                f"expected embeddings [n, d] and labels [n], found {[*embeddings.shape]} and {[*labels.shape]}"
            )
        self.embeddings = geometry.precise(embeddings.detach())
        self.labels = labels.detach().to(embeddings.device)
        self._chunk = chunk

    @cached_property
    def finite(self) -> bool:
        """Whether no embedding has a NaN or an infinity; metrics are NaN otherwise."""
        return bool(self.embeddings.isfinite().all())

    @cached_property
    def norms(self) -> Tensor:
        """||f|| of each image, [n]."""
        return geometry.norms(self.embeddings)

    @cached_property
    def unit(self) -> Tensor:
        """f^ = f / ||f||, [n, d]; zero where f is."""
        return geometry.unit(self.embeddings)

    @cached_property
    def classes(self) -> Tensor:
        """The class of each image as an index from 0, [n], whatever the labels are."""
        classes: Tensor = torch.unique(self.labels, return_inverse=True)[1]
        return classes

    @cached_property
    def neighbours(self) -> Neighbours:
        """What the neighbours of each query say."""
        relevant = self.classes.bincount()[self.classes] - 1
        queries = relevant.nonzero()[:, 0]
        if not (self.finite and len(queries)):
            none = torch.empty(0, dtype=torch.float64)
            return Neighbours(none, none, none)
        rows = max(1, self._chunk // len(self.labels))
        parts = [self._neighbours_of(chunk, relevant[chunk]) for chunk in torch.split(queries, rows)]
        return Neighbours(*(torch.cat(column) for column in zip(*parts, strict=True)))

    def _neighbours_of(self, queries: Tensor, relevant: Tensor) -> Neighbours:
        similarity = self.unit[queries] @ self.unit.T
        same = self.classes[queries][:, None] == self.classes[None, :]
        itself = torch.arange(len(self.labels), device=queries.device)[None, :] == queries[:, None]

        farthest = similarity.masked_fill(itself, math.inf).amin(dim=1)
        similarity = similarity.masked_fill(itself, -math.inf)
        own = similarity.masked_fill(~same, -math.inf).amax(dim=1)
        rank = 1 + ((similarity > own[:, None]) & ~same).sum(dim=1).double()
        # By SEC's rule alone a network whose embeddings are all one point would have a recall of 1.
        undecided = similarity.amax(dim=1) - farthest <= _ROUNDING * torch.finfo(similarity.dtype).eps
        rank[undecided & ~same.all(dim=1)] = math.inf

        depth = int(relevant.max())
        places = torch.arange(1, depth + 1, device=queries.device)
        nearest = similarity.topk(depth, dim=1).indices
        hits = same.gather(1, nearest) & (places <= relevant[:, None])
        precisions = hits.cumsum(dim=1) * hits / places.double()
        return Neighbours(rank, precisions.sum(dim=1) / relevant, hits.sum(dim=1) / relevant.double())

    @cached_property
    def clusters(self) -> Tensor:
        """The cluster of each image, [n] on the CPU, by k-means on f^ with as many clusters as classes.

        Lloyd's algorithm of faiss from one random start, in one thread and with a fixed seed: the same from run to run.
        Raises RuntimeError where embeddings are not `finite`.
        """
        points = self.unit.float().cpu().numpy()
        count, width = points.shape
        threads = faiss.omp_get_max_threads()
        faiss.omp_set_num_threads(1)
        try:
            kmeans = faiss.Kmeans(
                width, int(self.classes.max()) + 1, niter=_ITERATIONS, nredo=1, seed=_SEED, spherical=False,
                min_points_per_centroid=1, max_points_per_centroid=count,  # neither a warning nor a subsample
            )  # fmt: skip
            kmeans.train(points)
            nearest = kmeans.index.search(points, 1)[1][:, 0]
        finally:
            faiss.omp_set_num_threads(threads)
        return torch.from_numpy(nearest.astype(np.int64))

    @cached_property
    def contingency(self) -> Tensor:
        """How many images of class i are in cluster j, [classes, clusters] on the CPU."""
        classes = self.classes.cpu()
        size = int(classes.max()) + 1
        return (classes * size + self.clusters).bincount(minlength=size * size).view(size, size)


def evaluate(embeddings: Tensor, labels: Tensor, names: Sequence[str], parts: Path | None = None) -> dict[str, float]:
    """The metrics `names`, such as `recall@1`, of raw embeddings [n, d] with labels [n], keyed as given.

    A metric without a value is NaN: of embeddings that are not finite, or of neighbours where no class has two images.
    Raises UnknownPart for a metric that neither this package nor the folder `parts` has.
    """
    evaluation = Evaluation(embeddings, labels)
    values: dict[str, float] = {}
    for name in names:
        file, k = parse_metric(name)
        options = {} if k is None else {"k": int(k) if k.isdecimal() else k}
        value = float(build("metric", Part(name=file, **options), parts)(evaluation))
        values[name] = value if math.isfinite(value) else math.nan
    return values
