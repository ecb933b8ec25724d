"""Routes of users, and the page on which administrators manage them and projects."""

from typing import Annotated, Any, Final

from fastapi import APIRouter, Form, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictBool

from api.dependencies import AccountName, Asked, ByProvider, Cursor, Paged
from api.openapi import documented, shown
from dashboards import people as people_page
from orchestrator.host.oidc_settings import issuer as issuer_of
from orchestrator.views.accounts import ACCOUNT_NAME, UserView
from orchestrator.views.callers import Role
from orchestrator.views.logins import ISSUER, SUBJECT
from orchestrator.views.pages import Page

router = APIRouter(prefix="/v1", tags=["people"], responses=documented(401, 403, 421, 422, 500, 503))
page = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)

USER: Final[dict[str, Any]] = {
    "name": "ada", "role": "member", "created": "2026-05-01T12:00:00Z", "disabled": None,
    "projects": [{"project": "faces", "role": "member"}],
    "login": {"issuer": "https://login.example.org/realms/lab", "subject": "5f3e0c1a-7b52-4a55-9d0a-2f5f1f4f6c10"},
}  # fmt: skip
_USERS = shown({"items": [USER], "next_cursor": None}, "A page of users.")

Name = Annotated[str, Field(max_length=64, pattern=ACCOUNT_NAME)]


class NewUser(BaseModel):
    """A user who is to be."""

    model_config = ConfigDict(extra="forbid")

    name: Name
    role: Role = Role.MEMBER
    project: Name | None = None
    """In which project: a viewer looks, anybody else steers; without it in none."""


class UserChange(BaseModel):
    """What is set; what is left out, or null, stays as it is."""

    model_config = ConfigDict(extra="forbid")

    role: Role | None = None
    disabled: StrictBool | None = None
    """Whether nothing of theirs opens anything."""


class LoginChange(BaseModel):
    """Which provider of OpenID Connect logs a user in."""

    model_config = ConfigDict(extra="forbid")

    subject: Annotated[str, Field(pattern=SUBJECT)]
    """By which number or name it knows the user: its `sub`."""
    issuer: (
        Annotated[
            str,
            Field(min_length=1, max_length=255, json_schema_extra={"pattern": ISSUER}),
            AfterValidator(issuer_of),  # which says what is expected; the pattern tells who reads the schema
        ]
        | None
    ) = None
    """Its address, as it names itself; without it that of METRICSWEEP_OIDC_ISSUER."""


@router.get("/users", summary="List users", responses=_USERS | documented(404))
def users(service: Asked, paging: Paged) -> Page[UserView]:
    """Who there is, the oldest first."""
    return paging.linked(service.people.users_page(paging.cursor, paging.limit))


@router.post(
    "/users",
    status_code=201,
    summary="Add a user",
    responses=shown(USER, "The user; `Location` says where.", 201) | documented(404, 409, 413),
)
def add_user(new: NewUser, service: Asked, response: Response) -> UserView:
    """A name is its own idempotency key: asked twice, the second is told by a 409 that there is one."""
    made = service.people.add_user(new.name, new.role, new.project)
    response.headers["Location"] = f"/v1/users/{made.name}"
    return made


@router.get("/users/{name}", summary="One user", responses=shown(USER, "The user.") | documented(404))
def user(name: AccountName, service: Asked) -> UserView:
    """Its role and its projects."""
    return service.people.user(name)


@router.patch("/users/{name}", summary="Change a user", responses=shown(USER, "The user.") | documented(404, 413))
def change_user(name: AccountName, change: UserChange, service: Asked) -> UserView:
    """Give another role, or have nothing of theirs open anything, from the next request on."""
    if change.role is not None:
        service.people.set_role(name, change.role)
    if change.disabled is not None:
        service.people.disable(name, disabled=change.disabled)
    return service.people.user(name)


@router.put(
    "/users/{name}/login",
    summary="Link a user with a provider's login",
    responses=shown(USER, "The user.") | documented(404, 409, 413),
)
def link(name: AccountName, change: LoginChange, service: Asked) -> UserView:
    """Who shows this subject at the provider comes in as this user; 409 where it is another's, or the user has one."""
    return service.people.logins.link(name, change.subject, change.issuer)


@router.delete(
    "/users/{name}/login",
    summary="Have no provider log a user in",
    responses=shown(USER | {"login": None}, "The user.") | documented(404),
)
def unlink(name: AccountName, service: Asked) -> UserView:
    """The browsers that it let in are out with the next request; tokens go on opening."""
    return service.people.logins.unlink(name)


FormName = Annotated[str, Form(max_length=64)]
FormRole = Annotated[Role, Form()]
BACK: Final = "/people"


@page.get(BACK)
def shown_people(service: Asked, provider: ByProvider, cursor: Cursor = None) -> HTMLResponse:
    """Users and projects, with what may be done to them."""
    users, projects = service.people.users_page(cursor, 100), list(service.people.projects())
    return HTMLResponse(people_page.people_page(users, projects, provider.name if provider else ""))


@page.post(f"{BACK}/users")
def user_added(
    service: Asked, name: FormName, role: FormRole = Role.MEMBER, project: FormName = ""
) -> RedirectResponse:
    """The form that adds one."""
    service.people.add_user(name.strip(), role, project or None)
    return back(f"user-{name.strip()}")


@page.post(f"{BACK}/users/{{name}}/role")
def role_given(name: AccountName, service: Asked, role: FormRole) -> RedirectResponse:
    """The button beside a user."""
    service.people.set_role(name, role)
    return back(f"user-{name}")


@page.post(f"{BACK}/users/{{name}}/disabled")
def user_disabled(name: AccountName, service: Asked, disabled: Annotated[bool, Form()]) -> RedirectResponse:
    """The button beside a user."""
    service.people.disable(name, disabled=disabled)
    return back(f"user-{name}")


@page.post(f"{BACK}/users/{{name}}/login")
def login_linked(
    name: AccountName, service: Asked, subject: Annotated[str, Form(max_length=255)] = ""
) -> RedirectResponse:
    """The button beside a user; without a subject no provider logs it in."""
    if subject.strip():
        service.people.logins.link(name, subject.strip())
    else:
        service.people.logins.unlink(name)
    return back(f"user-{name}")


@page.post(f"{BACK}/users/{{name}}/places")
def place_given(
    name: AccountName, service: Asked, project: FormName, role: Annotated[Role | None, Form()] = None
) -> RedirectResponse:
    """The button beside a user; without a role the user leaves the project."""
    if role is None:
        service.people.leave(name, project)
    else:
        service.people.join(name, project, role)
    return back(f"user-{name}")


def back(part: str) -> RedirectResponse:
    """To the line of the page that was changed."""
    return RedirectResponse(f"{BACK}#{part}", status_code=303)
