"""Commands for administrators: backups, slots, storage, data and weights, MLflow, the webhook, login links."""

import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from api.commands.sweeps import wait_for_request
from api.commands.terminal import (
    FAILED,
    HOME,
    Home,
    Json,
    Output,
    Server,
    err,
    out,
    print_json,
    print_list,
    print_rows,
    refuse,
    settings,
)
from orchestrator.host.checks import require
from orchestrator.host.identity import ensure_identity
from orchestrator.views.errors import MetricsweepError
from orchestrator.views.pages import size
from orchestrator.views.states import TrialState

if TYPE_CHECKING:
    from api.client import Client

Folder = Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder of the backup.")]
_PROGRESS_SECONDS: Final = 2.0


def backup(folder: Folder, home: Home = HOME) -> None:
    """Back up the database and the storage into a new folder; the service may run."""
    from orchestrator.service.backups import back_up

    made = back_up(settings(home=home), folder.absolute(), _progress_of("copied"))
    out.print(f"{len(made.files)} files, {sum(file.size for file in made.files)} bytes in {folder}")


def restore(folder: Folder, home: Home = HOME) -> None:
    """Restore a backup into a new or empty home folder, after a check of every file."""
    from orchestrator.service.backups import restore as put_back

    made = put_back(folder.absolute(), settings(home=home), _progress_of("restored"))
    out.print(f"{len(made.files)} files of {made.made:%Y-%m-%d %H:%M} UTC in {home}")


def _progress_of(what: str) -> Callable[[str], None]:
    """A function that is called with each file and prints the progress every two seconds."""
    count, printed = 0, time.monotonic()

    def show(name: str) -> None:
        nonlocal count, printed
        count += 1
        if time.monotonic() - printed > _PROGRESS_SECONDS:
            printed = time.monotonic()
            err.print(f"{what} {count} files, now {name}")

    return show


Sweep = Annotated[int | None, typer.Option(min=1, metavar="ID", help="Only this sweep.")]


def sizes(server: Server, sweep: Sweep = None, as_json: Json = False) -> None:
    """Print the disk space of the database and of each sweep."""
    with server.connect() as client:
        storage = client.storage(sweep)
    if as_json:
        print_json(storage)
        return
    rows = [
        {
            "sweep": f"{kept.sweep} {kept.name}", "weights": _size(kept.weights_bytes),
            "figures": _size(kept.figures_bytes), "spools": _size(kept.spools_bytes), "logs": _size(kept.logs_bytes),
        }
        for kept in storage.sweeps
    ]  # fmt: skip
    print_rows(rows, numbers=("weights", "figures", "spools", "logs"))
    out.print(f"database {_size(storage.database_bytes)}, decoded images {_size(storage.decoded_bytes)}")


def gc(
    server: Server,
    sweep: Sweep = None,
    days: Annotated[float, typer.Option(min=0, help="Only trainings that ended at least this many days ago.")] = 30.0,
    state: Annotated[
        list[TrialState] | None,
        typer.Option(help="Only trainings in this state. May be given several times.", show_default=False),
    ] = None,
    keep: Annotated[int, typer.Option(min=1, help="Keep the files of this many best candidates of each cell.")] = 1,
    yes: Annotated[
        bool, typer.Option("--yes", help="Remove the files; without it, only print what would be removed.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Remove weights and checkpoints of ended sweeps, except those of each cell's best candidates.

    Results, curves, logs and figures stay.
    """
    with server.connect() as client:
        collection = client.collect(sweep, days, state or [], keep, dry_run=not yes)
    if as_json:
        print_json(collection)
        return
    if not collection.sweeps:
        err.print("nothing to remove")
        return
    rows = [
        {
            "sweep": f"{going.sweep} {going.name}", "trainings": str(going.trainings), "files": str(going.files),
            "size": _size(going.bytes), "kept": str(going.kept),
            "would need training": ", ".join(going.retrained) or "none",
        }
        for going in collection.sweeps
    ]  # fmt: skip
    print_rows(rows, numbers=("trainings", "files", "size", "kept"))
    if yes:
        commands = ", ".join(f"`metricsweep requests {going.sweep}`" for going in collection.sweeps[:3])
        out.print(f"{_size(collection.bytes)}: removal requested; {commands} shows the result")
    else:
        out.print(
            f"{_size(collection.bytes)} would go; the columns named could then no longer be evaluated. --yes does it"
        )


def _size(count: int | None) -> str:
    return "not known" if count is None else size(count)


def slots(
    slurm: Annotated[
        bool, typer.Option("--slurm", help="Start the slots as Slurm jobs; sbatch must be on this machine.")
    ] = False,
    most: Annotated[int, typer.Option("--most", min=1, max=1000, help="Most slots at once.")] = 16,
    partition: Annotated[
        str | None, typer.Option(help="The partition; sbatch gets this option and the following.")
    ] = None,
    account: Annotated[str | None, typer.Option(help="The account that is charged.")] = None,
    qos: Annotated[str | None, typer.Option(help="Quality of service.")] = None,
    constraint: Annotated[str | None, typer.Option(help="Features that nodes must have.")] = None,
    gres: Annotated[str | None, typer.Option(help="Such as gpu:1 or gpu:a100:1; by default slots have no GPU.")] = None,
    cpus: Annotated[int, typer.Option(min=1, help="CPUs of each slot.")] = 1,
    mem: Annotated[
        str | None, typer.Option(help="Memory of each slot, such as 16G; by default the partition's.")
    ] = None,
    time: Annotated[str | None, typer.Option(help="Time limit, such as 4:00:00; by default the partition's.")] = None,
    requeue: Annotated[bool, typer.Option(help="Whether Slurm puts a preempted job back into the queue.")] = True,
    before: Annotated[
        int,
        typer.Option(
            "--signal",
            min=10,
            max=65535,
            help="Seconds before the time limit at which a slot writes a checkpoint and ends.",
        ),
    ] = 120,
    more: Annotated[
        list[str] | None, typer.Option("--sbatch", help="Any other option of sbatch, such as --sbatch=--exclude=n7.")
    ] = None,
    setup: Annotated[
        list[str] | None,
        typer.Option(help="A line of the job's script that runs before the slot, such as 'module load cuda'."),
    ] = None,
    python: Annotated[
        str | None, typer.Option(help="Python on the compute nodes; by default the Python of this command.")
    ] = None,
    resource: Annotated[
        list[str] | None, typer.Option(metavar="NAME=AMOUNT", help="A custom resource of each slot, such as a100=1.")
    ] = None,
    idle: Annotated[float, typer.Option(min=1, help="Seconds without a training after which a slot ends.")] = 300,
    every: Annotated[float, typer.Option(min=0.2, help="Seconds between two checks of the queue.")] = 15,
    once: Annotated[bool, typer.Option("--once", help="Check once and end, for cron.")] = False,
    home: Home = HOME,
) -> None:
    """Run slots as Slurm jobs, as many as the conductor can use, until Ctrl-C; the jobs continue."""
    from orchestrator.service.operations import SlotJob, keep_by_slurm

    if not slurm:
        raise typer.BadParameter("name the scheduler that runs the slots: --slurm")
    try:
        job = SlotJob(
            partition=partition, account=account, qos=qos, constraint=constraint, gres=gres, cpus=cpus, mem=mem,
            time=time, requeue=requeue, signal=before, more=more or (), setup=setup or (), idle=idle,
            resources=dict(map(_named, resource or ())), **({"python": python} if python else {}),
        )  # fmt: skip
    except ValueError as error:
        raise MetricsweepError(str(error)) from error
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    name = keep_by_slurm(settings(home=home), job, most, err.print, ended, None if once else every)
    if not once:
        err.print(f"the jobs continue until they have nothing to train; `scancel --name {name}` ends them now")


def _named(text: str) -> tuple[str, float]:
    name, _, amount = text.partition("=")
    try:
        return name, float(amount or 1)
    except ValueError:
        raise ValueError(f"--resource: expected NAME=AMOUNT, such as a100=1, found {text!r}") from None


def webhook(
    action: Annotated[
        Literal["test"], typer.Argument(help="`test` sends a signed message of type `test` and prints the answer.")
    ],
    home: Home = HOME,
) -> None:
    """Send a test message to the webhook; exits with 0 if it is accepted.

    This machine sends it to METRICSWEEP_WEBHOOK_URL, signed with METRICSWEEP_WEBHOOK_SECRET. No server is needed, and
    a refused message is not sent again.
    """
    # A command of the conductor, since no client of the API may make it send messages.
    command = [sys.executable, "-P", "-m", "orchestrator", "webhook"]
    environment = os.environ | {"METRICSWEEP_HOME": str(home)}
    raise typer.Exit(subprocess.run(command, check=False, env=environment).returncode)  # noqa: S603 - our own command


def weights(
    action: Annotated[
        Literal["list", "verify", "fetch"],
        typer.Argument(help="`list` shows which files are here, `verify` compares hashes, `fetch` downloads."),
    ],
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="Backbones, such as bn_inception, or names of files.")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option("--data", envvar="METRICSWEEP_DATA", metavar="DIR", help="The data folder (default: HOME/data)."),
    ] = None,
    mirror: Annotated[
        list[str] | None,
        typer.Option("--mirror", metavar="URL", help="With `fetch`: an address to try before the publishers'."),
    ] = None,
    home: Home = HOME,
) -> None:
    """List, verify or download pretrained weights in the data folder of this machine.

    Backbones with `pretrained: true` load them. Each file must match the hash in its name. An interrupted download
    resumes.
    """
    # A command of the worker, which may be installed without a server, and the server without it.
    require("torch", "worker")
    options = [*(names or []), *(f"--mirror={url}" for url in mirror or []), "--data", str(data or home / "data")]
    command = [sys.executable, "-P", "-m", "workers", "weights", action, *options]
    raise typer.Exit(subprocess.run(command, check=False).returncode)  # noqa: S603 - our own command


def data(
    server: Server,
    name: Annotated[
        str | None, typer.Argument(help="A data set or backbone, to show where each node looked for it.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List the data sets and weights of the nodes, or the state of one on each node."""
    with server.connect() as client:
        every = client.data()
    findings = [finding for finding in every if name is None or name in finding.data.split()]
    if name and not findings:
        known = ", ".join(sorted({finding.data for finding in every})) or "nothing yet"
        refuse(f"no node has looked for {name!r}; nodes looked for {known}")
    none = "no node has looked yet; nodes look while a conductor runs"
    print_list(
        findings, as_json, lambda found: {"node": found.host, "data": found.data, "state": found.state}, (), none
    )
    for finding in findings if name and not as_json else ():
        if finding.message:
            out.print(f"\non {finding.host}: {finding.message}")


POLL_SECONDS: Final = 0.2
LINE_SECONDS: Final = 5.0
STALLED_SECONDS: Final = 120.0
"""How long to wait without progress; the server tries MLflow again every minute."""


def mlflow(
    server: Server,
    action: Annotated[Literal["sync"], typer.Argument(help="`sync` sends the runs again.")],
    number: Annotated[
        int | None, typer.Argument(min=1, metavar="SWEEP", help="The number of a sweep; by default all sweeps.")
    ] = None,
) -> None:
    """Send the runs of one sweep, or of all, to MLflow again, after its store was lost or restored.

    Runs that are up to date are not sent. The server continues if the command is interrupted.
    """
    with server.connect() as client:
        sweeps = [number] if number is not None else [sweep.id for sweep in client.sweeps()]
        requests = [client.sync_mlflow(sweep).request for sweep in sweeps]
        for request in requests:
            wait_for_request(client, request)
        synced = follow_mirror(client, number, out)
    if synced:
        noun = "sweep" if len(sweeps) == 1 else "sweeps"
        out.print(f"MLflow shows {len(sweeps)} {noun} as the database says")
    else:
        raise typer.Exit(FAILED)


def follow_mirror(client: "Client", sweep: int | None, console: Output, most: float = float("inf")) -> bool:
    """Print how many runs are left until all are in MLflow; returns False if that takes more than `most` seconds."""
    begun = moved = time.monotonic()
    printed = float("-inf")
    state = client.mirror(sweep)
    least = state.waiting
    while state.waiting:
        now = time.monotonic()
        if now - moved > STALLED_SECONDS or now - begun > most:
            why = f": {state.error}" if state.error else ""
            err.print(f"{state.waiting} runs are not in MLflow yet; the server continues to write them{why}")
            return False
        if now - printed > LINE_SECONDS:
            console.print(f"{time.strftime('%H:%M:%S')}  syncing MLflow, {state.waiting} runs left")
            printed = now
        time.sleep(POLL_SECONDS)
        state = client.mirror(sweep)
        if state.waiting < least:
            least, moved = state.waiting, time.monotonic()
    return True


def mlflow_env(server: Server) -> None:
    """Print the shell commands that set the variables of an `mlflow` client."""
    with server.connect() as client:
        address = client.mlflow()
    # Not the home's token, which opens everything: a notebook may show the variables.
    shown = server.token if server.token and server.url else ensure_identity(server.home.absolute()).mlflow_password
    for name, value in {"MLFLOW_TRACKING_URI": address, "MLFLOW_TRACKING_TOKEN": shown}.items():
        out.print(f"export {name}={shlex.quote(value)}")
    out.print("unset MLFLOW_TRACKING_USERNAME MLFLOW_TRACKING_PASSWORD")  # they would win over the token


def login_link(server: Server) -> None:
    """Print a link that logs a browser in, once, within an hour."""
    with server.connect() as client:
        out.print(client.login_link())
