"""What the comparisons of a table are supposed to be before it is trained: by another sweep's, or as it is stated."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any, Final

from orchestrator.publish.statistics import statistic
from orchestrator.publish.tables.evidence import CellPair
from orchestrator.publish.tables.judged_cells import JudgedTable
from orchestrator.publish.verdicts.replay import Supposed
from orchestrator.publish.verdicts.spending import LEAST
from orchestrator.views.errors import ConflictError
from orchestrator.views.outcomes import Statistic
from orchestrator.views.planned import Labels

_LEAST_KNOWN: Final = 2


@dataclass(frozen=True, slots=True)
class Supposition:
    """One comparison: what was seen of it, or from where its truth is drawn."""

    pair: CellPair
    seen: Statistic | None  # of paired differences, as fractions
    spread: float = 0.0  # of a paired difference, where nothing was seen
    effect: float = 0.0  # of the true differences, where nothing was seen

    def drawn(self, random: Any) -> Supposed:
        """A truth that may be: as far as so few pairs tell it (of a normal sample, by a flat prior), or as stated."""
        assert self.pair.baseline is not None  # others are not supposed at all
        evidence = self.pair.evidence
        if self.seen is not None and self.seen.std:
            free = self.seen.n - 1
            std = self.seen.std * sqrt(free / random.chisquare(free))
            effect = random.normal(self.seen.mean, std / sqrt(self.seen.n))
        else:
            std, effect = self.spread, random.normal(0.0, self.effect)
        return Supposed(self.pair.cell, self.pair.baseline, effect, std, evidence.sign, evidence.margin)

    def said(self) -> str:
        """In words, in the unit of its column."""
        scale, unit = self.pair.column.scale, " points" if self.pair.column.unit == "percent" else ""
        if self.seen is not None and self.seen.std:
            return f"{self.seen.mean * scale:+.3g} ± {self.seen.std * scale:.3g}{unit} a seed, by {self.seen.n} seeds"
        return f"0 ± {self.effect * scale:.3g}{unit} in truth, ± {self.spread * scale:.3g}{unit} a seed"


def stated(table: JudgedTable, spread: float, effect: float) -> list[Supposition]:
    """Every comparison as it was stated, in the unit of its column."""
    return [
        Supposition(pair, None, spread / pair.column.scale, effect / pair.column.scale)
        for pair in table.pairs.values()
        if pair.baseline is not None
    ]


def like(
    table: JudgedTable, cells: Mapping[int, Labels], known: JudgedTable, others: Mapping[int, Labels]
) -> list[Supposition]:
    """Every comparison as `known` has it, by labels and metric; one that it has not, as its others of the metric are.

    ConflictError where it has no comparison of a metric with enough seeds.
    """
    seen = {
        (pair.column.key, _at(others[pair.cell])): statistic(pair.evidence.differences)
        for pair in known.pairs.values()
        if len(pair.evidence.differences) >= LEAST
    }
    supposed = []
    for pair in table.pairs.values():
        if pair.baseline is None:
            continue
        own = seen.get((pair.column.key, _at(cells[pair.cell])))
        alike = [one for (key, _), one in seen.items() if key == pair.column.key and one.std]
        if len(alike) < _LEAST_KNOWN and own is None:
            raise ConflictError(
                f"sweep {known.table.sweep} says too little of {pair.column.key}: {len(alike)} of its comparisons have "
                f"{LEAST} seeds or more; state `spread` and `effect` instead"
            )
        supposed.append(Supposition(pair, own, *_together(alike)))
    return supposed


def _together(alike: Sequence[Statistic]) -> tuple[float, float]:
    """The spread of a paired difference, and that of the differences themselves."""
    if not alike:
        return 0.0, 0.0
    spread = sqrt(sum((one.std or 0.0) ** 2 for one in alike) / len(alike))
    return spread, sqrt(sum(one.mean**2 for one in alike) / len(alike))


def _at(labels: Labels) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(labels.items()))
