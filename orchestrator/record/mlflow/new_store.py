"""A new backend store of MLflow: empty, and as its server would make it by two seconds of migrations."""

import importlib.metadata
import os
import secrets
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from time import time_ns
from typing import Final

TABLES: Final = Path(__file__).with_name("new_store.sql")
VERSION: Final = "3.17.2"
"""Of MLflow, whose tables these are: another one makes its own."""
REVISION: Final = "dc11669786a5"
"""Of its schema."""
ARTIFACTS: Final = "mlflow-artifacts:/"
"""Where a server that keeps artifacts itself, as `serve` starts it, says that they are."""

_ROWS: Final = """
    INSERT INTO alembic_version (version_num) VALUES (:revision);
    INSERT INTO workspaces (name, description) VALUES ('default', 'Default workspace for legacy resources');
    INSERT INTO experiments (experiment_id, name, artifact_location, lifecycle_stage, creation_time, last_update_time)
    VALUES (0, 'Default', :artifacts || '0', 'active', :now, :now);"""


def make(file: Path) -> bool:
    """Put a new store at `file` where nothing is; False where there is none and the installed MLflow has to make it."""
    if file.exists():
        return True
    if importlib.metadata.version("mlflow") != VERSION:
        return False
    aside = file.with_name(f".{file.name}-{secrets.token_hex(8)}")
    try:
        _fill(aside)
        with suppress(FileExistsError):  # a server was first
            os.link(aside, file)
    finally:
        aside.unlink(missing_ok=True)
    return True


def _fill(file: Path) -> None:
    values = {"revision": REVISION, "artifacts": ARTIFACTS, "now": time_ns() // 1_000_000}
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.executescript(f"BEGIN;\n{TABLES.read_text(encoding='utf-8')}")
        for statement in filter(str.strip, _ROWS.split(";")):
            connection.execute(statement, values)
        connection.execute("COMMIT")
