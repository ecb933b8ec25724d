"""Routes of projects: which there are, who sees them, and who is in them; for administrators."""

from typing import Annotated, Any, Final

from fastapi import APIRouter, Form, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from pydantic import BaseModel, ConfigDict, StrictBool

from api.dependencies import AccountName, Asked, Paged, UserName
from api.openapi import documented, shown
from api.routes.people import BACK, USER, FormName, Name, back
from orchestrator.views.accounts import ProjectView, UserView
from orchestrator.views.callers import Role
from orchestrator.views.pages import Page

router = APIRouter(prefix="/v1", tags=["people"], responses=documented(401, 403, 421, 422, 500, 503))
page = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)

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


@router.get("/projects", summary="List projects", responses=_PROJECTS | documented(404))
def projects(service: Asked, paging: Paged) -> Page[ProjectView]:
    """Which projects there are, the oldest first, and who is in them."""
    return paging.linked(service.people.projects_page(paging.cursor, paging.limit))


@router.post(
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


@router.get("/projects/{name}", summary="One project", responses=shown(PROJECT, "The project.") | documented(404))
def project(name: AccountName, service: Asked) -> ProjectView:
    """Who is in it, and whether every user sees it."""
    return service.people.project(name)


@router.patch(
    "/projects/{name}",
    summary="Open or close a project",
    responses=shown(PROJECT, "The project.") | documented(404, 413),
)
def change_project(name: AccountName, change: ProjectChange, service: Asked) -> ProjectView:
    """Have it be seen by every user, or by its members alone."""
    return service.people.open_project(name, everyone=change.open)


@router.put(
    "/projects/{name}/members/{user}",
    summary="Have a user be in a project",
    responses=shown(USER, "The user.") | documented(404, 413),
)
def join(name: AccountName, user: UserName, change: MembershipChange, service: Asked) -> UserView:
    """To look or to steer; who is in it already is given this place."""
    return service.people.join(user, name, change.role)


@router.delete(
    "/projects/{name}/members/{user}",
    summary="Have a user be in a project no more",
    responses=shown(USER | {"projects": []}, "The user.") | documented(404),
)
def leave(name: AccountName, user: UserName, service: Asked) -> UserView:
    """404 for who is not in it."""
    return service.people.leave(user, name)


@page.post(f"{BACK}/projects")
def project_added(service: Asked, name: FormName, everyone: Annotated[bool, Form()] = False) -> RedirectResponse:
    """The form that adds one."""
    service.people.add_project(name.strip(), everyone=everyone)
    return back(f"project-{name.strip()}")


@page.post(f"{BACK}/projects/{{name}}/open")
def project_opened(name: AccountName, service: Asked, everyone: Annotated[bool, Form()]) -> RedirectResponse:
    """The button beside a project."""
    service.people.open_project(name, everyone=everyone)
    return back(f"project-{name}")
