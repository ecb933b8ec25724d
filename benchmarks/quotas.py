"""What it costs to sum the hours of quotas over many attempts: python -m benchmarks.quotas [--attempts 100000].

One project and one user with hours within 30 days, in SQLite; the attempts, of rows as they are, ended in the last 60.
"""

import argparse
import os
import tempfile
import time
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import sqlalchemy as sa

from orchestrator.record.schema import attempt
from orchestrator.record.store import Store
from orchestrator.views.quotas import Quota
from tests.record.sample import claimed, lease, run
from tests.record.test_quotas import sweep_of, user


def filled(store: Store, count: int) -> None:
    """A store of so many attempts of one user."""
    fence = lease(store)
    sweep_of(store, fence, user(store, "ada"))
    run(store, fence, claimed(store, fence))
    store.owner_quotas.put("user", "ada", Quota(cpu_hours=1e9, days=30))
    store.owner_quotas.put("project", "faces", Quota(cpu_hours=1e9))
    now = datetime.now(UTC)
    with store.database.writing() as connection:
        one = dict(connection.execute(sa.select(attempt)).mappings().one())
        del one["id"]
        rows = []
        for number in range(1, count):
            ended = now - timedelta(days=60 * number / count)
            held = {"uid": str(uuid.uuid4()), "number": 1 + number, "begun": ended - timedelta(hours=1), "ended": ended}
            rows.append(one | held)
        connection.execute(sa.insert(attempt), rows)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the CPU seconds of one look at all quotas, the best of five."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--attempts", type=int, default=100_000)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        store = Store.open(f"sqlite:///{Path(folder) / 'quotas.db'}")
        filled(store, options.attempts)
        seconds = []
        for _ in range(5):
            began = time.process_time()
            store.quotas.state()
            seconds.append(time.process_time() - began)
        store.close()
    print(f"{options.attempts:,} attempts, {os.cpu_count()} cores: {min(seconds):.2f} s of CPU")


if __name__ == "__main__":
    main()
