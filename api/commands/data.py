"""`data`: what the nodes' data roots have."""

from typing import Annotated

import typer

from api.commands.options import HOME, Home, Json, Token, Url, connect
from api.commands.terminal import WRONG, err, out, print_json, print_rows


def data(
    name: Annotated[
        str | None, typer.Argument(help="One data set or backbone, with what each node says of it.")
    ] = None,
    as_json: Json = False,
    url: Url = None,
    token: Token = None,
    home: Home = HOME,
) -> None:
    """List which data sets and weights the nodes have, or say what each of them has of one."""
    with connect(url, token, home) as client:
        every = client.data()
    findings = [finding for finding in every if name is None or name in finding.data.split()]
    if name and not findings:
        known = ", ".join(sorted({finding.data for finding in every})) or "nothing yet"
        err.print(f"metricsweep: no node has looked for {name!r}; looked for was {known}")
        raise typer.Exit(WRONG)
    if as_json:
        print_json(findings)
        return
    if not findings:
        err.print("no node has looked yet; a conductor has each do so once it is there")
        return
    print_rows([{"node": finding.host, "data": finding.data, "state": finding.state} for finding in findings])
    for finding in findings if name else ():
        if finding.said:
            out.print(f"\non {finding.host}: {finding.said}")
