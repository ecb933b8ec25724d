"""Resolutions over a real database and the inline engine: rounds, budget, crash, end, and what is refused."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest
import sqlalchemy as sa
import yaml

from orchestrator.publish.bundle.rebuilding import rebuild
from orchestrator.record.schema import request
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from orchestrator.views.errors import ConflictError, NotFoundError
from orchestrator.views.evidence import ResolutionBudget, ResolutionView, VerdictsView
from tests.inline_conductor import conduct, ran
from tests.test_conductor import spec, trained

NO_LIMIT = ResolutionBudget()


def of(home: Path) -> Settings:
    return Settings(home=home, engine="inline", train="tests.run.trainings:noisy", lease_seconds=5)


@pytest.fixture(scope="module")
def settled(tmp_path_factory: pytest.TempPathFactory, migrated: Callable[[Path], Path]) -> Path:
    """A home whose sweep 1 has trained its plan of five seeds."""
    home = tmp_path_factory.mktemp("settled")
    migrated(home)
    made = Service.open(of(home))
    made.submissions.submit(regularized())
    made.close()
    conduct(of(home))
    return home


@pytest.fixture
def settings(settled: Path, tmp_path: Path) -> Settings:
    """Over a copy of it."""
    shutil.copytree(settled, tmp_path / "home")
    return of(tmp_path / "home")


def regularized(**changes: Any) -> bytes:
    return spec(**{
        "compare": {"regularizer": ["none", "l2", "sec", "svmax"]},
        "tune": {},
        "repeat": {"seed": list(range(5))},
        "tables": {"main": {"rows": ["regularizer"], "columns": [], "metrics": ["map@r"]}},
        "recipe": {**yaml.safe_load(spec())["recipe"], "loss": "triplet"},
    } | changes)  # fmt: skip


def expanded(service: Service, settings: Settings, **changes: Any) -> int:
    """A sweep of which nothing is trained."""
    return ran(service, settings, regularized(**changes), 0)


SWEEP = 1


def words(found: ResolutionView) -> dict[str, str]:
    return {one.labels["regularizer"]: one.word for one in found.after or found.before}


def seeds(service: Service, sweep: int) -> dict[str, list[int]]:
    """By regularizer, those of the trials that a sweep has."""
    found: dict[str, list[int]] = {}
    for one in service.store.trials.page(sweep, None, None, None, 200).items:
        found.setdefault(one.labels["regularizer"], []).append(int(one.labels["seed"]))
    return found


def test_rounds_decide_what_can_be_and_nothing_else_is_trained(service: Service, settings: Settings) -> None:
    planned = service.resolutions.plan(SWEEP, ResolutionBudget(seeds=12))
    assert (planned.state, words(planned)["l2"], len(trained(settings))) == ("planned", "worse", 20)
    service.resolutions.request(SWEEP, ResolutionBudget(seeds=12), actor="ann")
    conduct(settings)
    found = service.resolutions.get(SWEEP)
    assert (found.state, found.actor, len(found.rounds) > 1) == ("ended", "ann", True)
    assert found.rounds[0].cells == planned.rounds[0].cells
    assert {one.labels["regularizer"]: one.word for one in found.before}["sec"] == "no clear difference"
    assert (words(found)["l2"], words(found)["sec"]) == ("worse", "better")
    held = seeds(service, SWEEP)
    assert held["l2"] == list(range(5)), "it was decided before"
    assert held["none"] == list(range(len(held["none"]))), "what is compared shares its baseline's seeds"
    assert set(held["sec"]) <= set(held["none"])
    assert len(held["sec"]) <= 17
    added = sum(map(len, held.values())) - 20
    assert (found.trials, len(trained(settings))) == (added, 20 + added)
    assert found.hours_spent == pytest.approx(added * 0.1)
    assert found.saved == 4 * (len(held["none"]) - 5) - added
    assert [one.hours for one in found.rounds] == [pytest.approx(one.trials * 0.1) for one in found.rounds]
    said = service.tables.verdicts(SWEEP).summary
    mine = sum("sec" in one.labels.values() for round_ in found.rounds for one in round_.cells)
    assert f"{1 + mine} looks on record" in said, "each round is a look"
    asked = service.store.requests.page(SWEEP, None, 50).items
    assert [one.kind for one in asked] == ["extend"] * len(found.rounds) + ["resolve"]
    with service.bundles.make(SWEEP) as made:
        report = rebuild(made, file_format="json")
    (again,) = (one for one in report.made if one.numbers == "verdicts")
    assert again.difference == ""
    assert (report.identical, again.file) == (True, "verdicts/main.json"), "with the looks of all rounds"
    assert VerdictsView.model_validate_json(again.content) == service.tables.verdicts(SWEEP)
    wider = service.sweeps.get(SWEEP)
    assert service.submissions.preview(wider.text.encode()).trials == wider.total, "its text says what it holds"


def test_the_budget_is_kept_though_the_conductor_is_killed(service: Service, settings: Settings) -> None:
    assert service.resolutions.plan(SWEEP, ResolutionBudget(hours=0.1)).rounds == [], "a pair takes 0.2"
    service.resolutions.request(SWEEP, ResolutionBudget(hours=1.7, seeds=9))
    for orders in (1, 2):
        conduct(settings, orders)
    assert service.resolutions.get(SWEEP).state == "going"
    assert "trains round" in service.resolutions.get(SWEEP).summary
    conduct(settings)
    found = service.resolutions.get(SWEEP)
    assert (found.state, len(found.rounds) > 1, "open" in found.summary) == ("ended", True, True)
    assert 0 < found.hours_spent <= 1.7
    assert max(map(len, seeds(service, SWEEP).values())) <= 5 + 9
    assert len(set(trained(settings))) == 20 + found.trials == service.sweeps.get(SWEEP).counts.finished


def test_what_is_known_closely_enough_is_trained_no_further(service: Service, settings: Settings) -> None:
    assert service.resolutions.plan(SWEEP, ResolutionBudget(within=50)).rounds == []
    service.resolutions.request(SWEEP, ResolutionBudget(within=3))
    conduct(settings)
    found = service.resolutions.get(SWEEP)
    assert found.summary == "3 of 3 comparisons decided"
    for one in found.after:
        low, high = one.interval or (0, 1)
        assert one.word != "no clear difference" or (high - low) / 2 <= 0.03


def test_it_is_ended_on_request_and_by_a_cancellation(service: Service, settings: Settings) -> None:
    with pytest.raises(NotFoundError, match="sweep 1 has no resolution"):
        service.resolutions.get(SWEEP)
    with pytest.raises(ConflictError, match="no active resolution"):
        service.resolutions.halt(SWEEP)
    service.resolutions.request(SWEEP, ResolutionBudget(seeds=12))
    conduct(settings, 1)
    with pytest.raises(ConflictError, match="active resolution"):
        service.resolutions.request(SWEEP, NO_LIMIT)
    service.resolutions.halt(SWEEP, "bob")
    conduct(settings)
    forgotten = sa.update(request).where(request.c.kind == "halt").values(applied=None, outcome=None)
    database = sa.create_engine(settings.database)
    with database.begin() as connection:  # as if the conductor had been killed before it noted what it did
        connection.execute(forgotten)
    database.dispose()
    conduct(settings)
    (halted,) = [one for one in service.store.requests.page(SWEEP, None, 50).items if one.kind == "halt"]
    assert (halted.state, halted.outcome) == ("done", "no further round")
    found = service.resolutions.get(SWEEP)
    assert (found.state, len(found.rounds)) == ("ended", 1)
    assert "ended by request" in found.summary
    assert service.sweeps.get(SWEEP).state == "finished", "what the round began goes on to its end"
    service.resolutions.request(SWEEP, ResolutionBudget(seeds=12))
    conduct(settings, 1)
    service.commands.cancel(SWEEP)
    conduct(settings)
    assert "were cancelled" in service.resolutions.get(SWEEP).summary


def test_requests_between_two_rounds_belong_to_the_next_round(service: Service, settings: Settings) -> None:
    """The sweep has ended then, for a moment in which clients ask too."""
    asked = service.resolutions.request(SWEEP, ResolutionBudget(seeds=3))
    writer = service.store.writer(service.store.lease.acquire("test", 60.0) or 0)
    writer.resolutions.begin(SWEEP, asked.id, "main", ResolutionBudget(seeds=3), None)
    writer.lease.release()
    with pytest.raises(ConflictError, match="between two rounds"):
        service.commands.cancel(SWEEP)
    appended = service.commands.pause(SWEEP).id
    conduct(settings)
    found = service.sweeps.get(SWEEP)
    assert (found.state, service.store.requests.get(appended).outcome) == ("paused", "paused")
    assert (len(trained(settings)), found.counts.waiting > 0) == (20, True), "the pause holds the round"
    service.commands.resume(SWEEP)
    conduct(settings, 3)
    assert len(trained(settings)) > 20


def test_what_cannot_be_resolved_is_refused_with_a_reason(service: Service, settings: Settings) -> None:
    alone = expanded(service, settings, name="alone", repeat={})
    with pytest.raises(ConflictError, match="no repeat axis sets the seed; expected `repeat"):
        service.resolutions.request(alone, NO_LIMIT)
    nothing = expanded(service, settings, name="nothing", compare={"regularizer": ["sec", "svmax"]})
    with pytest.raises(ConflictError, match="nothing is compared"):
        service.resolutions.request(nothing, NO_LIMIT)
    subset = expanded(service, settings, name="subset", only={"seed": [0, 1, 2]})
    with pytest.raises(ConflictError, match="subset by seed"):
        service.resolutions.request(subset, NO_LIMIT)
    with pytest.raises(NotFoundError, match="table"):
        service.resolutions.request(SWEEP, NO_LIMIT, "other")


def test_a_sweep_goes_with_its_resolution(service: Service, settings: Settings) -> None:
    service.resolutions.request(SWEEP, ResolutionBudget(hours=0.1))
    conduct(settings)
    assert service.resolutions.get(SWEEP).state == "ended"
    service.commands.delete(SWEEP, "rates")
    conduct(settings)
    with pytest.raises(NotFoundError, match="deleted"):
        service.resolutions.latest(SWEEP)
    assert service.store.resolutions.going() == []


def test_no_round_begins_while_an_end_is_pending(service: Service) -> None:
    store = service.store
    fence = store.lease.acquire("test", 60.0)
    assert fence is not None
    kinds: tuple[Literal["cancel", "halt"], ...] = ("cancel", "halt")
    for kind in kinds:
        assert store.resolutions.at_rest(SWEEP)
        request = store.submissions.add_request(kind, SWEEP, None, None)
        assert not store.resolutions.at_rest(SWEEP), kind
        store.writer(fence).requests.applied(request, "done")
