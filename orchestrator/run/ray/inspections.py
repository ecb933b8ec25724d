"""Looks at the data roots of a cluster: one small task on a node, which takes none of its CPUs."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from orchestrator.run.attempt import Workplace
from orchestrator.run.inspection import inspect, seen
from orchestrator.views.nodes import Inspected, Node
from workers.catalog import Finding, Need

PATIENCE_SECONDS: Final = 120.0
"""A look that takes longer is given up; a training then says itself what it lacks."""


@dataclass(frozen=True, slots=True)
class _Look:
    machine: Node
    needs: Sequence[Need]
    answer: Any
    began: float


class Looks:
    """The looks that are under way."""

    def __init__(self, workplace: Workplace, patience: float = PATIENCE_SECONDS) -> None:
        self._workplace, self._patience = workplace, patience
        self._task = ray.remote(num_cpus=0, max_retries=0)(inspect)
        self._begun: list[_Look] = []

    def begin(self, machine: Node, needs: Sequence[Need]) -> None:
        """Start one; it goes to that node or fails."""
        there = NodeAffinitySchedulingStrategy(machine.uid, soft=False)
        answer = self._task.options(scheduling_strategy=there).remote(self._workplace, list(needs))
        self._begun.append(_Look(machine, needs, answer, time.monotonic()))

    def ended(self) -> list[Inspected]:
        """What those have found that have ended since, or that nobody waits for any more."""
        found: list[Inspected] = []
        for look in list(self._begun):
            if ray.wait([look.answer], timeout=0)[0] or time.monotonic() - look.began > self._patience:
                self._begun.remove(look)
                found += seen(look.machine, look.needs, lambda look=look: _answer(look))  # type: ignore[misc]
        return found


def _answer(look: _Look) -> Iterable[Finding]:
    """What a look found; one that has not ended is, and raises GetTimeoutError."""
    try:
        answer: list[Finding] = ray.get(look.answer, timeout=0)
    except ray.exceptions.GetTimeoutError:
        ray.cancel(look.answer, force=True)
        raise
    return answer
