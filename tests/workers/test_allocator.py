"""The memory of the process: what is given back between two trainings, of the CPU's and of a GPU's."""

import sys
from pathlib import Path

import pytest
import torch

from workers.training import allocator

MIB = 2**20


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_freed_memory_is_kept_while_training_and_given_back_between() -> None:
    if not allocator.keep_freed():
        pytest.skip("the C library is no glibc")
    allocator.release()
    before = _resident()
    pieces = [torch.ones(MIB // 4) for _ in range(200)]
    barrier = torch.ones(16)  # lies above them, so that the heap cannot shrink at its top
    del pieces
    assert _resident() > before + 150 * MIB
    allocator.release()
    assert _resident() < before + 50 * MIB
    assert float(barrier.sum()) == 16


def test_a_gpu_that_was_never_used_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: pytest.fail("asked"))
    assert allocator.release() == {}


def test_the_cache_of_each_gpu_is_emptied_and_what_stays_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[object] = []
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: done.append("emptied"))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda number: done.append("read") or (number + 1) * MIB)
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", done.append)
    assert allocator.release() == {"memory on GPU 0": MIB, "memory on GPU 1": 2 * MIB}
    assert done == ["emptied", "read", 0, "read", 1]


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
