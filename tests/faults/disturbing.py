"""Steps that most faults share: submit a sweep, wait for a moment of it, and see it whole at its end."""

import json
import time

from tests.faults.evidence import Found, heard, holders, inspect, rows, same_table
from tests.faults.installation import Installation
from tests.faults.sweeps import undisturbed
from tests.faults.trainings import PACE

COUNTED = "tests.faults.trainings:counted"
STEP_SECONDS = 0.08


def begin(installation: Installation, body: bytes, *, seconds: float = STEP_SECONDS, kept: int = 0) -> int:
    """Submit a sweep whose steps take so long and whose checkpoints have so many bytes; its number."""
    (installation.home / PACE).write_text(json.dumps({"seconds": seconds, "bytes": kept}))
    return installation.client.submit(body).id


def trains(installation: Installation, at_least: int = 1, patience: float = 120.0) -> list[tuple[str, int]]:
    """Wait until so many trainings take steps; each with its process."""

    def now() -> dict[str, int]:
        return dict(holders(installation.home, time.time() - 0.5))

    installation.until(lambda: len(now()) >= at_least, f"{at_least} trainings take steps", patience)
    return sorted(now().items())


def wait(installation: Installation, seconds: float) -> None:
    """Let so many seconds pass, keeping all processes up."""
    over = time.monotonic() + seconds
    installation.until(lambda: time.monotonic() >= over, "time passes")


def recovery(installation: Installation) -> float:
    """Seconds until the database hears of any training again."""
    before = heard(installation)
    return installation.until(lambda: heard(installation) != before, "the database hears of a training")


def goes_on(installation: Installation, sweep: int) -> float:
    """Seconds until a later attempt of one of the sweep's trainings has reported something."""
    query = (
        "SELECT count(*) FROM attempt a JOIN trial t ON t.training_id = a.training_id"
        " WHERE t.sweep_id = :sweep AND a.number > 1 AND a.seen > 0"
    )
    url = installation.settings.database
    return installation.until(lambda: rows(url, query, sweep=sweep)[0][0], "a training goes on in another attempt")


def whole(installation: Installation, sweep: int, body: bytes, train: str = COUNTED) -> Found:
    """Wait for the end of a sweep, and see that it is as if nothing had happened."""
    try:
        installation.until(lambda: installation.client.sweep(sweep).ended is not None, "the sweep ends")
    except AssertionError as error:
        query = "SELECT training_id, number, state, seen, holder, reason, started, ended FROM attempt ORDER BY id"
        attempts = "\n".join(str(tuple(row)) for row in rows(installation.settings.database, query))
        raise AssertionError(f"{error}\n{attempts}") from error
    found = inspect(installation, sweep)
    same_table(installation, sweep, undisturbed(body, train))
    return found
