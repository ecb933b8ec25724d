"""Who writes which column: the statements of both sides against the table in `writers.py`."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
import sqlalchemy as sa

from orchestrator.record import schema, store
from orchestrator.record.schema import metadata
from orchestrator.record.store import Client, Conductor, Store
from orchestrator.record.writers import WRITERS
from orchestrator.views.errors import ConflictError, NotFoundError
from orchestrator.views.events import CellSettled, SweepSettled
from orchestrator.views.nodes import Inspected, Node
from orchestrator.views.outcomes import CellSummary
from tests.record.sample import claimed, fail, lease, new_sweep, run_all, started
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


def use_as_client(one: Store, fence: int) -> None:
    one.add_sweep(new_sweep(key="k"))
    one.add_sweep(new_sweep(key="k"))
    with pytest.raises(ConflictError):
        one.add_sweep(new_sweep(key="k", body_hash="other"))
    with pytest.raises(NotFoundError):
        one.add_request("cancel", 99, None, None)
    sweep = one.sweeps().items[-1].id
    trial = one.trials(sweep).items[0].id
    one.add_request("retry", sweep, trial, "ann")
    one.nodes()
    for read in (one.sweep, one.grid, one.outcomes, one.trials):
        read(sweep)
    for look in (one.trial, one.curves, one.log):
        look(trial)
    one.known(["abc"])


def use_as_conductor(one: Store, fence: int) -> None:
    assert one.renew(fence, 600)
    assert one.installation(fence)
    sweep = started(one, fence)
    fail(one, fence, claimed(one, fence), requeue=True)
    fail(one, fence, claimed(one, fence))
    run_all(one, fence)
    one.apply(fence, CellSettled(sweep, CellSummary(0, "complete", 0, {}, "key", None, {}, 1)))
    one.apply(fence, SweepSettled(sweep))
    one.retry(fence, sweep)
    one.cancel(fence, sweep)
    for pending in one.requests():
        one.applied(fence, pending.id, "done")
    one.fail_sweep(fence, one.add_sweep(new_sweep()).id, "no")
    for dirty in one.dirty(100):
        one.postpone(dirty, "away", 0, fence)
        one.sent(dirty, "run", 3, fence)
    one.keep_experiment(sweep, "7", fence)
    one.pause(fence, sweep)
    one.resume(fence, sweep)
    one.prioritize(fence, sweep, 3)
    for host in ("one", "two"):
        one.note_nodes(fence, [Node(host, host, {"CPU": 4.0})])
    one.note_notices(fence, {sweep: "no room"})
    cub = Need(dataset=Part(name="cub200"))
    for node in ("one", "two"):
        one.note_findings(fence, [Inspected(node, node, cub, Finding(), datetime.now(UTC))], [node])
        one.note_findings(fence, [Inspected(node, node, cub, Finding(state="missing"), datetime.now(UTC))], [node])
    one.cancel(fence, sweep)
    one.delete_sweep(fence, sweep)
    one.release(fence)


@pytest.mark.parametrize(("side", "use"), [("client", use_as_client), ("conductor", use_as_conductor)])
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
        sqlite_store.cancel(fence, sweep)
    assert ("update", "trial", "state") in written
    assert ("update", "training", "state") in written
    assert not written <= allowed("client")


def test_the_table_of_writers_names_what_exists() -> None:
    for writes in WRITERS.values():
        for (_, table), columns in writes.items():
            assert columns <= _names(table)
    assert not {name for name, _ in WRITERS["client"]} & {"update", "delete"}
    assert schema.metadata is metadata


def test_what_the_client_has_is_not_the_conductors() -> None:
    client = {name for name in dir(Client) if not name.startswith("_")}
    conductor = {name for name in dir(Conductor) if not name.startswith("_")}
    assert client == {
        "add_sweep", "add_request", "sweeps", "sweep", "grid", "trials", "trial", "curves", "log", "outcomes", "known",
        "curves_of", "durations", "evidence", "kept", "kept_by", "places", "deletion", "experiment_id", "run_id",
        "cell_runs", "nodes", "cell_count", "findings", "request", "requests_of", "require_going",
    }  # fmt: skip
    assert not client & conductor
    assert store.Store.__mro__.index(Client) < store.Store.__mro__.index(Conductor)
