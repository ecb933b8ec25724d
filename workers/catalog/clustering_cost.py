"""The clustering of SEC's code, counted before it is done: where it is dear, only what is kept is judged by it."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from pydantic import JsonValue

from workers.catalog.signature import Entry

NEEDS: Final = "clusters_sec"
"""What a metric needs that is computed from it."""
STARTS: Final = 10
DEAR: Final = 10**10
"""Multiplications of one iteration of one start above which a clustering is dear: with embeddings of width 512 CUB's
test images take 3e8, SOP's 3.5e11."""


class Clustering(NamedTuple):
    """Images to be put into as many clusters as they have classes, by embeddings of some width."""

    images: int
    classes: int
    width: int

    @property
    def products(self) -> int:
        """The multiplications of one iteration of one start: every image with every centre."""
        return self.images * self.classes * self.width

    @property
    def dear(self) -> bool:
        """Whether it is done once, at the end of a training, and not at each look."""
        return self.products > DEAR


def stated(dataset: Entry, options: Mapping[str, JsonValue], width: int) -> Clustering | None:
    """The clustering of a data set's test images, as far as it states their number and is taken whole."""
    images = _test(dataset, "queries") or _test(dataset, "images")
    classes = _test(dataset, "classes")
    if images is None or classes is None or options.get("official") is False:
        return None
    return Clustering(images, classes, width)


def _test(dataset: Entry, fact: str) -> int | None:
    found = dataset.facts.get(fact)
    number = found.get("test") if isinstance(found, dict) else None
    return number if isinstance(number, int) else None
