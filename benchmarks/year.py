"""What today's work costs in a home with a year of ended sweeps, beside one with a single one: CPU and bytes a trial.

    python -m benchmarks.year [--ended 1 200] [--shape 10x10x10] [--points 40] [--today 9x10x10] [--times 9]

One sweep is trained by a function that takes no time, and its rows are copied (`benchmarks.copied_sweeps`) into so many
ended ones, the first a year old. Then today's sweep is submitted and trained to its half, and all is asked that people
and the conductor ask: milliseconds of CPU, the median of `--times`, and the thousands of steps of SQLite's machine,
which no busy machine lengthens. Each home has a process of its own. 200 sweeps of 1,000 trials are 4 GB.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa

from benchmarks.copied_sweeps import bytes_by_table, copy
from benchmarks.sweep_of import Shape, body
from orchestrator.conduct.chores import Chores
from orchestrator.record.store import Store
from orchestrator.run.attempt import Workplace
from orchestrator.run.inline import Inline
from orchestrator.service.listings import ListingWish
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from tests.inline_conductor import conduct
from workers import catalog as catalogs

GRAIN: Final = 1_000
"""Steps of SQLite's machine between two counts."""
SCHEDULED: Final = 100
"""Trials from the claim to the result that are timed."""
Told = dict[str, Any]
_steps = 0


def _step() -> int:
    global _steps  # noqa: PLW0603 - SQLite calls it with nothing
    _steps += 1
    return 0


def counting(connection: Any, record: Any) -> None:
    """Count what SQLite does over a new connection."""
    connection.set_progress_handler(_step, GRAIN)


def questions(service: Service, today: int, shape: Shape) -> Mapping[str, Callable[[], Any]]:
    """What people ask, by name; of today's sweep."""
    store = service._store
    trial = service.trials.page(today, None, None, None, 1).items[0].id
    trials, candidates = ListingWish(), ListingWish(of="candidates")
    some, word = ListingWish(where="optimizer.lr<5e-6 map@r>.9"), ListingWish(where="triplet")
    own = ListingWish(sweep=today)

    def listing(wish: ListingWish, sort: str, count: bool = True) -> Callable[[], Any]:
        return lambda: service.listings.page(wish, sort, None, None, 50, count=count)

    return {
        "open the database": lambda: Store.of(service.operations._settings).close(),
        "list of sweeps, 50": lambda: service.sweeps.page(None, None, None, 50),
        "list of sweeps, by name": lambda: service.sweeps.page(None, "none such", None, 50),
        "list of sweeps, those that run": lambda: service.sweeps.page("running", None, None, 50),
        "one sweep": lambda: service.sweeps.get(today),
        "grid of it": lambda: service.sweeps.grid(today),
        "trials of it, 50": lambda: service.trials.page(today, None, None, None, 50),
        "one trial": lambda: service.trials.get(trial),
        "curves of a trial": lambda: service.curves._store.curves.of(trial),
        "table of it, anew": lambda: service.tables._rendered(today, "main", "json", None, "own"),
        "table of it, kept": lambda: service.tables.render(today, "main", "json"),
        "events, the last 100": lambda: store.changes.after(store.changes.newest() - 100, 1_000),
        "trials of all, newest": listing(trials, "-trial"),
        "trials of all, newest, uncounted": listing(trials, "-trial", count=False),
        "trials of all, best first": listing(trials, "-map@r"),
        "trials of all, filtered": listing(some, "-map@r"),
        "trials of all, a word": listing(word, "-map@r"),
        "trials of it, best first": listing(own, "-map@r"),
        "candidates of all, best first": listing(candidates, "-map@r"),
        "columns of all": service.listings.columns,
        "cluster and queue": service.operations._look,
        "quotas": store.quotas.uses,
        "gauges": lambda: store.gauges.read(None),
        "readiness": service.operations._checked,
        "ledgers": service.ledgers.summaries,
        "preview, its trials": lambda: service.submissions.preview(body(shape, 3)),
        "preview, known trials": lambda: service.submissions.preview(body(shape, 2)),
    }


def submits(service: Service) -> Callable[[], Any]:
    """A submit of a single trial, each time another."""
    numbers = iter(range(10, 1_000_000))
    return lambda: service.submissions.submit(body(Shape(1, 1, 1), next(numbers)))


def measured(ask: Callable[[], Any], times: int) -> list[float]:
    """Milliseconds of CPU, the median, and thousands of steps of an answer, after one that is not counted."""
    ask()
    took, before = [], _steps
    for _ in range(times):
        began = time.process_time()
        ask()
        took.append(1_000 * (time.process_time() - began))
    return [round(statistics.median(took), 1), round((_steps - before) * GRAIN / 1_000 / times, 1)]


def scheduled(settings: Settings) -> list[float]:
    """The same of a trial from its claim to its result, by trials; less what a conductor takes to begin."""
    before, began = _steps, time.process_time()
    conduct(settings, orders=0)
    idle, idle_steps = time.process_time() - began, _steps - before
    before, began = _steps, time.process_time()
    conduct(settings, orders=SCHEDULED)
    took, steps = time.process_time() - began - idle, _steps - before - idle_steps
    return [round(1_000 * took / SCHEDULED, 2), round(steps * GRAIN / 1_000 / SCHEDULED, 2)]


@contextmanager
def conducting(settings: Settings) -> Iterator[tuple[Callable[[], None], Callable[[], None]]]:
    """Hold the lease; gives what a conductor does before and at its first turn, and at one in which nothing happens."""
    store = Store.of(settings)
    fence = store.lease.acquire("benchmark", 3_600.0)
    assert fence is not None
    engine = Inline(Workplace(settings.train, settings.storage, settings.data_root))
    catalog, writer = catalogs.load(), store.writer(fence)
    made: list[Chores] = []

    def begin() -> None:
        made.append(Chores(settings, store, writer, engine, catalog, None))
        made[-1].do(finalize=True)

    def idle() -> None:
        made[-1].hindrances.look(anew=True)
        made[-1].do(finalize=True)
        writer.deliveries.prune(wanted=False)
        store.claims.waits(made[-1].passed_over())

    try:
        yield begin, idle
    finally:
        writer.lease.release()
        store.close()


def home(folder: Path, ended: int, shape: Shape, points: int, today: Shape, times: int) -> Told:
    """All figures of a home with so many ended sweeps."""
    sa.event.listen(sa.Engine, "connect", counting)
    settings = Settings(home=folder, engine="inline", train="benchmarks.instant:curved")
    service = Service.open(settings)
    service.submissions.submit(body(shape))
    conduct(settings)
    began = time.perf_counter()
    file = Path(settings.database.removeprefix("sqlite:///"))
    copy(file, ended, points)
    filled = time.perf_counter() - began
    size = bytes_by_table(file)
    submitted = service.submissions.submit(body(today, 2)).id
    conduct(settings, orders=today.trials // 2)
    answers = {"a trial, from claim to result": scheduled(settings)}
    with conducting(settings) as (begin, idle):
        answers |= {"conductor's first turn": measured(begin, times), "conductor's idle turn": measured(idle, times)}
    asked = questions(service, submitted, today)
    answers |= {name: measured(ask, times) for name, ask in asked.items()}
    answers["submit"] = measured(submits(service), times)
    service.close()
    trials = ended * shape.trials
    return {
        "ended sweeps": ended,
        "ended trials": trials,
        "filled, s": round(filled),
        "database, MB": round(sum(size.values()) / 2**20),
        "bytes an ended trial": {table: round(one / trials) for table, one in size.items() if one / trials >= 1},
        "CPU ms, thousand steps": answers,
    }


def table(homes: list[Told]) -> str:
    """The answers as a table of Markdown: CPU ms and thousand steps of each home."""
    heads = [f"{one['ended trials']:,} ended trials: CPU ms | thousand steps" for one in homes]
    lines = [f"| | {' | '.join(heads)} |", f"|---|{'--:|--:|' * len(homes)}"]
    for name in homes[0]["CPU ms, thousand steps"]:
        cells = [f"{value:,}" for one in homes for value in one["CPU ms, thousand steps"][name]]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Print it as a table, then as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ended", type=int, nargs="+", default=[1, 200])
    parser.add_argument("--shape", default="10x10x10")
    parser.add_argument("--points", type=int, default=40)
    parser.add_argument("--today", default="9x10x10")
    parser.add_argument("--times", type=int, default=9)
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    shape, today = Shape.parse(chosen.shape), Shape.parse(chosen.today)
    if chosen.alone:
        with tempfile.TemporaryDirectory(prefix="metricsweep-") as folder:
            print(json.dumps(home(Path(folder), chosen.ended[0], shape, chosen.points, today, chosen.times)))
        return
    homes = []
    for ended in chosen.ended:
        command = [sys.executable, "-m", "benchmarks.year", *sys.argv[1:], "--alone", "--ended", str(ended)]
        homes.append(json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout))
    print(table(homes))
    facts = {"cores": os.cpu_count(), "load": round(os.getloadavg()[0], 1), "python": platform.python_version()}
    print(json.dumps({**facts, "points a trial": chosen.points, "homes": homes}, indent=2))


if __name__ == "__main__":
    main()
