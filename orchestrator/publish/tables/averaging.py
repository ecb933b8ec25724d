"""The words on what a table's numbers are made of: mean, median or best, their spread, and of how many runs."""

from collections.abc import Mapping, Sequence
from typing import Final

from orchestrator.publish.tables.facts import TableFacts, few
from orchestrator.spec.table import Spread, TableSpec
from orchestrator.views.outcomes import CellSummary

_SPREADS: Final[Mapping[Spread, str]] = {
    "std": " ± standard deviation",
    "se": " ± standard error",
    "ci95": " ± half the 95 % Student-t interval",
    "none": "",
}


def averaged(facts: TableFacts) -> str:
    """What each number is, over which runs."""
    sizes = sorted({n for one in facts.summaries.values() if (n := runs(one))})
    spread = _spread(facts.layout) if any(cell.std for cell in facts.entries()) else ""
    what = f"{facts.layout.center}{spread}"
    without = _unspread(facts)
    if sizes == [1]:
        covered = spread if facts.layout.covers == "queries" else ""
        return f"Test metrics of a single run ({_repeats(facts, 1)}){covered}.{without}"
    reproduced = _reproduced(facts)
    if len(sizes) > 1:
        over = reproduced or "unequal numbers of repeats"
        return f"Test metrics, {what} over {over}: {_unequal(facts, sizes)}.{without}"
    if reproduced:
        return f"Test metrics, {what} over {reproduced}.{without}"
    planned = len({one.repeat for one in facts.outcomes.trials})
    n = sizes[0] if sizes else planned
    return f"Test metrics, {what} over {_repeats(facts, n)}.{without}" if n else ""


def _unspread(facts: TableFacts) -> str:
    """Which numbers have no spread, since none covers queries, and why; "" where all have one."""
    why = dict.fromkeys(cell.unspread for cell in facts.entries() if cell.unspread)
    return f" No spread: {few(list(why), 2)}." if why else ""


def _spread(layout: TableSpec) -> str:
    """What stands after a number, and what it covers where that is not seeds alone."""
    if not layout.covers_queries:
        return _SPREADS[layout.shown_spread]
    what = "standard error" if layout.shown_spread == "se" else "half the 95 % Student-t interval"
    if layout.covers == "queries":
        return f" ± {what} over other test queries (clustered by class), of these trainings"
    return f" ± {what} over other seeds and other test queries (crossed, queries clustered by class)"


def runs(summary: CellSummary) -> int:
    """Over how many runs a cell is averaged: a reproduced winner has more than it was selected by."""
    least = summary.score.n if summary.score else 0
    return max((found.n for found in summary.metrics.values()), default=least)


def _reproduced(facts: TableFacts) -> str:
    """`the best trial + 10 reproductions`: the winner of a search, trained again; "" where none was."""
    asked = int((facts.outcomes.spec.get("search") or {}).get("reproduce") or 0)
    shown = [one for one in facts.summaries.values() if one.score] if asked else []
    # What candidates are compared by is what the search trained of each; one alone is compared by all that it has.
    first = [one.score.n for one in shown if one.score and one.candidates > 1]
    trials = min(first, default=max(1, max((runs(one) for one in shown), default=0) - asked))
    again = sorted({more for one in shown if (more := runs(one) - trials) > 0})
    if not again:
        return ""
    best = "the best trial" if trials == 1 else f"the best candidate's {trials} trials"
    most = f"{again[-1]} reproduction" + ("s" if again[-1] > 1 else "")
    return f"{best} + " + (most if len(again) == 1 else f"{again[0]} to {most}")


def _repeats(facts: TableFacts, n: int) -> str:
    """`3 seeds (0, 1, 2)`: the labels of the repeat axes, or the recipe's seed where nothing is repeated."""
    labels: dict[str, dict[str, None]] = {}
    for trial in facts.outcomes.trials:
        for axis, label in trial.repeat_labels.items():
            labels.setdefault(axis, {})[label] = None
    if not labels:
        recipe = facts.outcomes.spec.get("recipe") or {}
        return f"seed {recipe.get('seed', 0)}"
    noun = next(iter(labels)) if len(labels) == 1 else "repeat"
    values = "; ".join(", ".join(shown) for shown in labels.values())
    return f"{noun} {values}" if n == 1 else f"{n} {noun}s ({values})"


def _unequal(facts: TableFacts, sizes: Sequence[int]) -> str:
    cells = {n: [one.cell for one in facts.summaries.values() if runs(one) == n] for n in sizes}
    most = max(sizes, key=lambda n: len(cells[n]))
    others = (f"n = {n} in {few([facts.cell_name(cell) for cell in cells[n]])}" for n in sizes if n != most)
    return "; ".join((f"n = {most} in {len(cells[most])} cells", *others))
