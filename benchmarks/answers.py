"""What the service's answers take of the processor, one after the other: `python -m benchmarks.answers`.

Over a sweep of which half has ended and a list of small ones that wait, in this process, without HTTP: milliseconds of
CPU, the mean of `--times`. A submit is one of a single trial. A table is asked for anew after nothing changed, after a
trial changed in 1 or in 20 candidates, and with nothing kept. What `benchmarks.latency` shows beyond this is what
requests wait for.
"""

import argparse
import itertools
import json
import os
import platform
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from benchmarks.latency import train_some
from benchmarks.sweep_of import Shape, body
from orchestrator.record.database import Database
from orchestrator.record.schema import trial as trial_table
from orchestrator.service.service import Service
from orchestrator.settings import Settings


def questions(service: Service, trials: int) -> Mapping[str, Callable[[], Any]]:
    """What is asked, by name."""
    numbers = itertools.count(2)
    trial = itertools.cycle(range(1, trials + 1))
    return {
        "submit": lambda: service.submissions.submit(body(Shape(1, 1, 1), next(numbers))),
        "sweeps, 50": lambda: service.sweeps.page(None, None, None, 50),
        "one sweep": lambda: service.sweeps.get(1),
        "trials, 50": lambda: service.trials.page(1, None, None, None, 50),
        "one trial": lambda: service.trials.get(next(trial)),
        "table, kept": lambda: service.tables.render(1, "main", "json"),
    }


def tables_anew(service: Service, database: Database) -> Mapping[str, tuple[Callable[[], Any], Callable[[], Any]]]:
    """What is asked of a table, by name, and what happens before each time."""

    def ask() -> Any:
        return service.tables._rendered(1, "main", "json", None, "own")

    named = {f"table, candidates changed: {count}": (ask, changing(database, count)) for count in (0, 1, 20)}
    return {**named, "table, nothing kept": (ask, lambda: service.tables._store.outcomes._kept.forget(1))}


def changing(database: Database, count: int) -> Callable[[], None]:
    """Has a trial of each of so many candidates, from all over what waits, begin, and the next time wait again."""
    table = trial_table.c
    first = sa.select(sa.func.min(table.id)).where(table.sweep_id == 1, table.state == "waiting")
    with database.reading() as connection:
        waiting = list(connection.execute(first.group_by(table.cell, table.candidate)).scalars())
    chosen = sorted(waiting)[:: max(1, len(waiting) // max(1, count))][:count]
    states = itertools.cycle(("running", "waiting"))

    def change() -> None:
        with database.writing() as connection:
            connection.execute(sa.update(trial_table).where(table.id.in_(chosen)).values(state=next(states)))

    return change


def cpu_milliseconds(ask: Callable[[], Any], times: int, before: Callable[[], Any] = lambda: None) -> float:
    """The mean of so many answers, after one that is not counted, and without what happens before each."""
    ask()
    took = 0.0
    for _ in range(times):
        before()
        began = time.process_time()
        ask()
        took += time.process_time() - began
    return 1_000 * took / times


def main() -> None:
    """Print it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", default="10x100x10")
    parser.add_argument("--times", type=int, default=60)
    options = parser.parse_args()
    shape = Shape.parse(options.shape)
    with tempfile.TemporaryDirectory(prefix="metricsweep-") as folder:
        settings = Settings(home=Path(folder), engine="inline")
        environment = {"METRICSWEEP_HOME": folder, "METRICSWEEP_ENGINE": "inline"}
        train_some(settings, environment, shape, shape.trials // 2)
        service, database = Service.open(settings), Database(settings.database)
        try:
            asked = questions(service, shape.trials)
            took = {name: round(cpu_milliseconds(ask, options.times), 1) for name, ask in asked.items()}
            for name, (ask, before) in tables_anew(service, database).items():
                took[name] = round(cpu_milliseconds(ask, options.times, before), 1)
        finally:
            service.close()
            database.close()
    facts = {"cores": os.cpu_count(), "load": round(os.getloadavg()[0], 1), "python": platform.python_version()}
    print(json.dumps({**facts, "shape": str(shape), "CPU ms of an answer": took}, indent=2))


if __name__ == "__main__":
    main()
