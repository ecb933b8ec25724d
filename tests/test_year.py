"""What is done today costs the same in a home with few ended sweeps and with many, counted in SQLite's steps."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from benchmarks.sweep_of import Shape, body
from orchestrator.conduct import quotas
from orchestrator.conduct.chores import Chores
from orchestrator.record.store import Store
from orchestrator.run.attempt import Workplace
from orchestrator.run.inline import Inline
from orchestrator.service.service import Service
from orchestrator.settings import Settings
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


def test_a_trial_from_its_claim_to_its_result(homes: list[Settings]) -> None:
    idle = steps(homes, lambda settings: conduct(settings, orders=0))
    both = steps(homes, lambda settings: conduct(settings, orders=2))
    few, many = (whole - begin for whole, begin in zip(both, idle, strict=True))
    assert many < 1.2 * few


def test_an_idle_turn_of_the_conductor(homes: list[Settings], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quotas, "LOOK_SECONDS", 3_600.0)  # hours are counted over all attempts, at times
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


def measuring(spec: bytes) -> bytes:
    """A spec with a further metric, which is evaluated of what trainings kept."""
    read = json.loads(spec)
    read["recipe"]["metrics"] = ["ami"]
    return json.dumps(read).encode()


def test_a_submit_and_a_preview(homes: list[Settings]) -> None:
    def submit(settings: Settings) -> None:
        service = Service.open(settings)
        for posted in (body(TODAY, 2), measuring(body(TODAY, 2))):
            service.submissions.preview(posted)
            service.submissions.submit(posted)
        service.close()

    few, many = steps(homes, submit)
    assert many < 1.2 * few


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
