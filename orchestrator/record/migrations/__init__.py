"""Brings a database to the declared schema with Alembic, and says which version it has."""

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import sqlalchemy as sa

from orchestrator.views.errors import UnavailableError

if TYPE_CHECKING:  # else imported where there is something to do, which a start seldom has: it takes .1 s
    from alembic.config import Config

_FOLDER: Final = Path(__file__).parent

_LOCK: Final = 0x6D73_7765  # any number, the same in every version


def config(connection: sa.Connection | None = None) -> "Config":
    """Alembic's configuration: the scripts beside this file, run over the connection."""
    from alembic.config import Config

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
    from alembic import command

    command.upgrade(config(connection), "head")


def refuse_newer(connection: sa.Connection) -> None:
    """Raise UnavailableError for a database whose schema is none of this release's or of one before it."""
    said, theirs = difference(connection), _current(connection)
    if said is None or theirs is None:
        return
    from alembic.script import ScriptDirectory
    from alembic.util import CommandError

    try:
        ScriptDirectory.from_config(config()).get_revision(theirs)
    except CommandError as error:
        raise UnavailableError(
            f"the database was not made by this version of metricsweep or an older one: {said}; start the release that "
            "upgraded it, or restore a backup from before the upgrade"
        ) from error


def difference(connection: sa.Connection) -> str | None:
    """The schema's version in the database beside ours, in words, where the two differ; none: they do not."""
    theirs, ours = _current(connection), _newest()
    return None if theirs == ours else f"its schema is version {theirs or 'none'}, this release's is {ours}"


def _current(connection: sa.Connection) -> str | None:
    """What the database says that its schema is, as Alembic writes it; none: an empty database."""
    version = sa.table("alembic_version", sa.column("version_num"))
    if not sa.inspect(connection).has_table(version.name):
        return None
    return connection.scalar(sa.select(version.c.version_num))


@cache
def _newest() -> str:
    """A script is named by its revision, and follows the one before it."""
    return max(file.name.partition("_")[0] for file in (_FOLDER / "versions").glob("[0-9]*_*.py"))
