"""The demand as a file: how many slots the conductor has use for, which whoever starts slots reads."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final

from pydantic import ConfigDict, TypeAdapter

from orchestrator.run.files.json_file import read_as, write
from orchestrator.run.files.post import DEMAND
from orchestrator.views.operations import Node, Shape, holds

log = logging.getLogger(__name__)

AGAIN_SECONDS: Final = 15.0
STALE_SECONDS: Final = 90.0
"""Where it is not renewed for so long, no conductor is there."""


@dataclass(frozen=True, slots=True)
class _Told:
    """What stands in the file: bundles of resources, and a number that grows with each writing beside its time."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(allow_inf_nan=False)

    training: list[dict[str, float]]
    waiting: list[dict[str, float]]
    beat: tuple[float, int]


_READER: Final = TypeAdapter(_Told)


class DemandFile:
    """The conductor's side."""

    def __init__(self, room: Path, now: Callable[[], float] = time.monotonic) -> None:
        self._file, self._now = room / DEMAND, now
        self._told: Any = None
        self._at, self._beat = float("-inf"), 0

    def tell(self, training: Sequence[Shape], waiting: Sequence[Shape]) -> None:
        """Write it, where it changed or is to be renewed; where the storage does not take it, at the next look."""
        said = {"training": [one.bundle for one in training], "waiting": [one.bundle for one in waiting]}
        if said == self._told and self._now() - self._at < AGAIN_SECONDS:
            return
        self._beat += 1
        try:
            write(self._file, {**said, "beat": [time.time(), self._beat]})
        except OSError as error:
            log.warning("the demand for slots cannot be written: %s", error)
            return
        self._told, self._at = said, self._now()


class Demanded:
    """The side of whoever starts slots."""

    def __init__(self, room: Path, now: Callable[[], float] = time.monotonic) -> None:
        self._file, self._now = room / DEMAND, now
        self._beat: Any = None
        self._changed = float("-inf")

    def slots(self, offer: Mapping[str, float]) -> int | None:
        """How many slots that offer so much there is use for; none: no conductor tells."""
        try:
            said = read_as(_READER, self._file)
        except OSError:
            return None
        if said.beat != self._beat:
            first = self._beat is None  # it may have been written long ago
            self._beat, self._changed = said.beat, self._now() if not first else self._changed
            if first:
                self._changed = self._now() if time.time() - said.beat[0] < STALE_SECONDS else self._changed
        if self._now() - self._changed > STALE_SECONDS:
            return None
        node = Node("", "", offer)
        return sum(holds(node, (), _shape(bundle)) for bundle in (*said.training, *said.waiting))


def _shape(bundle: Mapping[str, float]) -> Shape:
    custom = {name: amount for name, amount in bundle.items() if name not in ("CPU", "GPU", "memory")}
    named = (bundle.get("CPU", 0.0), bundle.get("GPU", 0.0), int(bundle.get("memory", 0)))
    return Shape(*named, tuple(sorted(custom.items())))
