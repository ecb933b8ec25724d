"""Parameters of routes: the service, the settings, the caller, and fields of a request with their limits."""

from email.message import Message
from typing import Annotated, Any, Final, TypeVar

from fastapi import Depends, Header, Path, Query, Request, Response
from pydantic import BeforeValidator, Field
from starlette.exceptions import HTTPException

from api.auth.gate import Authentication
from api.auth.oidc import ProviderLogin
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from orchestrator.views.accounts import ACCOUNT_NAME, caller
from orchestrator.views.evidence import ResolutionBudget
from orchestrator.views.pages import Page

Item = TypeVar("Item")
SPEC_TYPES: Final = ("application/yaml", "application/x-yaml", "text/yaml", "application/json")


def _of_application(name: str) -> Any:
    """A dependency that returns an attribute of the application's state."""

    async def read(request: Request) -> Any:  # a coroutine, since FastAPI calls any other function in a thread
        return getattr(request.app.state, name)

    return Depends(read)


ServiceParameter = Annotated[Service, _of_application("service")]
InForce = Annotated[Settings, _of_application("settings")]
Admission = Annotated[Authentication, _of_application("access")]
ByProvider = Annotated[ProviderLogin | None, _of_application("provider")]


def _actor(
    request: Request,
    service: ServiceParameter,
    x_actor: Annotated[
        str | None,
        Header(
            min_length=1,
            max_length=100,
            pattern=r"^[\x20-\x7e]+$",
            description="A name to record, if the server has no users; otherwise the user whom a trusted proxy "
            "logged in.",
            examples=["ada@lab"],
        ),
    ] = None,
) -> str:
    requester = caller()
    if requester.name is not None:
        return requester.name
    named = None if x_actor and service.store.accounts.any() else x_actor  # if there are users, the token decides
    return named or (request.client.host if request.client else "unknown")


def person(request: Request) -> str:
    """The user at a page, or the address of the browser, as the author of requests."""
    browser = f"browser at {request.client.host}" if request.client else "browser"
    return caller().name or browser


Actor = Annotated[str, Depends(_actor)]
Named = Annotated[
    str, Path(max_length=100, pattern=r"^[^\x00/]+$", description="The name in the spec.", examples=["main"])
]
TableName = Annotated[
    str | None,
    Query(max_length=100, pattern=r"^[^\x00/]+$", description="A table of the (first) sweep; by default its first."),
]
Id = Annotated[int, Path(alias="id", ge=1, le=2**31 - 1, description="Its number.", examples=[7])]
CellIndex = Annotated[
    int, Path(ge=0, le=2**31 - 1, description="The cell's number in the sweep's grid, from 0.", examples=[3])
]
Limit = Annotated[int, Query(ge=1, le=200, description="Most items of an answer.")]
Offset = Annotated[
    int, Query(ge=0, le=2**53, description="Start at this offset, such as the `next_offset` of an earlier answer.")
]
Cursor = Annotated[
    str | None,
    Query(
        min_length=1, max_length=500, pattern=r"^[A-Za-z0-9_-]+$", description="The `next_cursor` of the previous page."
    ),
]
Name = Annotated[str | None, Query(max_length=200, pattern=r"^[^\x00]*$", description="Only sweeps of this name.")]
TestSplit = Annotated[
    str,
    Query(
        pattern=r"^test(_[a-z0-9_]{1,64})?$",
        description="`test`, or the split of a further test set.",
        examples=["test_lfw"],
    ),
]
AllSeeds = Annotated[bool, Query(description="The queries of all finished trials of its candidate together.")]
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
Priority = Annotated[int, Query(ge=-100, le=100, description="Sweeps of higher priority are trained first.")]
ProjectName = Annotated[
    str | None,
    Query(
        max_length=64,
        pattern=ACCOUNT_NAME,
        description="The project; by default `main`, or the only one to which you may submit.",
        examples=["faces"],
    ),
]
AccountName = Annotated[
    str, Path(alias="name", max_length=64, pattern=ACCOUNT_NAME, description="Its name.", examples=["ada"])
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
        description="A text that you choose, in visible ASCII without blanks; a repeated key and body changes nothing.",
        examples=["digits-2025-11-20"],
    ),
]


class Paging:
    """Where a page of a list starts, and its length."""

    def __init__(self, request: Request, response: Response, cursor: str | None, limit: int) -> None:
        self.cursor = cursor
        self.limit = limit
        self._url = request.url
        self._response = response

    def linked(self, page: Page[Item]) -> Page[Item]:
        """The page; sets a Link header (RFC 8288) to the next page, if any."""
        if page.next_cursor:
            url = self._url.include_query_params(cursor=page.next_cursor)
            self._response.headers["Link"] = f'<{url.path}?{url.query}>; rel="next"'
        return page


async def _paging(request: Request, response: Response, cursor: Cursor = None, limit: Limit = 50) -> Paging:
    return Paging(request, response, cursor, limit)


Paged = Annotated[Paging, Depends(_paging)]


async def spec_body(request: Request) -> bytes:
    """The bytes of a posted spec; refuses other content types and encodings (415)."""
    content_type = request.headers.get("content-type", "")
    parsed = Message()
    parsed["content-type"] = content_type
    charset = str(parsed.get_param("charset") or "utf-8").lower()
    if not content_type or parsed.get_content_type() not in SPEC_TYPES or charset not in ("utf-8", "utf8", "us-ascii"):
        instead = f"not {content_type!r}" if content_type else "and the request has none"
        raise HTTPException(
            415,
            f"a spec is sent as {', '.join(SPEC_TYPES)} in UTF-8, {instead}",
            {"Accept-Post": ", ".join(SPEC_TYPES)},
        )
    if request.headers.get("content-encoding", "identity") != "identity":
        raise HTTPException(415, "a spec is sent without Content-Encoding", {"Accept-Encoding": "identity"})
    return await request.body()


_EMPTY: Final = BeforeValidator(lambda text: text or None)
"""An empty field of a form limits nothing."""
_Positive = Annotated[float, Field(gt=0, le=1_000_000)]
_Seeds = Annotated[int, Field(ge=1, le=48)]


async def _limits(
    hours: Annotated[_Positive | None, _EMPTY, Query(description="Hours of training, on one slot.")] = None,
    seeds: Annotated[_Seeds | None, _EMPTY, Query(description="Further seeds of any one cell.")] = None,
    within: Annotated[
        _Positive | None,
        _EMPTY,
        Query(description="In the unit of the column: a difference whose half interval is smaller counts as decided."),
    ] = None,
) -> ResolutionBudget:
    return ResolutionBudget(hours=hours, seeds=seeds, within=within)


ResolutionLimits = Annotated[ResolutionBudget, Depends(_limits)]
