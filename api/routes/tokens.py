"""Routes of tokens: everybody lists, makes and ends their own, an administrator those of all."""

from typing import Annotated, Any, Final

from fastapi import APIRouter, Form, Query, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from pydantic import BaseModel, ConfigDict, Field

from api.dependencies import Admission, Asked, Cursor, Id, IdempotencyKey, Paged
from api.openapi import documented, shown
from dashboards import people as people_page
from orchestrator.views.accounts import ACCOUNT_NAME, NewTokenView, TokenView
from orchestrator.views.callers import Scope, caller
from orchestrator.views.pages import Page

router = APIRouter(prefix="/v1", tags=["tokens"], responses=documented(401, 403, 421, 422, 500, 503))
page = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)

TOKEN: Final[dict[str, Any]] = {
    "id": 3, "user": "ada", "name": "laptop", "scope": "write", "created": "2026-05-01T12:00:00Z",
    "expires": "2026-07-30T12:00:00Z", "revoked": None, "browser": False,
}  # fmt: skip
_TOKENS = shown({"items": [TOKEN], "next_cursor": None}, "A page of tokens.")
_MADE = shown(TOKEN | {"token": "msw_..."}, "With what opens, this once; `Location` says where the token is.", 201)

Days = Annotated[float, Field(ge=0, le=3_650, strict=True)]
Name = Annotated[str, Field(max_length=64, pattern=ACCOUNT_NAME)]


class NewToken(BaseModel):
    """A token that is to be."""

    model_config = ConfigDict(extra="forbid")

    user: Name | None = None
    """Whose; without it one's own."""
    name: Name = "token"
    """What it is for, to tell it from others."""
    scope: Scope = Scope.WRITE
    """At most what its user may; `admin` and `metrics` are an administrator's to give."""
    days: Days = 90
    """It opens for so many; 0, which an administrator may say: until it is revoked."""


@router.get("/tokens", summary="List tokens", responses=_TOKENS | documented(404))
def tokens(
    service: Asked,
    paging: Paged,
    user: Annotated[
        str | None,
        Query(max_length=64, pattern=ACCOUNT_NAME, description="Only those of this user.", examples=["ada"]),
    ] = None,
) -> Page[TokenView]:
    """One's own, the oldest first, without what opens; an administrator lists those of all."""
    return paging.linked(service.people.tokens.page(paging.cursor, paging.limit, user))


@router.post("/tokens", status_code=201, summary="Make a token", responses=_MADE | documented(404, 409, 413))
def add_token(
    new: NewToken, service: Asked, access: Admission, response: Response, idempotency_key: IdempotencyKey = None
) -> NewTokenView:
    """What opens is in the answer, this once; the same key with the same body gives the same token while it opens."""
    once = None if idempotency_key is None else (access.secret, idempotency_key)
    made = service.people.tokens.add(new.user, new.name, new.scope, new.days or None, once)
    response.headers["Location"] = f"/v1/tokens/{made.id}"
    return made


@router.delete(
    "/tokens/{id}",
    summary="Revoke a token",
    responses=shown(TOKEN | {"revoked": "2026-05-02T12:00:00Z"}, "It opens nothing any more.") | documented(404),
)
def revoke(number: Id, service: Asked) -> TokenView:
    """It, and the sessions that began with it, open nothing from the next request on; 404 for one of somebody else."""
    return service.people.tokens.revoke(number)


@page.get("/tokens")
def shown_tokens(
    service: Asked, cursor: Cursor = None, user: Annotated[str, Query(max_length=64)] = ""
) -> HTMLResponse:
    """One's own tokens; an administrator may look at those of a user."""
    return HTMLResponse(_page(service, cursor, user))


@page.post("/tokens")
def token_added(
    service: Asked,
    name: Annotated[str, Form(max_length=64)],
    scope: Annotated[Scope, Form()] = Scope.WRITE,
    days: Annotated[float, Form(ge=0, le=3_650)] = 90,
    user: Annotated[str, Form(max_length=64)] = "",
) -> HTMLResponse:
    """The form that makes one: the page that answers shows what opens, and no later one does."""
    made = service.people.tokens.add(user or None, name.strip(), scope, days or None)
    return HTMLResponse(_page(service, None, user, made), status_code=201)


@page.post("/tokens/{id}/revoke")
def token_revoked(number: Id, service: Asked, user: Annotated[str, Form(max_length=64)] = "") -> RedirectResponse:
    """The button beside a token."""
    whose = service.people.tokens.revoke(number).user
    return RedirectResponse(f"/tokens?user={whose}#token-{number}" if user else f"/tokens#token-{number}", 303)


def _page(service: Asked, cursor: str | None, user: str, made: NewTokenView | None = None) -> str:
    who = caller()
    whose = user if user and who.administers else who.name or ""
    return people_page.tokens_page(service.people.tokens.page(cursor, 100, whose or None), whose, who, made)
