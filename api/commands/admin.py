"""Commands for administrators: backups, slots, storage, data and weights, MLflow, the webhook, login links."""

import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal, Protocol

import typer

from api.commands.terminal import (
    FAILED,
    HOME,
    WRONG,
    Home,
    Json,
    Output,
    Token,
    Url,
    connect,
    err,
    out,
    print_json,
    print_rows,
    settings,
)
from orchestrator.host.checks import require
from orchestrator.host.identity import made_for
from orchestrator.views.errors import MetricsweepError
from orchestrator.views.states import TrialState

if TYPE_CHECKING:
    from api.client import Client

Folder = Annotated[Path, typer.Argument(metavar="FOLDER", help="The backup's own folder.")]
TELL_SECONDS = 2.0


def backup(folder: Folder, home: Home = HOME) -> None:
    """Copy the database of one moment and the storage into a new folder, with hashes; the service may run."""
    from orchestrator.service.backups import back_up

    made = back_up(settings(home=home), folder.absolute(), _teller("copied"))
    out.print(f"{len(made.files)} files, {sum(one.size for one in made.files)} bytes in {folder}")


def restore(folder: Folder, home: Home = HOME) -> None:
    """Make a new home of a backup; refused where the home holds anything, or a file is not what it was."""
    from orchestrator.service.backups import restore as put_back

    made = put_back(folder.absolute(), settings(home=home), _teller("restored"))
    out.print(f"{len(made.files)} files of {made.made:%Y-%m-%d %H:%M} UTC in {home}")


def _teller(what: str) -> Callable[[str], None]:
    """Prints the progress every two seconds."""
    count, printed = 0, time.monotonic()

    def tell(name: str) -> None:
        nonlocal count, printed
        count += 1
        if time.monotonic() - printed > TELL_SECONDS:
            printed = time.monotonic()
            err.print(f"{what} {count} files, now {name}")

    return tell


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


def slots(
    slurm: Annotated[
        bool, typer.Option("--slurm", help="As jobs of Slurm; run it where you would run sbatch.")
    ] = False,
    most: Annotated[int, typer.Option("--most", min=1, max=1000, help="Slots at once, at most.")] = 16,
    partition: Annotated[str | None, typer.Option(help="Of sbatch, as are the following.")] = None,
    account: Annotated[str | None, typer.Option(help="The account that is charged.")] = None,
    qos: Annotated[str | None, typer.Option(help="Quality of service.")] = None,
    constraint: Annotated[str | None, typer.Option(help="Features that nodes must have.")] = None,
    gres: Annotated[str | None, typer.Option(help="Such as gpu:1 or gpu:a100:1; none: slots without a GPU.")] = None,
    cpus: Annotated[int, typer.Option(min=1, help="CPUs of each slot.")] = 1,
    mem: Annotated[str | None, typer.Option(help="Memory of each slot, such as 16G; none: the partition's.")] = None,
    time: Annotated[str | None, typer.Option(help="Time limit, such as 4:00:00; none: the partition's.")] = None,
    requeue: Annotated[bool, typer.Option(help="Whether Slurm puts a preempted job back into the queue.")] = True,
    before: Annotated[
        int, typer.Option("--signal", min=10, max=65535, help="Seconds before the limit to begin giving back in.")
    ] = 120,
    more: Annotated[
        list[str] | None, typer.Option("--sbatch", help="Any other option of sbatch, such as --sbatch=--exclude=n7.")
    ] = None,
    setup: Annotated[
        list[str] | None, typer.Option(help="A line of the job's script before the slot, such as 'module load cuda'.")
    ] = None,
    python: Annotated[str | None, typer.Option(help="Python on the compute nodes; none: this one.")] = None,
    resource: Annotated[
        list[str] | None, typer.Option(metavar="NAME=AMOUNT", help="A custom resource that each offers, as a100=1.")
    ] = None,
    idle: Annotated[float, typer.Option(min=1, help="Seconds without a training after which a slot ends.")] = 300,
    every: Annotated[float, typer.Option(min=0.2, help="Seconds between two looks at the queue.")] = 15,
    once: Annotated[bool, typer.Option("--once", help="Look once and end: for cron.")] = False,
    home: Home = HOME,
) -> None:
    """Keep as many slots alive as the conductor has use for, as jobs of Slurm, until Ctrl-C; jobs live on."""
    from orchestrator.service.operations import SlotJob, keep_by_slurm

    if not slurm:
        raise typer.BadParameter("how slots are kept alive is to be named: --slurm")
    given = {"python": python} if python else {}
    try:
        job = SlotJob(
            partition=partition, account=account, qos=qos, constraint=constraint, gres=gres, cpus=cpus, mem=mem,
            time=time, requeue=requeue, signal=before, more=more or (), setup=setup or (), idle=idle,
            resources=dict(map(_named, resource or ())), **given,
        )  # fmt: skip
    except ValueError as error:
        raise MetricsweepError(str(error)) from error
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    name = keep_by_slurm(settings(home=home), job, most, err.print, ended, None if once else every)
    if not once:
        err.print(f"the jobs live on, and end when they have nothing to train; scancel --name {name} ends them now")


def _named(text: str) -> tuple[str, float]:
    name, _, amount = text.partition("=")
    try:
        return name, float(amount or 1)
    except ValueError:
        raise ValueError(f"--resource: expected NAME=AMOUNT, such as a100=1, found {text!r}") from None


def webhook(
    action: Annotated[
        Literal["test"], typer.Argument(help="`test` sends one signed message of the type `test`, and says what came.")
    ],
    home: Home = HOME,
) -> None:
    """Send the webhook a test message, from this machine by the settings of this shell; 0 where it is taken.

    The address and the secret are METRICSWEEP_WEBHOOK_URL and METRICSWEEP_WEBHOOK_SECRET, as for the conductor; no
    server is asked, and nothing is tried again.
    """
    # The conductor's own command: no client of the API may have it send messages.
    command = [sys.executable, "-P", "-m", "orchestrator", "webhook"]
    environment = os.environ | {"METRICSWEEP_HOME": str(home)}
    raise typer.Exit(subprocess.run(command, check=False, env=environment).returncode)  # noqa: S603 - our own command


def weights(
    action: Annotated[
        Literal["list", "verify", "fetch"],
        typer.Argument(help="`list` says what is here, `verify` compares hashes, `fetch` downloads."),
    ],
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME...", help="Backbones, such as bn_inception, or their files.")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option("--data", envvar="METRICSWEEP_DATA", metavar="DIR", help="The data folder (default: HOME/data)."),
    ] = None,
    mirror: Annotated[
        list[str] | None,
        typer.Option("--mirror", metavar="URL", help="With `fetch`: a folder of such files, asked first."),
    ] = None,
    home: Home = HOME,
) -> None:
    """List, verify or fetch the pretrained weights of backbones, in this machine's data folder.

    They are what `pretrained: true` loads. Whichever address gives a file, the hash in its name decides; a download
    that broke goes on where it ended.
    """
    # The worker's own command: what knows of weights may be installed without a server, and the server without it.
    require("torch", "worker")
    given = [*(names or []), *(f"--mirror={one}" for one in mirror or [])]
    command = [sys.executable, "-P", "-m", "workers", "weights", action, *given, "--data", str(data or home / "data")]
    done = subprocess.run(command, check=False)  # noqa: S603  our own command
    raise typer.Exit(done.returncode)


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


FIRST_SECONDS: Final = 0.05
POLL_SECONDS: Final = 0.5
LINE_SECONDS: Final = 5.0
STALLED_SECONDS: Final = 120.0
"""How long to wait without progress; the server tries MLflow again every minute."""


class Show(Protocol):
    """Shows how much is left."""

    def __call__(self, waiting: int) -> None:
        """So many runs."""


def mlflow(
    action: Annotated[Literal["sync"], typer.Argument(help="`sync` writes all runs of sweeps again.")],
    number: Annotated[
        int | None, typer.Argument(min=1, metavar="[SWEEP]", help="The sweep's number; all sweeps without one.")
    ] = None,
    url: Url = None,
    token: Token = None,
    home: Home = HOME,
) -> None:
    """Write the runs of a sweep, or of all, to MLflow again: to a server that was wiped or restored.

    Runs that are there already and show what they should stay as they are. It may be interrupted: the server goes on.
    """
    with connect(url, token, home) as client:
        sweeps = [number] if number is not None else [one.id for one in client.sweeps()]
        asked = [client.sync_mlflow(sweep).request for sweep in sweeps]
        _until_carried_out(client, asked)
        synced = follow_mirror(client, number, out)
    if synced:
        noun = "sweep" if len(sweeps) == 1 else "sweeps"
        out.print(f"MLflow shows {len(sweeps)} {noun} as the database says")
    else:
        raise typer.Exit(FAILED)


def follow_mirror(client: "Client", sweep: int | None, console: Output, most: float = float("inf")) -> bool:
    """Show how many runs are left until all are in MLflow; False where that takes more than `most` seconds."""
    begun = moved = time.monotonic()
    pause = FIRST_SECONDS
    state = client.mirror(sweep)
    least = state.waiting
    with (_bar if console.is_terminal else _lines)(console) as show:
        while state.waiting:
            show(state.waiting)
            if time.monotonic() - moved > STALLED_SECONDS or time.monotonic() - begun > most:
                why = f": {state.error}" if state.error else ""
                err.print(f"{state.waiting} runs are not in MLflow yet; the server goes on with them{why}")
                return False
            time.sleep(pause)
            pause = min(2 * pause, POLL_SECONDS)
            state = client.mirror(sweep)
            if state.waiting < least:
                least, moved = state.waiting, time.monotonic()
        show(0)
    return True


def _until_carried_out(client: "Client", requests: list[int]) -> None:
    """Wait for the conductor; what it refuses ends the command."""
    for number in requests:
        found = client.request(number)
        while found.state == "waiting":
            time.sleep(POLL_SECONDS)
            found = client.request(number)
        if found.state == "refused":
            err.print(f"metricsweep: request {found.id} was refused: {found.outcome}")
            raise typer.Exit(WRONG)


@contextmanager
def _bar(console: Output) -> Iterator[Show]:
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(file=console.stream, highlight=False)) as progress:
        task = progress.add_task("syncing MLflow", total=None)
        most = 0

        def show(waiting: int) -> None:
            nonlocal most
            most = max(most, waiting)
            progress.update(task, total=max(most, 1), completed=max(most, 1) - waiting)

        yield show


@contextmanager
def _lines(console: Output) -> Iterator[Show]:
    when = float("-inf")

    def show(waiting: int) -> None:
        nonlocal when
        if waiting and time.monotonic() - when > LINE_SECONDS:
            console.print(f"{time.strftime('%H:%M:%S')}  syncing MLflow, {waiting} runs left")
            when = time.monotonic()

    yield show


def mlflow_env(url: Url = None, token: Token = None, home: Home = HOME) -> None:
    """Print the variables for an `mlflow` client of your own, for the shell to set."""
    with connect(url, token, home) as client:
        address = client.mlflow()
    # The home's own token opens everything, and a notebook may show the variables.
    shown = token if token and url else made_for(home.absolute()).mlflow_password
    for name, value in {"MLFLOW_TRACKING_URI": address, "MLFLOW_TRACKING_TOKEN": shown}.items():
        out.print(f"export {name}={shlex.quote(value)}")
    out.print("unset MLFLOW_TRACKING_USERNAME MLFLOW_TRACKING_PASSWORD")  # they would win over the token


def login_link(url: Url = None, token: Token = None, home: Home = HOME) -> None:
    """Print a link that logs a browser in: it works once, within the hour."""
    with connect(url, token, home) as client:
        out.print(client.login_link())
