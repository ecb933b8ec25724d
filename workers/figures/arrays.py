"""The arrays behind the papers' figures."""

import io
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

from workers import geometry
from workers.figures.options import Distance, FeatureMaps

Arrays = dict[str, NDArray[np.generic]]
"""The named arrays of a figure."""

_FRAME: Final = 4  # pixels around an image
_GAP: Final = 6
_LINE: Final = 14  # of text
_TEXT: Final = 11
_DASH: Final = 6
_BLACK, _WHITE, _GREY = (0, 0, 0), (255, 255, 255), (110, 110, 110)
_BLUE, _ORANGE = (0, 90, 181), (213, 94, 0)  # told apart by the colour-blind too

Frame = Literal["thin", "whole", "dashed"]
"""Thin and grey, whole and blue, or dashed and orange: no meaning is in the colour alone."""


class Tile(NamedTuple):
    """A picture, uint8 [h, w] or [h, w, 3], with its frame and at most two lines of words."""

    pixels: NDArray[np.uint8]
    frame: Frame
    words: Sequence[str]


def tiled(rows: Sequence[Sequence[Tile]], side: int) -> bytes:
    """Rows of tiles as a PNG file: pictures fitted into squares of `side` pixels, words cut where they do not fit."""
    width, height = side + 2 * _FRAME + _GAP, side + 2 * _FRAME + 2 * _LINE + _GAP
    columns = max(len(row) for row in rows)
    sheet = Image.new("RGB", (columns * width + _GAP, len(rows) * height + _GAP), _WHITE)
    pen = ImageDraw.Draw(sheet)
    font = ImageFont.load_default(_TEXT)
    for line, row in enumerate(rows):
        for column, tile in enumerate(row):
            left, top = _GAP + column * width, _GAP + line * height
            fitted = _fitted(tile.pixels, side)
            middle = (left + _FRAME + (side - fitted.width) // 2, top + _FRAME + (side - fitted.height) // 2)
            sheet.paste(fitted, middle)
            _frame(pen, left, top, side + 2 * _FRAME, tile.frame)
            below = top + side + 2 * _FRAME
            for offset, text in enumerate(tile.words):
                short = _shortened(text, font, side + 2 * _FRAME)
                pen.text((left, below + offset * _LINE), short, fill=_BLACK, font=font)
    stream = io.BytesIO()
    sheet.save(stream, "PNG", optimize=True)
    return stream.getvalue()


def _fitted(pixels: NDArray[np.uint8], side: int) -> Image.Image:
    """The picture with its longer side at `side` pixels; small ones keep their sharp pixels."""
    image = Image.fromarray(pixels).convert("RGB")
    scale = side / max(image.size)
    size = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
    return image.resize(size, Image.Resampling.NEAREST if scale > 1 else Image.Resampling.LANCZOS)


def _frame(pen: ImageDraw.ImageDraw, left: int, top: int, size: int, frame: Frame) -> None:
    right, bottom = left + size - 1, top + size - 1
    if frame != "dashed":
        thick, colour = (_FRAME, _BLUE) if frame == "whole" else (1, _GREY)
        pen.rectangle((left, top, right, bottom), outline=colour, width=thick)
        return
    for start in range(0, size, 2 * _DASH):
        end = min(start + _DASH, size) - 1
        for inset in (0, size - _FRAME):
            pen.rectangle((left + start, top + inset, left + end, top + inset + _FRAME - 1), fill=_ORANGE)
            pen.rectangle((left + inset, top + start, left + inset + _FRAME - 1, top + end), fill=_ORANGE)


def _shortened(text: str, font: Any, width: int) -> str:
    """The text as far as it fits."""
    if font.getlength(text) <= width:
        return text
    while text and font.getlength(f"{text}...") > width:
        text = text[:-1]
    return f"{text}..."


Picture = Callable[[int], NDArray[np.uint8]]
"""The pixels of an image by its index, uint8 [h, w] or [h, w, 3]."""


class RetrievalRow(NamedTuple):
    """A query and what was found for it: indices of images, closest first."""

    query: int
    nearest: Sequence[int]
    correct: Sequence[bool]
    cosine: Sequence[float]


def contact_sheet(rows: Sequence[RetrievalRow], picture: Picture, name: Callable[[int], str], side: int) -> bytes:
    """The sheet as a PNG file: pictures fitted into squares of `side` pixels, each with the `name` of its class.

    A query has a thin grey frame; what is of its class a whole blue one and the word right, what is not a dashed orange
    one and the word wrong. Beside the word stands the cosine.
    """

    def tiles(row: RetrievalRow) -> list[Tile]:
        shown = [Tile(picture(row.query), "thin", ["query", name(row.query)])]
        for index, correct, cosine in zip(row.nearest, row.correct, row.cosine, strict=True):
            words = [f"{'right' if correct else 'wrong'}, {cosine:.2g}", name(index)]
            shown.append(Tile(picture(index), "whole" if correct else "dashed", words))
        return shown

    return tiled([tiles(row) for row in rows], side)


_HEAT: Final = np.array([[0, 0, 4], [87, 16, 110], [188, 55, 84], [249, 142, 9], [252, 255, 164]], dtype=np.float64)
"""Colours from none to most, ever lighter, so that print in grey will do (matplotlib's inferno)."""


def drawn(count: int, query: Tensor | None, figure: FeatureMaps) -> Tensor:
    """Which of `count` images are shown, drawn by the figure's seed; queries where there are any."""
    every = torch.arange(count) if query is None else query.cpu().nonzero()[:, 0]
    return some(every, figure.images, figure.seed)


def feature_maps(labels: Tensor, index: Tensor, seen: Tensor, maps: Tensor, channels: int) -> Arrays:
    """Of n images `index`, with `label` [n]: `channel` [n, k], the channels of the greatest mean, most active first.

    `map` [n, k, h, w] and its `mean` [n, k]; `picture` [n, H, W, c] as bytes, the crop that the network sees. `labels`
    are those of all images, `maps` [n, c, h, w]; a transformer's patches [n, c, h x h, 1] become the square that they
    are of.
    """
    mean = maps.mean(dim=(2, 3))
    top = mean.topk(min(channels, maps.shape[1]), dim=1)
    chosen = maps.gather(1, top.indices[:, :, None, None].expand(-1, -1, *maps.shape[2:]))
    side = math.isqrt(maps.shape[2])
    if maps.shape[3] == 1 and side**2 == maps.shape[2]:
        chosen = chosen.reshape(*chosen.shape[:2], side, side)
    pictures = seen.float().round().clamp(0, 255).to(torch.uint8).permute(0, 2, 3, 1)
    return {
        "index": index.numpy(), "label": labels.cpu()[index].numpy(), "channel": top.indices.numpy(),
        "mean": top.values.numpy(), "map": chosen.numpy(), "picture": pictures.contiguous().numpy(),
    }  # fmt: skip


def feature_map_sheet(found: Arrays, name: Callable[[int], str], side: int) -> bytes:
    """The picture of `feature_maps`: each image with its maps in a row, most active first.

    A map is drawn from zero, or its least value where that is below, to its own greatest; its mean stands under it.
    `name` gives the class of an image by its index.
    """

    def tiles(at: int) -> list[Tile]:
        picture = found["picture"][at].astype(np.uint8)
        seen = picture[..., 0] if picture.shape[-1] == 1 else picture
        shown = [Tile(seen, "thin", ["seen", name(int(found["index"][at]))])]
        for channel, mean, activation in zip(found["channel"][at], found["mean"][at], found["map"][at], strict=True):
            shown.append(Tile(_heat(activation), "thin", [f"channel {int(channel)}", f"mean {float(mean):.3g}"]))
        return shown

    return tiled([tiles(at) for at in range(len(found["index"]))], side)


def _heat(values: NDArray[np.generic]) -> NDArray[np.uint8]:
    """The colours of a map [h, w]."""
    floats = values.astype(np.float64)
    low, high = min(0.0, floats.min()), floats.max()
    share = (floats - low) / (high - low) if high > low else np.zeros_like(floats)
    at = np.linspace(0, 1, len(_HEAT))
    colours = np.stack([np.interp(share, at, _HEAT[:, channel]) for channel in range(3)], axis=-1)
    return colours.round().astype(np.uint8)


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
