"""Pages of a login by a provider of OpenID Connect: to it, back from it, and out of it."""

import logging
from typing import Annotated, Final

from fastapi import APIRouter, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from api.dependencies import Admission, Asked, ByProvider
from api.oidc.attempts import LoginAttempt
from api.oidc.login import ProviderLogin
from api.routes.logins import Then, form, local
from orchestrator.views.callers import OWNER, Caller, calling
from orchestrator.views.errors import LoginRefusedError, NotFoundError

log = logging.getLogger(__name__)
router = APIRouter(prefix="/login/oidc", include_in_schema=False, default_response_class=HTMLResponse)

BACK: Final = "/login/oidc/callback"
NOT_BEGUN: Final = "this login was not begun in this browser within the last ten minutes, or came back before"


@router.get("")
async def begin(provider: ByProvider, request: Request, then: Then = "/") -> Response:
    """The link of the login page: sends the browser to the provider, with what only this login knows."""
    login = _set_up(provider)
    attempt = login.attempts.begin(local(then))
    answer = RedirectResponse(await login.address(attempt, _here(request, BACK)), status_code=303)
    login.attempts.keep(attempt, request, answer)
    return answer


@router.get("/callback")
async def back(
    access: Admission,
    service: Asked,
    provider: ByProvider,
    request: Request,
    state: Annotated[str, Query(max_length=200)] = "",
) -> Response:
    """To where the provider sends the browser back: who it is, if it was this browser that went there."""
    login = _set_up(provider)
    attempt = login.attempts.of(request, state)
    try:
        if attempt is None:
            raise LoginRefusedError(NOT_BEGUN)
        who = await _who(login, service, request, attempt)
    except LoginRefusedError as error:
        answer = await _refused(login, access, request, error)
    else:
        answer = RedirectResponse(local(attempt.then), status_code=303)
        access.sessions.begin(request, answer, who.token, int(login.rules.terms.seconds))
    if attempt is not None:
        login.attempts.forget(request, answer)
    return answer


@router.get("/logout")
async def leave(provider: ByProvider, request: Request) -> Response:
    """The link that is shown to who has logged out here: out of the provider too, which may ask whether that is meant.

    It is not told who: no ID token is kept to tell it by.
    """
    address = await _set_up(provider).logout(_here(request, "/login"))
    return RedirectResponse(address or "/login", status_code=303)


def _set_up(provider: ProviderLogin | None) -> ProviderLogin:
    if provider is None:
        raise NotFoundError("no provider logs people in here (METRICSWEEP_OIDC_ISSUER)")
    return provider


def _here(request: Request, path: str) -> str:
    """The address of a page, as the browser names this server: its host was checked, and the provider checks both."""
    return f"{request.url.scheme}://{request.headers['host']}{path}"


async def _who(login: ProviderLogin, service: Asked, request: Request, attempt: LoginAttempt) -> Caller:
    person = await login.person(attempt, request.query_params, _here(request, BACK))
    with calling(OWNER, _address(request)):
        return await run_in_threadpool(service.people.logins.enter, person, login.rules.terms)


async def _refused(login: ProviderLogin, access: Admission, request: Request, error: LoginRefusedError) -> Response:
    """The login page with why; after a while where nobody was proven to be anybody, at once with a 429 for too many."""
    proven = error.subject is not None
    which = f"; subject {error.subject}" if proven else ""
    log.warning("a login by OpenID Connect is refused: %s%s", error, which)
    with calling(OWNER, _address(request)):
        await run_in_threadpool(request.app.state.service.people.logins.refused, f"{error}{which}")
    said = f"You were not let in: {error}."
    if proven:
        said += f" An administrator may link a user with you by your subject there, {error.subject}."
        return HTMLResponse(form(login, said), status_code=403)
    waited = await access.patience.after_wrong(_address(request) or "somebody")
    return HTMLResponse(form(login, said), status_code=401 if waited else 429)


def _address(request: Request) -> str:
    return request.client.host if request.client else ""
