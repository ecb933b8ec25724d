"""Something that is asked for of a sweep, and what comes back at once: the sweep, and the request to follow."""

from dataclasses import dataclass
from typing import Any

from api.connection import Query, ServerConnection
from orchestrator.views.sweeps import SweepView


@dataclass(frozen=True, slots=True)
class Asked:
    """The sweep as it was then, and the number by which the request is known."""

    sweep: SweepView
    request: int


def asked(connection: ServerConnection, path: str, query: Query | None = None, **more: Any) -> Asked:
    """Ask for it at a path; `more` is sent along."""
    response = connection.send("POST", path, query, **more)
    number = response.headers.get("location", "").rpartition("/")[2]
    if not number.isdigit():
        raise connection.stranger(response)
    return Asked(connection.read(SweepView, response), int(number))
