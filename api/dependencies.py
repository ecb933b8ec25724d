"""Parameters of routes: the service, the settings, the caller, and the parts of a request with their limits."""

import re
from email.message import Message
from typing import Annotated, Final, TypeVar

from fastapi import Depends, Header, Path, Query, Request, Response
from starlette.exceptions import HTTPException

from api.auth.gate import Authentication
from api.auth.oidc import ProviderLogin
from api.http.middleware import BODY_BYTES, too_large
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from orchestrator.views.accounts import ACCOUNT_NAME, caller
from orchestrator.views.pages import Page

Item = TypeVar("Item")
SPEC_TYPES: Final = ("application/yaml", "application/x-yaml", "text/yaml", "application/json")


# Of these all but `_actor` are coroutines, though they wait for nothing: FastAPI has a thread call any other function.
async def _service(request: Request) -> Service:
    found: Service = request.app.state.service
    return found


Asked = Annotated[Service, Depends(_service)]


async def _settings(request: Request) -> Settings:
    found: Settings = request.app.state.settings
    return found


async def _access(request: Request) -> Authentication:
    found: Authentication = request.app.state.access
    return found


async def _provider(request: Request) -> ProviderLogin | None:
    found: ProviderLogin | None = request.app.state.provider
    return found


def _actor(
    request: Request,
    service: Asked,
    x_actor: Annotated[
        str | None,
        Header(
            min_length=1,
            max_length=100,
            pattern=r"^[\x20-\x7e]+$",
            description="Who asks, in your own words, as long as the server has no users; then the one for whom a "
            "trusted proxy asks.",
            examples=["ada@lab"],
        ),
    ] = None,
) -> str:
    who = caller()
    if who.name is not None:
        return who.name
    said = None if x_actor and service.accounts.any() else x_actor  # among users nobody names themselves
    return said or (request.client.host if request.client else "unknown")


def person(request: Request) -> str:
    """Who sits before a page, as far as it is known."""
    browser = f"browser at {request.client.host}" if request.client else "browser"
    return caller().name or browser


InForce = Annotated[Settings, Depends(_settings)]
Admission = Annotated[Authentication, Depends(_access)]
ByProvider = Annotated[ProviderLogin | None, Depends(_provider)]
Actor = Annotated[str, Depends(_actor)]
Named = Annotated[
    str, Path(max_length=100, pattern=r"^[^\x00/]+$", description="As the spec names it.", examples=["main"])
]
TableName = Annotated[
    str | None,
    Query(max_length=100, pattern=r"^[^\x00/]+$", description="A table of the sweep; by default its first."),
]
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


class Paging:
    """Where a page of a list starts and how long it is."""

    def __init__(self, request: Request, response: Response, cursor: str | None, limit: int) -> None:
        self.cursor = cursor
        self.limit = limit
        self._url = request.url
        self._response = response

    def linked(self, page: Page[Item]) -> Page[Item]:
        """The page; a Link header (RFC 8288) leads to the next one, where there is one."""
        if page.next_cursor:
            url = self._url.include_query_params(cursor=page.next_cursor)
            self._response.headers["Link"] = f'<{url.path}?{url.query}>; rel="next"'
        return page


async def _paging(request: Request, response: Response, cursor: Cursor = None, limit: Limit = 50) -> Paging:
    return Paging(request, response, cursor, limit)


Paged = Annotated[Paging, Depends(_paging)]


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
        raise too_large(f"the body has {declared} bytes; a spec may have {BODY_BYTES} (1 MiB)")
    return await request.body()
