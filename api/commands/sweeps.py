"""`submit` and `list`: the commands about sweeps."""

from collections.abc import Collection
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Final

import typer

from api.commands.options import HOME, Changes, Home, Json, Only, SpecFile, Token, Url, Without, connect, read_spec
from api.commands.previews import show_notes, show_preview, show_warnings
from api.commands.terminal import err, out, print_json, print_rows
from api.commands.watch import follow, verdict
from orchestrator.views.lifecycle import SweepState

if TYPE_CHECKING:
    from orchestrator.views.sweeps import SweepSummary

_LOOKED_AT: Final = 200  # sweeps, for one whose name is near


def submit(
    file: SpecFile,
    changes: Changes = None,
    only: Only = None,
    without: Without = None,
    watch: Annotated[bool, typer.Option("--watch", help="Stay until the sweep has ended.")] = False,
    key: Annotated[str | None, typer.Option(help="Idempotency key: the same key and spec submit once.")] = None,
    priority: Annotated[int, typer.Option(min=-100, max=100, help="Sweeps of higher priority are drawn first.")] = 0,
    project: Annotated[
        str | None, typer.Option(help="To which project, where there are several to choose from.", show_default=False)
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what the spec would become.")] = False,
    as_json: Json = False,
    url: Url = None,
    token: Token = None,
    home: Home = HOME,
) -> None:
    """Submit a spec; every problem of a wrong one is told at once."""
    body = read_spec(file, changes, only, without)
    with connect(url, token, home) as client:
        if dry_run:
            show_preview(client.preview(body, project), as_json)
            return
        if not as_json:
            show_preview(client.preview(body, project), as_json)
        submitted = client.submit(body, key, priority, project)
        if as_json:
            print_json(submitted)
            show_notes(submitted.notes)
            show_warnings(submitted.warnings)  # which without --json the preview has told
        else:
            known = "" if submitted.created else " (known by its key)"
            out.print(f"sweep {submitted.id}{known}  {client.url}/sweeps/{submitted.id}")
        if watch:
            console = err if as_json else out
            raise typer.Exit(verdict(follow(client, submitted.id, console), console))


def list_sweeps(
    state: Annotated[SweepState | None, typer.Option(help="Only sweeps in this state.")] = None,
    name: Annotated[str | None, typer.Option(help="Only sweeps of this name.")] = None,
    tag: Annotated[str | None, typer.Option(help="Only sweeps with this tag.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="At most so many.")] = 50,
    as_json: Json = False,
    url: Url = None,
    token: Token = None,
    home: Home = HOME,
) -> None:
    """List sweeps, newest first."""
    with connect(url, token, home) as client:
        sweeps = list(islice(client.sweeps(state, name, tag), limit))
        others = {one.name for one in islice(client.sweeps(), _LOOKED_AT)} if name and not sweeps else set()
    if as_json:
        print_json(sweeps)
    elif sweeps:
        tagged = any(sweep.tags for sweep in sweeps)
        print_rows([_row(sweep, tagged=tagged) for sweep in sweeps], numbers=("id", "done", "failed", "cancelled"))
    else:
        close = _near(name, others) if name else None
        meant = f"; did you mean {close!r}?" if close else ""
        asked = state or name or tag
        err.print("no sweeps" + (f" like this{meant}" if asked else "; submit one with `metricsweep submit FILE`"))


def _row(sweep: "SweepSummary", *, tagged: bool) -> dict[str, str]:
    row = {
        "id": str(sweep.id),
        "name": sweep.name,
        "state": sweep.state + (" (waits)" if sweep.notice else ""),
        "done": f"{sweep.steps.percent} %",
        "trials": str(sweep.total),
        "failed": str(sweep.counts.failed),
        "cancelled": str(sweep.counts.cancelled),
        "created": f"{sweep.created:%Y-%m-%d %H:%M} UTC",
    }
    return row | {"tags": ", ".join(sweep.tags)} if tagged else row


def _near(name: str, others: Collection[str]) -> str | None:
    from workers.catalog import near  # here, since whoever lists sweeps waits for no catalog

    return near(name, others)
