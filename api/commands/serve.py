"""`serve` and `run`: the whole service on this machine, for good or for one sweep."""

import shlex
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from api.commands import admin
from api.commands.sweeps import afresh, show_preview
from api.commands.tables import print_table, write_figures, write_tables
from api.commands.terminal import HOME, Changes, Home, Only, SpecFile, Without, connect, err, out, read_spec, settings
from api.commands.watch import follow, verdict
from api.connection import ApiError, Unreachable
from orchestrator.views.errors import MetricsweepError
from orchestrator.views.states import SweepState

if TYPE_CHECKING:
    from api.client import Client
    from orchestrator.settings import Settings
    from orchestrator.views.sweeps import SweepView

INTERRUPTED: Final = 130
MOST_CRASHES: Final = 4
MIRROR_SECONDS: Final = 60.0
"""How long to wait for runs that are not in MLflow yet; the next start writes the rest."""
IDLE_SECONDS: Final = 10.0
"""How long nothing trains before what waits is given up; between two trainings it is less."""


def serve(
    host: Annotated[
        str | None, typer.Option(help="Address to listen on; any but loopback needs METRICSWEEP_TOKEN.")
    ] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Port of the pages and the API. [default: 8787, or a free one]")
    ] = None,
    home: Home = HOME,
) -> None:
    """Serve API, pages, conductor, Ray and MLflow until Ctrl-C; started again, it goes on where it was."""
    # Here and not above: the client's commands do not wait for what only a server needs.
    from api.local.serve import Stack

    config = settings(host=host, port=port, home=home)
    with Stack(config, tell=_teller()) as stack:
        err.print(f"starting over {config.resolved_home}")
        stack.start()
        _print_addresses(stack.addresses)
        with connect(stack.addresses["api"], None, config.resolved_home) as client:
            _print_link(client)
        if not config.mlflow_url:
            command = f"metricsweep mlflow-env --home {shlex.quote(str(config.home))}"
            out.print(f'{"in notebooks":18}  eval "$({command})"')
        err.print("Ctrl-C ends it; started again, it goes on where it was")
        stack.wait()
        err.print("ending")


def run(
    file: SpecFile,
    changes: Changes = None,
    only: Only = None,
    without: Without = None,
    home: Home = HOME,
    folder: Annotated[
        Path, typer.Option("--out", file_okay=False, metavar="DIR", help="Where the tables and figures go.")
    ] = Path(),
    fresh: Annotated[bool, typer.Option("--fresh", help="Train everything, even what is trained already.")] = False,
) -> None:
    """Run one sweep here from spec to tables: starts what it needs, shows progress, leaves no server behind."""
    # Here and not above: the client's commands do not wait for what only a server needs.
    from api.local.serve import Stack
    from orchestrator.service import offline

    body = read_spec(file, changes, only, without)
    body = afresh(body) if fresh else body
    later = settings(home=home)
    offline.preview(body, later)  # a wrong spec ends here, before anything is started
    # What reaches it is on this machine, whatever name METRICSWEEP_URL has for a server.
    config = later.model_copy(update={"host": "127.0.0.1", "url": ""})
    try:
        crashes = _Crashes(_teller(), config.resolved_home / "logs" / "conductor.log")
        with Stack(config, tell=crashes.tell) as stack:
            err.print(f"starting over {config.resolved_home}")
            stack.start()
            with connect(stack.addresses["api"], None, config.resolved_home) as client:
                _print_addresses(stack.addresses)
                _print_link(client)
                alone = not config.ray_address  # this machine is the whole cluster, and nothing joins it
                sweep = _begun(client, body, alone)
                code = _followed(client, sweep, folder, crashes.check, alone)
                with suppress(ApiError, Unreachable):  # the sweep has ended, also where MLflow lacks some of its runs
                    admin.follow_mirror(client, sweep, err, MIRROR_SECONDS)
            err.print("ending")
    except KeyboardInterrupt:
        err.print("interrupted; the same command goes on where it was")
        raise typer.Exit(INTERRUPTED) from None
    _say_how_to_return(config, sweep)
    raise typer.Exit(code)


def _begun(client: "Client", body: bytes, alone: bool) -> int:
    """Submit the spec, or find the sweep of it that an interrupted run left behind."""
    from orchestrator.views.operations import too_large

    preview = client.preview(body)
    if alone and (shortages := too_large(preview.warnings)):
        raise MetricsweepError(
            "this machine cannot train all of it, and no other will join:\n" + "\n".join(shortages) + "\n"
            "Make `slot` or `slots` of the spec smaller, or set METRICSWEEP_RAY_ADDRESS to a cluster that can."
        )
    show_preview(preview, as_json=False)
    sweep = unfinished(client, preview.name, body)
    if sweep is None:
        return client.submit(body).id
    out.print(f"going on with sweep {sweep}, which was interrupted")
    return sweep


def _followed(client: "Client", sweep: int, folder: Path, check: Callable[[], None], alone: bool) -> int:
    """Watch the sweep to its end, then print and write its tables; gives the exit code."""
    ended = follow(client, sweep, out, check=check, seen=_Patience().look if alone else lambda sweep: None)
    code = verdict(ended, out)
    for name in ended.tables:
        out.print()
        print_table(client, sweep, name)
    out.print()
    for path in write_tables(client, sweep, ended.tables, ended.name, folder):
        out.print(f"wrote {path}")
    for path in write_figures(client, sweep, ended.figures, ended.name, folder):
        out.print(f"wrote {path}")
    return code


class _Patience:
    """Gives a sweep up of which nothing trains for a while, where the rest waits for what will hardly come."""

    def __init__(self) -> None:
        self._since: float | None = None

    def look(self, sweep: "SweepView") -> None:
        """Raise MetricsweepError once it is time."""
        if not sweep.notice or sweep.counts.running:
            self._since = None
            return
        self._since = time.monotonic() if self._since is None else self._since
        if time.monotonic() - self._since > IDLE_SECONDS:
            done = f"{sweep.counts.ended} of {sweep.total} trials are done; the others wait, and nobody is to help them"
            mended = "What is trained is kept: once that is mended, the same command goes on where it was."
            raise MetricsweepError(f"{done}:\n{sweep.notice}\n{mended}")


def unfinished(client: "Client", name: str, body: bytes) -> int | None:
    """The sweep of the same spec that has not ended, if there is one."""
    text = body.decode("utf-8-sig")
    for state in (SweepState.RUNNING, SweepState.QUEUED):
        for sweep in client.sweeps(state, name):
            if client.sweep(sweep.id).text == text:
                return sweep.id
    return None


def _say_how_to_return(config: "Settings", sweep: int) -> None:
    """The command that shows it all again, and where it will be."""
    out.print("\nTo see it all again:")
    out.print(f"  metricsweep serve --home {shlex.quote(str(config.home))}")
    out.print(f"  then log in by the link that it prints; the sweep is at /sweeps/{sweep}")


def _print_addresses(addresses: Mapping[str, str]) -> None:
    names = {"api": "pages and API", "mlflow": "MLflow", "ray": "Ray (with a token)"}
    for name, address in addresses.items():
        out.print(f"{names.get(name, name):18}  {address}")


def _print_link(client: "Client") -> None:
    out.print(f"{'log in, once, at':18}  {client.login_link()}")


class _Crashes:
    """Counts how often the conductor ended by itself: one that cannot work would be started again for ever."""

    def __init__(self, tell: Callable[[str, str], None], log: Path) -> None:
        self._tell, self._log = tell, log
        self._count = 0

    def tell(self, name: str, state: str) -> None:
        """Pass on what the stack says."""
        self._count += name == "conductor" and state.startswith("ended")
        self._tell(name, state)

    def check(self) -> None:
        """Raise MetricsweepError once it is hopeless."""
        if self._count >= MOST_CRASHES:
            raise MetricsweepError(f"the conductor ended {self._count} times; its log says why: {self._log}")


def _teller() -> Callable[[str, str], None]:
    """Says on stderr what starts and ends, with the seconds since the first word."""
    began = time.monotonic()

    def tell(name: str, state: str) -> None:
        err.print(f"{time.monotonic() - began:6.1f} s  {name:10}  {state}")

    return tell
