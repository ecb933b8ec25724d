"""Ranking by its definition, one query at a time: every order of what is tied, and exact fractions."""

import itertools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

Item = tuple[float, bool]
"""The cosine of an image, and whether it is of the query's class."""


class Expected(NamedTuple):
    """The means over all orders of what is tied."""

    hits: tuple[Fraction, ...]
    """Recall at 1, 2 and so on."""
    average_precision: Fraction
    precision: Fraction


def tied_groups(items: Sequence[Item], tolerance: float) -> list[list[bool]]:
    """Whether images are of the class, group by group from the closest on.

    The best of the class is tied with all within the tolerance of it; then the best of the class that is left.
    """
    rest = sorted(items, reverse=True)
    groups = []
    while rest:
        best = next((cosine for cosine, own in rest if own), None)
        if best is None or rest[0][0] > best + tolerance:
            groups.append([rest.pop(0)[1]])
            continue
        groups.append([own for cosine, own in rest if cosine >= best - tolerance])
        rest = [item for item in rest if item[0] < best - tolerance]
    return groups


def every_order(items: Sequence[Item], tolerance: float) -> Expected:
    """What to expect of one query, by enumeration: at most about eight images."""
    orders = [[*itertools.chain(*order)] for order in _orders(tied_groups(items, tolerance))]
    relevant = sum(own for _, own in items)

    def mean(values: Iterator[Fraction]) -> Fraction:
        return sum(values, Fraction(0)) / len(orders)

    def precision(order: list[bool]) -> Fraction:
        found = (Fraction(sum(order[: j + 1]), j + 1) for j in range(relevant) if order[j])
        return sum(found, Fraction(0)) / relevant

    return Expected(
        tuple(mean(Fraction(any(order[: k + 1])) for order in orders) for k in range(len(items))),
        mean(precision(order) for order in orders),
        mean(Fraction(sum(order[:relevant]), relevant) for order in orders),
    )


def by_probability(items: Sequence[Item], tolerance: float = 0.0) -> tuple[float, float, float]:
    """Recall at 1, average precision at R and precision at R of one query of any size, place by place."""
    relevant = sum(own for _, own in items)
    first, before, hit, average, share = True, 0, 0.0, 0.0, 0.0
    place = 0
    for group in tied_groups(items, tolerance):
        own, size = sum(group), len(group)
        if first:
            hit, first = own / size, False
        for j in range(size):
            place += 1
            if place <= relevant and own:
                earlier = j * (own - 1) / (size - 1) if size > 1 else 0.0
                average += own / size * (before + 1 + earlier) / place
                share += own / size
        before += own
    return hit, average / relevant, share / relevant


def _orders(groups: list[list[bool]]) -> list[tuple[tuple[bool, ...], ...]]:
    assert math.prod(math.factorial(len(group)) for group in groups) <= 50_000
    return [*itertools.product(*(itertools.permutations(group) for group in groups))]
