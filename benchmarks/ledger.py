"""How often the standing of a published number is wrong, by simulation: `python -m benchmarks.ledger`."""

import random
from collections.abc import Callable
from typing import Final

from orchestrator.publish.ledger.standing import stance
from orchestrator.publish.published.number import Number, PrintedPlace, Units, read
from orchestrator.publish.statistics import statistic
from orchestrator.views.ledger import Standing
from orchestrator.views.outcomes import CellSummary

NUMBERS: Final = 100_000
SPREAD: Final = 0.004
PRINTED: Final = 0.60
CELL: Final = CellSummary(0, "complete", None, {}, "", None, {}, 1)


def rate(runs: int, mean: float, word: Standing, printed: Callable[[random.Random], float], times: int) -> float:
    """How often a number gets the word, where own runs are normal around the mean."""
    random_ = random.Random(runs)
    found = 0
    for _ in range(times):
        own = statistic([random_.gauss(mean, SPREAD) for _ in range(runs)])
        found += stance(own, CELL, _number(printed(random_))).standing == word
    return found / times


def _number(value: float) -> Number:
    return read(f"{100 * value:.2f}", PrintedPlace({}, {}, "recall@1"), Units("percent", "percent"))


def one_run(random_: random.Random) -> float:
    """A paper that printed one run of the same protocol."""
    return random_.gauss(PRINTED, SPREAD)


def exactly(_: random.Random) -> float:
    """A paper's number that is what it is."""
    return PRINTED


CASES: Final[tuple[tuple[str, float, Standing, Callable[[random.Random], float]], ...]] = (
    ("one run of the same protocol: not reproduced", PRINTED, "not reproduced", one_run),
    ("truly one point off: reproduced", PRINTED + 0.01, "reproduced", exactly),
    ("truly as printed: reproduced", PRINTED, "reproduced", exactly),
    ("truly two points off: not reproduced", PRINTED + 0.02, "not reproduced", exactly),
)


if __name__ == "__main__":
    for title, mean, word, printed in CASES:
        rates = (f"{100 * rate(runs, mean, word, printed, NUMBERS):.1f} %" for runs in (3, 5, 10))
        print(f"{title:48} {'  '.join(rates)}")
