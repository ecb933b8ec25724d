"""A trial costs the same in a large sweep, and in a home with many ended sweeps, counted in SQLite's steps."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import sqlalchemy as sa

from benchmarks.sweep_of import Shape, body
from orchestrator.conduct import broker, waiting
from orchestrator.conduct.broker import Chores
from orchestrator.conduct.conductor import Conductor
from orchestrator.record.store import Store
from orchestrator.run.attempt import Workplace
from orchestrator.run.inline import Inline
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from orchestrator.views.accounts import Quota
from tests.inline_conductor import Killed, Wiretapped, after, conduct, ran
from workers import catalog as catalogs

GRAIN = 20
"""Steps of SQLite's machine between two counts."""
ORDERS = 20


@dataclass
class Work:
    """What the database did."""

    steps: int = 0
    statements: int = 0
    most_rows: int = 0  # that one statement wrote
    commits: int = 0


@contextmanager
def counted() -> Iterator[Work]:
    """What this thread does over connections that are opened meanwhile: how often a lease is renewed beside it depends
    on the time."""
    work, counting = Work(), threading.get_ident()

    def here() -> bool:
        return threading.get_ident() == counting

    def step() -> int:
        work.steps += GRAIN * here()
        return 0

    def connected(connection: Any, record: Any) -> None:
        connection.set_progress_handler(step, GRAIN)

    def execute(connection: Any, cursor: Any, statement: str, values: Any, context: Any, many: bool) -> None:
        if here():
            work.statements += 1
            work.most_rows = max(work.most_rows, len(values) if many else 1)

    def commit(connection: sa.Connection) -> None:
        work.commits += here() and bool(connection.get_execution_options().get("writes"))

    heard = (("connect", connected), ("before_cursor_execute", execute), ("commit", commit))
    for name, hear in heard:
        sa.event.listen(sa.Engine, name, hear)
    try:
        yield work
    finally:
        for name, hear in heard:
            sa.event.remove(sa.Engine, name, hear)


def expanded(settings: Settings, shape: str) -> Service:
    """The service with one sweep that is expanded, and nothing trained."""
    service = Service.open(settings)
    ran(service, settings, body(Shape.parse(shape)), 0)
    return service


def scheduled(settings: Settings, work: Work) -> None:
    """Train so many orders, and count from the first claim on."""
    store = Store.open(settings.database)
    workplace = Workplace(settings.train, settings.storage, settings.data_root)

    def counting(claim: Callable[..., Any]) -> Callable[..., Any]:
        work.steps = work.statements = 0
        return after(ORDERS)(claim)

    engine = Wiretapped(workplace, next_order=counting)
    with pytest.raises(Killed):
        Conductor(settings, store, engine, catalogs.load(), None).conduct()
    store.close()


@pytest.fixture(scope="module")
def sizes(tmp_path_factory: pytest.TempPathFactory) -> list[Settings]:
    """Homes with a sweep and with one ten times as large, expanded."""
    found = []
    for shape in ("4x5x10", "40x5x10"):
        folder = tmp_path_factory.mktemp(shape)
        found.append(Settings(home=folder, engine="inline", train="tests.run.trainings:scripted"))
        spec = json.loads(body(Shape.parse(shape)))
        spec["tables"]["main"]["metrics"] = ["map@r", {"metric": "f1", "delta": {"embedding": "1"}}]
        service = Service.open(found[-1])
        service.submissions.submit(json.dumps(spec).encode())
        conduct(found[-1], orders=0)
        service.close()
    return found


def test_a_trial_costs_the_same_in_a_larger_sweep(sizes: list[Settings], monkeypatch: pytest.MonkeyPatch) -> None:
    # Its clock stands still after the first turn: how many there are depends on the time, not on trials.
    monkeypatch.setattr(broker, "time", SimpleNamespace(monotonic=lambda: 60.0))
    found = []
    for settings in sizes:
        with counted() as work:
            scheduled(settings, work)
        found.append(work)
    assert found[1].statements == pytest.approx(found[0].statements, abs=ORDERS / 10)
    assert found[1].steps < 1.2 * found[0].steps


def test_a_page_of_a_cell_reads_no_other(sizes: list[Settings]) -> None:
    """But for the cell that its tables subtract from it; and of others their labels, which cost next to nothing."""

    def look(settings: Settings) -> None:
        service = Service.open(settings)
        view = service.sweeps.cell(1, 2)
        service.close()
        assert (view.labels, len(view.candidates), len(view.numbers)) == ({"embedding": "3"}, 5, 2)

    few, many = steps(sizes, look)
    assert many < 1.2 * few


ENDED = (2, 20)
"""Sweeps of twenty trials that ended before today's began."""
TODAY = Shape(2, 2, 5)
"""More trials than are trained here."""


def home(folder: Path, ended: int, fresh: bool) -> Settings:
    """A home with ended sweeps, which share their trainings unless `fresh`, and today's, of which half is trained."""
    settings = Settings(home=folder, engine="inline", train="benchmarks.instant:train")
    service = Service.open(settings)
    for _ in range(ended):
        service.submissions.submit(json.dumps(json.loads(body(TODAY)) | {"fresh": fresh}).encode())
    conduct(settings)
    service.submissions.submit(body(TODAY, 2))
    conduct(settings, orders=TODAY.trials // 2)
    service.close()
    return settings


@pytest.fixture(scope="module", params=[False, pytest.param(True, marks=pytest.mark.soak)], ids=["shared", "fresh"])
def homes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[Settings]:
    return [home(tmp_path_factory.mktemp(f"year{ended}"), ended, request.param) for ended in ENDED]


QUESTIONS: dict[str, Callable[[Service, int], Any]] = {
    "list of sweeps, those that run": lambda service, today: service.sweeps.page("running", None, None, 50),
    "one sweep": lambda service, today: service.sweeps.get(today),
    "trials of it, 50": lambda service, today: service.trials.page(today, None, None, None, 50),
    "one trial": lambda service, today: service.trials.get(first_trial(service, today)),
    "curves of a trial": lambda service, today: service.curves._store.curves.of(first_trial(service, today)),
    "table of it, anew": lambda service, today: service.tables._rendered(today, "main", "json", None, "own"),
    "events, the last 100": lambda service, today: service._store.changes.after(
        service._store.changes.newest() - 100, 1_000
    ),
    "cluster and queue": lambda service, today: service.operations._look(),
    "readiness": lambda service, today: service.operations._checked(),
}
"""What people ask of today's sweep."""


def first_trial(service: Service, today: int) -> int:
    return service.trials.page(today, None, None, None, 1).items[0].id


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


def test_an_idle_turn_of_the_conductor(homes: list[Settings], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "LOOK_SECONDS", 3_600.0)  # hours are counted over all attempts, at times
    found = []
    for settings in homes:
        store = Store.open(settings.database)
        store.owner_quotas.put("project", "main", Quota(cpu_hours=1e6))
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


def test_what_people_ask_of_today(homes: list[Settings]) -> None:
    found: list[dict[str, int]] = []
    for settings in homes:
        found.append({})
        for name, ask in QUESTIONS.items():
            with counted() as did:
                service = Service.open(settings)
                ask(service, service.sweeps.page("running", None, None, 1).items[0].id)
                service.close()
            found[-1][name] = did.steps
    few, many = found
    assert {name: (few[name], many[name]) for name in few if many[name] >= 1.2 * few[name]} == {}
