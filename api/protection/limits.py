"""What a request may hold: the size of its body, its content type and the form of its parameters."""

import re
from collections.abc import Callable
from email.message import Message
from typing import Annotated, Final

from fastapi import Header, Path, Query, Request
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.types import Message as Event

from api.problems import answer, details
from orchestrator.views.accounts import ACCOUNT_NAME

BODY_BYTES: Final = 1024 * 1024
UPLOAD_BYTES: Final = 1024**3
"""The largest file that MLflow is passed, as a stream that nobody holds."""
CONTENT_TYPE_BYTES: Final = 256
"""A content type with its boundary has 80; reading its parameters takes quadratic time."""
SPEC_TYPES: Final = ("application/yaml", "application/x-yaml", "text/yaml", "application/json")

Id = Annotated[
    int, Path(alias="id", ge=1, le=2**31 - 1, description="The number that people call it by.", examples=[7])
]
Limit = Annotated[int, Query(ge=1, le=200, description="At most so many items.")]
Offset = Annotated[int, Query(ge=0, le=2**53, description="Start at this offset; a log says its `next_offset`.")]
Cursor = Annotated[
    str | None,
    Query(
        min_length=1,
        max_length=500,
        pattern=r"^[A-Za-z0-9_-]+$",
        description="`next_cursor` of the page before this one.",
    ),
]
Name = Annotated[str | None, Query(max_length=200, pattern=r"^[^\x00]*$", description="Only sweeps of this name.")]
SweepTag = Annotated[
    str | None,
    Query(
        alias="tag",
        max_length=50,
        pattern=r"^[^\x00,]*$",
        description="Only sweeps with this tag, in any case of letters.",
        examples=["paper"],
    ),
]
Priority = Annotated[int, Query(ge=-100, le=100, description="Sweeps of higher priority are drawn first.")]
ProjectName = Annotated[
    str | None,
    Query(
        max_length=64,
        pattern=ACCOUNT_NAME,
        description="To which project; without it to `main`, or to the only one that you may submit to.",
        examples=["faces"],
    ),
]
AccountName = Annotated[
    str, Path(alias="name", max_length=64, pattern=ACCOUNT_NAME, description="The name of it.", examples=["ada"])
]
UserName = Annotated[
    str, Path(alias="user", max_length=64, pattern=ACCOUNT_NAME, description="The user's name.", examples=["ada"])
]
IdempotencyKey = Annotated[
    str | None,
    Header(
        min_length=1,
        max_length=200,
        pattern=r"^[\x21-\x7e]+$",
        description="Any text of your own; the same key with the same body submits once. Visible ASCII, no blanks.",
        examples=["digits-2025-11-20"],
    ),
]


class BodyLimit:
    """ASGI middleware that refuses a body over 1 MiB while it comes in, and a content type over 256 bytes.

    An upload, as `is_upload` knows it by method and path, may be larger, since it is passed on while it comes in.
    """

    def __init__(self, app: ASGIApp, is_upload: Callable[[str, str], bool]) -> None:
        self.app = app
        self.is_upload = is_upload

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with a `receive` that counts."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if len(dict(scope["headers"]).get(b"content-type", b"")) > CONTENT_TYPE_BYTES:
            request = Request(scope)
            detail = f"the content type is over {CONTENT_TYPE_BYTES} bytes"
            await answer(request, details(request, 415, detail))(scope, receive, send)
            return
        seen, most = 0, UPLOAD_BYTES if self.is_upload(scope["method"], scope["path"]) else BODY_BYTES

        async def counted() -> Event:
            nonlocal seen
            event = await receive()
            seen += len(event.get("body", b""))
            if seen > most:
                raise _too_large(f"the body is over {most} bytes ({most // 1024**2} MiB)")
            return event

        await self.app(scope, counted, send)


def _too_large(detail: str) -> HTTPException:
    # An HTTPException, because FastAPI turns any other that comes out of `receive` into a 400.
    return HTTPException(413, detail, headers={"Connection": "close"})


async def spec_body(request: Request) -> bytes:
    """The bytes of a posted spec; refuses other content types (415), encodings (415) and sizes (413)."""
    given = request.headers.get("content-type", "")
    parsed = Message()
    parsed["content-type"] = given
    charset = str(parsed.get_param("charset") or "utf-8").lower()
    if not given or parsed.get_content_type() not in SPEC_TYPES or charset not in ("utf-8", "utf8", "us-ascii"):
        instead = f"not {given!r}" if given else "and the request has none"
        raise HTTPException(
            415,
            f"a spec is sent as {', '.join(SPEC_TYPES)} in UTF-8, {instead}",
            {"Accept-Post": ", ".join(SPEC_TYPES)},
        )
    if request.headers.get("content-encoding", "identity") != "identity":
        raise HTTPException(415, "a spec is sent without Content-Encoding", {"Accept-Encoding": "identity"})
    declared = request.headers.get("content-length", "")
    if re.fullmatch(r"\d{1,20}", declared) and int(declared) > BODY_BYTES:
        raise _too_large(f"the body has {declared} bytes; a spec may have {BODY_BYTES} (1 MiB)")
    return await request.body()
