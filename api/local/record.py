"""`serve.json`: where a home folder is served, written by `serve` and read by the commands of its user."""

import json
import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from orchestrator.host.files import own_text

RECORD_FILE: Final = "serve.json"


@dataclass(frozen=True, slots=True)
class Served:
    """Where a home folder is served."""

    url: str
    machine: str
    pid: int

    @property
    def is_here(self) -> bool:
        """Whether it is this machine: a home folder may lie on a disk that several share."""
        return self.machine == socket.gethostname()


def read(home: Path) -> Mapping[str, Any]:
    """The record; empty where there is none, or a damaged one."""
    with suppress(OSError, ValueError):
        record = json.loads((home / RECORD_FILE).read_text())
        return record if isinstance(record, dict) else {}
    return {}


def write(home: Path, record: Mapping[str, Any], url: str) -> None:
    """Replace the record; `url` is that of the API, empty once it is served no more."""
    own_text(home / RECORD_FILE, json.dumps({**record, "url": url, "machine": socket.gethostname()}, indent=1))


def served(home: Path) -> Served | None:
    """Where the home is served, as far as its record says: whoever wrote it may have been killed."""
    found = read(home)
    with suppress(KeyError, TypeError, ValueError):
        return Served(str(found["url"]), str(found["machine"]), int(found["pid"])) if found["url"] else None
    return None
