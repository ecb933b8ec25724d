"""Between two trainings the memory of GPUs is given back."""

import pytest
import torch

from workers.train import release

MIB = 2**20


def test_a_gpu_that_was_never_used_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: pytest.fail("asked"))
    assert release() == {}


def test_the_cache_of_each_gpu_is_emptied_and_what_stays_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[object] = []
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: done.append("emptied"))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda number: done.append("read") or (number + 1) * MIB)
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", done.append)
    assert release() == {"memory on GPU 0": MIB, "memory on GPU 1": 2 * MIB}
    assert done == ["emptied", "read", 0, "read", 1]
