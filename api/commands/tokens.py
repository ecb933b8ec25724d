"""`tokens`: by which users ask. What opens is shown once, when it is made."""

from typing import Annotated, Literal

import typer

from api.commands.options import HOME, Home, Json, settings
from api.commands.terminal import err, out, print_json, print_rows
from orchestrator.views.callers import Scope


def tokens(
    action: Annotated[
        Literal["list", "add", "revoke"],
        typer.Argument(help="`add` makes one of a user, `revoke` ends the one with a number."),
    ] = "list",
    which: Annotated[
        str | None, typer.Argument(metavar="WHICH", help="The user, or the token's number.", show_default=False)
    ] = None,
    name: Annotated[str, typer.Option(help="What it is for, to tell it from others.")] = "token",
    scope: Annotated[
        Scope,
        typer.Option(help="At most what its user may: read, write, admin; or mlflow or metrics, and nothing else."),
    ] = Scope.WRITE,
    days: Annotated[float, typer.Option(min=0, max=3_650, help="It opens for so many days; 0: until revoked.")] = 90,
    as_json: Json = False,
    home: Home = HOME,
) -> None:
    """List tokens of users, or make one, which is shown once, or revoke one; on the machine of the home."""
    from orchestrator.service.owner import owning

    if action != "list" and which is None:
        raise typer.BadParameter("say whose token, or which")
    with owning(settings(home=home)) as owner:
        if action == "add":
            number, text = owner.add_token(which or "", name, scope, days or None)
            err.print(f"token {number} of {which}, shown this once:")
            out.print(text)
            return
        if action == "revoke":
            if not (which or "").isascii() or not (which or "").isdigit():
                raise typer.BadParameter(f"expected a token's number, found {which!r}")
            owner.revoke(int(which or 0))
            which = None
        known = owner.tokens(which)
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
