"""Leaks that are planted: without the rule of any one view, ada reads what is ben's, and the isolation tests see it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest
import sqlalchemy as sa

from orchestrator.record import database as database_module
from orchestrator.record.database import Database
from orchestrator.record.schema import metadata
from orchestrator.views.accounts import calling
from tests.api.two_worlds import MOVING, World, asked

TABLES: Final = sorted((*database_module._MINE, *database_module.OF_SWEEPS))


@contextmanager
def leaking(world: World, *tables: str) -> Iterator[None]:
    """Have the views of some tables show every row, as if nobody had thought of their rules."""
    database = world.service._store.database
    with pytest.MonkeyPatch.context() as patched:
        for table in tables:
            if table in database_module._MINE:
                patched.setitem(database_module._MINE, table, "1 = 1")
        kept = tuple(table for table in database_module.OF_SWEEPS if table not in tables)
        patched.setattr(database_module, "OF_SWEEPS", kept)
        _connect_anew(database)
        yield
    _connect_anew(database)


def _connect_anew(database: Database) -> None:
    if database._seeing is not None:
        database._seeing.dispose()
        database._seeing = None


def rows(world: World, table: str) -> list[str]:
    """What ada reads of a table, whatever she asks, without what moves."""
    with calling(world.caller("ada")), world.service._store.database.reading() as connection:
        found = connection.execute(sa.select(metadata.tables[table])).all()
    return sorted(MOVING.sub("~", str(tuple(row))) for row in found)


def test_ada_reads_the_same_rows_and_a_view_without_its_rule_shows_more(worlds: tuple[World, World]) -> None:
    alone, beside = worlds
    for table in TABLES:
        assert rows(beside, table) == rows(alone, table), table
        with leaking(beside, table):
            assert rows(beside, table) != rows(alone, table), f"ben left nothing in {table}: a leak would not be seen"
        assert rows(beside, table) == rows(alone, table), table


SHOWN: Final = (
    # The table whose view leaks, further ones that would have to leak too, and what would show it to ada.
    ("sweep", (), "GET", "/v1/sweeps/2/frames/candidates", {}),
    ("request", (), "GET", "/v1/requests/2", {}),
    ("training", (), "POST", "/v1/sweeps", {"dry_run": "true", "project": "adas"}),  # what training of that shape took
    ("trial", (), "GET", "/v1/trials/5/metrics", {}),
    ("cell", (), "POST", "/v1/sweeps/2/cancel", {"cell": "0"}),
    ("candidate", ("sweep", "cell", "trial", "training"), "GET", "/v1/trials", {"sweep": "2"}),
    ("trial_column", (), "GET", "/v1/columns", {}),
    ("resolution", (), "GET", "/v1/sweeps/2/resolution", {}),
    ("outbox", (), "GET", "/v1/mirror", {}),
    ("need", ("finding",), "GET", "/v1/data", {}),
    ("finding", ("need",), "GET", "/v1/data", {}),
    ("note", ("sweep",), "GET", "/v1/sweeps/2/remark", {}),
    ("tag", ("sweep",), "GET", "/v1/sweeps/2/remark", {}),
)
ASKED_FOR_BY_NO_ROUTE: Final = {
    **dict.fromkeys(("project", "account", "membership", "audit"), "routes of administrators ask for it, no others"),
    "token": "a user's are asked for by name, one's own",
    **dict.fromkeys(("quota", "past_attempt"), "counted as a whole, and shown by name: test_projects.py"),
    **dict.fromkeys(("change", "delivery"), "read once for all, and told by sweep: test_projects.py"),
    "sweep_need": "the conductor's; findings are seen by a rule of their own",
}
"""What no rule but its view's keeps from a user's queries, were there one."""


def test_of_every_view_is_known_what_would_show_its_leak() -> None:
    assert sorted([*(one[0] for one in SHOWN), *ASKED_FOR_BY_NO_ROUTE]) == TABLES


@pytest.mark.parametrize(("table", "too", "method", "path", "given"), SHOWN, ids=[one[0] for one in SHOWN])
def test_a_route_shows_what_a_view_without_its_rule_lets_through(
    worlds: tuple[World, World], table: str, too: tuple[str, ...], method: str, path: str, given: dict[str, str]
) -> None:
    alone, beside = worlds
    told = asked(alone, method, path, given, page=False)
    assert asked(beside, method, path, given, page=False) == told
    with leaking(beside, *too):
        guarded = asked(beside, method, path, given, page=False)
    with leaking(beside, *too, table):
        assert asked(beside, method, path, given, page=False) != guarded
    assert asked(beside, method, path, given, page=False) == told
