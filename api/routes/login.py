"""Login and logout of browsers: by token, by a one-time link, or through an OpenID Connect provider.

Also routes that name the server's home and the caller.
"""

import json
import logging
from datetime import UTC, datetime, timedelta
from typing import Annotated, Final

from fastapi import APIRouter, Form, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic import BaseModel

from api.auth import oidc
from api.auth.sessions import CODE_SECONDS, BrowserSession, OneTimeLogin
from api.dependencies import Admission, ByProvider, ServiceParameter
from api.problems import documented, shown
from dashboards import sweeps
from orchestrator.host.identity import IDENTITY_PATH, NONCE
from orchestrator.views.accounts import OWNER, Caller, CallerView, Scope, caller, calling
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
    who = caller()
    if who.user is not None and who.token is None:
        raise NotAllowedError("a proxy logs you in and you have no token; open the page through the proxy")
    until = datetime.now(UTC) + timedelta(seconds=CODE_SECONDS)
    return LoginLink(path=f"/login?code={access.codes.new(who.user, who.token)}", expires_at=until)


@router.get("/me", summary="Who am I, and what may I?", responses=shown(ME, "The caller."))
def me(service: ServiceParameter) -> CallerView:
    """The caller, its role, and the projects that it may read and change."""
    return service.accounts.view(caller())


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
    who = await _who(service, link) if link else None
    if who is not None and (now is None or now.user != who.user):
        return HTMLResponse(sweeps.login_link_page(code, local(then), _name(who), _name(now) if now else None))
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
    who = await run_in_threadpool(service.accounts.of_text, token)
    if who is not None and who.scope not in (Scope.MLFLOW, Scope.METRICS):
        return await _entered(request, then, who, "the form")
    if not token:  # not a guess
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
            who = await run_in_threadpool(service.store.logins.enter, person, login.terms)
    except LoginRefusedError as error:
        return await _not_let_in(login, access, request, error)
    answer = RedirectResponse(local(request.session.get("next", "/")), status_code=303)
    access.sessions.begin(request, answer, who.token, int(login.terms.seconds))
    request.session.clear()
    return answer


@provider_router.get("/logout")
async def leave_provider(provider: ByProvider, request: Request) -> Response:
    """Log out of the provider too, which may ask first, since no ID token is kept."""
    url = await _set_up(provider).logout_url(_here(request, "/login"))
    return RedirectResponse(url or "/login", status_code=303)


def form(provider: ByProvider, message: str, then: str = "/", *, left: bool = False) -> str:
    """The login page; `left`: the browser was just logged out of a session that began at the provider."""
    if provider is None:
        return sweeps.login_page(message, local(then))
    return sweeps.login_page(message, local(then), provider.name, logs_out=left and provider.logs_out)


async def _who(service: ServiceParameter, login: BrowserSession | OneTimeLogin) -> Caller | None:
    return OWNER if login.token is None else await run_in_threadpool(service.store.accounts.by_token, login.token)


def _name(who: Caller) -> str:
    return "the owner of this server" if who.name is None else f"{who.name} ({who.role})"


async def _entered(request: Request, then: str, who: Caller, how: str) -> Response:
    app = request.app.state
    with calling(who, _address(request)):
        await run_in_threadpool(app.service.store.audit.entered, who, how)
    answer = RedirectResponse(local(then), status_code=303)
    app.access.sessions.begin(request, answer, who.token)
    return answer


async def _refused(access: Admission, request: Request, message: str, then: str = "/") -> Response:
    """The form again, after a delay, or at once with a 429 if too many wait."""
    waited = await access.patience.after_wrong(_address(request))
    return HTMLResponse(form(request.app.state.provider, message, then), status_code=401 if waited else 429)


async def _not_let_in(
    login: oidc.ProviderLogin, access: Admission, request: Request, error: LoginRefusedError
) -> Response:
    """The form with the reason, after a delay if the provider proved no identity."""
    who = f"; subject {error.subject}" if error.subject else ""
    log.warning("a login by OpenID Connect is refused: %s%s", error, who)
    with calling(OWNER, _address(request)):
        await run_in_threadpool(request.app.state.service.people.logins.refused, f"{error}{who}")
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
