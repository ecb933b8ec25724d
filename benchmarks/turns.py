"""Turns: how long several pieces of work take on one device, one after the other again and again."""

import os
import statistics
import time
from collections.abc import Callable, Mapping

import torch

from workers.training import results


def milliseconds(tasks: Mapping[str, Callable[[], None]], device: str, repeats: int) -> dict[str, float]:
    """The median of each over the repeats, in which all take turns: what else the machine does hits them alike."""
    seconds: dict[str, list[float]] = {name: [] for name in tasks}
    for turn in range(repeats + 1):
        for name, task in tasks.items():
            _wait(device)
            began = time.perf_counter()
            task()
            _wait(device)
            if turn:  # the first loads and tunes
                seconds[name].append(time.perf_counter() - began)
    return {name: 1000 * statistics.median(times) for name, times in seconds.items()}


def facts(device: str, threads: int, repeats: int) -> dict[str, str | int]:
    """Where figures are from."""
    name = results.facts(torch.device(device), threads)["device_name"]
    return {
        "device": device, "device_name": str(name), "cores": os.cpu_count() or 1, "threads": threads,
        "repeats": repeats, "torch": torch.__version__,
    }  # fmt: skip


def _wait(device: str) -> None:
    """Until the device has done what it was given."""
    if device.startswith("cuda"):
        torch.cuda.synchronize(device)
