"""A bystander: somebody who asks for the database's write lock every 50 ms, and says how long they waited.

    python -m benchmarks.bystander sqlite:///home/metricsweep.db      # until its standard input is closed

What waits is what every submit, retry, login and renewal of the lease waits for while somebody else writes.
"""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from orchestrator.record.clock import DatabaseSeconds
from orchestrator.record.database import Database
from orchestrator.record.schema import lease
from orchestrator.views.errors import UnavailableError

EVERY: Final = 0.05


@contextmanager
def beside(url: str) -> Iterator[dict[str, Any]]:
    """What somebody waited in a process of its own, filled in at the end: `longest`, `mean` in ms, and `asked`."""
    told: dict[str, Any] = {}
    command = [sys.executable, "-m", "benchmarks.bystander", url]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()  # it has begun
        try:
            yield told
        finally:
            process.stdin.close()
            told |= json.loads(process.stdout.read())


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
    database, ended = Database(sys.argv[1]), threading.Event()

    def listen() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=listen, daemon=True).start()
    print("begun", flush=True)
    found = waits(database, ended)
    mean = sum(found) / max(1, len(found))
    print(json.dumps({"longest": round(max(found, default=0.0)), "mean": round(mean, 1), "asked": len(found)}))


if __name__ == "__main__":
    main()
