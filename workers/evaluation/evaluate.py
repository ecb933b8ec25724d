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
from workers.contract import Distance
from workers.evaluation.clustering import k_means
from workers.evaluation.measures import Measures
from workers.evaluation.neighbours import CHUNK, Neighbours, Similarity, neighbours
from workers.geometry import PairCosines, gram, pair_cosines

_ITERATIONS = 20  # of k-means, with one start and a fixed seed: pytorch-metric-learning's protocol
_SEED = 1234


class Contingency(NamedTuple):
    """How classes and clusters share images: counts on the CPU, in no order and without zeros."""

    joint: Tensor
    """The images of each pair of a class and a cluster that share any."""
    classes: Tensor
    """The images of each class."""
    clusters: Tensor
    """The images of each cluster."""

    @classmethod
    def of(cls, classes: Tensor, clusters: Tensor) -> "Contingency":
        """Of the class and the cluster of each image; never as a table, which for SOP would have 128 million cells."""
        joint = torch.unique(classes * (int(clusters.max()) + 1) + clusters, return_counts=True)[1]
        return cls(joint, classes.bincount(), clusters.bincount())

    @property
    def pair_f1(self) -> float:
        """2PR / (P + R) over the pairs of images that a cluster joins; NaN where there is no pair of either sort."""
        pairs = _pairs(self.clusters) + _pairs(self.classes)
        return 2 * _pairs(self.joint) / pairs if pairs else math.nan


def _pairs(counts: Tensor) -> int:
    return int((counts * (counts - 1)).sum()) // 2


class Evaluation:
    """Raw embeddings [n, d] of images with their labels [n], and what metrics ask of them.

    Neighbours and pairs are those among the images, or with the `gallery` (embeddings and labels) where there is one:
    In-Shop's protocol, where no image is in both. All else is of the images alone. `seed` is that of `clusters_sec`.
    Neighbours and clusters are by the `distance`: of directions, or of raw embeddings. Raises ValueError unless there
    is at least one image, one label for each, and the gallery is as wide.
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
            self._gallery = Evaluation(gallery[0].to(self.embeddings), gallery[1])

    @cached_property
    def finite(self) -> bool:
        """Whether no embedding has a NaN or an infinity; metrics are NaN otherwise."""
        return bool(self.embeddings.isfinite().all()) and (self._gallery is None or self._gallery.finite)

    @cached_property
    def norms(self) -> Tensor:
        """||f|| of each image, [n]."""
        return geometry.norms(self.embeddings)

    @cached_property
    def unit(self) -> Tensor:
        """f^ = f / ||f||, [n, d]; zero where f is."""
        return geometry.unit(self.embeddings)

    @property
    def points(self) -> Tensor:
        """What the distance is between, [n, d]: `unit`, or the raw embeddings where it is Euclidean."""
        return self.embeddings if self._distance == "euclidean" else self.unit

    @cached_property
    def classes(self) -> Tensor:
        """The class of each image as an index from 0, [n], whatever the labels are."""
        classes: Tensor = torch.unique(self.labels, return_inverse=True)[1]
        return classes

    @cached_property
    def _common(self) -> tuple[Tensor, tuple[Tensor, Tensor] | None]:
        """Classes [n] by an index that images and gallery have in common, and the gallery: directions and classes."""
        if self._gallery is None:
            return self.classes, None
        both = torch.unique(torch.cat([self.labels, self._gallery.labels]), return_inverse=True)[1]
        own, theirs = both.split([len(self.labels), len(self._gallery.labels)])
        return own, (self._gallery.unit, theirs)

    @cached_property
    def queries(self) -> Tensor:
        """Which images are the queries of `neighbours`, in their order: those with another of their class to find."""
        if not self.finite:
            return self.classes[:0]
        classes, gallery = self._common
        among = classes if gallery is None else gallery[1]
        sizes = among.bincount(minlength=int(classes.max()) + 1)[classes]
        return (sizes > int(gallery is None)).nonzero()[:, 0]

    @cached_property
    def neighbours(self) -> Neighbours:
        """What the neighbours of each query say."""
        if not self.finite:
            return Neighbours.blank()
        classes, gallery = self._common
        raw = self._distance == "euclidean"
        others = None if self._gallery is None else self._gallery.embeddings if raw else self._gallery.unit
        similarity = Similarity.euclidean if raw else Similarity.cosine
        return neighbours(similarity(self.points, others), classes, gallery and gallery[1], self._chunk)

    @cached_property
    def cosines(self) -> PairCosines:
        """The mean and the deviation of the cosine over all pairs of a class, and over all pairs of two classes."""
        if not self.finite:
            return PairCosines.unknown()
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

        Lloyd's algorithm of faiss from one random start, in one thread and with a fixed seed: the same from run to run.
        Raises RuntimeError where embeddings are not `finite`.
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
        """How classes and clusters share images."""
        return Contingency.of(self.classes.cpu(), self.clusters)

    @cached_property
    def clusters_sec(self) -> Tensor:
        """The same by the k-means of SEC's code: the tightest of ten starts by k-means++, each until nothing changes.

        On the embeddings' device, in as many threads as torch has; the same for the same seed, device and threads.
        """
        return k_means(self.points.float(), int(self.classes.max()) + 1, self._seed).cpu()

    @cached_property
    def contingency_sec(self) -> Contingency:
        """How classes and `clusters_sec` share images."""
        return Contingency.of(self.classes.cpu(), self.clusters_sec)


def _check(embeddings: Tensor, labels: Tensor, width: torch.Size) -> None:
    shape = embeddings.shape
    if embeddings.ndim != 2 or labels.shape != shape[:1] or not embeddings.numel() or shape[1:] != width:
        raise ValueError(f"expected embeddings [n, d] and labels [n], found {[*shape]} and {[*labels.shape]}")


def evaluate(
    embeddings: Tensor,
    labels: Tensor,
    names: Sequence[str],
    parts: Path | None = None,
    gallery: tuple[Tensor, Tensor] | None = None,
    seed: int = 0,
    distance: Distance = "cosine",
) -> dict[str, float]:
    """The metrics `names`, such as `recall@1`, of raw embeddings [n, d] with labels [n], keyed as given.

    With a `gallery` (embeddings and labels) neighbours are looked for there; `seed` is what metrics draw by, and
    `distance` by what they rank and cluster. A metric
    without a value is NaN: of embeddings that are not finite, or of neighbours where no class has two images. Raises
    UnknownPart for a metric that neither this package nor the folder `parts` has.
    """
    evaluation = Evaluation(embeddings, labels, gallery=gallery, seed=seed, distance=distance)
    return Measures(names, parts, seed).of(evaluation, names)
