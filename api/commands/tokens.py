"""`tokens`: by which users ask. What opens is shown once, when it is made."""

from typing import Annotated, Literal

import typer

from api.commands.options import HOME, Home, Json, Token, Url, managing
from api.commands.terminal import err, out, print_json, print_rows
from orchestrator.views.callers import Scope


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
