"""Carries out what waits, in a process that kills itself: `python -m tests.collecting HOME KILLED_AT`."""

import os
import signal
import sys
from pathlib import Path
from typing import Any

from orchestrator.host.storage import Folder
from orchestrator.record.retention import CollectionWriter
from orchestrator.settings import Settings
from tests.inline_conductor import conduct


def die(*given: Any) -> None:
    """As `kill -9` does."""
    os.kill(os.getpid(), signal.SIGKILL)


def main(home: Path, moment: str) -> None:
    """Die once the record is made, before a file goes, before the third, or before all are noted as gone."""
    settings = Settings(home=home, engine="inline", train="tests.run.evaluated:train", lease_seconds=1)
    if moment == "recorded":
        CollectionWriter.count = die  # type: ignore[method-assign]
    elif moment == "counted":
        Folder.discard = die  # type: ignore[method-assign]
    elif moment == "third":
        discard, gone = Folder.discard, list[str]()

        def counting(self: Folder, folder: str, name: str) -> None:
            gone.append(folder)
            if len(gone) == 3:
                die()
            discard(self, folder, name)

        Folder.discard = counting  # type: ignore[method-assign]
    elif moment == "gone":
        CollectionWriter.removed = die  # type: ignore[method-assign]
    conduct(settings)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
