"""The post: the two files by which conductor and slot write to one another.

Each of the two is there from the beginning, is written by one side alone and replaced whole. On NFS a new name may stay
unseen for a minute, and a file that grows may be seen in part; what replaces a file is seen by whoever opens it next.
"""

import shutil
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final, Literal

from pydantic import ConfigDict, TypeAdapter

from orchestrator.host.files import own_folder
from orchestrator.host.storage import Folder, opened
from orchestrator.run.files.json_file import read, read_as, settle, valid, write
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

LEFT_SECONDS: Final = 3_600.0
"""What was written aside and never put in its place is removed after so long."""

Phase = Literal["here", "leaving", "left"]


@dataclass(frozen=True, slots=True)
class Instruction:
    """What the conductor wants of a slot: the latest one alone counts."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(allow_inf_nan=False)

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

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(allow_inf_nan=False)

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


_INSTRUCTIONS: Final = TypeAdapter(Instruction)
_STATES: Final = TypeAdapter(State)


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
        settle(self.folder.parent)

    def instruction(self) -> Instruction:
        """The latest instruction; raises OSError, FileNotFoundError where the slot has been given up."""
        return read_as(_INSTRUCTIONS, self.folder / ORDER)

    def instruct(self, instruction: Instruction) -> None:
        """Replace the instruction; raises OSError."""
        write(self.folder / ORDER, asdict(instruction))

    def state(self) -> State | None:
        """What the slot said last; none: in a form that is not ours. Raises OSError."""
        found = read(self.folder / STATE)
        return valid(_STATES, found, self.folder / STATE) if found.get("form") == FORM else None

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


def tidy(room: Path) -> None:
    """Remove what was written aside by who died before it was in its place, or given up and not removed whole."""
    before = time.time() - LEFT_SECONDS  # by the clock of whoever wrote it: an hour is far from any that is right
    for folder in (room, room / HERE):
        with suppress(OSError):
            for path in [one for one in folder.iterdir() if one.name.startswith(".")]:
                if path.lstat().st_mtime < before:
                    _discard(path)


def _discard(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()
