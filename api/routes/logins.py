"""Logging in and out with a browser, the links that log in once, and the proof of whose server this is."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Final

from fastapi import APIRouter, Form, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic import BaseModel

from api.access.codes import CODE_SECONDS, OneTimeLogin
from api.access.sessions import BrowserSession
from api.dependencies import Admission, Asked, ByProvider
from api.openapi import documented, shown
from dashboards import pages
from orchestrator.host.identity import IDENTITY_PATH, NONCE
from orchestrator.views.accounts import CallerView
from orchestrator.views.callers import OWNER, Caller, Scope, caller, calling
from orchestrator.views.errors import NotAllowedError

router = APIRouter(prefix="/v1", tags=["login"], responses=documented(401, 403, 421, 500))
open_router = APIRouter(tags=["login"], responses=documented(421, 500))
pages_router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)

IDENTIFIED: Final = {"home": "8e1f0c2d9a7b4653", "proof": 8 * "0f1e2d3c"}

LOGIN_LINK: Final = {"path": "/login?code=Zm91cnRlZW4", "expires_at": "2025-11-20T10:00:00Z"}
ME: Final = {
    "name": "ada", "role": "member", "scope": "write", "sees": ["faces", "main"], "steers": ["faces"],
}  # fmt: skip
WRONG_TOKEN = "This is not the token of this server."  # noqa: S105  a sentence
WRONG_CODE = "This link has been used, or has run out. `metricsweep login-link` prints another."


class LoginLink(BaseModel):
    """A way in for one browser, once."""

    path: str  # on this server: /login?code=...
    expires_at: datetime


class Identified(BaseModel):
    """Whose server answers."""

    home: str  # the public name of its home folder
    proof: str  # of the nonce and of the address at which it was asked


Then = Annotated[str, Query(alias="next", max_length=2000)]


@router.post(
    "/login-links",
    status_code=201,
    summary="A link by which a browser logs in once",
    responses=shown(LOGIN_LINK, "Open `path` on this server.", status=201),
)
def login_link(access: Admission) -> LoginLink:
    """For the person whose token asks: the link opens one session, once, within the hour, and holds no token."""
    who = caller()
    if who.user is not None and who.token is None:
        raise NotAllowedError("whom a proxy logs in, it logs in again: there is no token that a session could end with")
    until = datetime.now(UTC) + timedelta(seconds=CODE_SECONDS)
    return LoginLink(path=f"/login?code={access.codes.new(who.user, who.token)}", expires_at=until)


@router.get("/me", summary="Who am I, and what may I?", responses=shown(ME, "By the token that asks."))
def me(service: Asked) -> CallerView:
    """The user whose token asks, its role, and the projects that it sees and steers."""
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
    """Proves that this server knows the secret of its home folder, for the address at which it was asked."""
    host, port = request.scope.get("server") or ("", 0)
    return Identified(home=access.identity.name, proof=access.identity.proof(nonce, str(host), int(port or 0)))


@pages_router.get("/login")
async def login(
    access: Admission,
    service: Asked,
    provider: ByProvider,
    request: Request,
    code: Annotated[str, Query(max_length=200)] = "",
    then: Then = "/",
    left: bool = False,
) -> Response:
    """The form that asks for the token; with the code of a link, the page that asks whether to log in by it.

    Reading the page changes nothing: a page of somebody else's can have a browser open any link.
    """
    now = await _logged_in(access, service, request)
    link = access.codes.known(code)
    who = await _who(service, link) if link else None
    if who is not None and (now is None or now.user != who.user):
        return HTMLResponse(pages.login_link_page(code, local(then), _name(who), _name(now) if now else None))
    if now:
        return RedirectResponse(local(then), status_code=303)
    if not code:
        return HTMLResponse(form(provider, "", then, left=left))
    return await _refused(access, request, WRONG_CODE)


@pages_router.post("/login")
async def enter(
    access: Admission,
    service: Asked,
    provider: ByProvider,
    request: Request,
    token: Annotated[str, Form(max_length=1000)] = "",
    code: Annotated[str, Form(max_length=200)] = "",
    then: Then = "/",
) -> Response:
    """Give a session for the right token, or for the code of a link, and lead on to where the person was going."""
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
    if not token:  # nothing was guessed, or the client left while it sent
        return HTMLResponse(form(provider, WRONG_TOKEN, then), status_code=401)
    return await _refused(access, request, WRONG_TOKEN, then)


@pages_router.post("/logout")
def leave(access: Admission, service: Asked, request: Request) -> Response:
    """The button of every page: what this browser's cookie opened is closed, also to a copy of it."""
    session = access.sessions.of(request)
    by_provider = bool(session and session.token is not None and service.people.logins.leave(session.token))
    answer = RedirectResponse("/login?left=true" if by_provider else "/login", status_code=303)
    if session:
        access.sessions.end(session, answer)
    return answer


def form(provider: ByProvider, message: str, then: str = "/", *, left: bool = False) -> str:
    """The login page; `left`: the browser was just logged out of what a provider had logged it in to."""
    shown = None if provider is None else pages.NamedProvider(provider.name, left and provider.provider.logs_out)
    return pages.login_page(message, local(then), shown)


async def _logged_in(access: Admission, service: Asked, request: Request) -> Caller | None:
    """The person whose session the browser holds, if it still opens something: a token may end before the cookie."""
    found = access.sessions.of(request)
    return await _who(service, found) if found else None


async def _who(service: Asked, login: BrowserSession | OneTimeLogin) -> Caller | None:
    return OWNER if login.token is None else await run_in_threadpool(service.accounts.of_token, login.token)


def _name(who: Caller) -> str:
    return "the owner of this server" if who.name is None else f"{who.name} ({who.role})"


async def _entered(request: Request, then: str, who: Caller, how: str) -> Response:
    app = request.app.state
    with calling(who, request.client.host if request.client else ""):
        await run_in_threadpool(app.service.accounts.entered, who, how)
    answer = RedirectResponse(local(then), status_code=303)
    app.access.sessions.begin(request, answer, who.token)
    return answer


async def _refused(access: Admission, request: Request, message: str, then: str = "/") -> Response:
    """The form again, after a while; at once, with a 429, where too many wait."""
    waited = await access.patience.after_wrong(request.client.host if request.client else "somebody")
    return HTMLResponse(form(request.app.state.provider, message, then), status_code=401 if waited else 429)


def local(path: str) -> str:
    """A path on this server, whatever a link to the login page says."""
    safe = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return path if safe else "/"
