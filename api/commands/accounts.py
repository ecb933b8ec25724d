"""Commands for users, projects, tokens, share links and the audit log: through REST, or in the database of a home."""

import json
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer
from pydantic import ValidationError

from api.commands.terminal import Json, Server, SweepId, err, out, print_list, write_json
from orchestrator.views.accounts import (
    MOST_SHARE_DAYS,
    SHARE_DAYS,
    ProjectView,
    Quota,
    QuotaKind,
    QuotaUse,
    Role,
    Scope,
    ShareView,
    TokenView,
    UserView,
)

if TYPE_CHECKING:
    from api.client import PeopleClient
    from orchestrator.service.accounts import People

_AMOUNTS: Final = ("slots", "GPU hours", "CPU hours")

Named = Annotated[str | None, typer.Argument(metavar="NAME", help="The user or project.", show_default=False)]
Slots = Annotated[int | None, typer.Option(help="With `quota`: slots at once.", show_default=False)]
GpuHours = Annotated[float | None, typer.Option(help="With `quota`: GPU hours.", show_default=False)]
CpuHours = Annotated[
    float | None,
    typer.Option(help="With `quota`: CPU hours, counted for trainings without a GPU.", show_default=False),
]
Days = Annotated[
    int | None, typer.Option(help="With `quota`: count only the hours of this many last days.", show_default="all time")
]
Unlimited = Annotated[bool, typer.Option("--unlimited", help="With `quota`: remove the quota.")]


def users(
    server: Server,
    action: Annotated[
        Literal["list", "add", "role", "join", "leave", "disable", "enable", "quota", "link", "unlink"],
        typer.Argument(
            help="`add` and `join` take --role and --project, `role` --role, `leave` --project, `link` --subject. "
            "`quota` prints limits and use; with its options it replaces the quota."
        ),
    ] = "list",
    name: Named = None,
    role: Annotated[
        Role, typer.Option(help="A viewer reads; a member also submits and steers sweeps; an admin may do everything.")
    ] = Role.MEMBER,
    project: Annotated[str | None, typer.Option(help="The project; `add` uses `main` by default.")] = None,
    slots: Slots = None,
    gpu_hours: GpuHours = None,
    cpu_hours: CpuHours = None,
    days: Days = None,
    unlimited: Unlimited = False,
    subject: Annotated[
        str | None,
        typer.Option(
            help="With `link`: the subject (`sub`) of the user at the OpenID Connect provider.",
            show_default=False,
        ),
    ] = None,
    issuer: Annotated[
        str | None,
        typer.Option(help="With `link`: the issuer address of the provider.", show_default="METRICSWEEP_OIDC_ISSUER"),
    ] = None,
    as_json: Json = False,
) -> None:
    """List and manage users: roles, projects, quotas and logins.

    Without --url, the command uses the database of the home folder; no server is needed.
    """
    with server.managing() as people:
        if action == "quota":
            limits = {"slots": slots, "gpu_hours": gpu_hours, "cpu_hours": cpu_hours, "days": days}
            _quota(people, "user", name, limits, unlimited=unlimited, as_json=as_json)
            return
        if action != "list":
            user_name = _needed(name, "NAME")
            match action:
                case "add":
                    people.add_user(
                        user_name, role, None if role is Role.ADMIN and project is None else project or "main"
                    )
                case "role":
                    people.set_role(user_name, role)
                case "join":
                    people.join(user_name, _needed(project, "--project"), role)
                case "leave":
                    people.leave(user_name, _needed(project, "--project"))
                case "link":
                    people.logins.link(user_name, _needed(subject, "--subject"), issuer)
                case "unlink":
                    people.logins.unlink(user_name)
                case _:
                    people.disable(user_name, disabled=action == "disable")
        known = [user for user in people.users() if name in (None, user.name)]
    print_list(known, as_json, _user_row, (), "no users: a token of the server allows everything")


def _user_row(user: UserView) -> dict[str, str]:
    return {
        "user": user.name,
        "role": user.role,
        "projects": ", ".join(f"{place.project} ({place.role})" for place in user.projects),
        "logs in as": user.login.subject if user.login else "",
        "disabled": f"{user.disabled:%Y-%m-%d %H:%M} UTC" if user.disabled else "",
    }


def projects(
    server: Server,
    action: Annotated[
        Literal["list", "add", "open", "close", "quota"],
        typer.Argument(
            help="`add` makes a project; `open` shows it to every user, `close` only to its members. "
            "`quota` prints limits and use; with its options it replaces the quota."
        ),
    ] = "list",
    name: Named = None,
    everyone: Annotated[bool, typer.Option("--open", help="With `add`: show it to every user.")] = False,
    slots: Slots = None,
    gpu_hours: GpuHours = None,
    cpu_hours: CpuHours = None,
    days: Days = None,
    unlimited: Unlimited = False,
    as_json: Json = False,
) -> None:
    """List and manage projects: who sees them, and their quotas.

    Without --url, the command uses the database of the home folder; no server is needed.
    """
    with server.managing() as people:
        if action == "quota":
            limits = {"slots": slots, "gpu_hours": gpu_hours, "cpu_hours": cpu_hours, "days": days}
            _quota(people, "project", name, limits, unlimited=unlimited, as_json=as_json)
            return
        if action == "add":
            people.add_project(_needed(name, "NAME"), everyone=everyone)
        elif action != "list":
            people.open_project(_needed(name, "NAME"), everyone=action == "open")
        known = [project for project in people.projects() if name in (None, project.name)]
    print_list(known, as_json, _project_row, (), "no such project")


def _project_row(project: ProjectView) -> dict[str, str]:
    seen_by = "every user" if project.open else "its members"
    return {"project": project.name, "seen by": seen_by, "members": ", ".join(project.members)}


def _needed(value: str | None, what: str) -> str:
    if value is None:
        raise typer.BadParameter(f"the argument {what} is missing")
    return value


def tokens(
    server: Server,
    action: Annotated[
        Literal["list", "add", "revoke"],
        typer.Argument(help="`add` makes a token for a user; `revoke` ends the token with a number."),
    ] = "list",
    which: Annotated[
        str | None,
        typer.Argument(
            metavar="WHICH",
            help="With `add`, the user (with --url, by default you); with `revoke`, the number of the token.",
            show_default=False,
        ),
    ] = None,
    name: Annotated[str, typer.Option(help="A name that says what the token is for.")] = "token",
    scope: Annotated[
        Scope,
        typer.Option(
            help="What the token may do, within the rights of its user; mlflow and metrics open nothing else."
        ),
    ] = Scope.WRITE,
    days: Annotated[
        float, typer.Option(min=0, max=3_650, help="Days until it expires; 0 means until it is revoked.")
    ] = 90,
    as_json: Json = False,
) -> None:
    """List, make and revoke tokens; a new token is shown once.

    Without --url, the command uses the database of the home folder; no server is needed.
    """
    if which is None and (action == "revoke" or (action == "add" and not server.url)):
        raise typer.BadParameter("say whose token, or which")
    with server.managing() as people:
        if action == "add":
            made = people.tokens.add(which, name, scope, days or None)
            err.print(f"token {made.id} of {made.user}, shown this once:")
            out.print(made.token)
            return
        if action == "revoke":
            if not (which or "").isascii() or not (which or "").isdigit():
                raise typer.BadParameter(f"expected a token's number, found {which!r}")
            known = [people.tokens.revoke(int(which or 0))]
        else:
            known = list(people.tokens.of(which))
    print_list(known, as_json, _token_row, ("id",), "no tokens")


def _token_row(token: TokenView) -> dict[str, str]:
    return {
        "id": str(token.id),
        "user": token.user,
        "name": token.name,
        "scope": token.scope,
        "expires": f"{token.expires:%Y-%m-%d %H:%M} UTC" if token.expires else "never",
        "revoked": f"{token.revoked:%Y-%m-%d %H:%M} UTC" if token.revoked else "",
    }


def share(
    server: Server,
    number: SweepId,
    days: Annotated[
        float, typer.Option(min=0.01, max=MOST_SHARE_DAYS, help="Days until the link expires.")
    ] = SHARE_DAYS,
    listed: Annotated[bool, typer.Option("--list", help="List the sweep's valid links instead.")] = False,
    revoke: Annotated[
        int | None,
        typer.Option(min=1, metavar="LINK", help="Revoke the link with this number instead.", show_default=False),
    ] = None,
    as_json: Json = False,
) -> None:
    """Print a link that shows a sweep to anyone, read-only and without an account; it is shown once."""
    with server.connect() as client:
        if not listed and revoke is None:
            url = client.share(number, days)
            if as_json:
                write_json(json.dumps({"url": url}))
            else:
                out.print(url)
            return
        links = client.shares(number) if revoke is None else [client.revoke_share(number, revoke)]
    print_list(links, as_json, _link_row, ("link",), "no links")


def _link_row(link: ShareView) -> dict[str, str]:
    return {
        "link": str(link.id),
        "by": link.actor or "",
        "made": f"{link.created:%Y-%m-%d %H:%M} UTC",
        "expires": f"{link.expires:%Y-%m-%d %H:%M} UTC",
    }


def _quota(
    people: "People | PeopleClient",
    kind: QuotaKind,
    name: str | None,
    limits: dict[str, float | None],
    *,
    unlimited: bool,
    as_json: bool,
) -> None:
    """Set the quota that the options name, if any, and print quotas with what is used of them."""
    given = {what: most for what, most in limits.items() if most is not None}
    if unlimited and given:
        raise typer.BadParameter("--unlimited removes the quota; do not combine it with limits")
    if "days" in given and not {"gpu_hours", "cpu_hours"} & set(given):
        raise typer.BadParameter("--days is the period in which hours are counted; give --gpu-hours or --cpu-hours too")
    if given or unlimited:
        try:
            people.set_quota(kind, _needed(name, "NAME"), Quota.model_validate(given))
        except ValidationError as error:
            faults = [f"--{str(fault['loc'][0]).replace('_', '-')}: {fault['msg']}" for fault in error.errors()]
            raise typer.BadParameter("; ".join(faults)) from None
    uses = [quota for quota in people.quotas(kind) if name in (None, quota.name)]
    print_list(uses, as_json, lambda use: _quota_row(kind, use), _AMOUNTS, f"no {kind}s")


def _quota_row(kind: QuotaKind, use: QuotaUse) -> dict[str, str]:
    row: dict[str, str] = {kind: use.name}
    for name, (_, used, most) in zip(_AMOUNTS, use.amounts, strict=True):
        row[name] = f"{used:.4g}" + ("" if most is None else f" of {most:.6g}")
    return row | {"counted": "all" if use.days is None else f"{use.days} days"}


def audit(
    server: Server, after: Annotated[int, typer.Option(min=0, help="Only entries after this number.")] = 0
) -> None:
    """Print the audit log, one JSON object per line.

    Without --url, the command uses the database of the home folder; no server is needed.
    """
    with server.managing() as people:
        for entry in people.audit(after):
            write_json(entry.model_dump_json())
