"""An object store in a world: it may be unavailable, lose files that it confirmed, and return damaged files."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest.mock import patch

from orchestrator.host.storage import Address, Bucket
from tests.simulation.world import World


class Shelf(Bucket):
    """The product's bucket over objects in memory; `put`, which looks at what it stored, is as it is there."""

    def __init__(self, world: World) -> None:
        super().__init__(Address("worlds", ""))
        self._world, self._objects = world, dict[str, bytes]()
        self.away = self.lies = 0.0  # chances: that a call fails; that what is stored is not, or is read damaged
        self.lied = False
        self.kept_back = False  # a folder that was to be removed

    @contextmanager
    def reached(self, scratch: Path) -> Iterator[None]:
        """Have slots and conductors find this store; each slot has a folder of its own in `scratch`."""
        with ExitStack() as stand_ins:
            for module in ("run.attempt", "run.engine", "conduct.requests"):
                stand_ins.enter_context(patch(f"orchestrator.{module}.opened", lambda _: self))
            stand_ins.enter_context(patch("orchestrator.run.attempt.unmade", lambda: self._of_slot(scratch)))
            yield

    def _of_slot(self, scratch: Path) -> Path:
        """Each slot is on a machine of its own: a slot that misses its end trains on while its successor trains."""
        return scratch / self._world.process().name.replace(" ", "-")

    def stored(self) -> list[str]:
        """What is stored, for who looks from outside."""
        return list(self._objects)

    def size(self, folder: str, name: str) -> int:
        """The bytes of an object."""
        return len(self._read(f"{folder}/{name}"))

    def content(self, folder: str, name: str) -> bytes:
        """An object whole."""
        return self._read(f"{folder}/{name}")

    def names(self, folder: str) -> list[str]:
        """The objects directly in a folder, sorted."""
        return [name for name, _ in self.entries(folder)]

    def entries(self, folder: str) -> list[tuple[str, int]]:
        """The same with their bytes."""
        self._answer()
        found = [(key.rpartition("/"), content) for key, content in self._objects.items()]
        return sorted((name, len(content)) for (parent, _, name), content in found if parent == folder)

    def remove(self, folder: str) -> None:
        """Remove a folder with all in it."""
        kept, self.kept_back = self.kept_back, True
        self._answer()
        self._objects = {key: one for key, one in self._objects.items() if not key.startswith(f"{folder}/")}
        self.kept_back = kept

    def discard(self, folder: str, name: str) -> None:
        """Remove one object."""
        self._answer()
        self._objects.pop(f"{folder}/{name}", None)

    def write(self, content: bytes, folder: str, name: str) -> None:
        """Store bytes under a name."""
        self._store(f"{folder}/{name}", content)

    def _copy(self, path: Path, key: str, *, up: bool) -> None:
        if up:
            self._store(key, path.read_bytes())
            return
        content = self._read(key)
        if self._world.chance(self.lies):
            self._world.fault("damaged objects", f"the store gives {Path(key).name} damaged")
            content = content[: len(content) // 2]
        path.write_bytes(content)

    def _store(self, key: str, content: bytes) -> None:
        self._answer()
        kept = content
        if self._world.chance(self.lies):
            self.lied = True
            self._world.fault("lost or torn objects", f"the store keeps {Path(key).name} in part, or not at all")
            kept = self._world.drawn.choice([b"", content[: len(content) // 2]])
        if kept:
            self._objects[key] = kept
        self._answer()

    def _read(self, key: str) -> bytes:
        self._answer()
        if key not in self._objects:
            raise FileNotFoundError(2, "no such object in the storage", key)
        return self._objects[key]

    def _answer(self) -> None:
        if self._world.chance(self.away):
            self._world.faults["calls to the store"] += 1
            raise OSError(f"{self._address} does not answer: a test")
