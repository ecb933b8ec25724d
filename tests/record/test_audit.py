"""The audit, on SQLite and on Postgres: it is only appended to, and outlives what it tells of."""

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from orchestrator.host.log_context import about
from orchestrator.record.schema import audit
from orchestrator.record.store import Store
from orchestrator.views.callers import Caller, Role, calling
from orchestrator.views.errors import NotFoundError
from tests.record.sample import lease, new_sweep


def test_rows_are_added_and_nothing_else(store: Store) -> None:
    store.submissions.add_sweep(new_sweep())
    before = list(store.audit.after(0))
    for statement in (sa.update(audit).values(who="nobody"), sa.delete(audit), sa.delete(audit).where(audit.c.id == 0)):
        if "audit.id" in str(statement) and store.database.sqlite:
            continue  # a trigger of SQLite is of rows: of none there is nothing to refuse
        with pytest.raises(DBAPIError, match="the audit is only appended to"), store.database.writing() as connection:
            connection.execute(statement)
    if not store.database.sqlite:
        with pytest.raises(DBAPIError, match="the audit is only"), store.database.writing() as connection:
            connection.exec_driver_sql("TRUNCATE audit")
    assert list(store.audit.after(0)) == before


def test_it_tells_who_did_what_from_where(store: Store) -> None:
    """In the transaction of what it tells: of what was refused there is nothing."""
    fence = lease(store)
    who = Caller(name="ada on lab")
    with calling(who, "10.0.0.7"), about(request="abc"):
        store.owner.add_user("ben", Role.MEMBER)
        sweep = store.submissions.add_sweep(new_sweep("short")).id
        store.submissions.add_request("cancel", sweep, None, None)
        with pytest.raises(NotFoundError):
            store.submissions.add_request("cancel", 99, None, None)
    writer = store.writer(fence)
    writer.sweeps.fail(sweep, "no")
    asked = store.submissions.add_request("delete", sweep, None, "cleo")
    writer.sweeps.delete(sweep, asked)
    said = [(one.who, one.what, one.target, one.address, one.request) for one in store.audit.after(0)]
    mine = ("10.0.0.7", "abc")
    assert said == [
        ("ada on lab", "user added", "user ben", *mine),
        ("ada on lab", "submit", f"sweep {sweep}", *mine),
        ("ada on lab", "cancel", f"sweep {sweep}", *mine),
        ("cleo", "delete", f"sweep {sweep}", "", ""),
    ]
    assert [one.what for one in store.audit.after(3)] == ["delete"]
