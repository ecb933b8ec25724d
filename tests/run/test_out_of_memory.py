"""Memory that ran out is told from other failures, with what helps."""

import pytest

from orchestrator.run.attempt import _failure
from orchestrator.run.out_of_memory import ADVICE, explained, out_of_memory

GONE = [
    "OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
    "RuntimeError: [enforce fail at alloc_cpu.cpp:117] . DefaultCPUAllocator: can't allocate memory: you tried 4 bytes",
    "MemoryError: ",
    "slot lost: OutOfMemoryError: Task was killed due to the node running low on memory",
    "RuntimeError: not enough memory: you tried to allocate 8 bytes",
]
OTHERS = ["ValueError: alpha must be positive", "RuntimeError: no room for a boomerang", "slot lost: ActorDiedError"]


@pytest.mark.parametrize("message", GONE)
def test_memory_that_ran_out_is_told_with_advice(message: str) -> None:
    assert out_of_memory(message)
    assert explained(message).endswith(ADVICE)


@pytest.mark.parametrize("message", OTHERS)
def test_other_failures_stay_as_they_are(message: str) -> None:
    assert explained(message) == message


def test_a_training_that_runs_out_of_memory_may_be_tried_again() -> None:
    told = _failure(RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB"))
    assert (told["kind"], ADVICE in told["message"]) == ("infrastructure", True)
    assert _failure(ValueError("alpha"))["kind"] == "recipe"
