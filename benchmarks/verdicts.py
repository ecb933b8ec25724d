"""How often verdicts between cells are wrong, and what they cost: simulated tables whose truth is known.

    python -m benchmarks.verdicts [--tables 1000] [--seeds 10]

A table has two losses and four regularizers, each regularizer compared with `none` of its loss: six comparisons that
share two baselines. A run's number is its cell's true mean, what its seed does to all cells, and noise of its own.
Somebody looks after every seed from the third on and stops at the first verdict (`better`, `worse`, `equivalent`).
Effects and margins are in standard deviations of a paired difference.
"""

import argparse
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from orchestrator.publish.tables.significance import LEVEL, compare, holm
from orchestrator.publish.verdicts.judgement import CellVerdict, Evidence, judge
from orchestrator.publish.verdicts.spending import ANY, LEAST, Spending, planned

LOSSES, REGULARIZERS = 2, 3
NOISES: Final[Mapping[str, Callable[[Any, tuple[int, ...]], Any]]] = {
    "normal": lambda random, shape: random.standard_normal(shape),
    "Student t, 5 degrees": lambda random, shape: random.standard_t(5, shape) / (5 / 3) ** 0.5,
    "skewed (exponential)": lambda random, shape: random.exponential(size=shape) - 1,
}


@dataclass(frozen=True)
class Rule:
    """Who looks when, and by which test."""

    says: str
    looks: Callable[[int], range]
    spending: Spending | None = None  # none: the fixed test with Holm's correction, as if nobody had looked before


def rules(seeds: int) -> list[Rule]:
    half = max(LEAST, seeds // 2)
    return [
        Rule(f"fixed test, one look at {seeds}", lambda most: range(most, most + 1)),
        Rule("fixed test, looks after every seed (wrong)", lambda most: range(LEAST, most + 1)),
        Rule("`looks: any`, looks after every seed", lambda most: range(LEAST, most + 1), ANY),
        Rule(f"`looks: planned`, one look at {seeds}", lambda most: range(most, most + 1), planned(seeds)),
        Rule(f"`looks: planned` for {half}, then extended seed by seed", lambda most: range(half, most + 1),
             planned(half)),
    ]  # fmt: skip


def table(random: Any, seeds: int, effect: float, noise: str) -> list[Any]:
    """The paired differences of one table; the true one of all its comparisons is `effect`."""
    drawn = NOISES[noise](random, (LOSSES, REGULARIZERS + 1, seeds)) / 2**0.5
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


def followed(rule: Rule, random: Any, seeds: int, effect: float, noise: str, margin: float | None = None) -> Outcome:
    differences = table(random, seeds, effect, noise)
    words, at = ["unresolved"] * len(differences), [seeds] * len(differences)
    for pairs in rule.looks(seeds):
        for place, word in enumerate(said(rule, differences, pairs, margin)):
            if words[place] == "unresolved" and word != "unresolved":
                words[place], at[place] = word, pairs
    return Outcome(words, at)


def repeated(
    tables: int, rule: Rule, seeds: int, effect: float = 0.0, noise: str = "normal", margin: float | None = None
) -> Iterator[Outcome]:
    random = np.random.default_rng(20_261_122)
    return (followed(rule, random, seeds, effect, noise, margin) for _ in range(tables))


def false_rate(outcomes: Iterator[Outcome], wrong: frozenset[str]) -> float:
    """The share of tables with one wrong verdict or more."""
    found = [any(word in wrong for word in one.words) for one in outcomes]
    return sum(found) / len(found)


def alone(tables: int, seeds: int) -> float:
    """How often a single true null is called different by p < 0.05 at some look: what nobody corrects for."""
    from scipy.stats import ttest_1samp

    runs = np.random.default_rng(7).standard_normal((tables, seeds))
    looks = [ttest_1samp(runs[:, :pairs], 0, axis=1).pvalue < LEVEL for pairs in range(LEAST, seeds + 1)]
    return float(np.any(looks, axis=0).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=10)
    asked = parser.parse_args()
    tables, seeds = asked.tables, asked.seeds
    print(f"{tables} tables of {LOSSES * REGULARIZERS} comparisons, 3 to {seeds} seeds, {os.cpu_count()} cores\n")
    for most in (seeds, 20, 50):
        print(f"one comparison, uncorrected p < {LEVEL} after every seed up to {most}: {alone(20 * tables, most):.1%}")
    print("\n| false `better` or `worse`, tables | " + " | ".join(NOISES) + " |\n|---|" + "--:|" * len(NOISES))
    wrong = frozenset({"better", "worse"})
    for rule in rules(seeds):
        rates = [false_rate(repeated(tables, rule, seeds, noise=noise), wrong) for noise in NOISES]
        print(f"| {rule.says} | " + " | ".join(f"{rate:.1%}" for rate in rates) + " |", flush=True)
    effects = (0.5, 1.0, 1.5, 2.0, 3.0)
    print("\n| found `better`, comparisons (mean seeds) | " + " | ".join(f"{one:g} SD" for one in effects) + " |")
    print("|---|" + "--:|" * len(effects))
    for rule in (one for one in rules(seeds) if "wrong" not in one.says):
        cells = []
        for effect in effects:
            outcomes = list(repeated(max(1, tables // 4), rule, seeds, effect))
            words = [word for one in outcomes for word in one.words]
            mean = np.mean([at for one in outcomes for at in one.seeds])
            cells.append(f"{words.count('better') / len(words):.0%} ({mean:.1f})")
        print(f"| {rule.says} | " + " | ".join(cells) + " |", flush=True)
    margins = (1.0, 1.5, 2.0, 3.0)
    print("\n| `equivalent` within a margin of | " + " | ".join(f"{one:g} SD" for one in margins) + " |")
    print("|---|" + "--:|" * len(margins))
    for rule in (one for one in rules(seeds) if one.spending is not None):
        edge, same = [], []
        for margin in margins:
            at_edge = repeated(tables, rule, seeds, effect=margin, margin=margin)
            edge.append(f"{false_rate(at_edge, frozenset({'equivalent'})):.1%}")
            words = [w for one in repeated(max(1, tables // 4), rule, seeds, margin=margin) for w in one.words]
            same.append(f"{words.count('equivalent') / len(words):.0%}")
        print(f"| wrong: true difference = margin, tables; {rule.says} | " + " | ".join(edge) + " |", flush=True)
        print(f"| right: true difference = 0, comparisons; {rule.says} | " + " | ".join(same) + " |", flush=True)


if __name__ == "__main__":
    main()
