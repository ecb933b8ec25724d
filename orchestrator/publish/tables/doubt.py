"""Bold that may rest on noise: the best of a block beside its next best, run by run."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from decimal import Decimal
from typing import Final

from orchestrator.publish.aggregate import Repeat
from orchestrator.publish.tables.bold import Contender
from orchestrator.publish.tables.significance import LEAST, LEVEL, Comparison, compare, holm

Place = tuple[int, ...]
SIGN: Final = "≈"
MEANING: Final = (
    "bold, but its lead over the next best may be noise: a two-sided paired t-test over the runs that both have, "
    f"Holm-corrected over the table, does not tell them apart at the level {LEVEL} (point at the number for the words)"
)


def doubts(
    contenders: Iterable[Contender], winners: Collection[Place], runs: Callable[[Place], Mapping[Repeat, float]]
) -> dict[Place, str]:
    """By the place of each bold number that may owe its rank to noise: why, in a sentence."""
    rivals = dict(_rivals(contenders, winners))
    found = {place: compare(runs(place), runs(rival), 0, "t") for place, rival in rivals.items()}
    said = {place: _said(one) for place, one in holm(found).items()}
    return {place: words for place, words in said.items() if words}


def _rivals(contenders: Iterable[Contender], winners: Collection[Place]) -> Iterable[tuple[Place, Place]]:
    """Each bold number with the best of its block beside itself."""
    blocks: dict[object, list[Contender]] = defaultdict(list)
    for one in contenders:
        if one.text is not None:
            blocks[one.block].append(one)
    for block in blocks.values():
        sign = 1 if block[0].better == "higher" else -1
        ranked = sorted(block, key=lambda one: -sign * Decimal(one.text or 0))
        for one in ranked:
            if one.place in winners and len(ranked) > 1:
                yield one.place, ranked[1 if one is ranked[0] else 0].place


def _said(one: Comparison) -> str:
    if one.n < LEAST["t"]:
        runs = "no run" if not one.n else "1 run" if one.n == 1 else f"{one.n} runs"
        return f"whether it leads the next best cannot be tested: {runs} that both have, {LEAST['t']} are needed"
    if one.corrected is None:  # all differences alike: a lead in every run, or none
        return "" if one.difference else "it does not differ from the next best in any run"
    if one.corrected < LEVEL:
        return ""
    return f"its lead over the next best may be noise: paired t-test over {one.n} runs, p = {one.corrected:.2g}"
