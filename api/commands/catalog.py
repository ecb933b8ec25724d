"""`catalog`: the parts that a recipe may name."""

from typing import TYPE_CHECKING, Annotated

import typer

from api.commands.options import HOME, Home, Json, Token, Url, connect
from api.commands.terminal import WRONG, err, out, print_json, print_rows
from workers.catalog import unknown

if TYPE_CHECKING:
    from workers.catalog import Catalog, Entry, Parameter


def catalog(
    kind: Annotated[str | None, typer.Argument(help="Only parts of this kind, such as loss.")] = None,
    name: Annotated[str | None, typer.Argument(help="One part of that kind, with its hyper-parameters.")] = None,
    as_json: Json = False,
    url: Url = None,
    token: Token = None,
    home: Home = HOME,
) -> None:
    """List the parts that a recipe may name, or show one with its hyper-parameters."""
    with connect(url, token, home) as client:
        found = _chosen(client.catalog(), kind, name)
    if as_json:
        print_json(found)
    elif name:
        for entry in found:
            _show(entry)
    else:
        print_rows(
            [{"kind": one.kind, "name": one.name, "label": one.label, "paper": one.paper or ""} for one in found]
        )


def _chosen(whole: "Catalog", kind: str | None, name: str | None) -> "list[Entry]":
    kinds = list(dict.fromkeys(entry.kind for entry in whole.entries))
    if kind and kind not in kinds:
        err.print(f"metricsweep: {unknown('kind', kind, kinds)}")
        raise typer.Exit(WRONG)
    found = [entry for entry in whole.entries if kind in (None, entry.kind) and name in (None, entry.name)]
    if not found:
        err.print(f"metricsweep: {unknown(kind or 'part', name or '', whole.names(kind) if kind else [])}")
        raise typer.Exit(WRONG)
    return found


def _show(entry: "Entry") -> None:
    out.print(f"{entry.kind} {entry.name}: {entry.label}" + (f" ({entry.paper})" if entry.paper else ""))
    if entry.doc:
        out.print(f"  {entry.doc}")
    for parameter in entry.parameters:
        out.print(f"  {parameter.name}: {_described(parameter)}")


def _described(parameter: "Parameter") -> str:
    choices = f" of {', '.join(map(str, parameter.choices))}" if parameter.choices else ""
    optional = " or null" if parameter.optional else ""
    default = "required" if parameter.required else f"default {parameter.default}"
    type_ = f"a {parameter.kind}" if parameter.type == "part" else parameter.type
    return f"{type_}{choices}{optional}, {default}"
