"""Commands that ask something of a sweep: `cancel`, `retry`, `pause` and so on; `requests` lists what was asked."""

import time
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from api.commands.options import (
    HOME,
    Changes,
    Home,
    Json,
    Only,
    SweepId,
    Token,
    Url,
    Without,
    connect,
    read_spec,
    readable,
)
from api.commands.terminal import WRONG, err, out, print_json, print_rows
from orchestrator.host.printable import one_line

if TYPE_CHECKING:
    from api.client import Client
    from orchestrator.views.requests import RequestView

Trial = Annotated[int | None, typer.Option(min=1, help="Only this trial.")]
Cell = Annotated[int | None, typer.Option(min=0, help="Only the trials of this cell.")]

PATIENCE_SECONDS: Final = 5.0
"""How long a command waits to hear what became of its request: a conductor that is free takes half a second."""


def cancel(
    number: SweepId,
    trial: Trial = None,
    cell: Cell = None,
    url: Url = None,
    token: Token = None,
    home: Home = HOME,
) -> None:
    """Ask that a sweep be stopped; trials that have ended keep their results."""
    with connect(url, token, home) as client:
        asked = client.cancel(number, trial, cell)
        found = asked.sweep
        what = f"trial {trial} of sweep" if trial else f"cell {cell} of sweep" if cell is not None else "sweep"
        out.print(f"{what} {found.id} {found.name}: asked to stop; the sweep is {found.state} now")
        follow(client, asked.request)


def retry(
    number: SweepId,
    trial: Trial = None,
    cell: Cell = None,
    only: Annotated[
        Literal["failed", "all"] | None,
        typer.Option(help="`failed`: not those that were cancelled; `all`: pruned ones too."),
    ] = None,
    url: Url = None,
    token: Token = None,
    home: Home = HOME,
) -> None:
    """Ask that a sweep's failed and cancelled trials be trained again; finished ones are kept."""
    with connect(url, token, home) as client:
        asked = client.retry(number, trial, cell, only)
        found, which = asked.sweep, {"failed": "its failed trials", "all": "its failed, cancelled and pruned trials"}
        what = f"trial {trial}" if trial else which.get(only or "", "its failed and cancelled trials")
        out.print(f"sweep {found.id} {found.name}: asked to retry {what}; watch it with `metricsweep watch {found.id}`")
        follow(client, asked.request)


def pause(number: SweepId, url: Url = None, token: Token = None, home: Home = HOME) -> None:
    """Ask that nothing more of a sweep be started; what trains goes on to its end."""
    with connect(url, token, home) as client:
        asked = client.pause(number)
        found = asked.sweep
        out.print(f"sweep {found.id} {found.name}: asked to pause; `metricsweep resume {found.id}` lets it go on")
        follow(client, asked.request)


def resume(number: SweepId, url: Url = None, token: Token = None, home: Home = HOME) -> None:
    """Ask that a paused sweep go on."""
    with connect(url, token, home) as client:
        asked = client.resume(number)
        out.print(f"sweep {asked.sweep.id} {asked.sweep.name}: asked to go on")
        follow(client, asked.request)


def priority(
    number: SweepId,
    value: Annotated[int, typer.Argument(min=-100, max=100, help="0 is the usual; higher is drawn first.")],
    url: Url = None,
    token: Token = None,
    home: Home = HOME,
) -> None:
    """Set a sweep's priority; nothing that trains is stopped for it."""
    with connect(url, token, home) as client:
        asked = client.prioritize(number, value)
        out.print(f"sweep {asked.sweep.id} {asked.sweep.name}: asked for priority {value}")
        follow(client, asked.request)


def extend(
    number: SweepId,
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", callback=readable, help="A wider spec; - reads standard input.")
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            help="In place of FILE: add this metric, such as recall@16, to the sweep's spec as a column of its tables. "
            "May be given several times.",
            metavar="NAME",
        ),
    ] = None,
    changes: Changes = None,
    only: Only = None,
    without: Without = None,
    url: Url = None,
    token: Token = None,
    home: Home = HOME,
) -> None:
    """Extend a sweep to a wider spec (more seeds, a new loss); only what is new is trained.

    Further metrics of what is trained already are evaluated of the weights that it kept.
    """
    if (file is None) == (not metric) or (file is None and (changes or only or without)):
        raise typer.BadParameter("expected FILE, or --metric without FILE, --set, --only and --without")
    with connect(url, token, home) as client:
        if file is not None:
            body = read_spec(file, changes, only, without)
        else:
            from orchestrator.service.offline import with_metrics

            known = client.sweep(number)
            body = with_metrics(known.text.encode(), known.spec, metric or ())
        asked = client.extend(number, body)
        sweep = asked.sweep
        out.print(f"sweep {sweep.id} {sweep.name}: asked to grow; watch it with `metricsweep watch {sweep.id}`")
        follow(client, asked.request)


def delete(
    number: SweepId,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    url: Url = None,
    token: Token = None,
    home: Home = HOME,
) -> None:
    """Delete an ended sweep, with checkpoints, logs and results that no other sweep uses."""
    with connect(url, token, home) as client:
        found = client.sweep(number)
        if not yes:
            said = f"Delete sweep {number} {found.name} with its {found.total} trials? What others share is kept."
            typer.confirm(one_line(said), abort=True)
        asked = client.delete(number, found.name)
        out.print(f"sweep {number} {found.name}: asked to be deleted")
        follow(client, asked.id)


def requests(
    number: SweepId,
    limit: Annotated[int, typer.Option(min=1, help="At most so many.")] = 50,
    as_json: Json = False,
    url: Url = None,
    token: Token = None,
    home: Home = HOME,
) -> None:
    """List what was asked of a sweep, newest first, and what became of it; also of a sweep that was deleted."""
    with connect(url, token, home) as client:
        found = list(islice(client.requests(number), limit))
    if as_json:
        print_json(found)
    elif found:
        print_rows([_row(one) for one in found], numbers=("request",))
    else:
        err.print(f"nothing was asked of sweep {number}")


def follow(client: "Client", request: int) -> None:
    """Say what became of a request, if that is known soon; one that was refused ends with 2."""
    until = time.monotonic() + PATIENCE_SECONDS
    found = client.request(request)
    while found.state == "waiting" and time.monotonic() < until:
        time.sleep(0.2)
        found = client.request(request)
    if found.state == "refused":
        err.print(f"metricsweep: request {found.id} was refused: {found.outcome}")
        raise typer.Exit(WRONG)
    waits = f"waits for the conductor; `metricsweep requests {found.sweep}` says what becomes of it"
    out.print(f"request {found.id}: {found.outcome or waits}")


def _row(one: "RequestView") -> dict[str, str]:
    part = f" trial {one.trial}" if one.trial else f" cell {one.cell}" if one.cell is not None else ""
    return {
        "request": str(one.id),
        "asked": f"{one.created:%Y-%m-%d %H:%M:%S} UTC",
        "by": one.actor or "",
        "what": f"{one.kind}{part}",
        "state": one.state,
        "outcome": one.outcome or "",
    }
