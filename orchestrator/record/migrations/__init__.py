"""Brings a database to this version's schema, step by step, from whatever version made it."""

from functools import cache
from pathlib import Path
from typing import Final

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError

from orchestrator.views.errors import UnavailableError

_FOLDER: Final = Path(__file__).parent

_LOCK: Final = 0x6D73_7765  # any number, the same in every version


def config(connection: sa.Connection | None = None) -> Config:
    """Alembic's configuration: the scripts beside this file, run over the connection."""
    made = Config()
    # A percent sign in a path would be read as an interpolation.
    made.set_main_option("script_location", str(_FOLDER).replace("%", "%%"))
    made.attributes["connection"] = connection
    return made


def migrate(connection: sa.Connection) -> None:
    """Upgrade to the newest schema within the connection's transaction, which keeps other migrators out.

    Raises UnavailableError for a database of a newer version than this one.
    """
    if connection.dialect.name == "postgresql":
        # SQLite's BEGIN IMMEDIATE is such a lock already.
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
    if difference(connection) is None:
        return  # Alembic reads and runs every step's file before it finds that there is nothing to do
    refuse_newer(connection)
    command.upgrade(config(connection), "head")


def refuse_newer(connection: sa.Connection) -> None:
    """Raise UnavailableError for a database whose schema is none of this release's or of one before it."""
    said, theirs = difference(connection), MigrationContext.configure(connection).get_current_revision()
    if said is None or theirs is None:
        return
    try:
        ScriptDirectory.from_config(config()).get_revision(theirs)
    except CommandError as error:
        raise UnavailableError(
            f"the database was not made by this version of metricsweep or an older one: {said}; start the release that "
            "upgraded it, or restore a backup from before the upgrade"
        ) from error


def difference(connection: sa.Connection) -> str | None:
    """The schema's version in the database beside ours, in words, where the two differ; none: they do not."""
    theirs = MigrationContext.configure(connection).get_current_revision()
    ours = _newest()
    return None if theirs == ours else f"its schema is version {theirs or 'none'}, this release's is {ours}"


@cache
def _newest() -> str | None:
    return ScriptDirectory.from_config(config()).get_current_head()
