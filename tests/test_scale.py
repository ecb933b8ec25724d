"""A trial costs the same in a large sweep, and in a home with many ended sweeps, counted in SQLite's steps."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import sqlalchemy as sa

from benchmarks.sweep_of import Shape, body
from orchestrator.conduct import broker
from orchestrator.record.store import Store
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from tests.inline_conductor import Killed, after, conduct, inline

GRAIN = 20
"""Steps of SQLite's machine between two counts."""
ORDERS = 20


@dataclass
class Work:
    """What the database did."""

    steps: int = 0
    statements: int = 0


@contextmanager
def counted() -> Iterator[Work]:
    """The statements of this thread over connections that are opened meanwhile. Renewals of the lease in another thread
    are left out, since their number depends on the time."""
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

    heard = (("connect", connected), ("before_cursor_execute", execute))
    for name, hear in heard:
        sa.event.listen(sa.Engine, name, hear)
    try:
        yield work
    finally:
        for name, hear in heard:
            sa.event.remove(sa.Engine, name, hear)


def scheduled(settings: Settings, work: Work) -> None:
    """Train so many orders, and count from the first claim on."""

    def counting(claim: Callable[..., Any]) -> Callable[..., Any]:
        work.steps = work.statements = 0
        return after(ORDERS)(claim)

    with closing(Store.open(settings.database)) as store, pytest.raises(Killed):
        inline(settings, store, next_order=counting).conduct()


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
    "trials of it, 50": lambda service, today: service.store.trials.page(today, None, None, None, 50),
    "one trial": lambda service, today: service.trials.get(first_trial(service, today)),
    "curves of a trial": lambda service, today: service.curves._store.curves.of(first_trial(service, today)),
    "table of it, anew": lambda service, today: service.tables.render(today, "main", "json"),
    "events, the last 100": lambda service, today: service.store.changes.after(
        service.store.changes.newest() - 100, 1_000
    ),
    "cluster and queue": lambda service, today: service.operations.cluster(),
    "readiness": lambda service, today: service.operations._checked(),
}
"""What people ask of today's sweep."""


def first_trial(service: Service, today: int) -> int:
    return service.store.trials.page(today, None, None, None, 1).items[0].id


def steps(homes: list[Settings], work: Callable[[Settings], Any]) -> list[int]:
    found = []
    for settings in homes:
        with counted() as did:
            work(settings)
        found.append(did.steps)
    return found


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
