"""How often verdicts are wrong: simulated tables and scores whose true differences are known.

    python -m benchmarks.error_rates [--tables 1000]      prints what docs/statistics.md shows, as JSON (five minutes)

*Verdicts over seeds.* A table has two losses and four regularizers; each regularizer is compared with `none` of its
loss, which makes six comparisons with two shared baselines. The metric of a run is its cell's true mean, plus an effect
of its seed on all cells, plus noise. A reader looks after every seed from the third on and stops at the first verdict.
Effects and margins are in standard deviations of a paired difference.

*Verdicts over seeds and queries.* A score is y = m + a(seed) + b(class) + c(seed, class) + e. Seeds, classes and noise
are drawn anew each time, and the truth is m. Tables have six comparisons without a true difference, and a look after
every seed from 3 to 8.
"""

import argparse
import json
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from orchestrator.publish.aggregate import half_interval, statistic
from orchestrator.publish.verdicts.judge import Evidence, half_width, judge, spread
from orchestrator.publish.verdicts.significance import ANY, LEVEL, MIN_PAIRS, Spending, compare, holm, planned

SEEDS: Final = 10
LOSSES, REGULARIZERS = 2, 3
EFFECTS: Final = (0.5, 1.0, 1.5, 2.0, 3.0)
MARGIN: Final = 2.0
CALLED: Final = frozenset({"better", "worse"})
NOISES: Final[dict[str, Callable[[Any, tuple[int, ...]], Any]]] = {
    "normal": lambda random, shape: random.standard_normal(shape),
    "Student t, 5 degrees": lambda random, shape: random.standard_t(5, shape) / (5 / 3) ** 0.5,
    "exponential": lambda random, shape: random.exponential(size=shape) - 1.0,
}


@dataclass(frozen=True)
class Rule:
    """After which seeds a reader looks, and how it spends the level; None: the fixed test with Holm's correction."""

    looks: Callable[[int], range]
    spending: Spending | None = None


RULES: Final = {
    "fixed test with Holm, one look at 10": Rule(lambda seeds: range(seeds, seeds + 1)),
    "fixed test after every seed (invalid)": Rule(lambda seeds: range(MIN_PAIRS, seeds + 1)),
    "any, a look after every seed": Rule(lambda seeds: range(MIN_PAIRS, seeds + 1), ANY),
    "planned, one look at 10": Rule(lambda seeds: range(seeds, seeds + 1), planned(SEEDS)),
    "planned 5, then seed by seed": Rule(lambda seeds: range(5, seeds + 1), planned(5)),
}
SEQUENTIAL: Final = tuple(RULES)[2:]


class Outcome(NamedTuple):
    """The first verdict of each comparison of a table, and the number of seeds at which it came."""

    words: list[str]
    seeds: list[int]


def differences(random: Any, noise: Callable[[Any, tuple[int, ...]], Any], effect: float) -> list[Any]:
    """The paired differences of one table (6 arrays of SEEDS); `effect` is the true difference of all comparisons."""
    runs = noise(random, (LOSSES, REGULARIZERS + 1, SEEDS)) / 2**0.5 + random.standard_normal(SEEDS)
    runs[:, 1:] += effect
    return [runs[loss, 1 + which] - runs[loss, 0] for loss in range(LOSSES) for which in range(REGULARIZERS)]


def verdicts(rule: Rule, found: list[Any], pairs: int, margin: float | None) -> list[str]:
    """The verdicts of a table at the look after `pairs` seeds."""
    if rule.spending is not None:
        evidence = {place: Evidence(each[:pairs], rule.spending, 1, margin) for place, each in enumerate(found)}
        return [verdict.word for _, verdict in sorted(judge(evidence, LEVEL).items())]
    zero = dict.fromkeys(range(pairs), 0.0)
    tested = {place: compare(dict(enumerate(each[:pairs])), zero, 0, "t") for place, each in enumerate(found)}
    signs = {"": "no clear difference", "↑": "better", "↓": "worse"}
    return [signs[each.sign] for _, each in sorted(holm(tested).items())]


def outcomes(tables: int, rule: Rule, noise: str, effect: float, margin: float | None = None) -> Iterator[Outcome]:
    """What becomes of the comparisons of each simulated table."""
    random = np.random.default_rng(20_261_122)
    for _ in range(tables):
        found = differences(random, NOISES[noise], effect)
        words, at = ["no clear difference"] * len(found), [SEEDS] * len(found)
        for pairs in rule.looks(SEEDS):
            for place, word in enumerate(verdicts(rule, found, pairs, margin)):
                if words[place] == "no clear difference" and word != "no clear difference":
                    words[place], at[place] = word, pairs
        yield Outcome(words, at)


def false_rate(tables: int, rule: Rule, noise: str, effect: float = 0.0, margin: float | None = None) -> float:
    """The percentage of tables with a wrong verdict: `equivalent` where there is a margin, else `better` or `worse`."""
    wrong = CALLED if margin is None else {"equivalent"}
    return _percent(any(word in wrong for word in each.words) for each in outcomes(tables, rule, noise, effect, margin))


def found(tables: int, rule: Rule, effect: float, word: str, margin: float | None = None) -> dict[str, float]:
    """The percentage of comparisons with the verdict `word`, and the mean number of seeds that a comparison took."""
    every = [pair for each in outcomes(tables, rule, "normal", effect, margin) for pair in zip(*each, strict=True)]
    return {
        "found": _percent(verdict == word for verdict, _ in every),
        "mean seeds": round(statistics.fmean(seeds for _, seeds in every), 1),
    }


class World(NamedTuple):
    """Standard deviations of the parts of a score, and how many classes of how many queries there are."""

    classes: int
    queries: int  # of a class, on average; sizes differ threefold
    seed: float
    shared: float  # of a class in all runs
    alone: float  # of a class in one run
    noise: float


WORLDS: Final = {
    "100 classes x 59 queries, queries matter more": World(100, 59, 0.003, 0.08, 0.05, 0.45),
    "100 classes x 59 queries, seeds matter more": World(100, 59, 0.02, 0.03, 0.05, 0.45),
    "100 classes x 59 queries, both alike": World(100, 59, 0.008, 0.08, 0.05, 0.45),
    "10 classes x 40 queries, both alike": World(10, 40, 0.03, 0.08, 0.08, 0.45),
    "5 classes x 180 queries, both alike": World(5, 180, 0.03, 0.06, 0.06, 0.45),
    "500 classes x 8 queries, both alike": World(500, 8, 0.008, 0.25, 0.2, 0.4),
}


def drawn(random: Any, world: World, runs: int) -> tuple[Any, Any]:
    """The sums of scores, runs x classes, and the number of queries of each class."""
    sizes = random.integers(world.queries // 2 + 1, world.queries * 3 // 2 + 1, world.classes)
    seeds = random.standard_normal((runs, 1)) * world.seed
    classes = random.standard_normal(world.classes) * world.shared
    both = random.standard_normal((runs, world.classes)) * world.alone
    noise = random.standard_normal((runs, world.classes)) * world.noise / np.sqrt(sizes)
    return (seeds + classes + both + noise) * sizes, sizes


def coverage(trials: int, world: World, runs: int) -> dict[str, float]:
    """The percentage of 95 % intervals that hold the truth, by what they cover."""
    random = np.random.default_rng([20_261_123, runs, world.classes])
    held: dict[str, list[bool]] = {"seeds": [], "queries": [], "both": []}
    for _ in range(trials):
        sums, sizes = drawn(random, world, runs)
        mean = abs(sums.sum() / runs / sizes.sum())
        over = spread(sums, sizes)
        held["seeds"].append(mean <= (half_interval(statistic((sums.sum(axis=1) / sizes.sum()).tolist())) or 0.0))
        held["queries"].append(mean <= (half_width(over, "queries") or 0.0))
        held["both"].append(mean <= (half_width(over, "both") or 0.0))
    return {name: _percent(found) for name, found in held.items()}


def false_tables(tables: int, world: World, covers: str, most: int = 8) -> float:
    """The percentage of tables without a difference in which some look calls a comparison better or worse."""
    random = np.random.default_rng([20_261_124, world.classes])
    return _percent(
        any(
            _called([drawn(random, world, most) for _ in range(6)], runs, covers) for runs in range(MIN_PAIRS, most + 1)
        )
        for _ in range(tables)
    )


def _called(found: list[tuple[Any, Any]], runs: int, covers: str) -> bool:
    evidence = {}
    for place, (sums, sizes) in enumerate(found):
        means = (sums[:runs].sum(axis=1) / sizes.sum()).tolist()
        over = None if covers == "seeds" else spread(sums[:runs], sizes)
        evidence[place] = Evidence(means, ANY, covers=covers, spread=over)  # type: ignore[arg-type]
    return any(verdict.word in CALLED for verdict in judge(evidence, LEVEL).values())


def _percent(found: Any) -> float:
    return round(100 * statistics.fmean(found), 1)


def main() -> None:
    """Simulate everything, and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=1_000)
    tables = parser.parse_args().tables
    result = {
        "tables": tables,
        "false better or worse, % of tables": {
            name: {noise: false_rate(tables, rule, noise) for noise in NOISES} for name, rule in RULES.items()
        },
        "better, % of comparisons, by true difference": {
            name: {effect: found(tables, RULES[name], effect, "better") for effect in EFFECTS} for name in SEQUENTIAL
        },
        f"false equivalent, % of tables, margin {MARGIN:g}": {
            name: false_rate(tables, RULES[name], "normal", MARGIN, MARGIN) for name in SEQUENTIAL
        },
        f"equivalent, % of comparisons without a difference, margin {MARGIN:g}": {
            name: found(tables, RULES[name], 0.0, "equivalent", MARGIN) for name in SEQUENTIAL
        },
        "covers: false better or worse, % of tables": {
            name: {covers: false_tables(tables, world, covers) for covers in ("seeds", "queries", "both")}
            for name, world in WORLDS.items()
        },
        "covers: 95 % intervals that hold the truth, %": {
            name: {runs: coverage(tables, world, runs) for runs in (3, 10)} for name, world in WORLDS.items()
        },
    }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
