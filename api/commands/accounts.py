"""`users`, `projects`, `tokens` and `audit`: by REST, or in the database of a home."""

from typing import TYPE_CHECKING, Annotated, Literal

import typer
from pydantic import ValidationError

from api.commands.terminal import HOME, Home, Json, Token, Url, err, managing, out, print_json, print_rows, write_json
from orchestrator.views.accounts import Quota, QuotaKind, QuotaUse, Role, Scope

if TYPE_CHECKING:
    from api.client import PeopleClient
    from orchestrator.service.accounts import People
    from orchestrator.views.accounts import UserView

Named = Annotated[str | None, typer.Argument(metavar="NAME", help="Whom, or what, it is about.", show_default=False)]


Slots = Annotated[int | None, typer.Option(help="With `quota`: slots at once.", show_default=False)]
GpuHours = Annotated[float | None, typer.Option(help="With `quota`: hours of GPUs.", show_default=False)]
CpuHours = Annotated[
    float | None,
    typer.Option(help="With `quota`: hours of CPU cores, of trainings that hold no GPU.", show_default=False),
]
Days = Annotated[
    int | None, typer.Option(help="With `quota`: the hours are those of so many last days.", show_default="of all time")
]
Unlimited = Annotated[bool, typer.Option("--unlimited", help="With `quota`: take the quota away.")]


def users(
    action: Annotated[
        Literal["list", "add", "role", "join", "leave", "disable", "enable", "quota", "link", "unlink"],
        typer.Argument(
            help="What to do; `role` takes --role, `join` --role and --project, `leave` --project; `quota` shows what "
            "is used, and sets what its options name; `link` takes --subject, and `unlink` undoes it."
        ),
    ] = "list",
    name: Named = None,
    role: Annotated[Role, typer.Option(help="viewer looks, member submits and steers, admin does all.")] = Role.MEMBER,
    project: Annotated[
        str | None, typer.Option(help="In which project; a user is added to `main` unless this names another.")
    ] = None,
    slots: Slots = None,
    gpu_hours: GpuHours = None,
    cpu_hours: CpuHours = None,
    days: Days = None,
    unlimited: Unlimited = False,
    subject: Annotated[
        str | None,
        typer.Option(
            help="With `link`: by which number or name a provider of OpenID Connect knows the user, its `sub`.",
            show_default=False,
        ),
    ] = None,
    issuer: Annotated[
        str | None, typer.Option(help="With `link`: the provider.", show_default="that of METRICSWEEP_OIDC_ISSUER")
    ] = None,
    as_json: Json = False,
    url: Url = None,
    token: Token = None,
    home: Home = HOME,
) -> None:
    """List users, or add one, change role, projects or quota, or disable it; of the home, or by --url."""
    with managing(url, token, home) as people:
        if action == "quota":
            limits = {"slots": slots, "gpu_hours": gpu_hours, "cpu_hours": cpu_hours, "days": days}
            _quota(people, "user", name, limits, unlimited=unlimited, as_json=as_json)
            return
        if action != "list":
            who = _needed(name, "NAME")
            match action:
                case "add":
                    people.add_user(who, role, None if role is Role.ADMIN and project is None else project or "main")
                case "role":
                    people.set_role(who, role)
                case "join":
                    people.join(who, _needed(project, "--project"), role)
                case "leave":
                    people.leave(who, _needed(project, "--project"))
                case "link":
                    people.logins.link(who, _needed(subject, "--subject"), issuer)
                case "unlink":
                    people.logins.unlink(who)
                case _:
                    people.disable(who, disabled=action == "disable")
        known = [one for one in people.users() if name in (None, one.name)]
    _show(known, as_json=as_json)


def projects(
    action: Annotated[
        Literal["list", "add", "open", "close", "quota"],
        typer.Argument(
            help="`add` makes one that its members see; `open` shows it to every user, `close` no more; `quota` shows "
            "what is used, and sets what its options name."
        ),
    ] = "list",
    name: Named = None,
    everyone: Annotated[bool, typer.Option("--open", help="With `add`: every user sees it.")] = False,
    slots: Slots = None,
    gpu_hours: GpuHours = None,
    cpu_hours: CpuHours = None,
    days: Days = None,
    unlimited: Unlimited = False,
    as_json: Json = False,
    url: Url = None,
    token: Token = None,
    home: Home = HOME,
) -> None:
    """List projects, or add one, open it to all users, close it, or set its quota; of the home, or by --url."""
    with managing(url, token, home) as people:
        if action == "quota":
            limits = {"slots": slots, "gpu_hours": gpu_hours, "cpu_hours": cpu_hours, "days": days}
            _quota(people, "project", name, limits, unlimited=unlimited, as_json=as_json)
            return
        if action == "add":
            people.add_project(_needed(name, "NAME"), everyone=everyone)
        elif action != "list":
            people.open_project(_needed(name, "NAME"), everyone=action == "open")
        known = [one for one in people.projects() if name in (None, one.name)]
    if as_json:
        print_json(known)
        return
    print_rows(
        [
            {
                "project": one.name,
                "seen by": "every user" if one.open else "its members",
                "members": ", ".join(one.members),
            }
            for one in known
        ]
    )


def _show(known: "list[UserView]", *, as_json: bool) -> None:
    if as_json:
        print_json(known)
    elif known:
        print_rows(
            [
                {
                    "user": one.name,
                    "role": one.role,
                    "projects": ", ".join(f"{place.project} ({place.role})" for place in one.projects),
                    "logs in as": one.login.subject if one.login else "",
                    "disabled": f"{one.disabled:%Y-%m-%d %H:%M} UTC" if one.disabled else "",
                }
                for one in known
            ]
        )
    else:
        out.print("no users: whoever holds a token of the server does everything")


def _quota(
    people: "People | PeopleClient",
    kind: "QuotaKind",
    name: str | None,
    limits: dict[str, float | None],
    *,
    unlimited: bool,
    as_json: bool,
) -> None:
    quota(people, kind, name, limits, unlimited=unlimited)
    show_quotas([one for one in people.quotas(kind) if name in (None, one.name)], kind, as_json=as_json)


def _needed(given: str | None, what: str) -> str:
    if given is None:
        raise typer.BadParameter(f"{what} is missing")
    return given


def tokens(
    action: Annotated[
        Literal["list", "add", "revoke"],
        typer.Argument(help="`add` makes one of a user, `revoke` ends the one with a number."),
    ] = "list",
    which: Annotated[
        str | None,
        typer.Argument(
            metavar="WHICH", help="The user, or the token's number; with --url oneself.", show_default=False
        ),
    ] = None,
    name: Annotated[str, typer.Option(help="What it is for, to tell it from others.")] = "token",
    scope: Annotated[
        Scope,
        typer.Option(help="At most what its user may: read, write, admin; or mlflow or metrics, and nothing else."),
    ] = Scope.WRITE,
    days: Annotated[float, typer.Option(min=0, max=3_650, help="It opens for so many days; 0: until revoked.")] = 90,
    as_json: Json = False,
    url: Url = None,
    token: Token = None,
    home: Home = HOME,
) -> None:
    """List tokens of users, or make one, which is shown once, or revoke one; of the home, or by --url."""
    if which is None and (action == "revoke" or (action == "add" and not url)):
        raise typer.BadParameter("say whose token, or which")
    with managing(url, token, home) as people:
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
    if as_json:
        print_json(known)
    elif known:
        print_rows(
            [
                {
                    "id": str(one.id),
                    "user": one.user,
                    "name": one.name,
                    "scope": one.scope,
                    "expires": f"{one.expires:%Y-%m-%d %H:%M} UTC" if one.expires else "never",
                    "revoked": f"{one.revoked:%Y-%m-%d %H:%M} UTC" if one.revoked else "",
                }
                for one in known
            ],
            numbers=("id",),
        )
    else:
        err.print("no tokens")


def quota(
    people: "People | PeopleClient",
    kind: QuotaKind,
    name: str | None,
    limits: dict[str, float | None],
    *,
    unlimited: bool,
) -> None:
    """Give a user or a project the quota that is named by options; without any nothing changes."""
    given = {what: most for what, most in limits.items() if most is not None}
    if unlimited and given:
        raise typer.BadParameter("--unlimited takes the quota away; it stands alone")
    if not given and not unlimited:
        return
    if "days" in given and not {"gpu_hours", "cpu_hours"} & set(given):
        raise typer.BadParameter("--days says in which time hours are counted; --gpu-hours or --cpu-hours is missing")
    if name is None:
        raise typer.BadParameter("NAME is missing")
    try:
        people.set_quota(kind, name, Quota.model_validate(given))
    except ValidationError as error:
        said = "; ".join(f"--{str(one['loc'][0]).replace('_', '-')}: {one['msg']}" for one in error.errors())
        raise typer.BadParameter(said) from None


def show_quotas(uses: list[QuotaUse], kind: QuotaKind, *, as_json: bool) -> None:
    """Print quotas with what is used."""
    if as_json:
        print_json(uses)
    elif uses:
        print_rows([_quota_row(kind, one) for one in uses], ("slots", "GPU hours", "CPU hours"))
    else:
        out.print(f"no {kind}s")


def _quota_row(kind: QuotaKind, one: QuotaUse) -> dict[str, str]:
    names = ("slots", "GPU hours", "CPU hours")
    shares = {name: _used(used, most) for name, (_, used, most) in zip(names, one.amounts, strict=True)}
    return {kind: one.name, **shares, "counted": "all" if one.days is None else f"{one.days} days"}


def _used(used: float, most: float | None) -> str:
    return f"{used:.4g}" + ("" if most is None else f" of {most:.6g}")


def audit(
    after: Annotated[int, typer.Option(min=0, help="Only what came after the entry of this number.")] = 0,
    url: Url = None,
    token: Token = None,
    home: Home = HOME,
) -> None:
    """Print who did what when, from where, a line of JSON each; of the home, or by --url."""
    with managing(url, token, home) as people:
        for one in people.audit(after):
            write_json(one.model_dump_json())
