"""A bystander: somebody who asks for the database's write lock every 50 ms, and says how long they waited.

    python -m benchmarks.bystander sqlite:///home/metricsweep.db      # until its standard input is closed

What waits is what every submit, retry, login and renewal of the lease waits for while somebody else writes. It is for
SQLite alone, whose one writer holds the whole file: on Postgres writers wait for rows that others write, and this one
writes none.
"""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

import sqlalchemy as sa

from orchestrator.record.columns import DatabaseSeconds
from orchestrator.record.database import Database
from orchestrator.record.schema import lease
from orchestrator.views.errors import UnavailableError

EVERY: Final = 0.05


@contextmanager
def alongside(url: str) -> Iterator[dict[str, Any]]:
    """The waiting times of another writer in its own process, filled in at the end; empty on Postgres.

    `longest` and `mean of the waits`, in ms, and `asked`, the number of writes. The writer has one write at a time: a
    long wait counts once in the mean, though every client that came during it would wait too.
    """
    seconds: dict[str, Any] = {}
    if not is_sqlite(url):
        yield seconds
        return
    command = [sys.executable, "-m", "benchmarks.bystander", url]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()  # it has begun
        try:
            yield seconds
        finally:
            process.stdin.close()
            seconds |= json.loads(process.stdout.read())


def is_sqlite(url: str) -> bool:
    """Whether the database of a URL has one writer for all that it holds."""
    return sa.make_url(url).get_backend_name() == "sqlite"


def waits(database: Database, ended: threading.Event) -> list[float]:
    """Milliseconds of each write until the end; a lease that is nobody's is what is written."""
    found = []
    while not ended.wait(EVERY):
        began = time.perf_counter()
        with suppress(UnavailableError), database.writing() as connection:  # SQLite gives up after 30 s
            connection.execute(lease.update().where(lease.c.name == "").values(until=DatabaseSeconds()))
        found.append(1000 * (time.perf_counter() - began))
    return found


def main() -> None:
    """Ask until nobody listens any more."""
    if not is_sqlite(sys.argv[1]):
        raise SystemExit("who writes to Postgres waits for rows, not for a writer; name a database of SQLite")
    database, ended = Database(sys.argv[1]), threading.Event()

    def listen() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=listen, daemon=True).start()
    print("begun", flush=True)
    found = waits(database, ended)
    mean = sum(found) / max(1, len(found))
    longest = round(max(found, default=0.0))
    print(json.dumps({"longest": longest, "mean of the waits": round(mean, 1), "asked": len(found)}))


if __name__ == "__main__":
    main()
