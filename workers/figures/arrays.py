"""The data of the papers' figures as arrays, and sheets of pictures."""

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
from workers.figures import options

Arrays = dict[str, NDArray[np.generic]]
"""The named arrays of a figure."""

_FRAME: Final = 4  # pixels around an image
_GAP: Final = 6
_LINE: Final = 14  # of text
_TEXT: Final = 11
_DASH: Final = 6
_BLACK, _WHITE, _GREY = (0, 0, 0), (255, 255, 255), (110, 110, 110)
_BLUE, _ORANGE = (0, 90, 181), (213, 94, 0)  # the colour-blind can distinguish them, too

_Frame = Literal["thin", "whole", "dashed"]
"""Thin and grey, whole and blue, or dashed and orange: the colour is not the only difference."""


class _Tile(NamedTuple):
    """A picture, uint8 [h, w] or [h, w, 3], with its frame and at most two lines of text."""

    pixels: NDArray[np.uint8]
    frame: _Frame
    lines: Sequence[str]


def _tiled(rows: Sequence[Sequence[_Tile]], side: int) -> bytes:
    """Rows of tiles as a PNG file: pictures scaled to squares of `side` pixels, lines cut to that width."""
    width, height = side + 2 * _FRAME + _GAP, side + 2 * _FRAME + 2 * _LINE + _GAP
    columns = max(len(row) for row in rows)
    sheet = Image.new("RGB", (columns * width + _GAP, len(rows) * height + _GAP), _WHITE)
    pen = ImageDraw.Draw(sheet)
    font = ImageFont.load_default(_TEXT)
    for number, row in enumerate(rows):
        for column, tile in enumerate(row):
            left, top = _GAP + column * width, _GAP + number * height
            fitted = _fitted(tile.pixels, side)
            middle = (left + _FRAME + (side - fitted.width) // 2, top + _FRAME + (side - fitted.height) // 2)
            sheet.paste(fitted, middle)
            _frame(pen, left, top, side + 2 * _FRAME, tile.frame)
            below = top + side + 2 * _FRAME
            for offset, text in enumerate(tile.lines):
                short = _shortened(text, font, side + 2 * _FRAME)
                pen.text((left, below + offset * _LINE), short, fill=_BLACK, font=font)
    stream = io.BytesIO()
    sheet.save(stream, "PNG", optimize=True)
    return stream.getvalue()


def _fitted(pixels: NDArray[np.uint8], side: int) -> Image.Image:
    """The picture scaled to `side` pixels on its longer side; small ones keep sharp pixels."""
    image = Image.fromarray(pixels).convert("RGB")
    scale = side / max(image.size)
    size = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
    return image.resize(size, Image.Resampling.NEAREST if scale > 1 else Image.Resampling.LANCZOS)


def _frame(pen: ImageDraw.ImageDraw, left: int, top: int, size: int, frame: _Frame) -> None:
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
    if font.getlength(text) <= width:
        return text
    while text and font.getlength(f"{text}...") > width:
        text = text[:-1]
    return f"{text}..."


def contact_sheet(
    arrays: Arrays, picture: Callable[[int], NDArray[np.uint8]], name: Callable[[int], str], side: int
) -> bytes:
    """The sheet of `panels` as a PNG file.

    `picture` gives the pixels of an image by its index, uint8 [h, w] or [h, w, 3], and `name` that of its class. A
    query has a thin grey frame, an image of its class a whole blue frame and the word right, any other a dashed orange
    frame and the word wrong; after the word comes the cosine.
    """

    rows, keys = list[list[_Tile]](), ("query", "nearest", "correct", "cosine")
    for query, *nearest in zip(*(arrays[key].tolist() for key in keys), strict=True):
        rows.append([_Tile(picture(query), "thin", ["query", name(query)])])
        for index, correct, cosine in zip(*nearest, strict=True):
            lines = [f"{'right' if correct else 'wrong'}, {cosine:.2g}", name(index)]
            rows[-1].append(_Tile(picture(index), "whole" if correct else "dashed", lines))
    return _tiled(rows, side)


_HEAT: Final = np.array([[0, 0, 4], [87, 16, 110], [188, 55, 84], [249, 142, 9], [252, 255, 164]], dtype=np.float64)
"""Colours from low to high, ever lighter, so that they work in grey (matplotlib's inferno)."""


def drawn(count: int, query: Tensor | None, figure: options.FeatureMaps) -> Tensor:
    """The indices of the images that a figure shows, drawn by its seed, from the queries if there are any."""
    every = torch.arange(count) if query is None else query.cpu().nonzero()[:, 0]
    return some(every, figure.images, figure.seed)


def feature_maps(labels: Tensor, index: Tensor, seen: Tensor, maps: Tensor, channels: int) -> Arrays:
    """For n images `index` with `label` [n]: `channel` [n, k], the channels of the greatest mean, greatest first.

    `map` [n, k, h, w] and its `mean` [n, k]; `picture` [n, H, W, c] as bytes, the crop that the network sees. `labels`
    are those of all images; `maps` are [n, c, h, w], or a transformer's patches [n, c, h x h, 1], which become square.
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


def feature_map_sheet(arrays: Arrays, name: Callable[[int], str], side: int) -> bytes:
    """The sheet of `feature_maps` as a PNG file: each image with its maps in a row, most active first.

    Colours range from zero, or the least value if it is negative, to the greatest value of the map; its mean stands
    under it. `name` gives the class of an image by its index.
    """

    def tiles(row: int) -> list[_Tile]:
        picture = arrays["picture"][row].astype(np.uint8)
        seen = picture[..., 0] if picture.shape[-1] == 1 else picture
        shown = [_Tile(seen, "thin", ["seen", name(int(arrays["index"][row]))])]
        for channel, mean, values in zip(arrays["channel"][row], arrays["mean"][row], arrays["map"][row], strict=True):
            shown.append(_Tile(_heat(values), "thin", [f"channel {int(channel)}", f"mean {float(mean):.3g}"]))
        return shown

    return _tiled([tiles(row) for row in range(len(arrays["index"]))], side)


def _heat(values: NDArray[np.generic]) -> NDArray[np.uint8]:
    floats = values.astype(np.float64)
    low, high = min(0.0, floats.min()), floats.max()
    share = (floats - low) / (high - low) if high > low else np.zeros_like(floats)
    known = np.linspace(0, 1, len(_HEAT))
    colours = np.stack([np.interp(share, known, _HEAT[:, channel]) for channel in range(3)], axis=-1)
    return colours.round().astype(np.uint8)


class Embedded(NamedTuple):
    """The raw embeddings of a split's images, of which figures are drawn, with labels."""

    raw: Tensor  # [n, d]
    labels: Tensor  # [n]
    query: Tensor | None = None
    """Whether each image is a query, [n]; the others are the gallery. None if the split has no queries."""
    distance: options.Distance = "cosine"

    @property
    def unit(self) -> Tensor:
        """The directions f^ [n, d], on the CPU."""
        return geometry.unit(self.raw.detach()).cpu()

    def searched(self) -> tuple[Tensor, Tensor]:
        """The indices of the images that are searched for, and of those among which they are."""
        if self.query is None:
            return torch.arange(len(self.labels)), torch.arange(len(self.labels))
        asks = self.query.cpu()
        return asks.nonzero()[:, 0], (~asks).nonzero()[:, 0]

    def sides(self) -> list[tuple[str, Tensor]]:
        """The indices of the queries and of the gallery, or of all images, with the prefix of their arrays' names."""
        places, gallery = self.searched()
        return [("", places)] if self.query is None else [("", places), ("gallery_", gallery)]

    def chosen(self, index: Tensor) -> Arrays:
        """The images `index` of a figure, with their labels, and whether they are queries."""
        found = {"index": index, "label": self.labels.cpu()[index]}
        if self.query is not None:
            found["query"] = self.query.cpu()[index]
        return {name: values.numpy() for name, values in found.items()}


def norms(of: Embedded, figure: options.Norms) -> Arrays:
    """The histogram of ||f|| and its mean and population variance (SEC figures 1 and 5a).

    `edges` [bins + 1] from the least to the greatest norm, `counts` [bins], `mean`, `variance`. If there are queries,
    these are of them, and `gallery_counts`, `gallery_mean`, `gallery_variance` of the others.
    """
    lengths = geometry.norms(of.raw.detach()).double().cpu().numpy()
    edges = np.histogram_bin_edges(lengths, figure.bins)
    arrays: Arrays = {"edges": edges}
    for prefix, places in of.sides():
        side = lengths[places.numpy()]
        counts = np.histogram(side, edges)[0]
        arrays |= {f"{prefix}counts": counts, f"{prefix}mean": side.mean(), f"{prefix}variance": side.var()}
    return arrays


def cosines(of: Embedded, figure: options.Cosines) -> Arrays:
    """The histograms of cos_ap, cos_an and cos_ap - cos_an over all triplets of an anchor (SEC figures 5b to d).

    `edges` [bins + 1] over [-1, 1] with `cos_ap` and `cos_an` [bins]; `difference_edges` over [-2, 2], `difference`
    [bins]. The seed draws at most `anchors` images as anchors, which are compared with all other images. If there are
    queries, anchors are drawn from them and compared with the gallery. An image alone in its class is no anchor.
    """
    unit, classes, bins = of.unit.double(), of.labels.cpu(), figure.bins
    places, gallery = of.searched()
    others, other_classes = unit[gallery], classes[gallery]
    edges, wide = np.linspace(-1, 1, bins + 1), np.linspace(-2, 2, bins + 1)
    counts = {name: np.zeros(bins, dtype=np.int64) for name in ("cos_ap", "cos_an", "difference")}
    for anchor in some(places, figure.anchors, figure.seed).tolist():
        similarity = (others @ unit[anchor]).clamp_(-1, 1).numpy()
        same = (other_classes == classes[anchor]).numpy()
        negative = np.sort(similarity[~same])
        if of.query is None:
            same[anchor] = False
        positive = np.sort(similarity[same])
        if not len(positive):
            continue
        counts["cos_ap"] += np.histogram(positive, edges)[0]
        counts["cos_an"] += np.histogram(negative, edges)[0]
        # For a positive p, negatives up to p - e give differences from e on; the last bin includes its upper edge.
        above = [np.searchsorted(negative, positive - edge, side="right").sum() for edge in wide[:-1]]
        counts["difference"] -= np.diff(above, append=0)
    return {"edges": edges, "difference_edges": wide, **counts}


def panels(of: Embedded, figure: options.Panels) -> Arrays:
    """The nearest images of some queries that the seed draws (SEC figure 9).

    `query` [q] and `nearest` [q, depth] are indices of images, closest first and without the query itself; `correct`
    [q, depth] says whether the classes are equal; `cosine` [q, depth]. If the split has queries, they are drawn from
    these, and the nearest are from the gallery. The seed orders equally close images. With the Euclidean distance of
    raw embeddings there is also `distance` [q, depth].
    """
    unit, classes = of.unit, of.labels.cpu()
    places, gallery = of.searched()
    drawn = some(places, figure.queries, figure.seed)
    cosines = similarity = unit[drawn] @ unit[gallery].T
    if of.distance == "euclidean":
        raw = of.raw.detach().cpu().double()
        similarity = -torch.cdist(raw[drawn], raw[gallery], compute_mode="donot_use_mm_for_euclid_dist")
    if of.query is None:
        similarity = similarity.scatter(1, drawn[:, None], -torch.inf)
    shuffled = torch.rand(similarity.shape, generator=torch.Generator().manual_seed(figure.seed)).argsort(dim=1)
    sorted_ = similarity.gather(1, shuffled).sort(dim=1, descending=True, stable=True)
    shown = min(figure.depth, len(gallery) - (of.query is None))
    columns = shuffled.gather(1, sorted_.indices[:, :shown])
    nearest, cosine = gallery[columns], cosines.gather(1, columns)
    correct = classes[nearest] == classes[drawn][:, None]
    found: Arrays = {
        "query": drawn.numpy(), "nearest": nearest.numpy(), "correct": correct.numpy(), "cosine": cosine.numpy(),
    }  # fmt: skip
    return found | {"distance": -sorted_.values[:, :shown].numpy()} if of.distance == "euclidean" else found


def tsne(of: Embedded, figure: options.Tsne) -> Arrays:
    """t-SNE of the directions f^ in the plane, by scikit-learn from their principal components (ISA figures 2 and 6).

    `index` [p], at most `points` images drawn by the seed; `xy` [p, 2]; `label` [p], and `query` [p] if there are
    queries. The same library on the same machine gives the same result. The perplexity is at most a third of the
    images. If the `distance` is Euclidean, raw embeddings are used.
    """
    index = some(torch.arange(len(of.labels)), figure.points, figure.seed)
    rows = of.raw.detach().cpu() if of.distance == "euclidean" else of.unit
    return of.chosen(index) | {"xy": in_the_plane(rows[index].float().numpy(), figure.perplexity, figure.seed)}


def in_the_plane(rows: NDArray[np.float32], perplexity: float, seed: int) -> NDArray[np.float32]:
    """t-SNE of embeddings [p, d], [p, 2]; raises ValueError for fewer than three."""
    if len(rows) < 3:
        raise ValueError(f"tsne: expected at least 3 images, found {len(rows)}")
    init = "pca" if min(rows.shape) >= 2 else "random"
    from sklearn.manifold import TSNE  # here, since it takes seconds and most trainings do not need it

    perplexity = min(perplexity, (len(rows) - 1) / 3)
    placed: NDArray[np.float32] = TSNE(perplexity=perplexity, init=init, random_state=seed).fit_transform(rows)
    return placed


def unit_circle(of: Embedded, figure: options.UnitCircle) -> Arrays:
    """The places of 2-D embeddings on the unit circle (SVMax figure 7).

    `index`, `label` [p] and `query` as in `tsne`; `xy` [p, 2] of length 1, `angle` [p] in radians from -pi to pi.
    Raises ValueError unless embeddings have two dimensions.
    """
    if of.raw.ndim != 2 or of.raw.shape[1] != 2:
        raise ValueError(f"unit_circle: expected embeddings [n, 2], found {[*of.raw.shape]}; set embedding: 2")
    index = some(torch.arange(len(of.labels)), figure.points, figure.seed)
    xy = of.unit[index]
    return of.chosen(index) | {"xy": xy.numpy(), "angle": torch.atan2(xy[:, 1], xy[:, 0]).numpy()}


def spectrum(of: Embedded, _: options.Spectrum) -> Arrays:
    """The singular values of the directions f^, largest first, and their mean with its bounds (SVMax figures 3 and 15).

    `singular` [min(n, d)], `s_mu`, `lower`, `upper`. If there are queries, these are of them, and the same of the
    others with the prefix `gallery_`.
    """
    unit, arrays = of.unit, Arrays()
    for prefix, places in of.sides():
        side = unit[places]
        singular = geometry.singular_values(side).double().numpy()
        lower, upper = (np.float64(bound) for bound in geometry.singular_bounds(*side.shape))
        values = {"singular": singular, "s_mu": singular.mean(), "lower": lower, "upper": upper}
        arrays |= {f"{prefix}{name}": value for name, value in values.items()}
    return arrays


def heat_map(of: Embedded, figure: options.HeatMap) -> Arrays:
    """The cosines between images of a few classes, class by class (ISA figure 8).

    The seed draws the classes and their images. `index` and `label` [m], and `query` [m] if there are queries;
    `cosine` [m, m]; `class` [c]; `class_cosine` [c, c], the mean over pairs of two of these images, NaN for a class of
    one image.
    """
    known = of.labels.cpu()
    drawn = some(torch.unique(known), figure.classes, figure.seed)
    index = torch.cat([some((known == label).nonzero()[:, 0], figure.per_class, figure.seed) for label in drawn])
    unit = of.unit[index]
    cosine = unit @ unit.T
    member = (known[index] == drawn[:, None]).double()
    sums = member @ cosine.double().clone().fill_diagonal_(0) @ member.T
    sizes = member.sum(dim=1)
    pairs = sizes[:, None] * sizes - sizes.diag()
    tensors = {"cosine": cosine, "class": drawn, "class_cosine": sums / pairs}
    return of.chosen(index) | {name: value.numpy() for name, value in tensors.items()}


FIGURES: Final[Mapping[str, Callable[..., Arrays]]] = {
    figure.__name__: figure for figure in (norms, cosines, panels, tsne, unit_circle, spectrum, heat_map)
}
"""Every figure of embeddings by name; each takes an `Embedded` and its options."""


def packed(arrays: Arrays) -> bytes:
    """Writes a figure's arrays as an `.npz` file without pickles."""
    stream = io.BytesIO()
    np.savez_compressed(stream, allow_pickle=False, **arrays)
    return stream.getvalue()


def some(values: Tensor, wanted: int, seed: int) -> Tensor:
    """Draws at most `wanted` of the `values` by the seed, and keeps their order."""
    if len(values) <= wanted:
        return values
    drawn = torch.randperm(len(values), generator=torch.Generator().manual_seed(seed))[:wanted]
    return values[drawn.sort().values]
