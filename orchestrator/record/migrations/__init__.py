"""Makes the tables of a new database, upgrades those of an older one with Alembic, and reads a database's version."""

from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Final

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from alembic.util import CommandError

from orchestrator.record.schema import audit, metadata, project
from orchestrator.views.errors import UnavailableError

_FOLDER: Final = Path(__file__).parent

_LOCK: Final = 0x6D73_7765  # any number, the same in every version


def config(connection: sa.Connection | None = None) -> Config:
    """Alembic's configuration: the scripts in this folder, run over the connection."""
    made = Config()
    # A percent sign in a path would be read as an interpolation.
    made.set_main_option("script_location", str(_FOLDER).replace("%", "%%"))
    made.attributes["connection"] = connection
    return made


def migrate(connection: sa.Connection) -> None:
    """Make the newest schema, or upgrade to it, in the connection's transaction, which locks out other migrations.

    Raises UnavailableError for a newer version's database.
    """
    if connection.dialect.name == "postgresql":
        # For SQLite, BEGIN IMMEDIATE is a lock.
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
    if difference(connection) is None:
        return
    if _current(connection) is None:
        _create(connection)
        command.stamp(config(connection), "head")
        return
    refuse_newer(connection)
    command.upgrade(config(connection), "head")


def _create(connection: sa.Connection) -> None:
    """Make the tables and the first rows in an empty database."""
    metadata.create_all(connection, checkfirst=False)
    # The database numbers it, so that the next project gets another number.
    connection.execute(sa.insert(project).values(name="main", open=True, created=datetime.now(UTC)))
    refusal = "the audit is only appended to"
    if connection.dialect.name == "sqlite":
        statements = [
            f"CREATE TRIGGER audit_no_{verb.lower()} BEFORE {verb} ON {audit.name} "
            f"BEGIN SELECT RAISE(ABORT, '{refusal}'); END"
            for verb in ("UPDATE", "DELETE")
        ]
    else:
        statements = [
            "CREATE FUNCTION audit_is_appended_to() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN RAISE EXCEPTION '{refusal}'; END $$",
            f"CREATE TRIGGER audit_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON {audit.name} "
            "FOR EACH STATEMENT EXECUTE FUNCTION audit_is_appended_to()",
        ]
    for statement in statements:
        connection.exec_driver_sql(statement)


def refuse_newer(connection: sa.Connection) -> None:
    """Raise UnavailableError for a database whose schema is not of this release or an older one."""
    differs, theirs = difference(connection), _current(connection)
    if differs is None or theirs is None:
        return
    try:
        ScriptDirectory.from_config(config()).get_revision(theirs)
    except CommandError as error:
        raise UnavailableError(
            f"the database was not made by this version of metricsweep or an older one: {differs}; start the release "
            "that upgraded it, or restore a backup from before the upgrade"
        ) from error


def difference(connection: sa.Connection) -> str | None:
    """How the versions of the database's and our schema differ, or `None`."""
    theirs, ours = _current(connection), _newest()
    return None if theirs == ours else f"its schema is version {theirs or 'none'}, this release's is {ours}"


def _current(connection: sa.Connection) -> str | None:
    """The version of the database's schema, as Alembic writes it; `None` for an empty database."""
    version = sa.table("alembic_version", sa.column("version_num"))
    if not sa.inspect(connection).has_table(version.name):
        return None
    return connection.scalar(sa.select(version.c.version_num))


@cache
def _newest() -> str:
    """The newest revision, by which its script is named."""
    return max(file.name.partition("_")[0] for file in (_FOLDER / "versions").glob("[0-9]*_*.py"))
