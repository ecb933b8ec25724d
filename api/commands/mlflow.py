"""`mlflow`: brings MLflow to what the database says."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Final, Literal, Protocol

import typer

from api.commands.options import HOME, Home, Token, Url, connect
from api.commands.terminal import FAILED, WRONG, Output, err, out

if TYPE_CHECKING:
    from api.client import Client

FIRST_SECONDS: Final = 0.05
POLL_SECONDS: Final = 0.5
LINE_SECONDS: Final = 5.0
STALLED_SECONDS: Final = 120.0
"""How long nothing may be told before it is given up to wait: MLflow is tried again every minute."""


class Show(Protocol):
    """Shows how much is left."""

    def __call__(self, waiting: int) -> None:
        """So many runs."""


def mlflow(
    action: Annotated[Literal["sync"], typer.Argument(help="`sync` tells it of whole sweeps anew.")],
    number: Annotated[
        int | None, typer.Argument(min=1, metavar="[SWEEP]", help="The sweep's number; all sweeps without one.")
    ] = None,
    url: Url = None,
    token: Token = None,
    home: Home = HOME,
) -> None:
    """Tell MLflow anew of a sweep, or of all: one that was wiped, restored, or filled by a former release.

    Runs that are there already and show what they should stay as they are. It may be interrupted: the server goes on.
    """
    with connect(url, token, home) as client:
        sweeps = [number] if number is not None else [one.id for one in client.sweeps()]
        asked = [client.tell_mlflow(sweep).request for sweep in sweeps]
        _until_carried_out(client, asked)
        told = follow(client, number, out)
    if told:
        noun = "sweep" if len(sweeps) == 1 else "sweeps"
        out.print(f"MLflow shows {len(sweeps)} {noun} as the database says")
    else:
        raise typer.Exit(FAILED)


def follow(client: "Client", sweep: int | None, console: Output, most: float = float("inf")) -> bool:
    """Show what is left until MLflow was told everything; False where it does not take it within `most` seconds."""
    begun = moved = time.monotonic()
    pause = FIRST_SECONDS
    state = client.mirror(sweep)
    least = state.waiting
    with (_bar if console.is_terminal else _lines)(console) as show:
        while state.waiting:
            show(state.waiting)
            if time.monotonic() - moved > STALLED_SECONDS or time.monotonic() - begun > most:
                why = f": {state.error}" if state.error else ""
                err.print(f"MLflow is still to be told of {state.waiting} runs, which the server goes on with{why}")
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
        task = progress.add_task("telling MLflow", total=None)
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
            console.print(f"{time.strftime('%H:%M:%S')}  telling MLflow, {waiting} runs left")
            when = time.monotonic()

    yield show
