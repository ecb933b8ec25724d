"""Copies of a sweep's rows in a SQLite file, each with numbers of its own: a year of sweeps without training them."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

DAYS: Final = 365.0
EVALUATIONS: Final = 20
"""Of a training, each with a line of its log."""
_LINE: Final = "step 50/1000 loss 0.1234 validation/nmi 0.1234 validation/f1 0.1234 validation/recall@1 0.1234"
_SHIFTED: Final = frozenset({"created", "started", "ended", "begun", "at", "applied", "settled"})
"""Moments, of which a year is made; but for `attempt.created` they are texts."""
_NEW: Final = "substr(uid, 1, 24) || printf('%012x', id + :k * :{table}s)"
_DIGEST: Final = "printf('%08x', :k) || substr({column}, 9)"
_OF_SWEEP: Final = {"sweep_id": "sweep_id + :k"}
_OF_ATTEMPT: Final = {"attempt_id": "attempt_id + :k * :attempts"}
_OF_TRAINING: Final = {"training_id": "training_id + :k * :trainings"}
_NUMBERED: Final = ("training", "trial", "attempt", "metric", "request")
COPIED: Final[dict[str, dict[str, str]]] = {
    "sweep": {"id": "id + :k", "uid": "substr(uid, 1, 24) || printf('%012x', id + :k)", "idempotency_key": "NULL"},
    "cell": _OF_SWEEP,
    "candidate": _OF_SWEEP,
    "training": {
        "uid": _NEW.format(table="training"), "fingerprint": _DIGEST.format(column="fingerprint"),
        "base": _DIGEST.format(column="base"),
    },
    "trial": {**_OF_SWEEP, **_OF_TRAINING, "uid": _NEW.format(table="trial")},
    "attempt": {**_OF_TRAINING, "uid": _NEW.format(table="attempt")},
    "metric": _OF_ATTEMPT,
    "log": _OF_ATTEMPT,
    "request": _OF_SWEEP,
    "trial_column": _OF_SWEEP,
    "sweep_need": _OF_SWEEP,
    "tag": _OF_SWEEP,
    "note": _OF_SWEEP,
}  # fmt: skip
"""What is another in a copy, by table. Changes and deliveries are not copied: the conductor keeps few of them."""


def copy(file: Path, sweeps: int, points: int) -> None:
    """Make of the one sweep that a home has so many, the first a year old, each training with so many points."""
    with closing(sqlite3.connect(file, isolation_level=None)) as database:
        for pragma in ("synchronous = OFF", "cache_size = -200000", "foreign_keys = OFF"):
            database.execute(f"PRAGMA {pragma}")
        database.execute("BEGIN")
        _tell_more(database, points)
        for table in COPIED:
            if moments := _moments(database, table):
                aged = ", ".join(f"{column} = {_moved(column)}" for column in moments)
                database.execute(f"UPDATE {table} SET {aged}", {"days": f"-{DAYS} days"})
        database.execute("COMMIT")
        last = {
            f"{table}s": database.execute(f"SELECT coalesce(max(id), 0) FROM {table}").fetchone()[0]
            for table in _NUMBERED
        }
        for table, changed in COPIED.items():  # one after the other, so that pages are as full as those of years are
            database.execute("BEGIN")
            for k in range(1, sweeps):
                days = {"days": f"+{k * DAYS / sweeps} days"}
                database.execute(_copying(database, table, changed), {"k": k, **last, **days})
            database.execute("COMMIT")
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _copying(database: sqlite3.Connection, table: str, changed: dict[str, str]) -> str:
    moments = {column: _moved(column) for column in _moments(database, table)}
    numbered = {"id": f"id + :k * :{table}s"} if table in _NUMBERED else {}
    made = numbered | moments | changed
    columns = _columns(database, table)
    of_first = {
        "sweep": "id = 1", "training": "id <= :trainings", "attempt": "id <= :attempts", "metric": "id <= :metrics",
        "log": "attempt_id <= :attempts",
    }.get(table, "sweep_id = 1")  # fmt: skip
    values = ", ".join(made.get(column, column) for column in columns)
    return f"INSERT INTO {table} ({', '.join(columns)}) SELECT {values} FROM {table} WHERE {of_first}"


def _tell_more(database: sqlite3.Connection, points: int) -> None:
    """Give each attempt as many points as a real training reports, and the lines of its log."""
    keys = [f"train/{name}" for name in ("loss", "lr", "norm")]
    keys += [f"validation/{name}" for name in ("nmi", "f1", "recall@1", "recall@2", "map@r")]
    each = max(1, points // len(keys))
    for key in keys:
        database.execute(
            "WITH RECURSIVE n(at) AS (SELECT 2 UNION ALL SELECT at + 1 FROM n WHERE at <= ?) "
            "INSERT INTO metric (attempt_id, key, step, value, at) SELECT id, ?, n.at, 0.1234567, started "
            "FROM attempt, n",
            (each, key),
        )
    line, first = f"{_LINE}\n", len("trained\n")
    database.execute(
        "WITH RECURSIVE n(at) AS (SELECT 0 UNION ALL SELECT at + 1 FROM n WHERE at < ?) "
        "INSERT INTO log (attempt_id, seq, start, text) SELECT id, 1000 + n.at, ? + n.at * ?, ? FROM attempt, n",
        (EVALUATIONS - 1, first, len(line), line),
    )
    told = EVALUATIONS * len(line)
    database.execute("UPDATE training SET log_length = log_length + ?", (told,))
    database.execute("UPDATE attempt SET log_bytes = log_bytes + ?", (told,))


def _moments(database: sqlite3.Connection, table: str) -> list[str]:
    return [column for column in _columns(database, table) if column in _SHIFTED]


def _moved(column: str) -> str:
    return f"strftime('%Y-%m-%d %H:%M:%f000', {column}, :days)"


def _columns(database: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
