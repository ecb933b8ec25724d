"""What is done today costs the same in a home with few ended sweeps and with many, counted in SQLite's steps."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from benchmarks.sweep_of import Shape, body
from orchestrator.conduct import quotas
from orchestrator.conduct.chores import Chores
from orchestrator.record import schema
from orchestrator.record.reads.listed_rows import Sought
from orchestrator.record.schema import trial_column
from orchestrator.record.store import Store
from orchestrator.run.attempt import Workplace
from orchestrator.run.inline import Inline
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from orchestrator.views.cluster import SlotReport
from orchestrator.views.events import AttemptStopped
from orchestrator.views.filters import parse
from orchestrator.views.quotas import Quota
from tests.copied_sweeps import copy
from tests.inline_conductor import conduct
from tests.test_scale import counted
from workers import catalog as catalogs

ENDED = (3, 60)
"""Sweeps of twenty trials that ended before today's began."""
TODAY = Shape(2, 2, 5)
"""More trials than are trained here."""


def home(folder: Path, ended: int) -> Settings:
    """A home with so many ended sweeps, and today's of which half is trained."""
    settings = Settings(home=folder, engine="inline", train="benchmarks.instant:train")
    service = Service.open(settings)
    service.submissions.submit(body(Shape(2, 2, 5)))
    conduct(settings)
    copy(Path(settings.database.removeprefix("sqlite:///")), ended, 8)
    service.submissions.submit(body(TODAY, 2))
    conduct(settings, orders=TODAY.trials // 2)
    service.close()
    return settings


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> list[Settings]:
    return [home(tmp_path_factory.mktemp(f"year{ended}"), ended) for ended in ENDED]


def questions(service: Service, today: int) -> Mapping[str, Callable[[], Any]]:
    """What people ask of today's sweep, by name."""
    store = service._store
    trial = service.trials.page(today, None, None, None, 1).items[0].id
    return {
        "list of sweeps, those that run": lambda: service.sweeps.page("running", None, None, 50),
        "one sweep": lambda: service.sweeps.get(today),
        "trials of it, 50": lambda: service.trials.page(today, None, None, None, 50),
        "one trial": lambda: service.trials.get(trial),
        "curves of a trial": lambda: service.curves._store.curves.of(trial),
        "table of it, anew": lambda: service.tables._rendered(today, "main", "json", None, "own"),
        "events, the last 100": lambda: store.changes.after(store.changes.newest() - 100, 1_000),
        "cluster and queue": service.operations._look,
        "readiness": service.operations._checked,
    }


@contextmanager
def conducting(settings: Settings) -> Iterator[tuple[Callable[[], None], Callable[[], None]]]:
    """Hold the lease; gives what a conductor does before and at its first turn, and at one in which nothing happens."""
    store = Store.of(settings)
    fence = store.lease.acquire("benchmark", 3_600.0)
    assert fence is not None
    engine = Inline(Workplace(settings.train, settings.storage, settings.data_root))
    catalog, writer = catalogs.load(), store.writer(fence)
    made: list[Chores] = []

    def begin() -> None:
        made.append(Chores(settings, store, writer, engine, catalog, None))
        made[-1].do(finalize=True)

    def idle() -> None:
        made[-1].hindrances.look(anew=True)
        made[-1].do(finalize=True)
        writer.deliveries.prune(wanted=False)
        store.claims.waits(made[-1].passed_over())

    try:
        yield begin, idle
    finally:
        writer.lease.release()
        store.close()


def steps(homes: list[Settings], work: Callable[[Settings], Any]) -> list[int]:
    found = []
    for settings in homes:
        with counted() as did:
            work(settings)
        found.append(did.steps)
    return found


def test_the_copies_are_sweeps_that_ended_over_a_year(homes: list[Settings]) -> None:
    store = Store.open(homes[1].database)
    page = store.sweeps.page(limit=100).items
    assert len(page) == ENDED[1] + 1
    assert {(one.state, one.counts.finished) for one in page[1:]} == {("finished", 20)}
    began, last = page[-1].created, page[1].created
    assert 350 < (last - began).days < 366
    trial = store.trials.page(7).items[-1].id
    first = store.trials.page(1).items[-1].id
    assert store.trials.get(trial).metrics == store.trials.get(first).metrics
    assert store.trials.get(trial).training != store.trials.get(first).training
    assert store.logs.of(trial).text == store.logs.of(first).text != ""
    assert store.curves.of(trial) == store.curves.of(first)
    with store.database.reading() as connection:
        for table, key in ((schema.metric, "attempt_id"), (schema.cell, "sweep_id"), (trial_column, "sweep_id")):
            each = (
                connection.execute(sa.select(sa.func.count()).select_from(table).group_by(table.c[key])).scalars().all()
            )
            assert len(each) >= ENDED[1], table.name
        assert connection.exec_driver_sql("PRAGMA foreign_key_check").all() == []
    store.close()


def test_a_trial_from_its_claim_to_its_result(homes: list[Settings]) -> None:
    idle = steps(homes, lambda settings: conduct(settings, orders=0))
    both = steps(homes, lambda settings: conduct(settings, orders=2))
    few, many = (whole - begin for whole, begin in zip(both, idle, strict=True))
    assert many < 1.2 * few


@pytest.mark.parametrize("hours", [None, 1e6])
def test_an_idle_turn_of_the_conductor(
    homes: list[Settings], hours: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quotas, "LOOK_SECONDS", 3_600.0)  # hours are counted over all attempts, at times
    found = []
    for settings in homes:
        store = Store.open(settings.database)
        store.owner_quotas.put("project", "main", Quota(cpu_hours=hours))
        store.close()
        with counted() as did, conducting(settings) as (begin, idle):
            begin()  # looks which versions all trainings have, over an index
            before = did.steps
            for _ in range(5):
                idle()
            found.append(did.steps - before)
        store = Store.open(settings.database)
        store.owner_quotas.put("project", "main", Quota())
        store.close()
    assert found[1] < 1.2 * found[0]


def measuring(spec: bytes) -> bytes:
    """A spec with a further metric, which is evaluated of what trainings kept."""
    read = json.loads(spec)
    read["recipe"]["metrics"] = ["ami"]
    return json.dumps(read).encode()


@pytest.mark.parametrize("posted", [body(TODAY, 2), measuring(body(TODAY, 2))], ids=["known", "evaluable"])
def test_a_submit_and_a_preview(homes: list[Settings], posted: bytes) -> None:
    def submit(settings: Settings) -> None:
        service = Service.open(settings)
        service.submissions.preview(posted)
        service.submissions.submit(posted)
        service.close()

    few, many = steps(homes, submit)
    assert many < 1.2 * few


@pytest.mark.parametrize(
    "name",
    [
        "one sweep", "trials of it, 50", "one trial", "curves of a trial", "table of it, anew", "events, the last 100",
        "list of sweeps, those that run", "cluster and queue", "readiness",
    ],
)  # fmt: skip
def test_what_people_ask_of_today(homes: list[Settings], name: str) -> None:
    def ask(settings: Settings) -> None:
        service = Service.open(settings)
        today = service.sweeps.page("running", None, None, 1).items[0].id
        questions(service, today)[name]()
        service.close()

    few, many = steps(homes, ask)
    assert many < 1.2 * few


def test_the_newest_trials_of_all(homes: list[Settings]) -> None:
    """But for which columns there are, which every page asks of each sweep; and uncounted, since all are counted."""

    def ask(settings: Settings) -> None:
        store, cursor, seen = Store.open(settings.database), None, []
        for _ in range(2):
            page = store.listings.page(Sought(parse("")), "-trial", (), cursor, 10, count=False)
            cursor = page.next_cursor
            seen += [row.trial for row in page.items]
        assert seen == sorted(seen, reverse=True)
        assert len(set(seen)) == 20
        store.close()

    def ask_for_columns(settings: Settings) -> None:
        store = Store.open(settings.database)
        for _ in range(2):
            store.listings.columns(None)
        store.close()

    few, many = steps(homes, ask)
    columns = steps(homes, ask_for_columns)
    assert many - columns[1] < 1.2 * (few - columns[0])


def asked(settings: Settings, ask: Callable[[Service, int], Any]) -> int:
    """The steps of asking something of the newest sweep and of carrying it out, without a conductor's beginning."""
    with counted() as did:
        service = Service.open(settings)
        ask(service, service.sweeps.page(None, None, None, 1).items[0].id)
        service.close()
        with conducting(settings) as (begin, _):
            begin()
    with counted() as began, conducting(settings) as (begin, _):
        begin()
    return did.steps - began.steps


def test_another_sweep_is_expanded_cancelled_retried_extended_and_deleted(homes: list[Settings]) -> None:
    asks: dict[str, Callable[[Service, int], Any]] = {
        "submit": lambda service, _: service.submissions.submit(body(Shape(2, 2, 2), 7)),
        "cancel": lambda service, sweep: service.commands.cancel(sweep),
        "retry": lambda service, sweep: service.commands.retry(sweep),
        "extend": lambda service, sweep: service.commands.extend(sweep, measuring(body(Shape(2, 2, 3), 7))),
        "cancel again": lambda service, sweep: service.commands.cancel(sweep),
        "delete": lambda service, sweep: service.commands.delete(sweep, service.sweeps.get(sweep).name),
    }
    for name, ask in asks.items():
        few, many = (asked(settings, ask) for settings in homes)
        assert 0 < many < 1.2 * few, name
    store = Store.open(homes[0].database)
    (gone,) = store.sweeps.page(limit=1).items
    done = store.requests.page(gone.id + 1).items
    assert [one.kind for one in done] == ["delete", "cancel", "extend", "retry", "cancel"]
    assert {one.state for one in done} == {"done"}
    store.close()


def test_which_trial_a_slot_trains(homes: list[Settings]) -> None:
    def ask(settings: Settings) -> None:
        store = Store.open(settings.database)
        (slot,) = store.cluster.slots()
        assert slot.trains is not None
        store.close()

    found = []
    for settings in homes:
        store = Store.open(settings.database)
        fence = store.lease.acquire("test", 60.0)
        assert fence is not None
        writer = store.writer(fence)
        order = writer.claims.next()
        assert order is not None
        writer.capacity.note_slots([SlotReport("slot", "node", "host", {}, order.attempt, None)])
        found += steps([settings], ask)
        writer.events.write(AttemptStopped(order.attempt, "the test has ended"))
        writer.lease.release()
        store.close()
    assert found[1] < 1.2 * found[0]
