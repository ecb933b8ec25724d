"""Steps that most faults share: submit a sweep, wait for a moment of it, and see it whole at its end."""

import json
import time
from typing import Any

from tests.faults.evidence import Found, attempts_of, heard, holders, inspect, rows, same_table
from tests.faults.installation import Installation
from tests.faults.sweeps import undisturbed
from tests.faults.trainings import PACE

COUNTED = "tests.faults.trainings:counted"
STEP_SECONDS = 0.08
HELD = 8
"""A step at which trainings may be held: between two checkpoints."""


def begin(
    installation: Installation, body: bytes, *, seconds: float = STEP_SECONDS, kept: int = 0, hold: int | None = None
) -> int:
    """Submit a sweep whose steps take so long and whose checkpoints have so many bytes; its number.

    `hold`: the step that its trainings do not pass until `go_on`, so that it is not over before the fault is there,
    however busy the machine is.
    """
    _pace(installation, {"seconds": seconds, "bytes": kept, "hold": hold})
    return installation.client.submit(body).id


def go_on(installation: Installation, hold: int | None = None) -> None:
    """Let trainings pass the step at which they are held, up to another one."""
    file = installation.home / PACE
    _pace(installation, {**(json.loads(file.read_text()) if file.exists() else {}), "hold": hold})


def deafen(installation: Installation, process: int) -> None:
    """Make the training of a process ignore requests to stop."""
    _pace(installation, {**json.loads((installation.home / PACE).read_text()), "deaf": process})


def outgrow(installation: Installation, process: int) -> None:
    """Have what a process trains take more memory than it may have."""
    _pace(installation, {**json.loads((installation.home / PACE).read_text()), "hold": None, "grow": process})


def _pace(installation: Installation, told: dict[str, Any]) -> None:
    """All at once, for trainings read it at every step."""
    file = installation.home / PACE
    file.with_suffix(".new").write_text(json.dumps(told))
    file.with_suffix(".new").replace(file)


def trains(installation: Installation, sweep: int, at_least: int = 1) -> list[tuple[str, int]]:
    """Wait until so many trainings of a sweep have taken steps and run; each with its process."""

    found: dict[str, int] = {}

    def enough() -> bool:
        nonlocal found
        running = _running(installation, sweep)
        found = {training: pid for training, pid in holders(installation.home, 0.0) if training in running}
        return len(found) >= at_least

    installation.until(enough, f"{at_least} trainings take steps")
    return sorted(found.items())


def held(installation: Installation, sweep: int, step: int = HELD, count: int = 2) -> list[tuple[str, int]]:
    """Wait until the database knows that so many trainings of a sweep stand at a step; each with its process."""
    installation.until(
        lambda: list(_running(installation, sweep).values()).count(step) >= count, f"{count} trainings are held"
    )
    return trains(installation, sweep, count)


def _running(installation: Installation, sweep: int) -> dict[str, int]:
    """The trainings of a sweep that run, and how far the database knows them to be."""
    query = (
        "SELECT t.uid, t.step FROM training t JOIN trial r ON r.training_id = t.id"
        " WHERE r.sweep_id = :sweep AND t.state = 'running'"
    )
    return {row.uid: row.step for row in rows(installation.settings.database, query, sweep=sweep)}


def wait(installation: Installation, seconds: float) -> None:
    """Let so many seconds pass, keeping all processes up."""
    over = time.monotonic() + seconds
    installation.until(lambda: time.monotonic() >= over, "time passes")


def recovery(installation: Installation, sweep: int, before: tuple[Any, ...] | None = None) -> float:
    """Seconds until a message of a training reaches the database again, or the sweep is over.

    `before`: the last messages.
    """
    known = heard(installation) if before is None else before
    query = "SELECT ended FROM sweep WHERE id = :sweep"
    return installation.until(
        lambda: heard(installation) != known or rows(installation.settings.database, query, sweep=sweep)[0][0],
        "the database hears of a training",
    )


def goes_on(installation: Installation, sweep: int) -> float:
    """Seconds until a later attempt of one of the sweep's trainings has reported something."""
    query = (
        "SELECT count(*) FROM attempt a JOIN trial t ON t.training_id = a.training_id"
        " WHERE t.sweep_id = :sweep AND a.number > 1 AND a.seen > 0"
    )
    url = installation.settings.database
    return installation.until(lambda: rows(url, query, sweep=sweep)[0][0], "a training goes on in another attempt")


def whole(installation: Installation, sweep: int, body: bytes, train: str = COUNTED) -> Found:
    """Let a sweep go on to its end, and see that it is as if nothing had happened."""
    go_on(installation)
    try:
        installation.until(lambda: installation.client.sweep(sweep).ended is not None, "the sweep ends")
    except AssertionError as error:
        raise AssertionError(f"{error}\n{attempts_of(installation)}") from error
    found = inspect(installation, sweep)
    same_table(installation, sweep, undisturbed(body, train))
    return found
