"""Whether the pages of a SQLite file are sound: looked at table by table, in a thread, for a bounded time."""

import logging
import os
import sqlite3
import threading
import time
from contextlib import closing
from typing import Final
from urllib.parse import quote

from orchestrator.record.database import Database

log = logging.getLogger(__name__)

CHECK_SECONDS: Final = 600.0
"""How often pages are looked at."""
LONGEST_SECONDS: Final = 30.0
"""How long one look may take; the next one goes on with the next table."""
_STEPS: Final = 10_000
"""Steps of SQLite's machine between two looks at the clock."""
_TABLES: Final = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
_CHECK: Final = "SELECT quick_check FROM pragma_quick_check(?)"


class PageCheck:
    """Looks now and then; safe to share between threads. Postgres checks its pages itself."""

    def __init__(self, database: Database) -> None:
        self._file = database.engine.url.database if database.sqlite else None
        self._lock = threading.Lock()
        self._due = float("-inf")
        self._damaged: set[str] = set()
        self._done = ""  # the last table of the look before, by name

    def damage(self) -> str | None:
        """Which tables the last look at each found damaged; `None` if none was. Begins the next look where it is due.

        Never waits: a look goes on in a thread of its own.
        """
        with self._lock:
            if self._file and time.monotonic() >= self._due:
                self._due = time.monotonic() + CHECK_SECONDS
                threading.Thread(target=self._look, name="page check", daemon=True).start()
            if not self._damaged:
                return None
            noun = "table" if len(self._damaged) == 1 else "tables"
            return f"the database file is damaged ({noun} {', '.join(sorted(self._damaged))}); restore a backup"

    def _look(self) -> None:
        try:
            # A connection of its own: one that is in use would answer from pages that it has in memory.
            uri = f"file:{quote(os.path.abspath(self._file or ''))}?mode=ro"
            with closing(sqlite3.connect(uri, uri=True, timeout=LONGEST_SECONDS)) as connection:
                self._look_through(connection, time.monotonic() + LONGEST_SECONDS)
        except sqlite3.Error as error:  # the file is away, or its first page is damaged: other checks say so
            log.warning("the database's pages cannot be looked at: %s", error)
        except Exception:
            log.exception("the database's pages cannot be looked at")

    def _look_through(self, connection: sqlite3.Connection, end: float) -> None:
        names = [str(name) for (name,) in connection.execute(_TABLES)]
        connection.set_progress_handler(lambda: time.monotonic() > end, _STEPS)
        later = [name for name in names if name > self._done]
        for name in [*later, *names[: len(names) - len(later)]]:
            if time.monotonic() > end:
                return
            self._done = name  # also one that takes longer than a look may: else no later one is ever reached
            try:
                found = [str(line) for (line,) in connection.execute(_CHECK, (name,))]
            except sqlite3.DatabaseError as error:
                if error.sqlite_errorcode == sqlite3.SQLITE_INTERRUPT:
                    return
                found = [str(error)]
            self._note(name, [] if found == ["ok"] else found)

    def _note(self, name: str, faults: list[str]) -> None:
        if faults:
            log.error("the table %s of the database is damaged: %s", name, "; ".join(faults[:5]))
        with self._lock:
            (self._damaged.add if faults else self._damaged.discard)(name)
