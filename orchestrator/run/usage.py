"""What a slot's process takes of its machine: memory and CPUs, and of GPUs what NVML tells."""

import os
import time
from collections.abc import Iterator
from typing import Any, Final

import psutil

from orchestrator.run.memory_growth import own_memory
from orchestrator.views.operations import GpuUsage, ProcessUsage
from workers.data.scratch import unmade

MEMORY_SHARE: Final = 100
"""The memory is measured again after so many times what that took: page by page, a gigabyte takes a tenth of a second,
and slots are asked several times in a training."""


class Meter:
    """Measures the process that it lives in."""

    def __init__(self, share: float = MEMORY_SHARE) -> None:
        self._share, self._memory, self._until = share, 0, float("-inf")
        self._process = psutil.Process()
        self._process.cpu_percent(None)  # the next answer is of the time since this one
        self._nvml: Any = None
        self._without_gpus = False

    def usage(self) -> ProcessUsage:
        """What the process takes now; CPUs are those since it was asked last."""
        memory = psutil.virtual_memory()
        return ProcessUsage(
            memory_bytes=self._own_memory(),
            cpus=self._process.cpu_percent(None) / 100,
            machine_memory_bytes=memory.total,
            machine_memory_free_bytes=memory.available,
            machine_cpus=os.cpu_count() or 1,
            machine_load=os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
            gpus=self._gpus(),
        )

    def _own_memory(self) -> int:
        began = time.monotonic()
        if began >= self._until:
            self._memory = own_memory()
            now = time.monotonic()
            self._until = now + self._share * (now - began)
        return self._memory

    def _gpus(self) -> list[GpuUsage] | None:
        """The GPUs that this process may use; none where there is no GPU, no driver or no NVML."""
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        if self._without_gpus or visible == "":
            return None
        try:
            return list(self._asked(visible)) or None
        except Exception:  # no module, no library, no driver, no permission, a GPU that fell off its bus
            self._without_gpus = self._nvml is None
            return None

    def _asked(self, visible: str | None) -> Iterator[GpuUsage]:
        if self._nvml is None:
            import pynvml

            pynvml.nvmlInit()
            self._nvml = pynvml
        nvml = self._nvml
        names = range(nvml.nvmlDeviceGetCount()) if visible is None else visible.split(",")
        for index, name in enumerate(names):
            handle = _handle(nvml, str(name).strip())
            memory, label = nvml.nvmlDeviceGetMemoryInfo(handle), nvml.nvmlDeviceGetName(handle)
            yield GpuUsage(
                index=index,
                name=label.decode() if isinstance(label, bytes) else label,
                memory_bytes=memory.total,
                memory_used_bytes=memory.used,
                busy=_busy(nvml, handle),
            )


def _handle(nvml: Any, name: str) -> Any:
    """The device of an index, or of a UUID, as CUDA_VISIBLE_DEVICES names them."""
    return nvml.nvmlDeviceGetHandleByIndex(int(name)) if name.isdigit() else nvml.nvmlDeviceGetHandleByUUID(name)


def _busy(nvml: Any, handle: Any) -> float | None:
    """A part of a GPU (MIG) has no such figure."""
    try:
        return float(nvml.nvmlDeviceGetUtilizationRates(handle).gpu) / 100
    except nvml.NVMLError:
        return None


def decoded_bytes() -> int | None:
    """The bytes of the images that lie decoded on this machine; none where that cannot be seen."""
    try:
        folders = [folder for folder in (unmade() / "decoded").iterdir() if folder.is_dir() and not folder.is_symlink()]
        return sum(file.lstat().st_size for folder in folders for file in folder.iterdir())
    except FileNotFoundError:
        return 0
    except OSError:
        return None
