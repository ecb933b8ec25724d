"""What a caller sees: on its connections views of the tables' names stand before the tables, with its rows alone.

So there is one place that decides it. A query that names a table reads what is to be seen of it, whichever route, page
or export asked, those of later releases too; and a connection to which nobody has said whose it is shows nothing.
"""

from collections.abc import Iterator
from typing import Any, Final

import sqlalchemy as sa

from orchestrator.views.accounts import Caller

_PROJECTS: Final = "metricsweep.projects"
_ACCOUNT: Final = "metricsweep.account"

OF_SWEEPS: Final = (
    "trial", "cell", "candidate", "note", "tag", "trial_column", "sweep_need", "resolution", "outbox", "change",
    "delivery",
)  # fmt: skip
"""Tables whose rows are of one sweep."""

_MINE: Final = {
    "sweep": "project_id IN ({seen})",
    # What became of a request is told after its sweep has gone.
    "request": "project_id IN ({seen}) OR sweep_id IN (SELECT id FROM {real}.sweep WHERE project_id IN ({seen}))",
    # A training is seen by whoever has a trial of it: trials of several sweeps may share it.
    "training": (
        "EXISTS (SELECT 1 FROM {real}.trial AS t JOIN {real}.sweep AS s ON s.id = t.sweep_id"
        " WHERE (t.training_id = {real}.training.id OR t.evaluation_id = {real}.training.id)"
        " AND s.project_id IN ({seen}))"
    ),
    "need": (
        "EXISTS (SELECT 1 FROM {real}.sweep_need AS n JOIN {real}.sweep AS s ON s.id = n.sweep_id"
        " WHERE n.need = {real}.need.key AND s.project_id IN ({seen}))"
    ),
    "finding": (
        "EXISTS (SELECT 1 FROM {real}.sweep_need AS n JOIN {real}.sweep AS s ON s.id = n.sweep_id"
        " WHERE n.need = {real}.finding.need AND s.project_id IN ({seen}))"
    ),
    "project": "id IN ({seen})",
    # Who else there is, and by which tokens, no query of a caller needs.
    "account": "id IN ({own})",
    "membership": "account_id IN ({own})",
    "token": "account_id IN ({own})",
    "audit": "1 = 0",
    "quota": "1 = 0",
    "past_attempt": "1 = 0",
}


def install(engine: sa.Engine) -> None:
    """Have every connection of an engine of its own see nothing but what `show` says."""
    sqlite = engine.dialect.name == "sqlite"

    def connected(connection: Any, record: Any) -> None:
        cursor = connection.cursor()
        if not sqlite:
            cursor.execute("SELECT current_schema()")
        for statement in _statements("main" if sqlite else cursor.fetchone()[0], sqlite):
            cursor.execute(statement)
        cursor.close()
        if not sqlite:
            connection.commit()

    sa.event.listen(engine, "connect", connected)


def show(connection: sa.Connection, who: Caller) -> None:
    """Begin a transaction of a caller: from here on it sees the sweeps of its projects, and what is its own."""
    seen = sorted(who.seen or ())
    own = [] if who.user is None else [who.user]
    if connection.dialect.name == "sqlite":
        for table, numbers in (("seen_project", seen), ("own_account", own)):
            connection.exec_driver_sql(f"DELETE FROM temp.{table}")  # noqa: S608  names of ours
            for one in numbers:
                connection.exec_driver_sql(f"INSERT INTO temp.{table} VALUES (?)", (one,))  # noqa: S608
        return
    said = {name: "{" + ",".join(map(str, numbers)) + "}" for name, numbers in ((_PROJECTS, seen), (_ACCOUNT, own))}
    connection.execute(sa.select(*(sa.func.set_config(name, value, True) for name, value in said.items())))


def _statements(schema: str, sqlite: bool) -> Iterator[str]:
    real = f'"{schema}"'
    if sqlite:
        yield "CREATE TEMP TABLE seen_project (id INTEGER PRIMARY KEY)"
        yield "CREATE TEMP TABLE own_account (id INTEGER PRIMARY KEY)"
        seen, own = "SELECT id FROM temp.seen_project", "SELECT id FROM temp.own_account"
    else:  # of the transaction alone; none is set: no project
        seen, own = (
            f"SELECT unnest(coalesce(nullif(current_setting('{name}', true), ''), '{{}}')::int[])"
            for name in (_PROJECTS, _ACCOUNT)
        )
    for name, mine in _MINE.items():
        where = mine.format(seen=seen, own=own, real=real)
        yield f"CREATE TEMP VIEW {name} AS SELECT * FROM {real}.{name} WHERE {where}"  # noqa: S608  names of ours
    for name in OF_SWEEPS:
        its = f"SELECT id FROM {real}.sweep WHERE project_id IN ({seen})"  # noqa: S608
        yield f"CREATE TEMP VIEW {name} AS SELECT * FROM {real}.{name} WHERE sweep_id IN ({its})"  # noqa: S608
