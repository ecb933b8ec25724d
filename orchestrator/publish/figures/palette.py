"""Colours that the colour-blind tell apart, each with a dash and a shape of its own, so that print in grey will do."""

from collections.abc import Sequence
from typing import Final

# Okabe and Ito's, without their yellow, which paper swallows.
COLOURS: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES: Final = ([1, 0], [5, 2], [1.5, 1.5], [7, 2, 1.5, 2], [3, 3], [9, 2], [5, 1.5, 1.5, 1.5, 1.5, 1.5])
SHAPES: Final = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right")

DIVERGING: Final = (
    "#134b85", "#2f78b3", "#5da2cb", "#9dcae1", "#d2e5ef", "#f2f0eb", "#fce0ba", "#fbbf74", "#e8932f", "#c5690d",
    "#994a07",
)  # fmt: skip
"""From least over none to most: Vega's blueorange."""

INK: Final = "#1a1a1a"
GREY: Final = "#5f5f5f"
PALE: Final = "#dedede"


def colours(series: Sequence[object]) -> list[str]:
    """A colour for each of some series; after seven they come again."""
    return [COLOURS[at % len(COLOURS)] for at in range(len(series))]


def dashes(series: Sequence[object]) -> list[list[float]]:
    """A dash for each; where a colour comes again it has another dash."""
    return [[*DASHES[(at + at // len(COLOURS)) % len(DASHES)]] for at in range(len(series))]


def shapes(series: Sequence[object]) -> list[str]:
    """A shape for each; where a colour comes again it has another shape."""
    return [SHAPES[(at + at // len(COLOURS)) % len(SHAPES)] for at in range(len(series))]
