"""Transactions beside one another, as only Postgres has them: SQLite has one writer at a time."""

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

from orchestrator.record.store import Store

HANGS = 60.0
"""Seconds after which something that waits for ever is given up."""
OVER_POSTGRES = pytest.mark.parametrize(
    "database_url", [pytest.param("postgres", marks=pytest.mark.postgres)], indirect=True
)


def waits_for_a_lock(store: Store) -> None:
    """Return once a transaction waits for a lock."""
    query = sa.text(
        "SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid) "
        "WHERE NOT granted AND datname = current_database()"
    )
    deadline = time.monotonic() + HANGS
    while time.monotonic() < deadline:
        with store.database.reading() as connection:
            if connection.execute(query).scalar_one():
                return
    pytest.fail("nobody waits")


def beside(act: Callable[[], Any]) -> threading.Thread:
    thread = threading.Thread(target=act, daemon=True)
    thread.start()
    return thread
