"""Login and logout of browsers: by token, by a one-time link, or through an OpenID Connect provider.

Also share links, which show one sweep without a login, and routes that name the server's home and the caller.
"""

import json
import logging
from datetime import UTC, datetime, timedelta
from typing import Annotated, Final
from urllib.parse import urlencode

from fastapi import APIRouter, Form, Path, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from api.auth import oidc
from api.auth.sessions import CODE_SECONDS, BrowserSession, OneTimeLogin
from api.dependencies import Actor, Admission, ByProvider, Id, ServiceParameter, person
from api.problems import answer, details, documented, shown
from dashboards.rendering import render
from orchestrator.host.identity import IDENTITY_PATH, NONCE, digest
from orchestrator.views.accounts import (
    MOST_SHARE_DAYS,
    OWNER,
    SHARE_DAYS,
    SHARED_PATH,
    VISITOR,
    Caller,
    CallerView,
    NewShareView,
    Scope,
    ShareView,
    caller,
    calling,
)
from orchestrator.views.errors import LoginRefusedError, NotAllowedError, NotFoundError

log = logging.getLogger(__name__)
router = APIRouter(prefix="/v1", tags=["login"], responses=documented(401, 403, 421, 500))
open_router = APIRouter(tags=["login"], responses=documented(421, 500))
pages_router = APIRouter(include_in_schema=False)
provider_router = APIRouter(prefix=oidc.PATH, include_in_schema=False)

CALLBACK: Final = f"{oidc.PATH}/callback"
MOST_PATH: Final = 1_000
"""The longest path, in characters, that is kept in the cookie of a login through a provider."""

IDENTIFIED: Final = {"home": "8e1f0c2d9a7b4653", "proof": 8 * "0f1e2d3c"}

LOGIN_LINK: Final = {"path": "/login?code=Zm91cnRlZW4", "expires_at": "2025-11-20T10:00:00Z"}
ME: Final = {
    "name": "ada", "role": "member", "scope": "write", "sees": ["faces", "main"], "steers": ["faces"],
}  # fmt: skip
WRONG_TOKEN = "This is not the token of this server."  # noqa: S105  a sentence
WRONG_SHARE: Final = "this link has expired or was revoked; ask the person who sent it for another"
WRONG_CODE = "This link has been used, or has run out. `metricsweep login-link` prints another."


class LoginLink(BaseModel):
    """A one-time link that logs a browser in."""

    path: str  # on this server: /login?code=...
    expires_at: datetime


class Identified(BaseModel):
    """The identity of a server."""

    home: str  # the public name of its home folder
    proof: str  # of the nonce and the address of the request


Then = Annotated[str, Query(alias="next", max_length=2000)]


@router.post(
    "/login-links",
    status_code=201,
    summary="A link by which a browser logs in once",
    responses=shown(LOGIN_LINK, "Open `path` on this server.", status=201),
)
def login_link(access: Admission) -> LoginLink:
    """A link for the caller: it opens one session, once, within the hour, and contains no token."""
    requester = caller()
    if not requester.is_owner and requester.token is None:
        raise NotAllowedError("a proxy logs you in and you have no token; open the page through the proxy")
    until = datetime.now(UTC) + timedelta(seconds=CODE_SECONDS)
    return LoginLink(path=f"/login?code={access.codes.new(requester.user, requester.token)}", expires_at=until)


@router.get("/me", summary="Who am I, and what may I?", responses=shown(ME, "The caller."))
def me(service: ServiceParameter) -> CallerView:
    """The caller, its role, and the projects that it may read and change."""
    who, names_of = caller(), service.store.accounts.names_of
    return CallerView(
        name=who.name, role=who.role, scope=who.scope, sees=names_of(who.seen), steers=names_of(who.steered)
    )


shares_router = APIRouter(
    prefix="/v1/sweeps/{id}/shares", tags=["shares"], responses=documented(401, 403, 404, 421, 422, 500, 503)
)

SHARE: Final = {
    "id": 3, "sweep": 7, "actor": "ada", "created": "2026-05-01T12:00:00Z", "expires": "2026-05-31T12:00:00Z",
}  # fmt: skip
LinkId = Annotated[int, Path(alias="link", ge=1, le=2**31 - 1, description="The link's number.", examples=[3])]


class NewShare(BaseModel):
    """A new share link."""

    model_config = ConfigDict(extra="forbid")

    days: Annotated[float, Field(gt=0, le=MOST_SHARE_DAYS, strict=True)] = SHARE_DAYS
    """How long it is valid."""


@shares_router.get("", summary="List the share links of a sweep", responses=shown([SHARE], "The links."))
def shares(number: Id, service: ServiceParameter) -> list[ShareView]:
    """The valid links without their secrets, the oldest first, for those who may change the sweep."""
    return service.store.shares.of(number)


@shares_router.post(
    "",
    status_code=201,
    summary="Make a share link",
    responses=documented(409, 413)
    | shown(SHARE | {"path": "/shared?link=Zm91cnRlZW4"}, "The link: open `path` on this server.", 201),
)
def add_share(number: Id, service: ServiceParameter, actor: Actor, new: NewShare) -> NewShareView:
    """Whoever opens the link sees the results of this sweep without an account; the answer shows it only once."""
    return service.store.shares.add(number, new.days, actor)


@shares_router.delete("/{link}", summary="Revoke a share link", responses=shown(SHARE, "The revoked link."))
def revoke_share(number: Id, link: LinkId, service: ServiceParameter, actor: Actor) -> ShareView:
    """From the next request on, the link shows nothing."""
    return service.store.shares.revoke(number, link, actor)


@pages_router.get("/sweeps/{id}/shares")
def shown_shares(number: Id, service: ServiceParameter) -> HTMLResponse:
    """The share links of a sweep, with forms that make and revoke them."""
    return HTMLResponse(_shares_page(service, number))


@pages_router.post("/sweeps/{id}/shares")
def _share_added(
    number: Id, service: ServiceParameter, request: Request, days: Annotated[float, Form(gt=0, le=MOST_SHARE_DAYS)]
) -> HTMLResponse:
    made = service.store.shares.add(number, days, person(request))
    return HTMLResponse(_shares_page(service, number, _here(request, made.path)), status_code=201)


@pages_router.post("/sweeps/{id}/shares/{link}/revoke")
def _share_revoked(number: Id, link: LinkId, service: ServiceParameter, request: Request) -> RedirectResponse:
    service.store.shares.revoke(number, link, person(request))
    return RedirectResponse(f"/sweeps/{number}/shares", status_code=303)


def _shares_page(service: ServiceParameter, number: int, made: str = "") -> str:
    """The share links of a sweep; `made` is the address of a new link, which is shown only now."""
    links = service.store.shares.of(number)
    sweep = service.sweeps.get(number)
    return render("shares.html", sweep=sweep, links=links, made=made, days=SHARE_DAYS, most=MOST_SHARE_DAYS)


@pages_router.get(SHARED_PATH)
async def open_share(
    access: Admission, service: ServiceParameter, request: Request, link: Annotated[str, Query(max_length=200)] = ""
) -> Response:
    """Show the sweep of a share link to this browser; the redirect takes the secret out of the address."""
    secrets = [link] if link else access.sessions.links(request)
    visitor = await run_in_threadpool(service.store.accounts.by_links, [*map(digest, secrets)])
    if visitor is None:
        waited = not link or await access.patience.after_wrong(_address(request))
        with calling(VISITOR):
            refused = answer(request, details(request, 404 if waited else 429, WRONG_SHARE))
        if not link:  # none of those that this browser keeps is valid
            access.sessions.forget_links(refused)
        return refused
    sweep = min(visitor.shared)
    opened = RedirectResponse(f"/sweeps/{sweep}", status_code=303)
    session = access.sessions.of(request)
    requester = await _who(service, session) if session else None
    if requester is None:
        if link:
            access.sessions.keep_link(request, opened, link)
        return opened
    with calling(requester):  # a login comes before a link
        try:
            await run_in_threadpool(service.store.changes.require, sweep)
        except NotFoundError:
            detail = (
                f"you are logged in as {_name(requester)}, who does not see this sweep; log out and open the link again"
            )
            return answer(request, details(request, 409, detail))
    return opened


@open_router.get(
    IDENTITY_PATH,
    summary="Whose server is this?",
    responses=shown(IDENTIFIED, "Its name, and the proof.") | documented(422),
)
def identity(
    access: Admission,
    request: Request,
    nonce: Annotated[
        str, Query(pattern=NONCE, description="Random and used once.", examples=["00112233445566778899aabbccddeeff"])
    ],
) -> Identified:
    """Proves that this server knows the secret of its home folder, for the address of the request."""
    host, port = request.scope.get("server") or ("", 0)
    return Identified(home=access.identity.name, proof=access.identity.proof(nonce, str(host), int(port or 0)))


@pages_router.get("/login")
async def login(
    access: Admission,
    service: ServiceParameter,
    provider: ByProvider,
    request: Request,
    code: Annotated[str, Query(max_length=200)] = "",
    then: Then = "/",
    left: bool = False,
) -> Response:
    """The login form; with the code of a link, a page that asks whether to log in.

    Reading the page changes nothing, since a page of another site can make a browser open any link.
    """
    session = access.sessions.of(request)
    now = await _who(service, session) if session else None  # None if the session's token is not valid any more
    link = access.codes.known(code)
    requester = await _who(service, link) if link else None
    if requester is not None and (now is None or now.user != requester.user):
        current = _name(now) if now else None
        query = urlencode({"next": local(then)})
        page = render(
            "login_link.html", code=code, then=local(then), query=query, name=_name(requester), current=current
        )
        return HTMLResponse(page)
    if now:
        return RedirectResponse(local(then), status_code=303)
    if not code:
        return HTMLResponse(form(provider, "", then, left=left))
    return await _refused(access, request, WRONG_CODE)


@pages_router.post("/login")
async def enter(
    access: Admission,
    service: ServiceParameter,
    provider: ByProvider,
    request: Request,
    token: Annotated[str, Form(max_length=1000)] = "",
    code: Annotated[str, Form(max_length=200)] = "",
    then: Then = "/",
) -> Response:
    """Begin a session for a valid token or the code of a link, and redirect to the page that was requested."""
    if code:
        link = access.codes.use(code)
        named = await _who(service, link) if link else None
        if named is None:
            return await _refused(access, request, WRONG_CODE)
        return await _entered(request, then, named, "a link")
    if access.is_token(token):
        return await _entered(request, then, OWNER, "the form")
    requester = await run_in_threadpool(service.store.accounts.by_hash, digest(token.strip()))
    if requester is not None and requester.scope not in (Scope.MLFLOW, Scope.METRICS):
        return await _entered(request, then, requester, "the form")
    if not token:  # an empty form is no attempt to guess a token
        return HTMLResponse(form(provider, WRONG_TOKEN, then), status_code=401)
    return await _refused(access, request, WRONG_TOKEN, then)


@pages_router.post("/logout")
def leave(access: Admission, service: ServiceParameter, request: Request) -> Response:
    """End the session of the browser, also for copies of its cookie."""
    session = access.sessions.of(request)
    by_provider = bool(session and session.token is not None and service.store.logins.leave(session.token))
    answer = RedirectResponse("/login?left=true" if by_provider else "/login", status_code=303)
    if session:
        access.sessions.end(session, answer)
    return answer


@provider_router.get("")
async def begin(provider: ByProvider, request: Request, then: Then = "/") -> Response:
    """Redirect the browser to the provider."""
    login, path = _set_up(provider), local(then)
    request.session["next"] = path if len(json.dumps(path)) <= MOST_PATH else "/"
    return await login.begin(request, _here(request, CALLBACK))


@provider_router.get("/callback")
async def come_back(access: Admission, service: ServiceParameter, provider: ByProvider, request: Request) -> Response:
    """The page to which the provider redirects: begins a session if this browser began the login."""
    login = _set_up(provider)
    try:
        person = await login.person(request)
        with calling(OWNER, _address(request)):
            requester = await run_in_threadpool(service.store.logins.enter, person, login.terms)
    except LoginRefusedError as error:
        return await _not_let_in(login, access, request, error)
    answer = RedirectResponse(local(request.session.get("next", "/")), status_code=303)
    access.sessions.begin(request, answer, requester.token, int(login.terms.seconds))
    request.session.clear()
    return answer


@provider_router.get("/logout")
async def leave_provider(provider: ByProvider, request: Request) -> Response:
    """Log out of the provider too, which may ask first, since no ID token is kept."""
    url = await _set_up(provider).logout_url(_here(request, "/login"))
    return RedirectResponse(url or "/login", status_code=303)


def form(provider: ByProvider, message: str, then: str = "/", *, left: bool = False) -> str:
    """The login page; `left`: the browser was just logged out of a session that began at the provider."""
    name, logs_out = (provider.name, left and provider.logs_out) if provider else (None, False)
    query = urlencode({"next": local(then)})
    return render("login.html", message=message, query=query, provider=name, logs_out=logs_out)


async def _who(service: ServiceParameter, login: BrowserSession | OneTimeLogin) -> Caller | None:
    return OWNER if login.token is None else await run_in_threadpool(service.store.accounts.by_token, login.token)


def _name(requester: Caller) -> str:
    return "the owner of this server" if requester.name is None else f"{requester.name} ({requester.role})"


async def _entered(request: Request, then: str, requester: Caller, how: str) -> Response:
    app = request.app.state
    with calling(requester, _address(request)):
        await run_in_threadpool(app.service.store.audit.entered, requester, how)
    answer = RedirectResponse(local(then), status_code=303)
    app.access.sessions.begin(request, answer, requester.token)
    return answer


async def _refused(access: Admission, request: Request, message: str, then: str = "/") -> Response:
    """The form again, after a delay, or at once with a 429 if too many wait."""
    waited = await access.patience.after_wrong(_address(request))
    return HTMLResponse(form(request.app.state.provider, message, then), status_code=401 if waited else 429)


async def _not_let_in(
    login: oidc.ProviderLogin, access: Admission, request: Request, error: LoginRefusedError
) -> Response:
    """The form with the reason, after a delay if the provider proved no identity."""
    subject = f"; subject {error.subject}" if error.subject else ""
    log.warning("a login by OpenID Connect is refused: %s%s", error, subject)
    with calling(OWNER, _address(request)):
        await run_in_threadpool(request.app.state.service.people.logins.refused, f"{error}{subject}")
    message = f"You were not let in: {error}."
    if error.subject:
        message += f" An administrator may link a user with you by your subject there, {error.subject}."
        return HTMLResponse(form(login, message), status_code=403)
    waited = await access.patience.after_wrong(_address(request))
    return HTMLResponse(form(login, message), status_code=401 if waited else 429)


def _set_up(provider: ByProvider) -> oidc.ProviderLogin:
    if provider is None:
        raise NotFoundError("this server has no OpenID login: METRICSWEEP_OIDC_ISSUER is not set")
    return provider


def _here(request: Request, path: str) -> str:
    """The address of a page by the name that the browser uses, which `HostsAndOrigins` and the provider check."""
    return f"{request.url.scheme}://{request.headers['host']}{path}"


def _address(request: Request) -> str:
    return request.client.host if request.client else ""


def local(path: str) -> str:
    """The path to redirect to after a login: `then` if it is on this server, else `/`."""
    safe = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return path if safe else "/"
