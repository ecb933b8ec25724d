"""What a paper says of how it trained and chose: what own runs are held against."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

from orchestrator.publish.published.library import PublishedTable

SILENT: Final = "does not say"


@dataclass(frozen=True)
class PaperProtocol:
    """What a paper says of how a table was made."""

    recipe: Mapping[str, str]
    validation: str
    select: str
    runs: str
    metric: Mapping[str, str]


def protocol_of(table: PublishedTable) -> PaperProtocol:
    """The protocol of a printed table, or of its paper."""
    known = _protocols()
    said = known.get("table", {}).get(table.id) or known[table.paper]
    return PaperProtocol(
        said.get("recipe", {}), said.get("validation", SILENT), said.get("select", SILENT), said["runs"],
        said.get("metric", {}),
    )  # fmt: skip


@cache
def _protocols() -> dict[str, Any]:
    return tomllib.loads(files(__package__).joinpath("protocols.toml").read_text(encoding="utf-8"))
