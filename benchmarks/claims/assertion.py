"""Whether a claim holds: its effects by seed against its bound."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, isfinite, log, nan

from benchmarks.claims.claim import Claim
from benchmarks.claims.twin import Pair
from orchestrator.publish.aggregate import interval, standard_error, statistic
from orchestrator.views.runs import Statistic


@dataclass(frozen=True)
class Effect:
    """What one pair of trials shows, or the mean over all pairs: both sides, and how they compare over the seeds."""

    of: float
    against: float
    mean: float
    low: float
    high: float
    """The ends of the 95 % Student-t interval of the mean; of one seed the mean itself."""
    errors: float | None
    """By how many standard errors the mean is inside the bound; none for one seed."""
    held: bool


@dataclass(frozen=True)
class Assertion:
    """A claim and what was found."""

    claim: Claim
    effects: list[Effect]

    @property
    def held(self) -> bool:
        """Whether every effect is beyond the bound with the whole of its interval."""
        return all(effect.held for effect in self.effects)

    @property
    def weakest(self) -> Effect:
        """The effect that is nearest to the bound, or furthest beyond it on the wrong side."""
        below = self.claim.bound.side == "below"
        return max(self.effects, key=lambda one: _rank(one.high) if below else _rank(-one.low))


def asserted(claim: Claim, pairs: Sequence[Pair]) -> Assertion:
    """Compare the pairs of a claim; a ratio is averaged as its logarithm."""
    series = [[_effect(claim, *values) for values in pair.values] for pair in pairs]
    sides = [(_mean([of for of, _ in pair.values]), _mean([other for _, other in pair.values])) for pair in pairs]
    if claim.over == "pairs":
        series = [[_mean(values) for values in zip(*series, strict=True)]]
        sides = [(_mean([of for of, _ in sides]), _mean([other for _, other in sides]))]
    return Assertion(claim, [_judged(claim, *side, values) for side, values in zip(sides, series, strict=True)])


def _effect(claim: Claim, of: float, against: float) -> float:
    if claim.difference is not None:
        return of - against
    return log(of / against) if of > 0 and against > 0 else nan


def _judged(claim: Claim, of: float, against: float, values: Sequence[float]) -> Effect:
    if not all(map(isfinite, values)):  # a training diverged
        return Effect(of, against, nan, nan, nan, None, held=False)
    found = statistic(values)
    low, high = interval(found) or (found.mean, found.mean)
    shown = exp if claim.ratio is not None else float
    held = claim.bound.met(shown(low)) and claim.bound.met(shown(high))
    return Effect(of, against, shown(found.mean), shown(low), shown(high), _errors(claim, found), held)


def _errors(claim: Claim, found: Statistic) -> float | None:
    error = standard_error(found)
    limit = claim.bound.value if claim.ratio is None else log(claim.bound.value)
    distance = limit - found.mean if claim.bound.side == "below" else found.mean - limit
    return distance / error if error else None


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _rank(end: float) -> float:
    return end if isfinite(end) else float("inf")
