"""Who writes which column: the statements of both sides against the table in `writers.py`."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from orchestrator.record import store as store_module
from orchestrator.record.database import FencedAccess
from orchestrator.record.schema import metadata
from orchestrator.record.store import Store
from orchestrator.record.writes.lease import LeaseWriter
from orchestrator.views.callers import Role, Scope
from orchestrator.views.cluster import SlotReport
from orchestrator.views.collection import CollectionPolicy
from orchestrator.views.errors import ConflictError, NotFoundError
from orchestrator.views.events import CellSettled, SweepSettled
from orchestrator.views.nodes import Inspected, Node
from orchestrator.views.outcomes import CellSummary
from orchestrator.views.quotas import Quota
from tests.record.sample import claimed, fail, lease, new_sweep, run_all, started
from tests.record.writers import WRITERS
from workers.catalog import Finding, Need
from workers.contract import Part

Written = set[tuple[str, str, str]]


@contextmanager
def listening() -> Iterator[Written]:
    """Every (statement, table, column) that is written meanwhile."""
    written: Written = set()

    def hear(connection: sa.Connection, statement: Any, many: Any, one: Any, options: Any) -> None:
        assert not isinstance(statement, sa.TextClause), "SQL in text escapes this test"
        if not isinstance(statement, sa.Insert | sa.Update | sa.Delete):
            return
        verb = next(verb for verb in ("insert", "update", "delete") if getattr(statement, f"is_{verb}", False))
        table = str(statement.table)
        set_by_values = {getattr(column, "name", column) for column in getattr(statement, "_values", None) or {}}
        columns = (set_by_values | set(many[0] if many else one or {})) & _names(table)
        written.update((verb, table, column) for column in columns or {""})

    # The class, since the transactions of a store run over engines derived from one another.
    sa.event.listen(sa.Engine, "before_execute", hear)
    try:
        yield written
    finally:
        sa.event.remove(sa.Engine, "before_execute", hear)


def _names(table: str) -> set[str]:
    return {column.name for column in metadata.tables[table].columns}


def allowed(side: str) -> Written:
    return {(verb, table, column) for (verb, table), columns in WRITERS[side].items() for column in {"", *columns}}


def use_as_client(store: Store, fence: int) -> None:
    store.submissions.add_sweep(new_sweep(key="k"))
    store.submissions.add_sweep(new_sweep(key="k"))
    with pytest.raises(ConflictError):
        store.submissions.add_sweep(new_sweep(key="k", body_hash="other"))
    with pytest.raises(NotFoundError):
        store.submissions.add_request("cancel", 99, None, None)
    sweep = store.sweeps.page().items[-1].id
    trial = store.trials.page(sweep).items[0].id
    store.submissions.add_request("retry", sweep, trial, "ann")
    store.capacity.nodes()
    for read in (store.sweeps.get, store.sweeps.grid, store.outcomes.of, store.trials.page):
        read(sweep)
    for look in (store.trials.get, store.curves.of, store.logs.of):
        look(trial)
    store.trainings.known(["abc"], 1)


def use_as_conductor(store: Store, fence: int) -> None:
    writer = store.writer(fence)
    assert writer.lease.renew(600)
    assert writer.lease.installation()
    sweep = started(store, fence)
    fail(store, fence, claimed(store, fence), requeue=True)
    fail(store, fence, claimed(store, fence))
    run_all(store, fence)
    writer.events.write(CellSettled(sweep, CellSummary(0, "complete", 0, {}, "key", None, {}, 1)))
    writer.events.write(SweepSettled(sweep))
    writer.trials.retry(sweep)
    writer.trials.cancel(sweep)
    for pending in store.requests.pending():
        writer.requests.applied(pending.id, "done")
    writer.sweeps.fail(store.submissions.add_sweep(new_sweep()).id, "no")
    for dirty in store.outbox.due(100):
        writer.outbox.postpone(dirty, "away", 0)
        writer.outbox.sent(dirty, "run", 3)
    writer.outbox.keep_experiment(sweep, "7")
    writer.sweeps.pause(sweep)
    writer.sweeps.resume(sweep)
    writer.sweeps.prioritize(sweep, 3)
    for host in ("one", "two"):
        writer.capacity.note_nodes([Node(host, host, {"CPU": 4.0})])
    writer.capacity.note_notices({sweep: "no room"})
    writer.changes.prune()
    cub = Need(dataset=Part(name="cub200"))
    for node in ("one", "two"):
        writer.data.note_findings([Inspected(node, node, cub, Finding(), datetime.now(UTC))], [node])
        writer.data.note_findings([Inspected(node, node, cub, Finding(state="missing"), datetime.now(UTC))], [node])
    writer.capacity.note_slots([SlotReport("slot-0", "one", "one", {"CPU": 1.0})])
    writer.capacity.note_slots([SlotReport("slot-0", "one", "one", {"CPU": 1.0}, "attempt", lag=1.0)])
    writer.capacity.note_slots([])
    writer.trials.cancel(sweep)
    own = started(store, fence, "own", fresh=True)
    run_all(store, fence)
    policy = CollectionPolicy(before=datetime.now(UTC) + timedelta(hours=1))
    assert writer.collection.begin(own, policy, [], 1) > 0
    for gone in store.collection.left(100):
        writer.collection.count(gone.id, 2, 3)
        writer.collection.removed([gone.id])
    writer.sweeps.delete(sweep)
    writer.lease.release()


def use_as_owner(store: Store, fence: int) -> None:
    store.owner.add_project("faces", everyone=False)
    store.owner.open_project("faces", everyone=True)
    store.owner.add_user("ada", Role.MEMBER)
    store.owner.join("ada", "faces", steers=False)
    store.owner.join("ada", "faces", steers=True)
    store.owner.leave("ada", "faces")
    store.owner.set_role("ada", Role.ADMIN)
    store.owner.disable("ada", disabled=True)
    store.owner_quotas.put("user", "ada", Quota(slots=2))
    store.owner_quotas.put("user", "ada", Quota(gpu_hours=1, days=30))
    store.owner_quotas.put("user", "ada", Quota())
    store.owner.revoke(store.owner.add_token("ada", "laptop", "hash", Scope.READ, None)[0])


@pytest.mark.parametrize(
    ("side", "use"), [("client", use_as_client), ("conductor", use_as_conductor), ("owner", use_as_owner)]
)
def test_a_side_writes_only_its_columns(sqlite_store: Store, side: str, use: Callable[[Store, int], None]) -> None:
    fence = lease(sqlite_store)
    started(sqlite_store, fence)
    with listening() as written:
        use(sqlite_store, fence)
    if side == "conductor":  # what the scenario submits is the client's
        written = {one for one in written if one[:2] not in WRITERS["client"]}
    assert {verb for verb, _, _ in written} >= ({"insert"} if side == "client" else {"insert", "update", "delete"})
    assert written <= allowed(side)


def test_a_write_out_of_place_is_heard(sqlite_store: Store) -> None:
    fence = lease(sqlite_store)
    sweep = started(sqlite_store, fence)
    with listening() as written:
        sqlite_store.writer(fence).trials.cancel(sweep)
    assert ("update", "trial", "state") in written
    assert ("update", "training", "state") in written
    assert not written <= allowed("client")


def test_the_table_of_writers_names_what_exists() -> None:
    for writes in WRITERS.values():
        for (_, table), columns in writes.items():
            assert columns <= _names(table)
    changed = {table for name, table in WRITERS["client"] if name in {"update", "delete"}}
    assert changed == {"need", "note", "tag"}  # of all else the client only appends; of a need it says when to look
    assert not (changed - {"need"}) & {table for name, table in WRITERS["conductor"] if name != "delete"}


def test_the_two_sides_share_no_object(sqlite_store: Store) -> None:
    reads, writes = (set(map(type, vars(one).values())) for one in (sqlite_store, sqlite_store.writer(1)))
    assert not reads & writes
    assert all(issubclass(one, FencedAccess) for one in writes - {LeaseWriter})
    assert not any(issubclass(one, FencedAccess) for one in reads)


def test_what_everyone_has_writes_only_where_it_says_so() -> None:
    """Sweeps and requests are appended by one object, and the lease is taken by another; all others read."""
    room = Path(store_module.__file__).parent
    writing = {
        path.stem for path in [*room.glob("reads/*.py"), room / "mirror_runs.py"] if ".writing()" in path.read_text()
    }
    assert not writing
