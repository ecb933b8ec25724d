"""`note` and `tag`: what people say of a sweep, a cell or a trial."""

from typing import TYPE_CHECKING, Annotated

import typer

from api.commands.options import HOME, Home, Json, Token, Url, connect
from api.commands.place import IsTrial, TypedPlace, Where, placed
from api.commands.terminal import err, out, print_json

if TYPE_CHECKING:
    from orchestrator.views.remarks import Remark


def note(
    where: Where,
    text: Annotated[
        str | None, typer.Argument(metavar="TEXT", help='The note; "" removes it. Without it the note is printed.')
    ] = None,
    trial: IsTrial = False,
    as_json: Json = False,
    url: Url = None,
    token: Token = None,
    home: Home = HOME,
) -> None:
    """Note something of a sweep, a cell or a trial, or print its note."""
    place = placed(where, trial=trial)
    with connect(url, token, home) as client:
        remark = client.remark(place.path) if text is None else client.put_remark(place.path, note=text)
    if as_json:
        print_json(remark)
    elif text is None:
        _print_note(place, remark)
    else:
        out.print(f"{place}: {'noted' if remark.note else 'has no note now'}")


def tag(
    where: Where,
    tags: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TAG | -TAG]...", help="Tags to add; with - before it one goes. Without: print them."),
    ] = None,
    trial: IsTrial = False,
    as_json: Json = False,
    url: Url = None,
    token: Token = None,
    home: Home = HOME,
) -> None:
    """Tag a sweep, a cell or a trial; `list --tag` and the filter `tag:paper` find it by these."""
    place = placed(where, trial=trial)
    words = [word for one in tags or () for word in one.split(",") if word.strip()]
    wrong = next((word for word in words if word.startswith("--") or word == "-"), None)
    if wrong is not None:
        raise typer.BadParameter(f"there is no option {wrong}; a tag is added by `paper` and removed by `-paper`")
    removed = [word[1:].strip() for word in words if word.startswith("-")]
    added = [word.strip() for word in words if not word.startswith("-")]
    with connect(url, token, home) as client:
        given = {key: said for key, said in (("added", added), ("removed", removed)) if said}
        remark = client.put_remark(place.path, **given) if given else client.remark(place.path)
    if as_json:
        print_json(remark)
    else:
        out.print(f"{place}: {', '.join(remark.tags) or 'no tags'}")


def _print_note(place: TypedPlace, remark: "Remark") -> None:
    if not remark.note:
        err.print(f"{place} has no note")
        return
    out.print(remark.note)
    if remark.actor:
        err.print(f"by {remark.actor}" + (f", {remark.changed:%Y-%m-%d %H:%M} UTC" if remark.changed else ""))
