"""What a process may use of its machine: what its job was allocated, else what there is."""

import os
from collections.abc import Mapping
from typing import Final

import psutil

MEGABYTE: Final = 2**20


class Allocation:
    """Read off the environment that Slurm gives a job; without one it is the machine's."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._told = environment

    @property
    def job(self) -> str:
        """What the scheduler calls it, with the number of times that it was requeued; empty: there is none."""
        told = self._told
        array = told.get("SLURM_ARRAY_JOB_ID")
        job = f"{array}_{told.get('SLURM_ARRAY_TASK_ID', '')}" if array else told.get("SLURM_JOB_ID", "")
        again = told.get("SLURM_RESTART_COUNT", "0")
        return f"{job}r{again}" if job and again != "0" else job

    def resources(self) -> dict[str, float]:
        """CPUs, GPUs and memory by the names that slots are counted in."""
        return {"CPU": self._cpus(), "GPU": float(self._gpus()), "memory": float(self._memory())}

    def _cpus(self) -> float:
        for name in ("SLURM_CPUS_PER_TASK", "SLURM_CPUS_ON_NODE"):
            if self._told.get(name, "").isdigit():
                return float(self._told[name])
        return float(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)

    def _gpus(self) -> int:
        visible = self._told.get("CUDA_VISIBLE_DEVICES")
        if visible is not None:
            return len([one for one in visible.split(",") if one.strip() and one.strip() != "-1"])
        told = self._told.get("SLURM_GPUS_ON_NODE", "")
        if self.job:
            return int(told) if told.isdigit() else 0
        return _installed()

    def _memory(self) -> int:
        per_node, per_cpu = self._told.get("SLURM_MEM_PER_NODE", ""), self._told.get("SLURM_MEM_PER_CPU", "")
        if per_node.isdigit() and int(per_node):
            return int(per_node) * MEGABYTE
        if per_cpu.isdigit() and int(per_cpu):
            return int(int(per_cpu) * self._cpus()) * MEGABYTE
        return int(psutil.virtual_memory().total)


def _installed() -> int:
    """The GPUs that NVML tells of; 0 where there is none that does."""
    try:
        import pynvml

        pynvml.nvmlInit()
        return int(pynvml.nvmlDeviceGetCount())
    except Exception:  # no module, no library, no driver
        return 0
