"""Keeps the relays' actors warm: left to itself, Tune would start a process for nearly every trial, most in vain."""

import contextlib
import zlib
from typing import Any, Final

from orchestrator.run.ray import lean_tune as tune

MEGABYTE: Final = 2**20


def relay_bundle(config: dict[str, Any]) -> tune.PlacementGroupFactory:
    """What a relay asks Ray for: one to two megabytes of its `memory`, another number of bytes for each slot.

    Tune refuses a bundle of nothing, and slots hold all CPUs. With `reuse_actors` it gives the actor of an ended trial
    to any trial that waits for one of the same shape, and throws away what that one had asked for: were all alike, one
    actor would serve every slot.
    """
    return tune.PlacementGroupFactory([{"memory": MEGABYTE + zlib.crc32(str(config["slot"]).encode()) % MEGABYTE}])


class ActorReuse:
    """Has the actor of a slot's relay kept until its next one.

    Tune keeps an idle actor of a shape only while a trial of that shape is staged, and has no setting for it (Ray 2.60,
    `TuneController._maybe_cache_trial_actor`). Another Ray may do without: then relays only cost more.
    """

    def __init__(self) -> None:
        self._kept: set[tune.PlacementGroupFactory] = set()

    def keep(self, tune_controller: Any, trial: Any) -> None:
        """A trial, maybe of a new shape: have one idle actor of it kept."""
        shape = trial.placement_group_factory
        if shape not in self._kept:
            self._kept.add(shape)
            with contextlib.suppress(AttributeError):
                tune_controller._actor_cache.increase_max(shape)
