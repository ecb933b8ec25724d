"""The command `watch`: a sweep's progress until it ends, as a bar in a terminal and as lines elsewhere."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Final

import typer

from api.commands.terminal import FAILED, OK, Output, Server, SweepId, out
from orchestrator.host.logs import one_line
from orchestrator.views.pages import duration
from orchestrator.views.states import SWEEP_ENDED, SweepState

if TYPE_CHECKING:
    from api.client import Client
    from orchestrator.views.sweeps import Counts, SweepView

POLL_SECONDS: Final = 2.0
UNKNOWN_SECONDS: Final = 1.0
"""How often to read a sweep whose remaining time is unknown, at least."""
SOON_SECONDS: Final = 0.1
"""The shortest pause, for a sweep that is about to end."""
LINE_SECONDS: Final = 5.0
PATIENCE_SECONDS: Final = 60.0
"""How long a server may be away, since it may be restarting."""

_Show = Callable[["SweepView"], None]


def watch(
    server: Server,
    number: SweepId,
    every: Annotated[
        float,
        typer.Option(min=0.1, help="Seconds between two reads of the sweep; fewer near its end."),
    ] = POLL_SECONDS,
) -> None:
    """Watch a sweep until it ends; exits with 1 if it failed, was cancelled or has failed trials."""
    with server.connect() as client:
        raise typer.Exit(verdict(follow(client, number, out, every), out))


def follow(
    client: "Client",
    sweep: int,
    console: Output,
    every: float = POLL_SECONDS,
    seen: Callable[["SweepView"], None] = lambda sweep: None,
) -> "SweepView":
    """Show a sweep's progress until it ends; `seen` is called with it between reads, and may raise."""
    from api.connection import ApiError, Unreachable

    with (_bar if console.is_terminal else _lines)(console) as show:
        answered = time.monotonic()
        view = client.sweep(sweep)
        show(view)
        notice = _noticed(view, None, console)
        handled = {request.id for request in view.requests if request.state != "waiting"}
        while not view.is_over:
            time.sleep(_pause(view, every))
            seen(view)
            try:
                view = client.sweep(sweep)
            except (Unreachable, ApiError) as error:
                away = isinstance(error, Unreachable) or error.status >= 500
                if not away or time.monotonic() - answered > PATIENCE_SECONDS:
                    raise
                continue
            answered = time.monotonic()
            show(view)
            notice = _noticed(view, notice, console)
            _answered(view, handled, console)
    return view


def _pause(sweep: "SweepView", every: float) -> float:
    """Seconds until the next read: at most half of the remaining time."""
    left = sweep.eta_seconds
    return min(every, UNKNOWN_SECONDS if left is None else max(SOON_SECONDS, left / 2))


def _answered(sweep: "SweepView", handled: set[int], console: Output) -> None:
    """Print the outcome of each request that was handled since the last call."""
    for request in reversed(sweep.requests):
        if request.state != "waiting" and request.id not in handled:
            handled.add(request.id)
            by = f" of {request.actor}" if request.actor else ""
            refused = "refused: " if request.state == "refused" else ""
            console.print(f"request {request.id} ({request.kind}){by}: {refused}{request.outcome}", style="yellow")


def _noticed(sweep: "SweepView", before: str | None, console: Output) -> str | None:
    """Print why trials wait when the reason changes; returns the current reason."""
    if sweep.notice != before and (sweep.notice or sweep.state not in SWEEP_ENDED):
        console.print(sweep.notice or "what its trials waited for is there", style="yellow")
    return sweep.notice


def verdict(sweep: "SweepView", console: Output) -> int:
    """Print how a sweep ended; returns the exit code, which is 0 only if every trial gave a result."""
    counts = sweep.counts
    took = f" in {duration((sweep.ended - sweep.started).total_seconds())}" if sweep.ended and sweep.started else ""
    facts = [f"{counts.finished} of {sweep.total} trials finished"]
    for number, word in (
        (counts.reused, "reused"),
        (counts.diverged, "diverged"),
        (counts.failed, "failed"),
        (counts.cancelled, "cancelled"),
        (counts.pruned, "pruned"),
        (counts.evaluations_failed, "not evaluated"),
    ):
        facts += [f"{number} {word}"] if number else []
    console.print(f"sweep {sweep.id} {sweep.name}: {sweep.state}{took}; {', '.join(facts)}")
    if sweep.reuse:
        console.print(f"  {sweep.reuse.summary}")
    if sweep.error:
        console.print(f"  {sweep.error}")
    for problem in sweep.problems[:10]:
        labels = ", ".join(f"{axis}={label}" for axis, label in problem.labels.items())
        console.print(f"  trial {problem.trial} ({labels}) {problem.state}: {problem.message}")
    if len(sweep.problems) > 10:
        console.print(f"  and {len(sweep.problems) - 10} more; `metricsweep show {sweep.id}` lists them")
    good = sweep.state == SweepState.FINISHED and not (counts.failed or counts.cancelled or counts.evaluations_failed)
    return OK if good else FAILED


def _lost(counts: "Counts") -> str:
    return f"{counts.failed} failed" + (f"  {counts.cancelled} cancelled" if counts.cancelled else "")


def _left(sweep: "SweepView") -> str:
    if sweep.state in SWEEP_ENDED:
        return str(sweep.state)
    if sweep.eta_seconds is None and (left := sweep.counts.evaluations):
        return f"{left} {'evaluation' if left == 1 else 'evaluations'} left"
    return sweep.left or "ETA unknown yet"


@contextmanager
def _bar(console: Output) -> Iterator[_Show]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[steps]}  {task.fields[trials]}"),
        TextColumn("{task.fields[running]} running  {task.fields[lost]}  {task.fields[left]}"),
        TimeElapsedColumn(),
    )
    # Text that is printed meanwhile appears above the bar.
    with Progress(*columns, console=Console(file=console.stream, highlight=False)) as progress:
        task = progress.add_task("sweep", total=None, steps="", trials="", running=0, lost="", left="")

        def show(sweep: "SweepView") -> None:
            counts = sweep.counts
            # escaped, since a task's description is always markup
            name = one_line(sweep.name).replace("[", r"\[")
            progress.update(
                task,
                description=f"sweep {sweep.id} {name}",
                total=sweep.steps.total or None,
                completed=sweep.steps.done,
                steps=sweep.steps.summary,
                trials=f"{counts.done}/{sweep.total}",
                running=counts.running,
                lost=_lost(counts),
                left=_left(sweep),
            )

        yield show


@contextmanager
def _lines(console: Output) -> Iterator[_Show]:
    last = ""
    when = float("-inf")

    def show(sweep: "SweepView") -> None:
        nonlocal last, when
        counts = sweep.counts
        ended = f"{counts.done}/{sweep.total} trials"
        line = f"{sweep.state:9}  {sweep.steps.summary}  {ended}  {counts.running} running  {_lost(counts)}"
        over = sweep.state in SWEEP_ENDED
        if line == last or (not over and time.monotonic() - when < LINE_SECONDS):
            return
        console.print(f"{time.strftime('%H:%M:%S')}  sweep {sweep.id}  {line}" + ("" if over else f"  {_left(sweep)}"))
        last, when = line, time.monotonic()

    yield show
