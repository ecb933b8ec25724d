"""Commands about what is kept: `sizes` says what lies where, `gc` lets weights go."""

from typing import Annotated

import typer

from api.commands.options import HOME, Home, Json, Token, Url, connect
from api.commands.terminal import err, out, print_json, print_rows
from orchestrator.views.lifecycle import TrialState

Sweep = Annotated[int | None, typer.Option(min=1, metavar="ID", help="Only this sweep.")]


def sizes(sweep: Sweep = None, as_json: Json = False, url: Url = None, token: Token = None, home: Home = HOME) -> None:
    """Say what lies on disk: the database, and what the trainings of each sweep keep."""
    with connect(url, token, home) as client:
        storage = client.storage(sweep)
    if as_json:
        print_json(storage)
        return
    rows = [
        {
            "sweep": f"{one.sweep} {one.name}", "weights": _size(one.weights_bytes),
            "figures": _size(one.figures_bytes), "spools": _size(one.spools_bytes), "logs": _size(one.logs_bytes),
        }
        for one in storage.sweeps
    ]  # fmt: skip
    if rows:
        print_rows(rows, numbers=("weights", "figures", "spools", "logs"))
    out.print(f"database {_size(storage.database_bytes)}, images that lie decoded {_size(storage.decoded_bytes)}")


def gc(
    sweep: Sweep = None,
    days: Annotated[float, typer.Option(min=0, help="Trainings that ended so many days ago.")] = 30.0,
    state: Annotated[
        list[TrialState] | None,
        typer.Option(help="Only trainings in this state. May be given several times.", show_default=False),
    ] = None,
    keep: Annotated[int, typer.Option(min=1, help="So many candidates of each cell, the best, keep theirs.")] = 1,
    yes: Annotated[bool, typer.Option("--yes", help="Do it; without this it is only said what would go.")] = False,
    as_json: Json = False,
    url: Url = None,
    token: Token = None,
    home: Home = HOME,
) -> None:
    """Let weights and checkpoints of ended sweeps go; results, curves, logs, figures and each cell's best stay."""
    with connect(url, token, home) as client:
        collection = client.collect(sweep, days, state or [], keep, dry_run=not yes)
    if as_json:
        print_json(collection)
        return
    if not collection.sweeps:
        err.print("nothing can go")
        return
    rows = [
        {
            "sweep": f"{one.sweep} {one.name}", "trainings": str(one.trainings), "files": str(one.files),
            "size": _size(one.bytes), "kept": str(one.kept), "would need training": ", ".join(one.retrained) or "none",
        }
        for one in collection.sweeps
    ]  # fmt: skip
    print_rows(rows, numbers=("trainings", "files", "size", "kept"))
    if yes:
        asked = ", ".join(f"`metricsweep requests {one.sweep}`" for one in collection.sweeps[:3])
        out.print(f"{_size(collection.bytes)}: asked to go; {asked} says what became of it")
    else:
        out.print(
            f"{_size(collection.bytes)} would go; the columns named could then no longer be evaluated. --yes does it"
        )


def _size(count: float | None) -> str:
    if count is None:
        return "not known"
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" or count >= 10 else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"
