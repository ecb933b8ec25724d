"""What the database, the reproduction and the API say of a sweep after a fault: nothing lost, nothing done twice."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from tests.faults.installation import Installation
from tests.faults.sweeps import FORMATS
from tests.faults.trainings import EVERY, REPRODUCTION


@dataclass(frozen=True)
class Found:
    """The counts of one disturbed sweep."""

    trials: int
    lost: int  # not in the database exactly once with the end that they deserve
    twice: int  # trainings of which two attempts ran at once, or that took again what a checkpoint had kept
    repeated: int  # steps taken again because no checkpoint held them yet
    attempts: int  # beyond the first of each training


def total(several: Sequence[Found]) -> Found:
    """The counts of several sweeps together."""
    return Found(*(sum(values) for values in zip(*map(astuple, several), strict=True)))


@contextmanager
def database(url: str) -> Iterator[sa.Connection]:
    """A connection that reads."""
    engine = sa.create_engine(url)
    try:
        with engine.connect() as connection:
            yield connection
    finally:
        engine.dispose()


def rows(url: str, query: str, **values: Any) -> list[Any]:
    """The rows of a query."""
    with database(url) as connection:
        return list(connection.execute(sa.text(query), values))


def heard(installation: Installation) -> tuple[Any, ...]:
    """Changes whenever the database hears of any training."""
    query = "SELECT count(*), sum(seen), sum(CASE WHEN state = 'running' THEN 1 ELSE 0 END) FROM attempt"
    return tuple(rows(installation.settings.database, query)[0])


def inspect(installation: Installation, sweep: int, ends: Mapping[str, int] | None = None) -> Found:
    """Count, and fail with all that is wrong; `ends`: how many trials deserve each end, by default all `finished`."""
    url = installation.settings.database
    view = installation.client.sweep(sweep)
    trials = rows(url, "SELECT cell, candidate, repeat, state FROM trial WHERE sweep_id = :sweep", sweep=sweep)
    deserved = dict(ends or {"finished": view.counts.total})
    states = Counter(row.state for row in trials)
    places = Counter((row.cell, row.candidate, row.repeat) for row in trials)
    attempts = rows(
        url,
        "SELECT t.uid, t.state AS training, a.number, a.state, a.id FROM training t JOIN attempt a ON"
        " a.training_id = t.id WHERE t.id IN (SELECT training_id FROM trial WHERE sweep_id = :sweep) ORDER BY a.id",
        sweep=sweep,
    )
    finished = Counter(row.uid for row in attempts if row.state == "finished")
    trainings = {row.uid: row.training for row in attempts}
    wrong = [
        *([f"the sweep is {view.state}"] if view.state != ("failed" if "failed" in deserved else "finished") else []),
        *([f"{len(trials)} trials instead of {view.counts.total}"] if len(trials) != view.counts.total else []),
        *([f"the trials ended {dict(states)} instead of {deserved}"] if states != Counter(deserved) else []),
        *[f"place {place} has {count} trials" for place, count in places.items() if count > 1],
        *[f"attempt {row.number} of {row.uid} is still running" for row in attempts if row.state == "running"],
        *[
            f"{uid} has {finished[uid]} finished attempts"
            for uid, state in trainings.items()
            if finished[uid] != (state == "finished")
        ],
        *_repeated_points(url, sweep),
    ]
    lost = sum((Counter(deserved) - states).values())
    reproductions = [steps_of(installation.home, uid) for uid in trainings]
    found = Found(
        trials=len(places),
        lost=lost,
        twice=sum(twice(steps) for steps in reproductions),
        repeated=sum(len(steps) - len({step for _, step in steps}) for steps in reproductions),
        attempts=len(attempts) - len(trainings),
    )
    assert not wrong, wrong
    assert not found.twice, f"trained twice: {reproductions}"
    return found


def attempts_of(installation: Installation) -> str:
    """Every attempt, one a line, for the message of a failure."""
    query = "SELECT training_id, number, state, seen, holder, reason, started, ended FROM attempt ORDER BY id"
    return "\n".join(str(tuple(row)) for row in rows(installation.settings.database, query))


def nothing_requeued(installation: Installation, sweep: int, found: Found) -> None:
    """Fail if a training of the sweep needed another attempt after it had begun.

    A claim whose answer was lost with the database is given back before it begins, which costs nothing.
    """
    query = (
        "SELECT count(*) FROM attempt WHERE seen = 0 AND reason LIKE 'claimed by a conductor%'"
        " AND training_id IN (SELECT training_id FROM trial WHERE sweep_id = :sweep)"
    )
    unbegun = rows(installation.settings.database, query, sweep=sweep)[0][0]
    requeued = found.repeated or found.attempts > unbegun
    assert not requeued, f"a training was requeued:\n{attempts_of(installation)}"


def same_table(installation: Installation, sweep: int, undisturbed: Mapping[str, bytes]) -> None:
    """Whether the sweep's table is that of an undisturbed run, byte by byte but for the number of the sweep."""
    for name in FORMATS:
        table = installation.client.table(sweep, "main", name).content
        table = table.replace(b"sweep %d " % sweep, b"sweep 1 ").replace(b"-%d-main" % sweep, b"-1-main")
        assert table == undisturbed[name], f"{name}:\n{table.decode()}\ninstead of\n{undisturbed[name].decode()}"


def steps_of(home: Path, training: str) -> list[tuple[int, int]]:
    """(attempt, step) in the order in which they were taken."""
    file = home / REPRODUCTION / training
    lines = file.read_text().splitlines() if file.exists() else []
    return [(int(attempt), int(step)) for attempt, _, step, _ in map(str.split, lines)]


def holders(home: Path, since: float) -> list[tuple[str, int]]:
    """(training, process) of the steps noted after a moment, in order."""
    found = []
    for file in sorted((home / REPRODUCTION).glob("*")):
        for line in file.read_text().splitlines():
            _, pid, _, moment = line.split()
            if float(moment) >= since:
                found.append((float(moment), file.name, int(pid)))
    return [(training, pid) for _, training, pid in sorted(found)]


def twice(steps: Sequence[tuple[int, int]]) -> bool:
    """Whether two attempts took steps at once, or one took a step that a checkpoint of an earlier one had kept."""
    furthest, current, entered = 0, 0, 0
    for attempt, step in steps:
        if attempt < current:
            return True
        if attempt > current:
            current, entered = attempt, furthest
            if step <= entered - entered % EVERY - EVERY:  # killed between a step and its checkpoint: one further back
                return True
        furthest = max(furthest, step)
    return False


def _repeated_points(url: str, sweep: int) -> list[str]:
    query = (
        "SELECT m.attempt_id, m.key, m.step FROM metric m JOIN attempt a ON a.id = m.attempt_id WHERE a.training_id IN"
        " (SELECT training_id FROM trial WHERE sweep_id = :sweep) GROUP BY m.attempt_id, m.key, m.step"
        " HAVING count(*) > 1"
    )
    return [f"a point is there twice: {tuple(row)}" for row in rows(url, query, sweep=sweep)]
