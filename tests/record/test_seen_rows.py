"""What a caller sees of each table, and the audit, which is only appended to."""

import ast
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from orchestrator import record
from orchestrator.host.identity import digest
from orchestrator.host.logs import about
from orchestrator.record import database
from orchestrator.record.schema import audit, metadata, sweep, training, trial
from orchestrator.record.store import Store, Writer
from orchestrator.views.accounts import Caller, Role, Scope, calling
from orchestrator.views.errors import NotAllowedError, NotFoundError
from tests.record.conftest import ON_BOTH
from tests.record.sample import new_sweep, run_all, started


def member(store: Store, name: str, project: str) -> Caller:
    store.owner.add_project(project, everyone=False)
    store.owner.add_user(name, Role.MEMBER)
    store.owner.join(name, project, steers=True)
    store.owner.add_token(name, "test", f"hash of {name}", Scope.WRITE, None)
    found = store.accounts.by_hash(f"hash of {name}")
    assert found is not None
    return found


def test_every_table_is_declared_visible_or_not() -> None:
    """A new one has to be: what nobody thought of would be shown whole."""
    of_trainings = ("attempt", "metric", "log", "collected")  # reached by a training alone, which is seen or not
    of_all = ("node", "slot", "installation", "lease")  # these tell nothing of a sweep
    named = [*database._MINE, *database.OF_SWEEPS, *of_trainings, *of_all]
    assert sorted(named) == sorted(metadata.tables)
    assert set(database.OF_SWEEPS) <= {name for name, table in metadata.tables.items() if "sweep_id" in table.columns}


@ON_BOTH
def test_a_caller_sees_the_rows_of_its_projects(store: Store, fence: int) -> None:
    ada, ben = member(store, "ada", "adas"), member(store, "ben", "bens")
    started(store, fence)  # in `main`, which everybody sees
    for who in (ada, ben):
        with calling(who):
            store.submissions.add_sweep(new_sweep(f"of {who.name}"))
    run_all(store, fence)
    for who, mine in ((ada, 2), (ben, 3)):
        with calling(who), store.database.reading() as connection:
            assert set(connection.execute(sa.select(sweep.c.id)).scalars()) == {1, mine}
            assert set(connection.execute(sa.select(trial.c.sweep_id)).scalars()) == {1}
            assert connection.execute(sa.select(sa.func.count()).select_from(training)).scalar_one() > 0
            for table, column in (("account", "id"), ("membership", "account_id"), ("token", "account_id")):
                assert connection.execute(sa.select(metadata.tables[table].c[column])).scalars().all() == [who.user]
        with calling(who), pytest.raises(NotFoundError):
            store.submissions.add_request("retry", 5 - mine, None, None)
        with calling(who), pytest.raises(NotAllowedError):
            store.submissions.add_request("retry", 1, None, None)
    store.owner.open_project("main", everyone=False)
    with calling(store.accounts.by_hash("hash of ada")), store.database.reading() as connection:
        assert connection.execute(sa.select(trial.c.id)).first() is None
        assert connection.execute(sa.select(training.c.id)).first() is None
    with store.database.reading() as connection:
        assert len(connection.execute(sa.select(sweep.c.id)).all()) == 3, "who sees all has other connections"


@ON_BOTH
def test_a_connection_without_an_owner_shows_nothing(store: Store, fence: int) -> None:
    started(store, fence)
    with store.database._seen().begin() as connection:
        assert connection.execute(sa.select(sweep.c.id)).all() == []
        assert connection.execute(sa.select(trial.c.id)).all() == []
        assert connection.execute(sa.select(metadata.tables["token"].c.id)).all() == []


@ON_BOTH
def test_a_visitor_sees_one_sweep_and_writes_nothing(store: Store, fence: int) -> None:
    """Whatever route let it in: the store itself takes a visitor neither for the owner nor for a user."""
    started(store, fence)
    started(store, fence, "another", losses=("semihard", "contrastive"))  # shares trainings, and has its own
    run_all(store, fence)
    made = [store.shares.add(1, 1, None) for _ in range(2)]
    visitor = store.accounts.by_links([digest(made[0].path.partition("=")[2])])
    assert visitor is not None
    assert (visitor.is_owner, visitor.is_visitor, visitor.opens_mlflow, visitor.links, visitor.shared) == (
        False, True, False, {1}, {1},
    )  # fmt: skip
    with store.database.reading() as connection:
        whole = {row.id for row in connection.execute(sa.select(training.c.id))}
        own = {row.training_id for row in connection.execute(sa.select(trial).where(trial.c.sweep_id == 1))}
    assert own < whole
    with calling(visitor), store.database.reading() as connection:
        assert set(connection.execute(sa.select(training.c.id)).scalars()) == own
        assert connection.execute(sa.select(sweep.c.id)).scalars().all() == [1]
        for name in database.OF_SWEEPS:
            assert set(connection.execute(sa.select(metadata.tables[name].c.sweep_id)).scalars()) <= {1}, name
        for name in ("account", "membership", "token", "audit", "quota", "past_attempt", "need", "finding"):
            assert connection.execute(sa.select(metadata.tables[name])).all() == [], name
    before = list(store.audit.after(0))
    for write in (
        lambda: store.submissions.add_sweep(new_sweep("theirs")),
        lambda: store.submissions.add_request("cancel", 1, None, None),
        lambda: store.annotations.put(("sweep", 1, 1), "theirs", None, None),
        lambda: store.shares.add(1, 1, None),
        lambda: store.shares.of(1),
        lambda: store.shares.revoke(1, 2, None),
        lambda: store.owner.add_user("eve", Role.ADMIN),
        lambda: store.owner.revoke(1),
    ):
        with calling(visitor), pytest.raises((NotAllowedError, NotFoundError)):
            write()
    assert list(store.audit.after(0)) == before
    store.shares.revoke(1, 1, None)
    assert store.accounts.again(visitor) is None


def test_what_clients_write_asks_whose_it_is() -> None:
    """Every method of the client's side that opens a writing transaction asks for the right within it."""
    room = Path(record.__file__).parent
    for file in ("requests.py", "listings.py"):
        tree = ast.parse((room / file).read_text(encoding="utf-8"))
        classes = [one for one in tree.body if isinstance(one, ast.ClassDef) and "(Access)" in ast.unparse(one)]
        for method in (one for found in classes for one in found.body if isinstance(one, ast.FunctionDef)):
            text = ast.unparse(method)
            asks = "require_steered(" in text or "chosen_project(" in text
            # A look of the nodes at their data is nobody's.
            assert ".writing()" not in text or asks or method.name == "request_inspection", method.name


@ON_BOTH
def test_the_audit_is_only_appended_to(store: Store) -> None:
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


@ON_BOTH
def test_the_audit_says_who_did_what_from_where(store: Store, writer: Writer) -> None:
    """An entry is written in the transaction of its event, so a refused request leaves no entry."""
    who = Caller(name="ada on lab")
    with calling(who, "10.0.0.7"), about(request="abc"):
        store.owner.add_user("ben", Role.MEMBER)
        sweep = store.submissions.add_sweep(new_sweep("short")).id
        store.submissions.add_request("cancel", sweep, None, None)
        with pytest.raises(NotFoundError):
            store.submissions.add_request("cancel", 99, None, None)
    writer.sweeps.fail(sweep, "no")
    request = store.submissions.add_request("delete", sweep, None, "cleo")
    writer.sweeps.delete(sweep, request)
    said = [(one.who, one.what, one.target, one.address, one.request) for one in store.audit.after(0)]
    mine = ("10.0.0.7", "abc")
    assert said == [
        ("ada on lab", "user added", "user ben", *mine),
        ("ada on lab", "submit", f"sweep {sweep}", *mine),
        ("ada on lab", "cancel", f"sweep {sweep}", *mine),
        ("cleo", "delete", f"sweep {sweep}", "", ""),
    ]
    assert [one.what for one in store.audit.after(3)] == ["delete"]
