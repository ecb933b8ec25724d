"""The departure of a node: how its slots are told that it ends, and how it hears that none of them trains any more."""

import fcntl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Final

VARIABLE: Final = "METRICSWEEP_NODE_FOLDER"
"""Names the folder to the slots of a node; whoever starts the node sets it, and nobody else."""
REASON: Final = "its node ends"
LOOK_SECONDS: Final = 0.5
"""How often a slot looks whether its node ends."""


class Departure:
    """A folder of one machine that the processes of one node share. It needs no port, no Ray and no conductor.

    A file in it says that the node ends. A lock is held together by all slots that train, and goes with a process that
    is killed; the file behind it is made anew by nobody, so that one lock is meant by all.
    """

    def __init__(self, folder: Path) -> None:
        self._sign, self._lock = folder / "ends", folder / "training"

    @classmethod
    def named_by(cls, environment: Mapping[str, str]) -> "Departure | None":
        """That of the node in which this process runs; none: nobody will tell of its end."""
        folder = environment.get(VARIABLE)
        return cls(Path(folder)) if folder else None

    def prepare(self) -> None:
        """Make what all share. Raises OSError."""
        self._lock.touch(mode=0o600)

    def tell(self) -> None:
        """Say that the node ends. Raises OSError."""
        self._sign.touch(mode=0o600)

    @property
    def told(self) -> bool:
        """Whether it was said."""
        return self._sign.exists()

    @contextmanager
    def training(self) -> Iterator[None]:
        """What the node waits for. A folder that is gone is no reason not to train."""
        held: IO[bytes] | None = None
        with suppress(OSError):
            held = self._lock.open("rb")
            fcntl.flock(held, fcntl.LOCK_SH)
        try:
            yield
        finally:
            if held is not None:
                with suppress(OSError):
                    fcntl.flock(held, fcntl.LOCK_UN)  # closing is not enough: a process of the training may share it
                held.close()

    def quiet(self) -> bool:
        """Whether no slot of the node trains. Raises OSError where the folder is gone."""
        with self._lock.open("rb") as held:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
        return True
