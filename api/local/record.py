"""`serve.json`: the address of a home folder's server, written by `serve` and read by the commands of its user."""

import json
import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from orchestrator.host.disk import replace_file

_RECORD_FILE: Final = "serve.json"


@dataclass(frozen=True, slots=True)
class Served:
    """The address and process that serve a home folder."""

    url: str
    machine: str
    pid: int

    @property
    def is_here(self) -> bool:
        """Whether the server runs on this machine; several machines may share the disk of a home folder."""
        return self.machine == socket.gethostname()


def read(home: Path) -> Mapping[str, Any]:
    """The content of `serve.json`; empty if the file is missing or damaged."""
    with suppress(OSError, ValueError):
        record = json.loads((home / _RECORD_FILE).read_text())
        return record if isinstance(record, dict) else {}
    return {}


def write(home: Path, record: Mapping[str, Any], url: str) -> None:
    """Replace `serve.json`; `url` is the address of the API, empty after its end."""
    content = json.dumps({**record, "url": url, "machine": socket.gethostname()}, indent=1)
    replace_file(home / _RECORD_FILE, content.encode(), mode=0o600)


def served(home: Path) -> Served | None:
    """The server of a home folder by `serve.json`, which may have been killed since."""
    found = read(home)
    with suppress(KeyError, TypeError, ValueError):
        return Served(str(found["url"]), str(found["machine"]), int(found["pid"])) if found["url"] else None
    return None
