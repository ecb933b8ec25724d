"""The files of weights that attempts left in the storage: listed, and removed for good."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import PurePosixPath
from typing import Final

from orchestrator.host.storage import Folder, Storage
from workers.contract import KEPT_FILES

WEIGHTS: Final = frozenset({".pt", ".pth", ".ckpt"})
"""What a training keeps beside figures and its spool."""
ALWAYS: Final = frozenset({*KEPT_FILES, "last.pt"})
"""What our own trainings call their weights, so that they are found without a listing."""


def kind_of(name: str) -> str:
    """Whether a file of an attempt is weights, the spool or a figure's."""
    if PurePosixPath(name).suffix.lower() in WEIGHTS:
        return "weights"
    return "spools" if name.startswith("spool") and name.endswith(".jsonl") else "figures"


class WeightFiles:
    """Never follows a link: what one leads to is somebody else's. Raises OSError where the storage is away."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def of(self, uid: str, numbers: Iterable[int]) -> list[tuple[str, str, int]]:
        """The files of a training's attempts, as folder, name and bytes."""
        return [
            (folder, name, size)
            for folder in (f"{uid}/{number}" for number in numbers)
            for name, size in sorted(self._there(folder).items())
        ]

    def _there(self, folder: str) -> dict[str, int]:
        """The weights in a folder with their bytes. A bucket's listing may be late, so that it is not believed."""
        listed = {name: size for name, size in self._storage.entries(folder) if kind_of(name) == "weights"}
        if isinstance(self._storage, Folder):
            return listed
        there = {}
        for name in listed.keys() | ALWAYS:
            with suppress(FileNotFoundError):
                there[name] = self._storage.size(folder, name)
        return there

    def remove(self, files: Sequence[tuple[str, str, int]]) -> None:
        """Remove these; one that is gone already changes nothing."""
        for folder, name, _ in files:
            self._storage.discard(folder, name)
