"""The data of the papers' figures, from embeddings and labels to named arrays."""

import io
from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from workers.embeddings import geometry
from workers.recipe.selection import Distance

Arrays = dict[str, NDArray[np.generic]]
"""The named arrays of a figure."""


def norms(embeddings: Tensor, labels: Tensor, query: Tensor | None = None, *, bins: int = 50) -> Arrays:
    """The histogram of ||f|| and its mean and population variance (SEC figures 1 and 5a).

    `edges` [bins + 1] from the least to the greatest norm, `counts` [bins], `mean`, `variance`: of the queries where
    there are any, and then `gallery_counts`, `gallery_mean`, `gallery_variance` of the others.
    """
    lengths = geometry.norms(embeddings.detach()).double().cpu().numpy()
    edges = np.histogram_bin_edges(lengths, bins)
    arrays: Arrays = {"edges": edges}
    for prefix, places in _sides(len(lengths), query):
        side = lengths[places.numpy()]
        counts = np.histogram(side, edges)[0]
        arrays |= {f"{prefix}counts": counts, f"{prefix}mean": side.mean(), f"{prefix}variance": side.var()}
    return arrays


def cosines(
    embeddings: Tensor,
    labels: Tensor,
    query: Tensor | None = None,
    *,
    bins: int = 100,
    anchors: int = 1000,
    seed: int = 0,
) -> Arrays:
    """The histograms of cos_ap, cos_an and cos_ap - cos_an over all triplets of an anchor (SEC figures 5b to d).

    `edges` [bins + 1] over [-1, 1] with `cos_ap` and `cos_an` [bins]; `difference_edges` over [-2, 2], `difference`
    [bins]. Of more than `anchors` images the seed draws that many as anchors; each meets all other images. Where there
    are queries these are the anchors, and meet the gallery. An image without another of its class is no anchor.
    """
    unit, classes = geometry.unit(embeddings.detach()).double().cpu(), labels.cpu()
    places, gallery = _searched(len(unit), query)
    others, other_classes = unit[gallery], classes[gallery]
    edges, wide = np.linspace(-1, 1, bins + 1), np.linspace(-2, 2, bins + 1)
    counts = {name: np.zeros(bins, dtype=np.int64) for name in ("cos_ap", "cos_an", "difference")}
    for anchor in some(places, anchors, seed).tolist():
        similarity = (others @ unit[anchor]).clamp_(-1, 1).numpy()
        same = (other_classes == classes[anchor]).numpy()
        negative = np.sort(similarity[~same])
        if query is None:
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


def panels(
    embeddings: Tensor,
    labels: Tensor,
    query: Tensor | None = None,
    *,
    queries: int = 10,
    depth: int = 3,
    seed: int = 0,
    distance: Distance = "cosine",
) -> Arrays:
    """The nearest images of some queries that the seed draws (SEC figure 9).

    `query` [q], `nearest` [q, depth]: indices of images, closest first and never the query itself; `correct` [q, depth]
    says whether each is of its class; `cosine` [q, depth]. Where there are queries they are drawn from these, and the
    nearest from the gallery. Of equally close images the seed draws the order, not that of the files. By the Euclidean
    distance of raw embeddings there is `distance` [q, depth] too.
    """
    unit, classes = geometry.unit(embeddings.detach()).cpu(), labels.cpu()
    places, gallery = _searched(len(unit), query)
    drawn = some(places, queries, seed)
    cosines = similarity = unit[drawn] @ unit[gallery].T
    if distance == "euclidean":
        raw = embeddings.detach().cpu().double()
        similarity = -torch.cdist(raw[drawn], raw[gallery], compute_mode="donot_use_mm_for_euclid_dist")
    if query is None:
        similarity = similarity.scatter(1, drawn[:, None], -torch.inf)
    shuffled = torch.rand(similarity.shape, generator=torch.Generator().manual_seed(seed)).argsort(dim=1)
    sorted_ = similarity.gather(1, shuffled).sort(dim=1, descending=True, stable=True)
    shown = min(depth, len(gallery) - (query is None))
    columns = shuffled.gather(1, sorted_.indices[:, :shown])
    nearest, cosine = gallery[columns], cosines.gather(1, columns)
    correct = classes[nearest] == classes[drawn][:, None]
    found: Arrays = {
        "query": drawn.numpy(), "nearest": nearest.numpy(), "correct": correct.numpy(), "cosine": cosine.numpy(),
    }  # fmt: skip
    return found | {"distance": -sorted_.values[:, :shown].numpy()} if distance == "euclidean" else found


def tsne(
    embeddings: Tensor,
    labels: Tensor,
    query: Tensor | None = None,
    *,
    points: int = 2000,
    perplexity: float = 30.0,
    seed: int = 0,
    distance: Distance = "cosine",
) -> Arrays:
    """t-SNE of the directions f^ in the plane, by scikit-learn from their principal components (ISA figures 2 and 6).

    `index` [p]: which images, drawn by the seed where there are more than `points`; `xy` [p, 2]; `label` [p], and
    `query` [p] where there are queries. The same library on the same machine gives the same picture. The perplexity
    is at most a third of the images. Of the raw embeddings where the `distance` is Euclidean.
    """
    found = _pointed(labels, query, points, seed)
    index = torch.from_numpy(found["index"]).to(embeddings.device)
    rows = embeddings.detach() if distance == "euclidean" else geometry.unit(embeddings.detach())
    return {**found, "xy": in_the_plane(rows[index].float().cpu().numpy(), perplexity, seed)}


def in_the_plane(rows: NDArray[np.float32], perplexity: float, seed: int) -> NDArray[np.float32]:
    """t-SNE of embeddings [p, d], [p, 2]; raises ValueError where there are fewer than three."""
    if len(rows) < 3:
        raise ValueError(f"tsne: expected at least 3 images, found {len(rows)}")
    init = "pca" if min(rows.shape) >= 2 else "random"
    from sklearn.manifold import TSNE  # only now: it takes two seconds, and most trainings draw no map

    perplexity = min(perplexity, (len(rows) - 1) / 3)
    placed: NDArray[np.float32] = TSNE(perplexity=perplexity, init=init, random_state=seed).fit_transform(rows)
    return placed


def unit_circle(
    embeddings: Tensor, labels: Tensor, query: Tensor | None = None, *, points: int = 2000, seed: int = 0
) -> Arrays:
    """Where 2-D embeddings lie on the unit circle (SVMax figure 7).

    `index`, `label` [p] and `query` as of `tsne`; `xy` [p, 2] of length 1, `angle` [p] in radians from -pi to pi.
    Raises ValueError unless embeddings have two dimensions.
    """
    if embeddings.ndim != 2 or embeddings.shape[1] != 2:
        raise ValueError(f"unit_circle: expected embeddings [n, 2], found {[*embeddings.shape]}; set embedding: 2")
    found = _pointed(labels, query, points, seed)
    xy = geometry.unit(embeddings.detach()).cpu()[torch.from_numpy(found["index"])]
    return {**found, "xy": xy.numpy(), "angle": torch.atan2(xy[:, 1], xy[:, 0]).numpy()}


def spectrum(embeddings: Tensor, labels: Tensor, query: Tensor | None = None) -> Arrays:
    """The singular values of the directions f^, largest first, and their mean with its bounds (SVMax figures 3 and 15).

    `singular` [min(n, d)], `s_mu`, `lower`, `upper`: of the queries where there are any, and then the same of the
    others, each name with `gallery_` before it.
    """
    unit, arrays = geometry.unit(embeddings.detach()).cpu(), Arrays()
    for prefix, places in _sides(len(unit), query):
        side = unit[places]
        singular = geometry.singular_values(side).double().numpy()
        lower, upper = (np.float64(bound) for bound in geometry.singular_bounds(*side.shape))
        values = {"singular": singular, "s_mu": singular.mean(), "lower": lower, "upper": upper}
        arrays |= {f"{prefix}{name}": value for name, value in values.items()}
    return arrays


def heat_map(
    embeddings: Tensor,
    labels: Tensor,
    query: Tensor | None = None,
    *,
    classes: int = 10,
    per_class: int = 10,
    seed: int = 0,
) -> Arrays:
    """The cosines between images of a few classes, class by class (ISA figure 8).

    The seed draws the classes, and of each its images. `index` and `label` [m], and `query` [m] where there are
    queries; `cosine` [m, m]; `class` [c]; `class_cosine` [c, c], the mean over pairs of two of these images, NaN for a
    class of one.
    """
    known = labels.cpu()
    drawn = some(torch.unique(known), classes, seed)
    index = torch.cat([some((known == label).nonzero()[:, 0], per_class, seed) for label in drawn])
    unit = geometry.unit(embeddings.detach()).cpu()[index]
    cosine = unit @ unit.T
    member = (known[index] == drawn[:, None]).double()
    sums = member @ cosine.double().clone().fill_diagonal_(0) @ member.T
    sizes = member.sum(dim=1)
    pairs = sizes[:, None] * sizes - sizes.diag()
    tensors = {"index": index, "label": known[index], "cosine": cosine, "class": drawn, "class_cosine": sums / pairs}
    if query is not None:
        tensors["query"] = query.cpu()[index]
    return {name: value.numpy() for name, value in tensors.items()}


FIGURES: Final[Mapping[str, Callable[..., Arrays]]] = {
    figure.__name__: figure for figure in (norms, cosines, panels, tsne, unit_circle, spectrum, heat_map)
}
"""Every figure of embeddings by name; each takes raw embeddings [n, d], labels [n], whether an image is a query [n]
(none: all are searched among all), and its options."""


BY_DISTANCE: Final = frozenset({"panels", "tsne"})
"""The figures that rank or place images by the recipe's `distance`; they take it beside their options."""


def packed(arrays: Arrays) -> bytes:
    """A figure's arrays as an `.npz` file, to be read without pickle."""
    stream = io.BytesIO()
    np.savez_compressed(stream, allow_pickle=False, **arrays)
    return stream.getvalue()


def _sides(count: int, query: Tensor | None) -> list[tuple[str, Tensor]]:
    """Those of `count` images that metrics of single images are of, and with a prefix for names the gallery."""
    if query is None:
        return [("", torch.arange(count))]
    places, gallery = _searched(count, query)
    return [("", places), ("gallery_", gallery)]


def _searched(count: int, query: Tensor | None) -> tuple[Tensor, Tensor]:
    """The indices of the images that search, and of those among which they search."""
    if query is None:
        return torch.arange(count), torch.arange(count)
    asks = query.cpu()
    return asks.nonzero()[:, 0], (~asks).nonzero()[:, 0]


def _pointed(labels: Tensor, query: Tensor | None, points: int, seed: int) -> Arrays:
    """Which images a scatter plot shows, and what is known of them."""
    index = some(torch.arange(len(labels)), points, seed)
    found: Arrays = {"index": index.numpy(), "label": labels.cpu()[index].numpy()}
    return found if query is None else {**found, "query": query.cpu()[index].numpy()}


def some(values: Tensor, wanted: int, seed: int) -> Tensor:
    """All of `values`, or as many as are `wanted` of them, drawn by the seed; in their order."""
    if len(values) <= wanted:
        return values
    drawn = torch.randperm(len(values), generator=torch.Generator().manual_seed(seed))[:wanted]
    return values[drawn.sort().values]
