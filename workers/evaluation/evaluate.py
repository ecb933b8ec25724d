"""Evaluates embeddings: computes once, and in chunks, what several metrics use."""

import math
from functools import cached_property
from typing import NamedTuple

import faiss
import numpy as np
import torch
from torch import Tensor

from workers import geometry
from workers.contract import Distance
from workers.evaluation.clustering import k_means
from workers.evaluation.neighbours import CHUNK, Neighbours, Similarity, nearest, neighbours, rows_of
from workers.geometry import NO_PAIRS, PairCosines, gram, pair_cosines

_ITERATIONS = 20  # of k-means, with one start and a fixed seed: pytorch-metric-learning's protocol
_SEED = 1234


class Contingency(NamedTuple):
    """The numbers of images that classes and clusters share; on the CPU, unordered and without zeros."""

    joint: Tensor  # the images of each pair of a class and a cluster
    classes: Tensor
    clusters: Tensor

    @classmethod
    def of(cls, classes: Tensor, clusters: Tensor) -> "Contingency":
        """Counts the images of each class and cluster, given the class and cluster of each image."""
        joint = torch.unique(classes * (int(clusters.max()) + 1) + clusters, return_counts=True)[1]
        return cls(joint, classes.bincount(), clusters.bincount())

    @property
    def pair_f1(self) -> float:
        """F1 = 2PR / (P + R) over the pairs of images in a common cluster; NaN without pairs of either kind."""
        pairs = _pairs(self.clusters) + _pairs(self.classes)
        return 2 * _pairs(self.joint) / pairs if pairs else math.nan


class Evaluation:
    """The embeddings [n, d] of images with labels [n], and cached intermediate results that metrics share.

    Neighbours and pairs are among the images, or with the `gallery` (embeddings and labels) if given, as in In-Shop's
    protocol; everything else is of the images only. `seed` is that of `clusters_sec`. Neighbours and clusters use the
    `distance`: of directions, or of raw embeddings. Raises ValueError unless there is an image, a label for each, and
    the gallery is as wide.
    """

    def __init__(
        self,
        embeddings: Tensor,
        labels: Tensor,
        *,
        gallery: tuple[Tensor, Tensor] | None = None,
        chunk: int = CHUNK,
        seed: int = 0,
        distance: Distance = "cosine",
    ) -> None:
        _check(embeddings, labels, embeddings.shape[-1:])
        self.embeddings = geometry.precise(embeddings.detach())
        self.labels = labels.detach().to(embeddings.device)
        self._chunk, self._seed, self._distance = chunk, seed, distance
        self._gallery: Evaluation | None = None
        if gallery is not None:
            _check(*gallery, embeddings.shape[-1:])
            self._gallery = Evaluation(gallery[0].to(self.embeddings), gallery[1], distance=distance)

    @cached_property
    def finite(self) -> bool:
        """Whether all embeddings are free of NaN and infinity; otherwise metrics are NaN."""
        return bool(self.embeddings.isfinite().all()) and (self._gallery is None or self._gallery.finite)

    @cached_property
    def norms(self) -> Tensor:
        """The norm ||f|| of each image's embedding, [n]."""
        return geometry.norms(self.embeddings)

    @cached_property
    def unit(self) -> Tensor:
        """The normalized embeddings f^ = f / ||f||, [n, d]; zero where f is."""
        return geometry.unit(self.embeddings)

    @property
    def points(self) -> Tensor:
        """The embeddings that distances compare, [n, d]: `unit`, or the raw embeddings if the distance is Euclidean."""
        return self.embeddings if self._distance == "euclidean" else self.unit

    @cached_property
    def classes(self) -> Tensor:
        """The class of each image as an index from 0, [n]."""
        classes: Tensor = torch.unique(self.labels, return_inverse=True)[1]
        return classes

    @cached_property
    def _common(self) -> tuple[Tensor, tuple[Tensor, Tensor] | None]:
        """Classes [n] by indices shared with the gallery, and the gallery's directions and classes."""
        if self._gallery is None:
            return self.classes, None
        both = torch.unique(torch.cat([self.labels, self._gallery.labels]), return_inverse=True)[1]
        own, theirs = both.split([len(self.labels), len(self._gallery.labels)])
        return own, (self._gallery.unit, theirs)

    @cached_property
    def queries(self) -> Tensor:
        """The indices, in order, of images that have another image of their class to find."""
        if not self.finite:
            return self.classes[:0]
        classes, gallery = self._common
        among = classes if gallery is None else gallery[1]
        sizes = among.bincount(minlength=int(classes.max()) + 1)[classes]
        return (sizes > int(gallery is None)).nonzero()[:, 0]

    @cached_property
    def neighbours(self) -> Neighbours:
        if not self.finite:
            return Neighbours.blank()
        classes, gallery = self._common
        return neighbours(self._compared, classes, gallery and gallery[1], self._chunk)

    @property
    def _compared(self) -> Similarity:
        similarity = Similarity.euclidean if self._distance == "euclidean" else Similarity.cosine
        return similarity(self.points, self._gallery.points if self._gallery else None)

    @cached_property
    def predicted(self) -> Tensor:
        """The label of the image that is nearest to each of the `queries`, int64 [queries].

        Most of them are known from `neighbours`; where another class is nearer or tied, it is searched.
        """
        labels, found = self.labels, self.labels[self.queries]
        unsure = (self.neighbours.closer + self.neighbours.tied > 0).nonzero()[:, 0]
        if len(unsure):
            queries = self.queries[unsure]
            places = nearest(self._compared, queries, among=self._gallery is None, chunk=self._chunk)
            found[unsure] = (labels if self._gallery is None else self._gallery.labels)[places]
        return found

    @cached_property
    def violated(self) -> Tensor:
        """The share of each query's triplets whose negative is nearer than its positive, float64 [queries].

        A tie counts half; NaN if there is no other class.
        """
        classes, gallery = self._common
        among, compared = classes if gallery is None else gallery[1], self._compared
        shares = [torch.zeros(0, dtype=torch.float64, device=classes.device)]
        for some in torch.split(self.queries, max(1, rows_of(self._chunk, len(among)))):
            products = compared.queries[some] @ compared.gallery.T
            negative = among[None, :] != classes[some][:, None]
            ascending = products.masked_fill(~negative, math.inf).sort(dim=1).values
            positive = ~negative if gallery is not None else (~negative).scatter(1, some[:, None], False)
            chosen, columns = positive.int().topk(int(positive.sum(dim=1).max()), dim=1)
            own = products.gather(1, columns)
            below = (torch.searchsorted(ascending, own) + torch.searchsorted(ascending, own, right=True)).double() / 2
            nearer = 1 - below / negative.sum(dim=1, keepdim=True)
            shares.append((nearer * chosen).sum(dim=1) / chosen.sum(dim=1))
        return torch.cat(shares)

    @cached_property
    def cosines(self) -> PairCosines:
        """The mean and deviation of the cosine over all pairs of a class, and over all pairs of two classes."""
        if not self.finite:
            return PairCosines(NO_PAIRS, NO_PAIRS)
        classes, gallery = self._common
        return pair_cosines(self.unit, classes, gallery)

    @cached_property
    def gram(self) -> Tensor:
        """The smaller Gram matrix of the unit embeddings, float64: its eigenvalues are the squared singular values."""
        rows = self.unit if len(self.unit) >= self.unit.shape[1] else self.unit.T
        return gram(rows)

    @cached_property
    def clusters(self) -> Tensor:
        """The cluster of each image, [n] on the CPU, by k-means on the `points` with as many clusters as classes.

        faiss's Lloyd algorithm from one random start, in one thread and with a fixed seed, so that it is repeatable.
        Raises RuntimeError unless embeddings are `finite`.
        """
        points = self.points.float().cpu().numpy()
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
    def contingency(self) -> Contingency:
        return Contingency.of(self.classes.cpu(), self.clusters)

    @cached_property
    def clusters_sec(self) -> Tensor:
        """The clusters by SEC's k-means: the tightest of ten starts by k-means++, each until nothing changes.

        On the embeddings' device, in as many threads as torch has; the same for the same seed, device and threads.
        """
        return k_means(self.points.float(), int(self.classes.max()) + 1, self._seed).cpu()

    @cached_property
    def contingency_sec(self) -> Contingency:
        return Contingency.of(self.classes.cpu(), self.clusters_sec)


def _check(embeddings: Tensor, labels: Tensor, width: torch.Size) -> None:
    shape = embeddings.shape
    if embeddings.ndim != 2 or labels.shape != shape[:1] or not embeddings.numel() or shape[1:] != width:
        raise ValueError(f"expected embeddings [n, d] and labels [n], found {[*shape]} and {[*labels.shape]}")


def _pairs(counts: Tensor) -> int:
    return int((counts * (counts - 1)).sum()) // 2
