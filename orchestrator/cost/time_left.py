"""How long the trainings of a sweep still take: their steps at the pace that was measured, in the slots at work."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heapreplace
from typing import Final

MOST_DEALT: Final = 2_000
"""Trainings that are dealt to slots one by one; of more the last ones hardly matter."""
ASSUMED_SPREAD: Final = 0.5
"""The relative deviation of a training's length before three were timed."""
DRIFT: Final = 0.1
"""What a machine may be faster or slower from now on, relative, however much was measured."""
UNKNOWN_SPREAD: Final = 0.5
"""The relative deviation of work of a kind that was never timed: it is taken at the others' pace."""
LEAST_BUSY: Final = 0.5
"""The least share of its time that a slot is taken to train: what was measured of less was not this sweep's turn."""
_QUANTILE: Final = 1.2816  # of the normal distribution: four times of five it lies between


@dataclass(frozen=True, slots=True)
class Timed:
    """So many steps of a training, and the seconds that they held a slot; `kind` names those that take as long."""

    kind: str
    steps: float
    seconds: float
    whole: bool = True  # a training to its end; false: what one that still runs has done


@dataclass(frozen=True, slots=True)
class Pending:
    """Trainings of one kind that wait, with the steps of all of them together."""

    kind: str
    trainings: float
    steps: float


@dataclass(frozen=True, slots=True)
class TimeLeft:
    """Seconds until the last training has ended; four times of five it is between `low` and `high`."""

    seconds: float
    low: float
    high: float


def time_left(
    running: Sequence[tuple[str, float]],
    waiting: Sequence[Pending],
    timed: Sequence[Timed],
    slots: float,
    doubt: float = 0.0,
) -> TimeLeft | None:
    """The time left of those that run (each with its kind and its steps to go) and wait; none where nothing was timed.

    `slots` is how many train at once on the average, which gaps between two trainings make less than whole; `doubt` the
    relative deviation of the steps themselves.
    """
    paces = _paces(timed)
    if not paces or not (running or waiting):
        return None
    mean = math.fsum(one.seconds for one in timed) / math.fsum(one.steps for one in timed)
    begun = [steps * paces.get(kind, mean) for kind, steps in running]
    ahead = [(one.trainings, one.steps * paces.get(one.kind, mean)) for one in waiting]
    seconds = _dealt(begun, ahead, max(slots, 1e-3))
    unknown = math.fsum(steps * mean for kind, steps in running if kind not in paces)
    unknown += math.fsum(one.steps * mean for one in waiting if one.kind not in paces)
    work = math.fsum(begun) + math.fsum(total for _, total in ahead)
    number = len(running) + math.fsum(one.trainings for one in waiting)
    spread = math.hypot(_spread(timed, paces, max(1.0, number), unknown / work if work else 0.0), doubt)
    return TimeLeft(seconds, seconds * math.exp(-_QUANTILE * spread), seconds * math.exp(_QUANTILE * spread))


def _paces(timed: Sequence[Timed]) -> Mapping[str, float]:
    """The seconds of a step by kind: of whole trainings where there are some, else of what those that run have done."""
    by_kind: dict[str, list[Timed]] = defaultdict(list)
    for one in timed:
        by_kind[one.kind].append(one)
    found = {}
    for kind, those in by_kind.items():
        whole = [one for one in those if one.whole] or those
        if steps := math.fsum(one.steps for one in whole):
            found[kind] = math.fsum(one.seconds for one in whole) / steps
    return found


def _dealt(begun: Sequence[float], ahead: Sequence[tuple[float, float]], slots: float) -> float:
    """When the last one ends if each slot takes the next one as soon as it is free."""
    places = max(1, len(begun), math.ceil(slots - 0.1))
    busy = min(1.0, max(LEAST_BUSY, slots / places))
    if len(begun) + sum(number for number, _ in ahead) > MOST_DEALT:
        return (math.fsum(begun) + math.fsum(total for _, total in ahead)) / places / busy
    free = [*begun, *([0.0] * (places - len(begun)))]
    heapify(free)
    for number, total in ahead:
        whole = math.ceil(number)
        for _ in range(whole):
            heapreplace(free, free[0] + total / whole)
    return max(free) / busy


def _spread(timed: Sequence[Timed], paces: Mapping[str, float], number: float, unknown: float) -> float:
    """The relative deviation of the time left: what was measured of few, what differs by chance, what may change."""
    ratios = [one.seconds / (one.steps * paces[one.kind]) for one in timed if one.whole and one.steps > 0]
    if len(ratios) < 3:
        each = ASSUMED_SPREAD
    else:
        mean = math.fsum(ratios) / len(ratios)
        each = math.sqrt(math.fsum((one - mean) ** 2 for one in ratios) / (len(ratios) - 1))
    measured = each / math.sqrt(max(1, len(ratios)))
    return math.sqrt(measured**2 + each**2 / number + DRIFT**2 + (UNKNOWN_SPREAD * unknown) ** 2)
