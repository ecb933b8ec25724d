"""`watch`: a sweep's progress until it ends, as a bar in a terminal and as lines elsewhere."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Final

import typer

from api.commands.terminal import FAILED, HOME, OK, Home, Output, SweepId, Token, Url, connect, out
from orchestrator.host.logs import one_line
from orchestrator.views.pages import duration
from orchestrator.views.states import SWEEP_ENDED, SweepState

if TYPE_CHECKING:
    from api.client import Client
    from orchestrator.views.sweeps import Counts, SweepView

POLL_SECONDS: Final = 2.0
UNKNOWN_SECONDS: Final = 1.0
"""Most seconds between two looks while the time that is left is unknown."""
SOON_SECONDS: Final = 0.1
"""Between two looks at what is about to end, at least: whoever runs it waits for that."""
LINE_SECONDS: Final = 5.0
PATIENCE_SECONDS: Final = 60.0
"""How long a server that answered before may be away: it is being started again."""

Show = Callable[["SweepView"], None]


def watch(
    number: SweepId,
    every: Annotated[
        float,
        typer.Option(min=0.1, help="Seconds between two looks, where anything changes; fewer near its end."),
    ] = POLL_SECONDS,
    url: Url = None,
    token: Token = None,
    home: Home = HOME,
) -> None:
    """Watch a sweep until it ends; exits with 1 when it failed, lost trials or was cancelled."""
    with connect(url, token, home) as client:
        raise typer.Exit(verdict(follow(client, number, out, every), out))


def follow(
    client: "Client",
    sweep: int,
    console: Output,
    every: float = POLL_SECONDS,
    check: Callable[[], None] = lambda: None,
    seen: Callable[["SweepView"], None] = lambda sweep: None,
) -> "SweepView":
    """Show a sweep's progress until it has ended, or `check` or `seen`, called every so many seconds, raises.

    It is asked for when the server tells that it changed, and each time where the server tells nothing.
    """
    from api.connection import ApiError, Unreachable

    with client.changes(sweep) as changes, (_bar if console.is_terminal else _lines)(console) as show:
        answered = time.monotonic()
        view = client.sweep(sweep)
        show(view)
        notice = _noticed(view, None, console)
        heard = {one.id for one in view.requests if one.state != "waiting"}
        while not view.is_over:
            time.sleep(_pause(view, every) if changes.live else every)
            check()
            seen(view)
            if not changes.due():
                continue
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
            _answered(view, heard, console)
    return view


def _pause(sweep: "SweepView", every: float) -> float:
    """Seconds until the next look: half of what is left, where that is less."""
    left = sweep.eta_seconds
    return min(every, UNKNOWN_SECONDS if left is None else max(SOON_SECONDS, left / 2))


def _answered(sweep: "SweepView", heard: set[int], console: Output) -> None:
    """Say once what became of each request that came meanwhile, whoever asked."""
    for one in reversed(sweep.requests):
        if one.state != "waiting" and one.id not in heard:
            heard.add(one.id)
            by = f" of {one.actor}" if one.actor else ""
            refused = "refused: " if one.state == "refused" else ""
            console.print(f"request {one.id} ({one.kind}){by}: {refused}{one.outcome}", style="yellow")


def _noticed(sweep: "SweepView", before: str | None, console: Output) -> str | None:
    """Say why trials wait, once, and when that is over; what is said now."""
    if sweep.notice != before and (sweep.notice or sweep.state not in SWEEP_ENDED):
        console.print(sweep.notice or "what its trials waited for is there", style="yellow")
    return sweep.notice


def verdict(sweep: "SweepView", console: Output) -> int:
    """Say how a sweep ended and give the exit code: 0 only when every trial gave a result."""
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
        console.print(f"  {sweep.reuse.said}")
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
def _bar(console: Output) -> Iterator[Show]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[steps]}  {task.fields[trials]}"),
        TextColumn("{task.fields[running]} running  {task.fields[lost]}  {task.fields[left]}"),
        TimeElapsedColumn(),
    )
    # While it is shown, what is printed goes above it.
    with Progress(*columns, console=Console(file=console.stream, highlight=False)) as progress:
        task = progress.add_task("sweep", total=None, steps="", trials="", running=0, lost="", left="")

        def show(sweep: "SweepView") -> None:
            counts = sweep.counts
            # escaped, since a task's description is markup whatever the console says
            name = one_line(sweep.name).replace("[", r"\[")
            progress.update(
                task,
                description=f"sweep {sweep.id} {name}",
                total=sweep.steps.total or None,
                completed=sweep.steps.done,
                steps=sweep.steps.said,
                trials=f"{counts.done}/{sweep.total}",
                running=counts.running,
                lost=_lost(counts),
                left=_left(sweep),
            )

        yield show


@contextmanager
def _lines(console: Output) -> Iterator[Show]:
    last = ""
    when = float("-inf")

    def show(sweep: "SweepView") -> None:
        nonlocal last, when
        counts = sweep.counts
        ended = f"{counts.done}/{sweep.total} trials"
        line = f"{sweep.state:9}  {sweep.steps.said}  {ended}  {counts.running} running  {_lost(counts)}"
        over = sweep.state in SWEEP_ENDED
        if line == last or (not over and time.monotonic() - when < LINE_SECONDS):
            return
        console.print(f"{time.strftime('%H:%M:%S')}  sweep {sweep.id}  {line}" + ("" if over else f"  {_left(sweep)}"))
        last, when = line, time.monotonic()

    yield show
