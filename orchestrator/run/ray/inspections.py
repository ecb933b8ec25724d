"""Inspections of the data roots of a cluster: one small task on a node, which takes none of its CPUs."""

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
"""An inspection that takes longer is given up; a training then says itself what it lacks."""


@dataclass(frozen=True, slots=True)
class _Inspection:
    machine: Node
    needs: Sequence[Need]
    answer: Any
    began: float


class Inspections:
    """The inspections that are under way."""

    def __init__(self, workplace: Workplace, patience: float = PATIENCE_SECONDS) -> None:
        self._workplace, self._patience = workplace, patience
        self._task = ray.remote(num_cpus=0, max_retries=0)(inspect)
        self._begun: list[_Inspection] = []

    def begin(self, machine: Node, needs: Sequence[Need]) -> None:
        """Start one; it goes to that node or fails."""
        there = NodeAffinitySchedulingStrategy(machine.uid, soft=False)
        answer = self._task.options(scheduling_strategy=there).remote(self._workplace, list(needs))
        self._begun.append(_Inspection(machine, needs, answer, time.monotonic()))

    def ended(self) -> list[Inspected]:
        """What those have found that have ended since, or that nobody waits for any more."""
        found: list[Inspected] = []
        for one in list(self._begun):
            if ray.wait([one.answer], timeout=0)[0] or time.monotonic() - one.began > self._patience:
                self._begun.remove(one)
                found += seen(one.machine, one.needs, lambda one=one: _answer(one))  # type: ignore[misc]
        return found


def _answer(one: _Inspection) -> Iterable[Finding]:
    """What an inspection found; one that has not ended is, and raises GetTimeoutError."""
    try:
        answer: list[Finding] = ray.get(one.answer, timeout=0)
    except ray.exceptions.GetTimeoutError:
        ray.cancel(one.answer, force=True)
        raise
    return answer
