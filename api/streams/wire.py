"""Events as `text/event-stream` has them (WHATWG HTML, 9.2); each is encoded once, however many clients there are."""

import re
from typing import Final

from orchestrator.views.changes import Told

MEDIA_TYPE: Final = "text/event-stream"
RETRY_MILLISECONDS: Final = 3_000
"""After how long a browser asks again when a stream ends."""

_ID: Final = re.compile(r"[0-9]{1,18}")


def encoded(told: Told) -> bytes:
    """One event; its JSON holds no line break, so that it is one line of data."""
    return _event(told.view.type, told.id, told.view.model_dump_json(exclude_none=True))


def hello(position: int) -> bytes:
    """The first event of a stream: from where it tells everything."""
    return f"retry: {RETRY_MILLISECONDS}\n".encode() + _event("hello", position, "{}")


def reset(position: int) -> bytes:
    """What a client that comes back too late is told: look at everything anew, and go on from here."""
    return _event("reset", position, "{}")


def resumed_from(header: str | None, query: int | None) -> int | None:
    """The last id that a client has seen. Of what is no id at all we know nothing: -1, which has it look anew."""
    if header:  # a browser that reconnects sends it, with the address that it had at first
        return int(header) if _ID.fullmatch(header) else -1
    return query


def _event(kind: str, position: int, data: str) -> bytes:
    return f"event: {kind}\nid: {position}\ndata: {data}\n\n".encode()
