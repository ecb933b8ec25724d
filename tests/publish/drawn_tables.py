"""Simulated tables whose true differences are known, and how often their verdicts are wrong.

A table has two losses and four regularizers, each regularizer compared with `none` of its loss: six comparisons that
share two baselines. A run's number is its cell's true mean, what its seed does to all cells, and noise of its own.
Somebody looks after every seed from the third on and stops at the first verdict (`better`, `worse`, `equivalent`).
Effects and margins are in standard deviations of a paired difference.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from orchestrator.publish.tables.significance import LEVEL, compare, holm
from orchestrator.publish.verdicts.boundary import Spending
from orchestrator.publish.verdicts.judgement import CellVerdict, Evidence, judge

LOSSES, REGULARIZERS = 2, 3


@dataclass(frozen=True)
class Rule:
    """Who looks when, and by which test."""

    looks: Callable[[int], range]
    spending: Spending | None = None  # none: the fixed test with Holm's correction, as if nobody had looked before


def table(random: Any, seeds: int, effect: float) -> list[Any]:
    """The paired differences of one table; the true one of all its comparisons is `effect`."""
    drawn = random.standard_normal((LOSSES, REGULARIZERS + 1, seeds)) / 2**0.5
    shared = random.standard_normal(seeds)
    runs = drawn + shared
    runs[:, 1:] += effect
    return [runs[loss, 1 + which] - runs[loss, 0] for loss in range(LOSSES) for which in range(REGULARIZERS)]


def said(rule: Rule, differences: list[Any], pairs: int, margin: float | None) -> list[str]:
    """The verdicts at one look."""
    if rule.spending is not None:
        found: Mapping[int, CellVerdict] = judge(
            {place: Evidence(one[:pairs], rule.spending, 1, margin) for place, one in enumerate(differences)}, LEVEL
        )
        return [found[place].word for place in range(len(differences))]
    zero = dict.fromkeys(range(pairs), 0.0)
    tested = {place: compare(dict(enumerate(one[:pairs])), zero, 0, "t") for place, one in enumerate(differences)}
    signs = {"": "unresolved", "↑": "better", "↓": "worse"}
    return [signs[one.sign] for one in holm(tested).values()]


@dataclass
class Outcome:
    """What became of the comparisons of a table: the first verdict of each, and the seeds at which it came."""

    words: list[str]
    seeds: list[int]


def followed(rule: Rule, random: Any, seeds: int, effect: float, margin: float | None = None) -> Outcome:
    differences = table(random, seeds, effect)
    words, at = ["unresolved"] * len(differences), [seeds] * len(differences)
    for pairs in rule.looks(seeds):
        for place, word in enumerate(said(rule, differences, pairs, margin)):
            if words[place] == "unresolved" and word != "unresolved":
                words[place], at[place] = word, pairs
    return Outcome(words, at)


def repeated(
    tables: int, rule: Rule, seeds: int, effect: float = 0.0, margin: float | None = None
) -> Iterator[Outcome]:
    random = np.random.default_rng(20_261_122)
    return (followed(rule, random, seeds, effect, margin) for _ in range(tables))


def false_rate(outcomes: Iterator[Outcome], wrong: frozenset[str]) -> float:
    """The share of tables with one wrong verdict or more."""
    found = [any(word in wrong for word in one.words) for one in outcomes]
    return sum(found) / len(found)
