"""Slots that are kept alive for a conductor elsewhere, by the settings of its installation."""

import os
import threading
from collections.abc import Callable

from orchestrator.host.slot_environment import MALLOC
from orchestrator.run.files.slot import room
from orchestrator.run.slurm import Keeper, SlotJob
from orchestrator.settings import Settings

__all__ = ["SlotJob", "keep_by_slurm"]


def keep_by_slurm(
    settings: Settings,
    job: SlotJob,
    most: int,
    tell: Callable[[str], None],
    ended: threading.Event,
    every: float | None,
) -> str:
    """Keep up to `most` slots alive as jobs of Slurm until `ended` is set; with no `every`, look once.

    Gives the name of its jobs. Raises MetricsweepError where the storage is none that slots can join.
    """
    there = room(settings.storage)
    keeper = Keeper(there, job, most, _variables(settings), tell)
    while not ended.is_set():
        keeper.turn()
        if every is None:
            break
        ended.wait(every)
    return keeper.name


def _variables(settings: Settings) -> dict[str, str]:
    """What a slot is told: where things are, and no secret."""
    told = {"METRICSWEEP_STORAGE_URL": str(settings.storage), **MALLOC}
    if settings.data is not None:
        told["METRICSWEEP_DATA"] = os.path.abspath(settings.data)
    if settings.parts is not None:
        told["METRICSWEEP_PARTS"] = os.path.abspath(settings.parts)
    return told
