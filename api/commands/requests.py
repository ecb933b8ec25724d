"""`cancel`, `retry`, `pause`, `resume`, `priority`, `extend` and `delete`: what is asked of a sweep."""

from typing import Annotated, Literal

import typer

from api.commands.options import DEFAULT_URL, Changes, Only, SpecFile, SweepId, Token, Url, Without, connect, read_spec
from api.commands.terminal import out

Trial = Annotated[int | None, typer.Option(min=1, help="Only this trial.")]
Cell = Annotated[int | None, typer.Option(min=0, help="Only the trials of this cell.")]


def cancel(
    id: SweepId,  # noqa: A002
    trial: Trial = None,
    cell: Cell = None,
    url: Url = DEFAULT_URL,
    token: Token = None,
) -> None:
    """Ask that a sweep be stopped; trials that have ended keep their results."""
    with connect(url, token) as client:
        found = client.cancel(id, trial, cell)
    what = f"trial {trial} of sweep" if trial else f"cell {cell} of sweep" if cell is not None else "sweep"
    out.print(f"{what} {found.id} {found.name}: asked to stop; the sweep is {found.state} now")


def retry(
    id: SweepId,  # noqa: A002
    trial: Trial = None,
    cell: Cell = None,
    only: Annotated[
        Literal["failed", "all"] | None,
        typer.Option(help="`failed`: not those that were cancelled; `all`: pruned ones too."),
    ] = None,
    url: Url = DEFAULT_URL,
    token: Token = None,
) -> None:
    """Ask that a sweep's failed and cancelled trials be trained again; finished ones are kept."""
    with connect(url, token) as client:
        found = client.retry(id, trial, cell, only)
    what = (
        f"trial {trial}"
        if trial
        else {"failed": "its failed trials"}.get(only or "", "its failed and cancelled trials")
    )
    out.print(f"sweep {found.id} {found.name}: asked to retry {what}; watch it with `metricsweep watch {found.id}`")


def pause(id: SweepId, url: Url = DEFAULT_URL, token: Token = None) -> None:  # noqa: A002
    """Ask that nothing more of a sweep be started; what trains goes on to its end."""
    with connect(url, token) as client:
        found = client.pause(id)
    out.print(f"sweep {found.id} {found.name}: asked to pause; `metricsweep resume {found.id}` lets it go on")


def resume(id: SweepId, url: Url = DEFAULT_URL, token: Token = None) -> None:  # noqa: A002
    """Ask that a paused sweep go on."""
    with connect(url, token) as client:
        found = client.resume(id)
    out.print(f"sweep {found.id} {found.name}: asked to go on")


def priority(
    id: SweepId,  # noqa: A002
    value: Annotated[int, typer.Argument(min=-100, max=100, help="0 is the usual; higher is drawn first.")],
    url: Url = DEFAULT_URL,
    token: Token = None,
) -> None:
    """Set a sweep's priority; nothing that trains is stopped for it."""
    with connect(url, token) as client:
        found = client.prioritize(id, value)
    out.print(f"sweep {found.id} {found.name}: asked for priority {value}")


def extend(
    id: SweepId,  # noqa: A002
    file: SpecFile,
    changes: Changes = None,
    only: Only = None,
    without: Without = None,
    url: Url = DEFAULT_URL,
    token: Token = None,
) -> None:
    """Extend a sweep to a wider spec (more seeds, a new loss); only what is new is trained."""
    body = read_spec(file, changes, only, without)
    with connect(url, token) as client:
        found = client.extend(id, body)
    out.print(f"sweep {found.id} {found.name}: asked to grow; watch it with `metricsweep watch {found.id}`")


def delete(
    id: SweepId,  # noqa: A002
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    url: Url = DEFAULT_URL,
    token: Token = None,
) -> None:
    """Delete an ended sweep, with checkpoints, logs and results that no other sweep uses."""
    with connect(url, token) as client:
        found = client.sweep(id)
        if not yes:
            said = f"Delete sweep {id} {found.name} with its {found.total} trials? What others share is kept."
            typer.confirm(said, abort=True)
        client.delete(id, found.name)
    out.print(f"sweep {id} {found.name}: asked to be deleted")
