"""Which request heads are taken: those that everybody on the way reads alike, and that are no longer than needed."""

import re
from typing import Any, Final

import h11

HEAD_BYTES: Final = 16 * 1024
"""Request line and headers together. Browsers send 1 to 2 KiB; the longest URL of ours with its cursor has 1 KiB."""
CONTENT_TYPE_BYTES: Final = 256
"""A type with its boundary has 80; readers of its parameters take a quadratic time."""
HEADERS: Final = 64
"""Browsers send about 20; a proxy adds a handful."""

_END: Final = re.compile(rb"\r?\n\r?\n")
_BARE: Final = re.compile(rb"(?<!\r)\n|\r(?!\n)|\x00")
_ONCE: Final = frozenset(
    {b"content-length", b"transfer-encoding", b"host", b"authorization", b"content-type", b"origin"}
)


class HeadRefusedError(h11.RemoteProtocolError):
    """A request that is not taken, with the status and the sentence that its sender gets."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail, error_status_hint=status)
        self.status, self.detail = status, detail


class StrictReading(h11.Connection):
    """The server's side of h11, which also refuses what h11 reads generously, and remembers why it refused."""

    refused: HeadRefusedError | None = None

    def __init__(self) -> None:
        super().__init__(h11.SERVER, max_incomplete_event_size=HEAD_BYTES)

    def next_event(self) -> Any:
        """As in h11; raises RefusedError for a head that servers and proxies have read in different ways."""
        try:
            if self.their_state is h11.IDLE:
                _check_as_sent(self.trailing_data[0])
            event = super().next_event()
            if isinstance(event, h11.Request):
                _check_as_read(event)
        except HeadRefusedError as error:
            self.refused = error
            raise
        except h11.RemoteProtocolError as error:
            status = error.error_status_hint if error.error_status_hint in {431, 501} else 400
            self.refused = HeadRefusedError(status, f"this is not a request of HTTP/1.1: {error}")
            raise
        return event


def _check_as_sent(data: bytes) -> None:
    """What the parser would mend or drop without a word; `data` begins with a head, which may not be whole."""
    ending = _END.search(data)
    if (ending.start() if ending else len(data)) > HEAD_BYTES:
        raise HeadRefusedError(431, f"request line and headers are over {HEAD_BYTES} bytes")
    if ending is None:
        return
    head = data[: ending.end()]
    if _BARE.search(head):
        raise HeadRefusedError(400, "lines end with CR LF, and no line holds CR, LF or NUL")
    lines = head.rstrip(b"\r\n").split(b"\r\n")[1:]
    if len(lines) > HEADERS:
        raise HeadRefusedError(431, f"a request may have {HEADERS} headers, this one has {len(lines)}")
    if any(line[:1] in b" \t" for line in lines):
        raise HeadRefusedError(400, "a header stands on one line")
    named = [line.lower().partition(b":")[::2] for line in lines]
    for name in _ONCE:
        values = [value for one, value in named if one == name]
        if len(values) > 1:
            raise HeadRefusedError(400, f"{name.decode().title()} is given {len(values)} times")
        if name == b"content-length" and values and not values[0].strip(b" \t").isdigit():
            raise HeadRefusedError(400, "Content-Length is one number")


def _check_as_read(request: h11.Request) -> None:
    names = {name for name, _ in request.headers}
    if any(name == b"content-type" and len(value) > CONTENT_TYPE_BYTES for name, value in request.headers):
        raise HeadRefusedError(431, f"Content-Type is over {CONTENT_TYPE_BYTES} bytes")
    if b"transfer-encoding" in names:
        if b"content-length" in names:
            raise HeadRefusedError(400, "Content-Length and Transfer-Encoding exclude each other")
        if request.http_version < b"1.1":
            raise HeadRefusedError(400, "HTTP/1.0 has no Transfer-Encoding")
    if not request.target.startswith(b"/"):
        raise HeadRefusedError(400, "ask for a path, such as `GET /v1/sweeps`, and name the server in Host")
