"""Ray Tune, as far as this package uses it, loaded without what only its data frames need.

`import ray.tune` also loads pandas and Ray Data, a third of what a relay's process loads (`benchmarks.start` has both).
Each relay would pay that before it can follow its slot, and neither it nor the conductor ever sees a data frame.
"""

import importlib
import importlib.util
import sys
from types import ModuleType
from typing import Any, Final

import ray

UNNEEDED: Final = ("pandas", "ray.data")
LOADED_BY_TUNE: Final = ("ray.tune", "ray.air", "ray.train", "ray.data")


class Unseen:
    """A class of objects that there are none of here; Tune names it in annotations and to Ray's serializer."""


class Deferred(ModuleType):
    """Stands where a module would be, which is loaded as soon as something is asked of it."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__spec__ = importlib.util.find_spec(name)
        self.DataFrame = self.Dataset = Unseen

    def begin(self) -> None:
        """What names classes in annotations is loaded: from now on they are those of the module."""
        del self.DataFrame, self.Dataset

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(self.__name__) is self or name.startswith("__"):
            raise AttributeError(f"{self.__name__} is not loaded yet, and has no {name}")
        return getattr(importlib.import_module(self.__name__), name)


def load() -> None:
    """Import `ray.tune` without what is not needed. A Ray that does need it gets it, at its price."""
    deferred = {name: Deferred(name) for name in UNNEEDED if name not in sys.modules}
    if "ray.tune" in sys.modules or len(deferred) < len(UNNEEDED):
        return
    sys.modules.update(deferred)
    ray.data = deferred["ray.data"]
    try:
        importlib.import_module("ray.tune")
        deferred["pandas"].begin()  # but Tune's Tuner goes on naming Ray Data's class, to Ray's serializer
    except (ImportError, AttributeError):
        del ray.data
        for name in [name for name in sys.modules if name.startswith(LOADED_BY_TUNE)]:
            del sys.modules[name]
    finally:
        for name in UNNEEDED:
            if sys.modules.get(name) is deferred[name]:
                del sys.modules[name]


load()

from ray.tune import (  # noqa: E402
    Callback,
    CheckpointConfig,
    PlacementGroupFactory,
    RunConfig,
    Stopper,
    Trainable,
    TuneConfig,
    Tuner,
)
from ray.tune.logger import CSVLoggerCallback, JsonLoggerCallback, LoggerCallback  # noqa: E402
from ray.tune.schedulers import FIFOScheduler  # noqa: E402
from ray.tune.search import ConcurrencyLimiter, Searcher  # noqa: E402

__all__ = [
    "CSVLoggerCallback",
    "Callback",
    "CheckpointConfig",
    "ConcurrencyLimiter",
    "FIFOScheduler",
    "JsonLoggerCallback",
    "LoggerCallback",
    "PlacementGroupFactory",
    "RunConfig",
    "Searcher",
    "Stopper",
    "Trainable",
    "TuneConfig",
    "Tuner",
]
