"""What the comparisons of a table are supposed to be before it is trained: by another sweep's, or as it is stated."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from orchestrator.publish.statistics import statistic
from orchestrator.publish.tables.evidence import CellPair
from orchestrator.publish.tables.judged_cells import JudgedTable
from orchestrator.publish.verdicts.replay import Supposed
from orchestrator.publish.verdicts.shrinkage import Shrinkage, Truth
from orchestrator.publish.verdicts.spending import LEAST
from orchestrator.views.errors import ConflictError
from orchestrator.views.outcomes import Statistic
from orchestrator.views.planned import Labels

_LEAST_KNOWN: Final = 2


@dataclass(frozen=True, slots=True)
class Supposition:
    """One comparison: what was seen of it and of its like, or from where its truth is drawn."""

    pair: CellPair
    seen: Statistic | None = None  # of paired differences, as fractions
    like: Shrinkage | None = None  # what was seen of its metric; none: as stated
    spread: float = 0.0  # as stated, of a paired difference
    effect: float = 0.0  # as stated, of the true differences

    def drawn(self, random: Any, width: float) -> Supposed:
        """A truth that may be; `width` is that of its metric, where something was seen of it."""
        assert self.pair.baseline is not None  # others are not supposed at all
        truth = (
            Truth(random.normal(0.0, self.effect), self.spread)
            if self.like is None
            else self.like.drawn(random, width, self.seen)
        )
        evidence = self.pair.evidence
        return Supposed(self.pair.cell, self.pair.baseline, truth.effect, truth.std, evidence.sign, evidence.margin)

    def said(self) -> str:
        """In words, in the unit of its column."""
        scale, unit = self.pair.column.scale, " points" if self.pair.column.unit == "percent" else ""
        if self.seen is not None and self.seen.std:
            return f"{self.seen.mean * scale:+.3g} ± {self.seen.std * scale:.3g}{unit} a seed, by {self.seen.n} seeds"
        if self.like is not None:
            return "as the others of its metric"
        return f"0 ± {self.effect * scale:.3g}{unit} in truth, ± {self.spread * scale:.3g}{unit} a seed"


def drawn(supposed: Sequence[Supposition], random: Any) -> list[Supposed]:
    """Truths of a whole table that may be: those of one metric are as far apart as one draw of their width has it."""
    widths: dict[str, float] = {}
    for one in supposed:
        if one.like is not None and one.pair.column.key not in widths:
            widths[one.pair.column.key] = one.like.width(random)
    return [one.drawn(random, widths.get(one.pair.column.key, 0.0)) for one in supposed]


def stated(table: JudgedTable, spread: float, effect: float) -> list[Supposition]:
    """Every comparison as it was stated, in the unit of its column."""
    return [
        Supposition(pair, spread=spread / pair.column.scale, effect=effect / pair.column.scale)
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
    supposed, shrunk = [], {}
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
        if pair.column.key not in shrunk:
            shrunk[pair.column.key] = Shrinkage(alike)
        supposed.append(Supposition(pair, own, shrunk[pair.column.key]))
    return supposed


def _at(labels: Labels) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(labels.items()))
