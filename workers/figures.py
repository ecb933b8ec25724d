"""The data of the papers' figures, from embeddings and labels to named arrays; an `.npz` each when asked for."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.manifold import TSNE
from torch import Tensor

from workers import geometry

Arrays = dict[str, NDArray[np.generic]]
"""The named arrays of a figure."""

_ANCHORS = 1000  # images whose pairs are drawn, if there are more
_POINTS = 2000  # images that a t-SNE shows, if there are more
_PERPLEXITY = 30.0


def norms(embeddings: Tensor, labels: Tensor, *, bins: int = 50, seed: int = 0) -> Arrays:
    """The histogram of ||f|| and its mean and population variance (SEC figures 1 and 5a).

    `edges` [bins + 1] from the least to the greatest norm, `counts` [bins], `mean`, `variance`.
    """
    lengths = geometry.norms(embeddings.detach()).double().cpu().numpy()
    counts, edges = np.histogram(lengths, bins=bins)
    return {"edges": edges, "counts": counts, "mean": lengths.mean(), "variance": lengths.var()}


def cosines(embeddings: Tensor, labels: Tensor, *, bins: int = 100, anchors: int = _ANCHORS, seed: int = 0) -> Arrays:
    """The histograms of cos_ap, cos_an and cos_ap - cos_an over all triplets of an anchor (SEC figures 5b to d).

    `edges` [bins + 1] over [-1, 1] with `cos_ap` and `cos_an` [bins]; `difference_edges` over [-2, 2], `difference`
    [bins]. Of more than `anchors` images the seed draws that many as anchors; each meets all other images. An image
    without another of its class is no anchor.
    """
    unit, classes = geometry.unit(embeddings.detach()).double().cpu(), labels.cpu()
    edges, wide = np.linspace(-1, 1, bins + 1), np.linspace(-2, 2, bins + 1)
    counts = {name: np.zeros(bins, dtype=np.int64) for name in ("cos_ap", "cos_an", "difference")}
    for anchor in _some(len(unit), anchors, seed).tolist():
        similarity = (unit @ unit[anchor]).clamp_(-1, 1).numpy()
        same = (classes == classes[anchor]).numpy()
        negative = np.sort(similarity[~same])
        same[anchor] = False
        positive = np.sort(similarity[same])
        if not len(positive):
            continue
        counts["cos_ap"] += np.histogram(positive, edges)[0]
        counts["cos_an"] += np.histogram(negative, edges)[0]
        # Of a positive p, the negatives up to p - e make differences from e on; the last bin includes its upper edge.
        above = [np.searchsorted(negative, positive - edge, side="right").sum() for edge in wide[:-1]]
        counts["difference"] -= np.diff(above, append=0)
    return {"edges": edges, "difference_edges": wide, **counts}


def panels(embeddings: Tensor, labels: Tensor, *, queries: int = 10, depth: int = 3, seed: int = 0) -> Arrays:
    """The nearest images of some queries that the seed draws (SEC figure 9).

    `query` [q], `nearest` [q, depth]: indices of images, closest first and never the query itself; `correct` [q, depth]
    says whether each is of its class; `cosine` [q, depth].
    """
    unit = geometry.unit(embeddings.detach()).cpu()
    drawn = _some(len(unit), queries, seed)
    similarity = unit[drawn] @ unit.T
    similarity.scatter_(1, drawn[:, None], -torch.inf)
    cosine, nearest = similarity.topk(min(depth, len(unit) - 1), dim=1)
    correct = labels.cpu()[nearest] == labels.cpu()[drawn][:, None]
    return {
        "query": drawn.numpy(), "nearest": nearest.numpy(), "correct": correct.numpy(), "cosine": cosine.numpy(),
    }  # fmt: skip


def tsne(embeddings: Tensor, labels: Tensor, *, points: int = _POINTS, seed: int = 0) -> Arrays:
    """t-SNE of the directions f^ in the plane, by scikit-learn from their principal components (ISA figures 2 and 6).

    `index` [p]: which images, drawn by the seed where there are more than `points`; `xy` [p, 2]; `label` [p]. The same
    library on the same machine gives the same picture.
    """
    drawn = _some(len(embeddings), points, seed)
    unit = geometry.unit(embeddings.detach())[drawn.to(embeddings.device)].float().cpu().numpy()
    if len(unit) < 3:
        raise ValueError(f"tsne: expected at least 3 images, found {len(unit)}")
    perplexity = min(_PERPLEXITY, (len(unit) - 1) / 3)
    init = "pca" if min(unit.shape) >= 2 else "random"
    xy = TSNE(perplexity=perplexity, init=init, random_state=seed).fit_transform(unit)
    return {"index": drawn.numpy(), "xy": xy, "label": labels.cpu()[drawn].numpy()}


def unit_circle(embeddings: Tensor, labels: Tensor, *, points: int = _POINTS, seed: int = 0) -> Arrays:
    """Where 2-D embeddings lie on the unit circle (SVMax figure 7).

    `index` [p] as of `tsne`; `xy` [p, 2] of length 1, `angle` [p] in radians from -pi to pi, `label` [p]. Raises
    ValueError unless embeddings have two dimensions.
    """
    if embeddings.ndim != 2 or embeddings.shape[1] != 2:
        raise ValueError(f"unit_circle: expected embeddings [n, 2], found {[*embeddings.shape]}; set embedding: 2")
    drawn = _some(len(embeddings), points, seed)
    xy = geometry.unit(embeddings.detach()).cpu()[drawn]
    angle = torch.atan2(xy[:, 1], xy[:, 0])
    return {"index": drawn.numpy(), "xy": xy.numpy(), "angle": angle.numpy(), "label": labels.cpu()[drawn].numpy()}


def spectrum(embeddings: Tensor, labels: Tensor, *, seed: int = 0) -> Arrays:
    """The singular values of the directions f^, largest first, and their mean with its bounds (SVMax figures 3 and 15).

    `singular` [min(n, d)], `s_mu`, `lower`, `upper`.
    """
    unit = geometry.unit(embeddings.detach()).cpu()
    singular = geometry.singular_values(unit).double().numpy()
    lower, upper = geometry.singular_bounds(*unit.shape)
    return {"singular": singular, "s_mu": singular.mean(), "lower": np.float64(lower), "upper": np.float64(upper)}


FIGURES: Final[Mapping[str, Callable[..., Arrays]]] = {
    figure.__name__: figure for figure in (norms, cosines, panels, tsne, unit_circle, spectrum)
}
"""Every figure by name; each takes raw embeddings [n, d], labels [n] and `seed`."""


def write(folder: Path, name: str, arrays: Arrays) -> str:
    """Write a figure's arrays into `folder` as `<name>.npz`, aside and renamed; gives the file's name."""
    file = folder / f"{name}.npz"
    aside = folder / f".{name}.{os.getpid()}.npz"
    with aside.open("wb") as stream:
        np.savez_compressed(stream, allow_pickle=False, **arrays)
    aside.replace(file)
    return file.name


def _some(count: int, wanted: int, seed: int) -> Tensor:
    """All of `count` indices, or as many as are `wanted` of them, drawn by the seed; in ascending order."""
    if count <= wanted:
        return torch.arange(count)
    return torch.randperm(count, generator=torch.Generator().manual_seed(seed))[:wanted].sort().values
