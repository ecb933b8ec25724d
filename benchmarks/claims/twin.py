"""A quick twin over some seeds: the trials that its claims are about, and what each of them measured."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import nan
from pathlib import Path

from benchmarks.claims.claim import Claim, Taken, Unseen, claims_of
from benchmarks.claims.trainings import Trainings
from orchestrator.plan.check import check
from orchestrator.plan.edit import edited
from orchestrator.plan.grid import Plan, expand
from orchestrator.plan.read import spec_document
from orchestrator.views.runs import Labels, PlannedTrial
from workers import catalog
from workers.contract import Result


@dataclass(frozen=True)
class Pair:
    """The labels of the trials that a claim compares, and the values of both by seed."""

    of: Labels
    against: Labels
    values: list[tuple[float, float]]


class Twin:
    """One file of sweeps/quick with `seeds` in place of its own."""

    def __init__(self, file: Path, seeds: Sequence[int], parts: Path | None = None) -> None:
        text = file.read_text(encoding="utf-8")
        self.name = file.stem
        self.claims: list[Claim | Unseen] = claims_of(text)
        self._plan = _plan(text, seeds, parts)
        self._places = {(one.cell, one.index): self._labels(one.cell, one.labels) for one in self._plan.candidates}
        self._checkpoint = self._plan.spec.select.checkpoint

    def trials(self) -> list[PlannedTrial]:
        """Those that some claim is about."""
        claims = [one for one in self.claims if isinstance(one, Claim)]
        wanted = {place for claim in claims for pair in self._paired(claim) for place in pair}
        return [trial for trial in self._plan.trials() if (trial.cell, trial.candidate) in wanted]

    def pairs(self, claim: Claim, trainings: Trainings) -> list[Pair]:
        """What a claim compares; of a training that diverged every value is NaN."""
        places = self._paired(claim)
        wanted = {place for pair in places for place in pair}
        values: dict[tuple[int, int], list[float]] = {place: [] for place in wanted}
        for trial in self._plan.trials():
            if (place := (trial.cell, trial.candidate)) in wanted:
                values[place].append(self._value(claim, trainings.result(trial)))
        return [
            Pair(self._places[of], self._places[against], list(zip(values[of], values[against], strict=True)))
            for of, against in places
        ]

    def _labels(self, cell: int, labels: Labels) -> Labels:
        return {**self._plan.cells[cell].labels, **labels}

    def _paired(self, claim: Claim) -> list[tuple[tuple[int, int], tuple[int, int]]]:
        """The places, cell and candidate, of both sides; raises ValueError where there are none."""
        here = [place for place, labels in self._places.items() if _has(labels, claim.where)]
        found = [
            (of, against)
            for of in here
            if _has(self._places[of], claim.of)
            for against in here
            if _has(self._places[against], claim.against) and self._alike(of, against, {*claim.of, *claim.against})
        ]
        if not found:
            raise ValueError(f"{self.name}: no trials are those of the claim {claim.says!r}")
        return found

    def _alike(self, one: tuple[int, int], other: tuple[int, int], named: set[str]) -> bool:
        first, second = self._places[one], self._places[other]
        return one != other and all(first[axis] == second[axis] for axis in {*first} & {*second} - named)

    def _value(self, claim: Claim, result: Result) -> float:
        if claim.metric == "outcome/diverged":
            return float(result.outcome == "diverged")
        if result.outcome != "ok":
            return nan
        if claim.at is None:
            return result.metrics[f"{self._checkpoint}/{claim.metric}"]
        return dict(result.curves[claim.metric])[claim.at]


def _plan(text: str, seeds: Sequence[int], parts: Path | None) -> Plan:
    known = catalog.load(parts and parts.resolve())
    return expand(check(spec_document(edited(text.encode(), [f"repeat.seed={[*seeds]}"])).value, known), known)


def _has(labels: Mapping[str, str], taken: Taken) -> bool:
    return all(labels.get(axis) in wanted for axis, wanted in taken.items())
