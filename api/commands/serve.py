"""The commands `serve` and `run`: the whole service on this machine, until Ctrl-C or for one sweep."""

import json
import math
import os
import shlex
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from api.commands import admin
from api.commands.sweeps import Fresh, show_preview
from api.commands.tables import write_results
from api.commands.terminal import (
    HOME,
    Changes,
    Home,
    Only,
    Server,
    SpecFile,
    Without,
    err,
    out,
    print_markdown,
    read_spec,
    settings,
)
from api.commands.watch import follow, verdict
from api.connection import ApiError, Unreachable
from orchestrator.views.errors import MetricsweepError
from orchestrator.views.states import SweepState

if TYPE_CHECKING:
    from api.client import Client
    from orchestrator.views.sweeps import SweepView

INTERRUPTED: Final = 130
MOST_CRASHES: Final = 4
MIRROR_SECONDS: Final = 60.0
"""How long to wait for runs that are not in MLflow yet; the next start writes the rest."""
IDLE_SECONDS: Final = 10.0
"""How long nothing may train before waiting trials are given up; between two trainings it is less."""

ROWS_SECONDS: Final = 3.0
"""How often the table is read at most, to print the rows that have filled."""


def serve(
    host: Annotated[
        str | None, typer.Option(help="Address to listen on; other addresses than loopback need METRICSWEEP_TOKEN.")
    ] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Port of the pages and the API. [default: 8787, or a free one]")
    ] = None,
    home: Home = HOME,
) -> None:
    """Serve API, pages, conductor, Ray and MLflow until Ctrl-C; the next start continues where it ended."""
    # Imported here, since the client's commands do not need it.
    from api.local.serve import Stack

    config = settings(host=host, port=port, home=home)
    with Stack(config, report=_reporter()) as stack:
        err.print(f"home folder: {config.resolved_home}")
        stack.start()
        _print_addresses(stack.addresses)
        with Server(stack.addresses["api"], None, config.resolved_home).connect() as client:
            _print_link(client)
        if not config.mlflow_url:
            command = f"metricsweep mlflow-env --home {shlex.quote(str(config.home))}"
            out.print(f'{"MLflow clients":18}  eval "$({command})"')
        err.print("Ctrl-C stops it; the next start continues where it ended")
        stack.wait()
        err.print("ending")


def run(
    file: SpecFile,
    changes: Changes = None,
    only: Only = None,
    without: Without = None,
    home: Home = HOME,
    folder: Annotated[
        Path, typer.Option("--out", file_okay=False, metavar="DIR", help="Folder for tables and figures.")
    ] = Path(),
    fresh: Fresh = False,
) -> None:
    """Run one sweep on this machine and write its tables, without a permanent server."""
    # Imported here, since the client's commands do not need it.
    from api.local.serve import Stack
    from orchestrator.service import offline

    body = read_spec(file, changes, only, without, fresh=fresh)
    # Only this machine reaches it, whatever METRICSWEEP_URL is.
    config = settings(home=home).model_copy(update={"host": "127.0.0.1", "url": ""})
    offline.preview(body, config)  # a wrong spec ends here, before anything is started
    try:
        crashes = _Crashes(_reporter(), config.resolved_home / "logs" / "conductor.log")
        with Stack(config, report=crashes.report) as stack:
            err.print(f"home folder: {config.resolved_home}")
            stack.start()
            with Server(stack.addresses["api"], None, config.resolved_home).connect() as client:
                _print_addresses(stack.addresses)
                _print_link(client)
                alone = not config.ray_address  # this machine is the whole cluster, and nothing joins it
                sweep = _begun(client, body, alone)
                code = _followed(client, sweep, folder, crashes.check, alone)
                with suppress(ApiError, Unreachable):  # MLflow may lack some runs, but the sweep has ended
                    admin.follow_mirror(client, sweep, err, MIRROR_SECONDS)
            err.print("ending")
    except KeyboardInterrupt:
        err.print("interrupted; the same command continues where it ended")
        raise typer.Exit(INTERRUPTED) from None
    _print_next(sweep, config.home)
    raise typer.Exit(code)


def _print_next(sweep: int, home: Path) -> None:
    """Print commands that use the sweep, as the shell needs them here."""
    command = sys.argv[0] if os.sep in sys.argv[0] else "metricsweep"
    at = f" --home {shlex.quote(str(home))}"
    out.print("\nNext:")
    out.print(f"  {command} serve{at}")
    out.print(f"      serves the pages and prints a link to log in; the sweep is at /sweeps/{sweep}")
    out.print(f"  {command} submit sweeps/digits.yaml --watch{at}")
    out.print("      in another terminal: trains a larger sweep, or one that you wrote")
    out.print(f"  {command} table {sweep}{at} --format latex")
    out.print("      prints a table again, in any format")


def _begun(client: "Client", body: bytes, local_only: bool) -> int:
    """Submit the spec, or find its sweep of an interrupted run; returns the sweep's number."""
    from orchestrator.views.operations import too_large

    preview = client.preview(body)
    if local_only and (shortages := too_large(preview.warnings)):
        raise MetricsweepError(
            "this machine cannot train all of it, and no other will join:\n" + "\n".join(shortages) + "\n"
            "Make `slot` or `slots` of the spec smaller, or set METRICSWEEP_RAY_ADDRESS to a cluster that can."
        )
    show_preview(preview, as_json=False)
    sweep = unfinished(client, preview.name, body)
    if sweep is None:
        return client.submit(body).id
    out.print(f"continuing sweep {sweep}, which was interrupted")
    return sweep


def _followed(client: "Client", sweep: int, folder: Path, check: Callable[[], None], local_only: bool) -> int:
    """Watch the sweep until it ends, then print and write its tables; returns the exit code."""
    patience, rows = _Patience(), _FilledRows(client)

    def seen(view: "SweepView") -> None:
        check()
        if local_only:
            patience.look(view)
        rows.look(view)

    ended = follow(client, sweep, out, seen=seen)
    code = verdict(ended, out)
    for name in ended.tables:
        out.print()
        print_markdown(client.table(sweep, name, "markdown").content.decode())
    out.print()
    for path in write_results(client, ended, folder):
        out.print(f"wrote {path}")
    return code


class _FilledRows:
    """Prints each row of the sweep's first table once all its trials have ended."""

    def __init__(self, client: "Client") -> None:
        self._client = client
        self._printed: set[tuple[int, str]] = set()
        self._done, self._read = 0, -math.inf

    def look(self, sweep: "SweepView") -> None:
        """Read the table if trials have ended since it was read, every few seconds at most."""
        if not sweep.tables or sweep.counts.done == self._done or time.monotonic() - self._read < ROWS_SECONDS:
            return
        self._read = time.monotonic()
        try:
            table = json.loads(self._client.table(sweep.id, sweep.tables[0], "json").content)
        except (ApiError, Unreachable):  # the sweep is followed without it
            return
        self._done = sweep.counts.done
        complete = {cell["cell"] for cell in table["cells"] if cell["status"] == "complete"}
        for number, panel in enumerate(table["panels"]):
            for row in panel["rows"]:
                name = ", ".join(filter(None, row["headings"]))
                cells = [cell for cell in row["cells"] if cell["cell"] is not None]
                if (number, name) in self._printed or not cells or any(cell["cell"] not in complete for cell in cells):
                    continue
                self._printed.add((number, name))
                values = [
                    f"{column['title']} {cell['text']}" + (f" ± {cell['std_text']}" if cell["std_text"] else "")
                    for column, cell in zip(panel["columns"], row["cells"], strict=True)
                    if cell["text"]
                ]
                out.print(f"{name}: {', '.join(values)}")


class _Patience:
    """Gives up a sweep of which nothing trains for a while, and whose trials wait for more than a slot."""

    def __init__(self) -> None:
        self._since: float | None = None

    def look(self, sweep: "SweepView") -> None:
        """Raise MetricsweepError if the sweep is given up."""
        if not sweep.notice or sweep.counts.running:
            self._since = None
            return
        self._since = time.monotonic() if self._since is None else self._since
        if time.monotonic() - self._since > IDLE_SECONDS:
            done = f"{sweep.counts.ended} of {sweep.total} trials are done; the others wait, and nothing will help them"
            mended = "Finished trainings are kept: once this is fixed, the same command continues."
            raise MetricsweepError(f"{done}:\n{sweep.notice}\n{mended}")


def unfinished(client: "Client", name: str, body: bytes) -> int | None:
    """The sweep of the same spec that has not ended, if there is one."""
    text = body.decode("utf-8-sig")
    for state in (SweepState.RUNNING, SweepState.QUEUED):
        for sweep in client.sweeps(state, name):
            if client.sweep(sweep.id).text == text:
                return sweep.id
    return None


def _print_addresses(addresses: Mapping[str, str]) -> None:
    names = {"api": "pages and API", "mlflow": "MLflow", "ray": "Ray (with a token)"}
    for name, address in addresses.items():
        out.print(f"{names.get(name, name):18}  {address}")


def _print_link(client: "Client") -> None:
    out.print(f"{'log in (once) at':18}  {client.login_link()}")


class _Crashes:
    """Counts how often the conductor ended by itself, since a broken one would be restarted for ever."""

    def __init__(self, report: Callable[[str, str], None], log: Path) -> None:
        self._report, self._log = report, log
        self._count = 0

    def report(self, name: str, state: str) -> None:
        """Forward a process's state."""
        self._count += name == "conductor" and state.startswith("ended")
        self._report(name, state)

    def check(self) -> None:
        """Raise MetricsweepError after too many crashes."""
        if self._count >= MOST_CRASHES:
            raise MetricsweepError(f"the conductor ended {self._count} times; its log says why: {self._log}")


def _reporter() -> Callable[[str, str], None]:
    """A function that prints a process's state on stderr, with the seconds since the start."""
    began = time.monotonic()

    def report(name: str, state: str) -> None:
        err.print(f"{time.monotonic() - began:6.1f} s  {name:10}  {state}")

    return report
