"""Routes and pages of users, projects, tokens, quotas and the audit log."""

from typing import Annotated, Any, Final, Self

from fastapi import APIRouter, Form, Path, Query, Response
from fastapi.responses import HTMLResponse, RedirectResponse, StreamingResponse
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, StrictBool, model_validator

from api.dependencies import (
    AccountName,
    Admission,
    ByProvider,
    Cursor,
    Id,
    IdempotencyKey,
    Paged,
    ServiceParameter,
    UserName,
)
from api.problems import documented, shown
from dashboards.lists import people_page, tokens_page
from orchestrator.host.checks import issuer as issuer_of
from orchestrator.views.accounts import (
    ACCOUNT_NAME,
    ISSUER,
    SUBJECT,
    NewTokenView,
    ProjectView,
    Quota,
    QuotaKind,
    QuotaUse,
    Role,
    Scope,
    TokenView,
    UserView,
    caller,
)
from orchestrator.views.pages import Page

people_router = APIRouter(prefix="/v1", tags=["people"], responses=documented(401, 403, 421, 422, 500, 503))
forms = APIRouter(include_in_schema=False)

USER: Final[dict[str, Any]] = {
    "name": "ada", "role": "member", "created": "2026-05-01T12:00:00Z", "disabled": None,
    "projects": [{"project": "faces", "role": "member"}],
    "login": {"issuer": "https://login.example.org/realms/lab", "subject": "5f3e0c1a-7b52-4a55-9d0a-2f5f1f4f6c10"},
}  # fmt: skip
_USERS = shown({"items": [USER], "next_cursor": None}, "A page of users.")

Name = Annotated[str, Field(max_length=64, pattern=ACCOUNT_NAME)]


class Body(BaseModel):
    """The base class of posted bodies; an unknown field is an error."""

    model_config = ConfigDict(extra="forbid")


class NewUser(Body):
    """A new user."""

    name: Name
    role: Role = Role.MEMBER
    project: Name | None = None
    """The project to add the user to; by default none. A viewer only reads it; the other roles may change it."""


class UserChange(Body):
    """Changes of a user; a field that is left out or null keeps its value."""

    role: Role | None = None
    disabled: StrictBool | None = None
    """Whether the user's tokens and sessions are invalid."""


class LoginChange(Body):
    """The OpenID Connect login of a user."""

    subject: Annotated[str, Field(pattern=SUBJECT)]
    """The provider's number or name of the user: its `sub`."""
    issuer: (
        Annotated[
            str,
            Field(min_length=1, max_length=255, json_schema_extra={"pattern": ISSUER}),
            AfterValidator(issuer_of),  # has a better error than the pattern, which is for the schema
        ]
        | None
    ) = None
    """The provider's address, as it names itself; by default that of METRICSWEEP_OIDC_ISSUER."""


@people_router.get("/users", summary="List users", responses=_USERS | documented(404))
def users(service: ServiceParameter, paging: Paged) -> Page[UserView]:
    """All users, the oldest first."""
    return paging.linked(service.store.directory.users(paging.cursor, paging.limit))


@people_router.post(
    "/users",
    status_code=201,
    summary="Add a user",
    responses=shown(USER, "The user; `Location` says where.", 201) | documented(404, 409, 413),
)
def add_user(new: NewUser, service: ServiceParameter, response: Response) -> UserView:
    """The name is the idempotency key: a repeated request is answered with 409."""
    made = service.people.add_user(new.name, new.role, new.project)
    response.headers["Location"] = f"/v1/users/{made.name}"
    return made


@people_router.get("/users/{name}", summary="One user", responses=shown(USER, "The user.") | documented(404))
def user(name: AccountName, service: ServiceParameter) -> UserView:
    """A user's role and projects."""
    return service.people.user(name)


@people_router.patch(
    "/users/{name}", summary="Change a user", responses=shown(USER, "The user.") | documented(404, 413)
)
def change_user(name: AccountName, change: UserChange, service: ServiceParameter) -> UserView:
    """Set the role, or disable the user with all tokens and sessions, from the next request on."""
    if change.role is not None:
        service.people.set_role(name, change.role)
    if change.disabled is not None:
        service.people.disable(name, disabled=change.disabled)
    return service.people.user(name)


@people_router.put(
    "/users/{name}/login",
    summary="Link a user with a provider's login",
    responses=shown(USER, "The user.") | documented(404, 409, 413),
)
def link(name: AccountName, change: LoginChange, service: ServiceParameter) -> UserView:
    """The provider's login with this subject becomes this user's; 409 if one of the two has a link already."""
    return service.people.logins.link(name, change.subject, change.issuer)


@people_router.delete(
    "/users/{name}/login",
    summary="Remove a user's link to a provider",
    responses=shown(USER | {"login": None}, "The user.") | documented(404),
)
def unlink(name: AccountName, service: ServiceParameter) -> UserView:
    """The browser sessions that the provider began end with the next request; tokens stay valid."""
    return service.people.logins.unlink(name)


FormName = Annotated[str, Form(max_length=64)]
FormRole = Annotated[Role, Form()]
_PEOPLE: Final = "/people"


@forms.get(_PEOPLE)
def shown_people(service: ServiceParameter, provider: ByProvider, cursor: Cursor = None) -> HTMLResponse:
    """Users and projects, with forms that change them."""
    users, projects = service.store.directory.users(cursor, 100), list(service.people.projects())
    return HTMLResponse(people_page(users, projects, provider.name if provider else ""))


@forms.post(f"{_PEOPLE}/users")
def _user_added(
    service: ServiceParameter, name: FormName, role: FormRole = Role.MEMBER, project: FormName = ""
) -> RedirectResponse:
    service.people.add_user(name.strip(), role, project or None)
    return _back(f"user-{name.strip()}")


@forms.post(f"{_PEOPLE}/users/{{name}}/role")
def _role_given(name: AccountName, service: ServiceParameter, role: FormRole) -> RedirectResponse:
    service.people.set_role(name, role)
    return _back(f"user-{name}")


@forms.post(f"{_PEOPLE}/users/{{name}}/disabled")
def _user_disabled(name: AccountName, service: ServiceParameter, disabled: Annotated[bool, Form()]) -> RedirectResponse:
    service.people.disable(name, disabled=disabled)
    return _back(f"user-{name}")


@forms.post(f"{_PEOPLE}/users/{{name}}/login")
def _login_linked(
    name: AccountName, service: ServiceParameter, subject: Annotated[str, Form(max_length=255)] = ""
) -> RedirectResponse:
    """Handle the form that links a user's login; an empty subject removes the link."""
    if subject.strip():
        service.people.logins.link(name, subject.strip())
    else:
        service.people.logins.unlink(name)
    return _back(f"user-{name}")


@forms.post(f"{_PEOPLE}/users/{{name}}/places")
def _place_given(
    name: AccountName, service: ServiceParameter, project: FormName, role: Annotated[Role | None, Form()] = None
) -> RedirectResponse:
    """Handle the form of a membership; without a role, the user leaves the project."""
    if role is None:
        service.people.leave(name, project)
    else:
        service.people.join(name, project, role)
    return _back(f"user-{name}")


def _back(part: str) -> RedirectResponse:
    """Redirect to the changed line of the page."""
    return RedirectResponse(f"{_PEOPLE}#{part}", status_code=303)


PROJECT: Final[dict[str, Any]] = {
    "name": "faces", "open": False, "created": "2026-05-01T12:00:00Z", "members": ["ada"],
}  # fmt: skip
_PROJECTS = shown({"items": [PROJECT], "next_cursor": None}, "A page of projects.")


class NewProject(Body):
    """A new project."""

    name: Name
    open: StrictBool = False
    """Whether every user sees its sweeps, and not only its members."""


class ProjectChange(Body):
    """Changes of a project."""

    open: StrictBool


class MembershipChange(Body):
    """A user's membership in a project."""

    role: Role = Role.MEMBER
    """A `viewer` only reads; the other roles may change the project's sweeps."""


@people_router.get("/projects", summary="List projects", responses=_PROJECTS | documented(404))
def projects(service: ServiceParameter, paging: Paged) -> Page[ProjectView]:
    """All projects with their members, the oldest first."""
    return paging.linked(service.store.directory.projects(paging.cursor, paging.limit))


@people_router.post(
    "/projects",
    status_code=201,
    summary="Add a project",
    responses=shown(PROJECT, "The project; `Location` says where.", 201) | documented(409, 413),
)
def add_project(new: NewProject, service: ServiceParameter, response: Response) -> ProjectView:
    """The name is the idempotency key: a repeated request is answered with 409."""
    made = service.people.add_project(new.name, everyone=new.open)
    response.headers["Location"] = f"/v1/projects/{made.name}"
    return made


@people_router.get(
    "/projects/{name}", summary="One project", responses=shown(PROJECT, "The project.") | documented(404)
)
def project(name: AccountName, service: ServiceParameter) -> ProjectView:
    """The members of a project, and whether every user sees it."""
    return service.people.project(name)


@people_router.patch(
    "/projects/{name}",
    summary="Open or close a project",
    responses=shown(PROJECT, "The project.") | documented(404, 413),
)
def change_project(name: AccountName, change: ProjectChange, service: ServiceParameter) -> ProjectView:
    """Show a project to every user, or only to its members."""
    return service.people.open_project(name, everyone=change.open)


@people_router.put(
    "/projects/{name}/members/{user}",
    summary="Add a user to a project",
    responses=shown(USER, "The user.") | documented(404, 413),
)
def join(name: AccountName, user: UserName, change: MembershipChange, service: ServiceParameter) -> UserView:
    """Add a user with a role, or change the role of a member."""
    return service.people.join(user, name, change.role)


@people_router.delete(
    "/projects/{name}/members/{user}",
    summary="Remove a user from a project",
    responses=shown(USER | {"projects": []}, "The user.") | documented(404),
)
def leave(name: AccountName, user: UserName, service: ServiceParameter) -> UserView:
    """404 if the user is not in the project."""
    return service.people.leave(user, name)


@forms.post(f"{_PEOPLE}/projects")
def _project_added(
    service: ServiceParameter, name: FormName, everyone: Annotated[bool, Form()] = False
) -> RedirectResponse:
    service.people.add_project(name.strip(), everyone=everyone)
    return _back(f"project-{name.strip()}")


@forms.post(f"{_PEOPLE}/projects/{{name}}/open")
def _project_opened(
    name: AccountName, service: ServiceParameter, everyone: Annotated[bool, Form()]
) -> RedirectResponse:
    service.people.open_project(name, everyone=everyone)
    return _back(f"project-{name}")


tokens_router = APIRouter(prefix="/v1", tags=["tokens"], responses=documented(401, 403, 421, 422, 500, 503))

TOKEN: Final[dict[str, Any]] = {
    "id": 3, "user": "ada", "name": "laptop", "scope": "write", "created": "2026-05-01T12:00:00Z",
    "expires": "2026-07-30T12:00:00Z", "revoked": None, "browser": False,
}  # fmt: skip
_TOKENS = shown({"items": [TOKEN], "next_cursor": None}, "A page of tokens.")
_MADE = shown(TOKEN | {"token": "msw_..."}, "The token, whose text is shown only once; `Location` says where.", 201)


class NewToken(Body):
    """A new token."""

    user: Name | None = None
    """Whose token it is; by default the caller's."""
    name: Name = "token"
    """What it is for, so that you can recognize it in the list."""
    scope: Scope = Scope.WRITE
    """At most the rights of its user; only an administrator gives `admin` and `metrics`."""
    days: Annotated[float, Field(ge=0, le=3_650, strict=True)] = 90
    """How long it is valid; 0, which only an administrator may set, means until it is revoked."""


@tokens_router.get("/tokens", summary="List tokens", responses=_TOKENS | documented(404))
def tokens(
    service: ServiceParameter,
    paging: Paged,
    user: Annotated[
        str | None, Query(max_length=64, pattern=ACCOUNT_NAME, description="Only those of this user.", examples=["ada"])
    ] = None,
) -> Page[TokenView]:
    """The caller's own tokens, the oldest first, without their text; an administrator lists those of all users."""
    return paging.linked(service.people.tokens.page(paging.cursor, paging.limit, user))


@tokens_router.post("/tokens", status_code=201, summary="Make a token", responses=_MADE | documented(404, 409, 413))
def add_token(
    new: NewToken,
    service: ServiceParameter,
    access: Admission,
    response: Response,
    idempotency_key: IdempotencyKey = None,
) -> NewTokenView:
    """The answer contains the token's text, only once; the same key and body give the same token while it is valid."""
    once = None if idempotency_key is None else (access.secret, idempotency_key)
    made = service.people.tokens.add(new.user, new.name, new.scope, new.days or None, once)
    response.headers["Location"] = f"/v1/tokens/{made.id}"
    return made


@tokens_router.delete(
    "/tokens/{id}",
    summary="Revoke a token",
    responses=shown(TOKEN | {"revoked": "2026-05-02T12:00:00Z"}, "The revoked token.") | documented(404),
)
def revoke(number: Id, service: ServiceParameter) -> TokenView:
    """The token and its sessions are invalid from the next request on; 404 for a token of another user."""
    return service.people.tokens.revoke(number)


@forms.get("/tokens")
def shown_tokens(
    service: ServiceParameter, cursor: Cursor = None, user: Annotated[str, Query(max_length=64)] = ""
) -> HTMLResponse:
    """The caller's own tokens, or for an administrator those of a user."""
    return HTMLResponse(_page(service, cursor, user))


@forms.post("/tokens")
def token_added(
    service: ServiceParameter,
    name: Annotated[str, Form(max_length=64)],
    scope: Annotated[Scope, Form()] = Scope.WRITE,
    days: Annotated[float, Form(ge=0, le=3_650)] = 90,
    user: Annotated[str, Form(max_length=64)] = "",
) -> HTMLResponse:
    """The form that makes a token; only the answering page shows its text."""
    made = service.people.tokens.add(user or None, name.strip(), scope, days or None)
    return HTMLResponse(_page(service, None, user, made), status_code=201)


@forms.post("/tokens/{id}/revoke")
def _token_revoked(
    number: Id, service: ServiceParameter, user: Annotated[str, Form(max_length=64)] = ""
) -> RedirectResponse:
    whose = service.people.tokens.revoke(number).user
    return RedirectResponse(f"/tokens?user={whose}#token-{number}" if user else f"/tokens#token-{number}", 303)


def _page(service: ServiceParameter, cursor: str | None, user: str, made: NewTokenView | None = None) -> str:
    requester = caller()
    whose = user if user and requester.administers else requester.name or ""
    return tokens_page(service.people.tokens.page(cursor, 100, whose or None), whose, requester, made)


QUOTAS: Final[list[dict[str, Any]]] = [
    {
        "slots": 8, "gpu_hours": 500.0, "cpu_hours": None, "days": 30, "kind": "project", "name": "faces",
        "used_slots": 3, "used_gpu_hours": 211.4, "used_cpu_hours": 12.0,
    }
]  # fmt: skip

DAYS_OF_HOURS: Final[JsonValue] = [
    {"properties": {"days": {"type": "null"}}},
    {"required": ["gpu_hours"], "properties": {"gpu_hours": {"type": "number"}}},
    {"required": ["cpu_hours"], "properties": {"cpu_hours": {"type": "number"}}},
]
"""The schema of the rule in `Quota.lacking`: a quota with days has hours."""

quotas_router = APIRouter(prefix="/v1/quotas", tags=["cluster"], responses=documented(401, 421, 500, 503))


@quotas_router.get("", summary="Quotas and their use", responses=shown(QUOTAS, "Quotas of users, then of projects."))
def quotas(service: ServiceParameter) -> list[QuotaUse]:
    """The limits of slots and hours of users and projects, and their use; null means no limit.

    Administrators see all quotas, users their own and those of their projects. Hours are those of the last `days`, or
    of all time. Attempts from before the first quota do not count.
    """
    return service.operations.quotas()


class NewQuota(Quota):
    """A new quota of a user or a project; a limit that is left out does not apply."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        defer_build=False,  # pydantic warns of a body that defers
        json_schema_extra={"anyOf": DAYS_OF_HOURS},
    )

    @model_validator(mode="after")
    def _days_have_hours(self) -> Self:
        if self.lacking:
            raise ValueError(self.lacking)
        return self


@quotas_router.put(
    "/{kind}/{name}", summary="Set a quota", responses=shown(QUOTAS, "All quotas.") | documented(403, 404, 413, 422)
)
def set_quota(
    kind: Annotated[QuotaKind, Path(description="The quota of a user or of a project.")],
    name: AccountName,
    limits: NewQuota,
    service: ServiceParameter,
) -> list[QuotaUse]:
    """For administrators: replaces the quota; one without limits removes it."""
    service.people.set_quota(kind, name, limits)
    return service.operations.quotas()


audit_router = APIRouter(prefix="/v1", tags=["audit"], responses=documented(401, 403, 421, 422, 500, 503))

_MEDIA_TYPE: Final = "application/x-ndjson"
_ENTRY: Final = (
    '{"id":12,"at":"2026-05-01T12:00:00Z","who":"ada","user":1,"token":3,"what":"delete","target":"sweep 7",'
    '"detail":"request 31","address":"10.0.0.7","request":"0b6f2c5e2f574a539d0a3f6f1b0c8a11"}\n'
)


@audit_router.get(
    "/audit",
    summary="The audit log, for administrators",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "A line of JSON for each entry, the oldest first.",
            "content": {_MEDIA_TYPE: {"schema": {"type": "string"}, "example": _ENTRY}},
        }
    },
)
def audit(
    service: ServiceParameter,
    after: Annotated[int, Query(ge=0, le=2**53, description="Only entries after this number.")] = 0,
) -> StreamingResponse:
    """Submissions, requests, annotations, logins, and changes of users, projects and tokens."""
    lines = (f"{entry.model_dump_json()}\n" for entry in service.store.audit.after(after))
    return StreamingResponse(lines, media_type=_MEDIA_TYPE)
