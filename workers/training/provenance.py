"""The facts of where and with what a training ran: never inputs, always kept with its result."""

import platform
import subprocess
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

import torch
from pydantic import JsonValue

PACKAGES: Final = ("metricsweep", "torch", "numpy", "scikit-learn", "faiss-cpu", "pytorch-metric-learning")
"""The packages whose version may change a number."""


def facts(device: torch.device, threads: int) -> dict[str, JsonValue]:
    """Versions, host, device and git commit, as JSON."""
    return {
        "versions": {**_versions(), "python": platform.python_version()},
        "device": device.type,
        "device_name": torch.cuda.get_device_name(device) if device.type == "cuda" else _processor(),
        "cuda": torch.version.cuda if device.type == "cuda" else None,
        "threads": threads,
        "host": platform.node(),
        "platform": platform.platform(),
        "git_commit": _git_commit(),
    }


@lru_cache(maxsize=1)
def _versions() -> dict[str, JsonValue]:
    found: dict[str, JsonValue] = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = None
    return found


@lru_cache(maxsize=1)
def _processor() -> str:
    """The processor's name as the system gives it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


@lru_cache(maxsize=1)
def _git_commit() -> str | None:
    """The commit of the checkout that this code runs from, `-dirty` where it was changed; none for a wheel."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return None
    try:
        described = subprocess.run(  # noqa: S603 - no input of a user in it
            ["git", "-C", str(root), "describe", "--always", "--abbrev=40", "--dirty", "--exclude=*"],  # noqa: S607
            capture_output=True, text=True, timeout=20, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    return described.stdout.strip() or None
