"""How often intervals that cover seeds, queries or both hold the truth, and how often verdicts by them are wrong.

A score is a mean, what its seed does to all queries, what its class does in all runs, what its class does in this run,
and noise of its own: y = m + a(seed) + b(class) + c(seed, class) + e. Seeds, classes and noise are drawn anew each
time; the truth is m. Intervals are at 95 %, of a difference of two cells as of one cell: both are sums of such terms.
Verdicts are of tables of six comparisons without any true difference, looked at after every seed from 3 to 8.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import numpy as np

from orchestrator.publish.statistics import half_interval, statistic
from orchestrator.publish.verdicts.boundary import ANY, LEAST, planned
from orchestrator.publish.verdicts.judgement import Evidence, half_width, judge, spread

LEVEL: Final = 0.05
RESAMPLES: Final = 200


class World(NamedTuple):
    """Standard deviations of what a score is made of, and how many classes there are of how many queries."""

    says: str
    classes: int
    queries: int  # of a class, on average; sizes differ threefold
    seed: float
    shared: float  # of a class in all runs
    alone: float  # of a class in one run
    noise: float


WORLDS: Final = (
    World("100 classes x 59 queries, queries matter more", 100, 59, 0.003, 0.08, 0.05, 0.45),
    World("100 classes x 59 queries, seeds matter more", 100, 59, 0.02, 0.03, 0.05, 0.45),
    World("100 classes x 59 queries, both alike", 100, 59, 0.008, 0.08, 0.05, 0.45),
    World("10 classes x 40 queries, both alike", 10, 40, 0.03, 0.08, 0.08, 0.45),
    World("5 classes x 180 queries, both alike", 5, 180, 0.03, 0.06, 0.06, 0.45),
    World("500 classes x 8 queries, both alike", 500, 8, 0.008, 0.25, 0.2, 0.4),
)


def drawn(random: Any, world: World, runs: int) -> tuple[Any, Any, Any]:
    """Sums of scores by run and class, the classes' sizes, and the sums of squares by class of the mean run."""
    sizes = random.integers(world.queries // 2 + 1, world.queries * 3 // 2 + 1, world.classes)
    seeds = random.standard_normal((runs, 1)) * world.seed
    classes = random.standard_normal(world.classes) * world.shared
    both = random.standard_normal((runs, world.classes)) * world.alone
    noise = random.standard_normal((runs, world.classes)) * world.noise / np.sqrt(sizes)
    means = seeds + classes + both + noise
    # What a query is off its class, over all runs: for who takes queries as independent.
    inside = world.noise**2 / runs * random.chisquare(sizes - 1)
    return means * sizes, sizes, inside + sizes * np.square(means.mean(axis=0))


def naive(sums: Any, sizes: Any, squares: Any) -> float:
    """Half the interval if queries were independent and the runs fixed, which they are not."""
    total, mean = sizes.sum(), sums.sum() / len(sums) / sizes.sum()
    return float(1.96 * np.sqrt((squares.sum() / total - mean**2) / total))


def intervals(random: Any) -> dict[str, Callable[[Any, Any, Any], float]]:
    """Half the width of each interval, from sums, sizes and squares."""

    def seeds(sums: Any, sizes: Any, _: Any) -> float:
        return half_interval(statistic((sums.sum(axis=1) / sizes.sum()).tolist())) or 0.0

    return {
        "seeds": seeds,
        "queries, as if independent (wrong)": naive,
        "queries by class": lambda sums, sizes, _: half_width(spread(sums, sizes), "queries") or 0.0,
        "both": lambda sums, sizes, _: half_width(spread(sums, sizes), "both") or 0.0,
    }


def coverage(trials: int, world: World, runs: int) -> Iterator[tuple[str, float, float]]:
    """By interval how often it holds the truth, and half its mean width."""
    random = np.random.default_rng([20_261_123, runs, world.classes])
    kinds = intervals(np.random.default_rng(7))
    held, wide = dict.fromkeys(kinds, 0), dict.fromkeys(kinds, 0.0)
    for _ in range(trials):
        sums, sizes, squares = drawn(random, world, runs)
        mean = sums.sum() / runs / sizes.sum()
        for name, half in kinds.items():
            width = half(sums, sizes, squares)
            held[name] += abs(mean) <= width
            wide[name] += width
    yield from ((name, held[name] / trials, wide[name] / trials) for name in kinds)


def false_tables(tables: int, world: World, covers: str, looks: str, most: int = 8) -> float:
    """The share of tables of six comparisons without a difference that are given a `better` or `worse` at some look."""
    random = np.random.default_rng([20_261_124, world.classes])
    wrong = 0
    for _ in range(tables):
        found = [drawn(random, world, most)[:2] for _ in range(6)]
        wrong += any(_called(found, runs, covers, looks) for runs in range(LEAST, most + 1))
    return wrong / tables


def _called(found: Any, runs: int, covers: str, looks: str) -> bool:
    spending = ANY if looks == "any" else planned(LEAST)
    evidence = {}
    for place, (sums, sizes) in enumerate(found):
        means = (sums[:runs].sum(axis=1) / sizes.sum()).tolist()
        beside = None if covers == "seeds" else spread(sums[:runs], sizes)
        evidence[place] = Evidence(means, spending, covers=covers, beside=beside)  # type: ignore[arg-type]
    return any(one.word in {"better", "worse"} for one in judge(evidence, LEVEL).values())
