"""The post: the two files by which conductor and slot write to one another, and how such a file is written.

Each of the two is there from the beginning, is written by one side alone and replaced whole. On NFS a new name may stay
unseen for a minute, and a file that grows may be seen in part; what replaces a file is seen by whoever opens it next.
"""

import json
import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from orchestrator.host.private import own_folder
from orchestrator.host.storage import Folder, opened
from orchestrator.views.errors import MetricsweepError

FORM: Final = 1
"""Of what the two sides write."""
ROOM: Final = "slots"
"""The folder in the storage."""
HERE: Final = "here"
"""The folder in that, with a folder for each slot."""
ORDER, STATE, DEMAND, OWNER = "order.json", "state.json", "demand.json", "installation.json"
SILENT_SECONDS: Final = 60.0
"""A slot that has told nothing for so long counts as lost; one that could tell nothing for half of it stops."""

Phase = Literal["here", "leaving", "left"]


@dataclass(frozen=True, slots=True)
class Instruction:
    """What the conductor wants of a slot: the latest one alone counts."""

    fence: int = 0
    """The lease's. A slot that has seen a higher one does nothing of what stands beside a lower one."""
    number: int = 0
    do: Literal["keep", "train", "stop", "end", "renew"] = "keep"
    """`keep` is a greeting, which a slot answers like any other; `renew`: end, and begin anew as another process."""
    attempt: str | None = None  # that is to be stopped
    order: Mapping[str, Any] | None = None  # that is to be trained
    workplace: Mapping[str, Any] | None = None
    look: int = 0  # the number of the inspection that is asked for
    needs: list[Any] = field(default_factory=list)  # that it looks for


@dataclass(frozen=True, slots=True)
class State:
    """What a slot says of itself."""

    form: int = FORM
    beat: int = 0  # grows with every writing
    phase: Phase = "here"
    fence: int = 0  # of the instruction that it has taken last, and that one's number
    taken: int = 0
    host: str = ""
    pid: int = 0
    job: str = ""  # what its scheduler calls it
    resources: Mapping[str, float] = field(default_factory=dict)
    edition: str = ""
    attempt: str | None = None
    busy: bool = False
    worn: str | None = None
    said: int = 0
    ages: list[float] = field(default_factory=list)
    usage: Mapping[str, Any] | None = None
    last: str | None = None  # the last message of an attempt that failed, which its spool may lack
    looked: int = 0  # the number of the inspection that has ended
    found: list[Any] | None = None
    problem: str | None = None  # why it found nothing


class Box:
    """The folder of one slot."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.name = folder, folder.name

    def make(self, state: State) -> None:
        """Make it; nobody sees it before it is whole."""
        aside = self.folder.with_name(f".{self.name}")
        aside.mkdir()
        write(aside / ORDER, asdict(Instruction()))
        write(aside / STATE, asdict(state))
        aside.rename(self.folder)
        _settle(self.folder.parent)

    def instruction(self) -> Instruction:
        """The latest instruction; raises OSError, FileNotFoundError where the slot has been given up."""
        return Instruction(**read(self.folder / ORDER))

    def instruct(self, instruction: Instruction) -> None:
        """Replace the instruction; raises OSError."""
        write(self.folder / ORDER, asdict(instruction))

    def state(self) -> State | None:
        """What the slot said last; none: in a form that is not ours. Raises OSError."""
        found = read(self.folder / STATE)
        return State(**found) if found.get("form") == FORM else None

    def tell(self, state: State) -> None:
        """Replace the state; raises OSError."""
        write(self.folder / STATE, asdict(state))

    def remove(self) -> None:
        """Give the slot up: it ends once it sees that."""
        aside = self.folder.with_name(f".{self.name}")
        with suppress(OSError):
            self.folder.rename(aside)
        shutil.rmtree(aside, ignore_errors=True)


def room(storage: Path | str) -> Path:
    """The folder of all slots in a storage, made where it is not there and closed to others.

    Who can write there has slots call functions by name. Raises MetricsweepError for a bucket, and where the folder
    is somebody else's.
    """
    there = opened(storage)
    if not isinstance(there, Folder):
        raise MetricsweepError(
            "METRICSWEEP_STORAGE_URL: slots that join by files need a folder that they and the conductor see, "
            f"found {storage}"
        )
    own_folder(there.root / ROOM)
    own_folder(there.root / ROOM / HERE)
    return there.root / ROOM


def boxes(room: Path) -> list[Box]:
    """The slots that there are, by name."""
    return [Box(path) for path in sorted((room / HERE).iterdir()) if not path.name.startswith(".")]


def write(file: Path, content: Mapping[str, Any]) -> None:
    """Replace a file whole, on disk before anybody sees it; raises OSError."""
    aside = file.with_name(f".{file.name}.{os.getpid()}")
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(descriptor, "w") as made:
            json.dump(content, made)
            made.flush()
            os.fsync(made.fileno())
        aside.replace(file)
    except OSError:
        with suppress(OSError):
            aside.unlink()
        raise
    _settle(file.parent)


def read(file: Path) -> dict[str, Any]:
    """What stands in a file; raises OSError, also where it is damaged."""
    try:
        found: dict[str, Any] = json.loads(file.read_bytes())
    except ValueError as error:
        raise OSError(f"{file} is damaged: {error}") from error
    return found


def _settle(folder: Path) -> None:
    """Have the names in a folder survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
