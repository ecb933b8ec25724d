"""`serve` and `run`: the whole service on this machine, for good or for one sweep."""

from pathlib import Path
from typing import Annotated, Final

import typer

from api.client import Client
from api.commands.options import Home, SpecFile, read_spec, settings
from api.commands.specs import afresh
from api.commands.sweeps import show_preview
from api.commands.tables import print_table, write_tables
from api.commands.terminal import OK, err, out
from api.commands.watch import follow, verdict
from orchestrator.lifecycle import SweepState
from orchestrator.settings import Settings

INTERRUPTED: Final = 130


def serve(
    host: Annotated[
        str | None, typer.Option(help="Address to listen on; any but loopback needs METRICSWEEP_TOKEN.")
    ] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Port of the pages and the API. [default: 8787]")
    ] = None,
    home: Home = None,
) -> None:
    """Serve API, pages, conductor, Ray and MLflow until Ctrl-C; started again, it goes on where it was."""
    # Here and not above: the client's commands do not wait for what only a server needs.
    from api.serve import Stack, refuse_open_host

    config = settings(host=host, port=port, home=home)
    refuse_open_host(config)
    with Stack(config, tell=err.print) as stack:
        stack.start()
        stack.wait()


def run(
    file: SpecFile,
    home: Home = None,
    folder: Annotated[
        Path, typer.Option("--out", file_okay=False, metavar="DIR", help="Where the tables go.")
    ] = Path(),
    fresh: Annotated[bool, typer.Option("--fresh", help="Train everything, even what is trained already.")] = False,
) -> None:
    """Run one sweep here from spec to tables: starts what it needs, shows progress, leaves no server behind."""
    # Here and not above: the client's commands do not wait for what only a server needs.
    from api.serve import Stack
    from orchestrator.service import preview_offline

    body = afresh(read_spec(file)) if fresh else read_spec(file)
    preview_offline(body, settings(home=home))  # a wrong spec ends here, before anything is started
    config = settings(home=home, host="127.0.0.1", port=0)
    try:
        with Stack(config, tell=err.print) as stack:
            stack.start()
            token = config.token.get_secret_value() if config.token else None
            with Client(stack.addresses["api"], token) as client:
                code = _one_sweep(client, body, folder, fresh)
                sweep = next(iter(client.sweeps())).id
    except KeyboardInterrupt:
        err.print("interrupted; the same command goes on where it was")
        raise typer.Exit(INTERRUPTED) from None
    _say_how_to_return(settings(home=home), sweep)
    raise typer.Exit(code)


def _one_sweep(client: Client, body: bytes, folder: Path, fresh: bool) -> int:
    preview = client.preview(body)
    show_preview(preview, as_json=False)
    sweep = None if fresh else unfinished(client, preview.name, body)
    if sweep is None:
        sweep = client.submit(body).id
    else:
        out.print(f"going on with sweep {sweep}, which was interrupted")
    ended = follow(client, sweep, out)
    code = verdict(ended, out)
    for name in ended.tables:
        out.print()
        print_table(client, sweep, name)
    for path in write_tables(client, sweep, ended.tables, ended.name, folder):
        out.print(f"wrote {path}")
    return code


def unfinished(client: Client, name: str, body: bytes) -> int | None:
    """A sweep of the same spec that an interrupted run left behind."""
    for state in (SweepState.RUNNING, SweepState.QUEUED):
        for sweep in client.sweeps(state, name):
            if client.sweep(sweep.id).text.encode() == body:
                return sweep.id
    return None


def _say_how_to_return(config: Settings, sweep: int) -> None:
    out.print()
