"""Users, projects, tokens, quotas and the audit: routes, and the page on which administrators manage people."""

from collections.abc import Iterator
from typing import Annotated, Any, Final, Self

from fastapi import APIRouter, Form, Path, Query, Response
from fastapi.responses import HTMLResponse, RedirectResponse, StreamingResponse
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, StrictBool, model_validator

from api.dependencies import AccountName, Admission, Asked, ByProvider, Cursor, Id, IdempotencyKey, Paged, UserName
from api.problems import documented, shown
from dashboards import lists as people_page
from orchestrator.host.checks import issuer as issuer_of
from orchestrator.views.accounts import (
    ACCOUNT_NAME,
    ISSUER,
    SUBJECT,
    AuditEntry,
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
forms = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)

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


@people_router.get("/users", summary="List users", responses=_USERS | documented(404))
def users(service: Asked, paging: Paged) -> Page[UserView]:
    """Who there is, the oldest first."""
    return paging.linked(service.people.users_page(paging.cursor, paging.limit))


@people_router.post(
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


@people_router.get("/users/{name}", summary="One user", responses=shown(USER, "The user.") | documented(404))
def user(name: AccountName, service: Asked) -> UserView:
    """Its role and its projects."""
    return service.people.user(name)


@people_router.patch(
    "/users/{name}", summary="Change a user", responses=shown(USER, "The user.") | documented(404, 413)
)
def change_user(name: AccountName, change: UserChange, service: Asked) -> UserView:
    """Give another role, or have nothing of theirs open anything, from the next request on."""
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
def link(name: AccountName, change: LoginChange, service: Asked) -> UserView:
    """Who shows this subject at the provider comes in as this user; 409 where it is another's, or the user has one."""
    return service.people.logins.link(name, change.subject, change.issuer)


@people_router.delete(
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


@forms.get(BACK)
def shown_people(service: Asked, provider: ByProvider, cursor: Cursor = None) -> HTMLResponse:
    """Users and projects, with what may be done to them."""
    users, projects = service.people.users_page(cursor, 100), list(service.people.projects())
    return HTMLResponse(people_page.people_page(users, projects, provider.name if provider else ""))


@forms.post(f"{BACK}/users")
def user_added(
    service: Asked, name: FormName, role: FormRole = Role.MEMBER, project: FormName = ""
) -> RedirectResponse:
    """The form that adds one."""
    service.people.add_user(name.strip(), role, project or None)
    return back(f"user-{name.strip()}")


@forms.post(f"{BACK}/users/{{name}}/role")
def role_given(name: AccountName, service: Asked, role: FormRole) -> RedirectResponse:
    """The button beside a user."""
    service.people.set_role(name, role)
    return back(f"user-{name}")


@forms.post(f"{BACK}/users/{{name}}/disabled")
def user_disabled(name: AccountName, service: Asked, disabled: Annotated[bool, Form()]) -> RedirectResponse:
    """The button beside a user."""
    service.people.disable(name, disabled=disabled)
    return back(f"user-{name}")


@forms.post(f"{BACK}/users/{{name}}/login")
def login_linked(
    name: AccountName, service: Asked, subject: Annotated[str, Form(max_length=255)] = ""
) -> RedirectResponse:
    """The button beside a user; without a subject no provider logs it in."""
    if subject.strip():
        service.people.logins.link(name, subject.strip())
    else:
        service.people.logins.unlink(name)
    return back(f"user-{name}")


@forms.post(f"{BACK}/users/{{name}}/places")
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


PROJECT: Final[dict[str, Any]] = {
    "name": "faces", "open": False, "created": "2026-05-01T12:00:00Z", "members": ["ada"],
}  # fmt: skip
_PROJECTS = shown({"items": [PROJECT], "next_cursor": None}, "A page of projects.")


class NewProject(BaseModel):
    """A project that is to be."""

    model_config = ConfigDict(extra="forbid")

    name: Name
    open: StrictBool = False
    """Whether every user sees its sweeps, and not its members alone."""


class ProjectChange(BaseModel):
    """What is set of a project."""

    model_config = ConfigDict(extra="forbid")

    open: StrictBool


class MembershipChange(BaseModel):
    """A user's place in a project."""

    model_config = ConfigDict(extra="forbid")

    role: Role = Role.MEMBER
    """`viewer` looks, anything else steers."""


@people_router.get("/projects", summary="List projects", responses=_PROJECTS | documented(404))
def projects(service: Asked, paging: Paged) -> Page[ProjectView]:
    """Which projects there are, the oldest first, and who is in them."""
    return paging.linked(service.people.projects_page(paging.cursor, paging.limit))


@people_router.post(
    "/projects",
    status_code=201,
    summary="Add a project",
    responses=shown(PROJECT, "The project; `Location` says where.", 201) | documented(409, 413),
)
def add_project(new: NewProject, service: Asked, response: Response) -> ProjectView:
    """A name is its own idempotency key: asked twice, the second is told by a 409 that there is one."""
    made = service.people.add_project(new.name, everyone=new.open)
    response.headers["Location"] = f"/v1/projects/{made.name}"
    return made


@people_router.get(
    "/projects/{name}", summary="One project", responses=shown(PROJECT, "The project.") | documented(404)
)
def project(name: AccountName, service: Asked) -> ProjectView:
    """Who is in it, and whether every user sees it."""
    return service.people.project(name)


@people_router.patch(
    "/projects/{name}",
    summary="Open or close a project",
    responses=shown(PROJECT, "The project.") | documented(404, 413),
)
def change_project(name: AccountName, change: ProjectChange, service: Asked) -> ProjectView:
    """Have it be seen by every user, or by its members alone."""
    return service.people.open_project(name, everyone=change.open)


@people_router.put(
    "/projects/{name}/members/{user}",
    summary="Have a user be in a project",
    responses=shown(USER, "The user.") | documented(404, 413),
)
def join(name: AccountName, user: UserName, change: MembershipChange, service: Asked) -> UserView:
    """To look or to steer; who is in it already is given this place."""
    return service.people.join(user, name, change.role)


@people_router.delete(
    "/projects/{name}/members/{user}",
    summary="Have a user be in a project no more",
    responses=shown(USER | {"projects": []}, "The user.") | documented(404),
)
def leave(name: AccountName, user: UserName, service: Asked) -> UserView:
    """404 for who is not in it."""
    return service.people.leave(user, name)


@forms.post(f"{BACK}/projects")
def project_added(service: Asked, name: FormName, everyone: Annotated[bool, Form()] = False) -> RedirectResponse:
    """The form that adds one."""
    service.people.add_project(name.strip(), everyone=everyone)
    return back(f"project-{name.strip()}")


@forms.post(f"{BACK}/projects/{{name}}/open")
def project_opened(name: AccountName, service: Asked, everyone: Annotated[bool, Form()]) -> RedirectResponse:
    """The button beside a project."""
    service.people.open_project(name, everyone=everyone)
    return back(f"project-{name}")


tokens_router = APIRouter(prefix="/v1", tags=["tokens"], responses=documented(401, 403, 421, 422, 500, 503))

TOKEN: Final[dict[str, Any]] = {
    "id": 3, "user": "ada", "name": "laptop", "scope": "write", "created": "2026-05-01T12:00:00Z",
    "expires": "2026-07-30T12:00:00Z", "revoked": None, "browser": False,
}  # fmt: skip
_TOKENS = shown({"items": [TOKEN], "next_cursor": None}, "A page of tokens.")
_MADE = shown(TOKEN | {"token": "msw_..."}, "With what opens, this once; `Location` says where the token is.", 201)

Days = Annotated[float, Field(ge=0, le=3_650, strict=True)]


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


@tokens_router.get("/tokens", summary="List tokens", responses=_TOKENS | documented(404))
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


@tokens_router.post("/tokens", status_code=201, summary="Make a token", responses=_MADE | documented(404, 409, 413))
def add_token(
    new: NewToken, service: Asked, access: Admission, response: Response, idempotency_key: IdempotencyKey = None
) -> NewTokenView:
    """What opens is in the answer, this once; the same key with the same body gives the same token while it opens."""
    once = None if idempotency_key is None else (access.secret, idempotency_key)
    made = service.people.tokens.add(new.user, new.name, new.scope, new.days or None, once)
    response.headers["Location"] = f"/v1/tokens/{made.id}"
    return made


@tokens_router.delete(
    "/tokens/{id}",
    summary="Revoke a token",
    responses=shown(TOKEN | {"revoked": "2026-05-02T12:00:00Z"}, "It opens nothing any more.") | documented(404),
)
def revoke(number: Id, service: Asked) -> TokenView:
    """It, and the sessions that began with it, open nothing from the next request on; 404 for one of somebody else."""
    return service.people.tokens.revoke(number)


@forms.get("/tokens")
def shown_tokens(
    service: Asked, cursor: Cursor = None, user: Annotated[str, Query(max_length=64)] = ""
) -> HTMLResponse:
    """One's own tokens; an administrator may look at those of a user."""
    return HTMLResponse(_page(service, cursor, user))


@forms.post("/tokens")
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


@forms.post("/tokens/{id}/revoke")
def token_revoked(number: Id, service: Asked, user: Annotated[str, Form(max_length=64)] = "") -> RedirectResponse:
    """The button beside a token."""
    whose = service.people.tokens.revoke(number).user
    return RedirectResponse(f"/tokens?user={whose}#token-{number}" if user else f"/tokens#token-{number}", 303)


def _page(service: Asked, cursor: str | None, user: str, made: NewTokenView | None = None) -> str:
    who = caller()
    whose = user if user and who.administers else who.name or ""
    return people_page.tokens_page(service.people.tokens.page(cursor, 100, whose or None), whose, who, made)


QUOTAS: Final[list[dict[str, Any]]] = [
    {
        "slots": 8,
        "gpu_hours": 500.0,
        "cpu_hours": None,
        "days": 30,
        "kind": "project",
        "name": "faces",
        "used_slots": 3,
        "used_gpu_hours": 211.4,
        "used_cpu_hours": 12.0,
    }
]

DAYS_OF_HOURS: Final[JsonValue] = [
    {"properties": {"days": {"type": "null"}}},
    {"required": ["gpu_hours"], "properties": {"gpu_hours": {"type": "number"}}},
    {"required": ["cpu_hours"], "properties": {"cpu_hours": {"type": "number"}}},
]
"""That a quota with days names hours, as `Quota.lacking` says it, for those who read the schema."""

quotas_router = APIRouter(prefix="/v1/quotas", tags=["cluster"], responses=documented(401, 421, 500, 503))


@quotas_router.get(
    "", summary="Quotas, and what is used of them", responses=shown(QUOTAS, "Of users, then of projects.")
)
def quotas(service: Asked) -> list[QuotaUse]:
    """What each user and project may have of slots and hours, and has used; null: no limit.

    Administrators are told of all, users of themselves and of the projects that they see. Hours are those of the last
    `days`, or of all time. What attempts that began before there were quotas have used is not counted.
    """
    return service.operations.quotas()


class NewQuota(Quota):
    """What a user or a project may have from now on; what is left out has no limit."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        defer_build=False,  # pydantic warns of a body that defers
        json_schema_extra={"anyOf": DAYS_OF_HOURS},
    )

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.lacking:
            raise ValueError(self.lacking)
        return self


@quotas_router.put(
    "/{kind}/{name}",
    summary="Set a quota",
    responses=shown(QUOTAS, "Of all, as they are now.") | documented(403, 404, 413, 422),
)
def set_quota(
    kind: Annotated[QuotaKind, Path(description="Of what it is.")], name: AccountName, limits: NewQuota, service: Asked
) -> list[QuotaUse]:
    """For administrators: a quota in place of what there was; one without limits takes it away."""
    service.people.set_quota(kind, name, limits)
    return service.operations.quotas(anew=True)


audit_router = APIRouter(prefix="/v1", tags=["audit"], responses=documented(401, 403, 421, 422, 500, 503))

MEDIA_TYPE: Final = "application/x-ndjson"
_ENTRY: Final = (
    '{"id":12,"at":"2026-05-01T12:00:00Z","who":"ada","user":1,"token":3,"what":"delete","target":"sweep 7",'
    '"detail":"request 31","address":"10.0.0.7","request":"0b6f2c5e2f574a539d0a3f6f1b0c8a11"}\n'
)


@audit_router.get(
    "/audit",
    summary="Who did what, for administrators",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "A line of JSON for each entry, the oldest first.",
            "content": {MEDIA_TYPE: {"schema": {"type": "string"}, "example": _ENTRY}},
        }
    },
)
def audit(
    service: Asked,
    after: Annotated[int, Query(ge=0, le=2**53, description="Only what came after the entry of this number.")] = 0,
) -> StreamingResponse:
    """What was submitted, asked for and remarked, who logged in, and what became of users, projects and tokens."""
    return StreamingResponse(_lines(service.accounts.audit(after)), media_type=MEDIA_TYPE)


def _lines(entries: Iterator[AuditEntry]) -> Iterator[bytes]:
    for one in entries:
        yield one.model_dump_json().encode() + b"\n"
