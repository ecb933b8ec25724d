"""Adaptive search over a real database and the inline engine: candidates one by one, resumed after any crash."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from orchestrator.conductor import Conductor
from orchestrator.errors import InvalidSpecError
from orchestrator.record.store import Store
from orchestrator.run.attempt import Workplace
from orchestrator.run.inline import Inline
from orchestrator.service import Service
from orchestrator.settings import Settings
from tests.test_conductor import SPEC
from workers import catalog as catalogs


def spec(**changes: Any) -> bytes:
    searched: dict[str, Any] = {
        "tune": {"optimizer.lr": {"low": 1e-4, "high": 0.1, "log": True}},
        "search": {"name": "tpe", "trials": 6, "seed": 3},
    }
    return yaml.safe_dump({**SPEC, **searched, **changes}, sort_keys=False).encode()


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path, engine="inline", train="tests.run.trainings:scripted", lease_seconds=5)


@pytest.fixture
def service(settings: Settings) -> Iterator[Service]:
    opened = Service.open(settings)
    yield opened
    opened.close()


class Killed(BaseException):
    """Stands for SIGKILL: nothing that runs in between may clean up after itself."""


def conduct(settings: Settings, orders: int | None = None) -> None:
    """Conduct until idle, or until so many orders were claimed."""
    store = Store.open(settings.database)
    workplace = Workplace(settings.train, settings.storage, settings.data_root)
    conductor = Conductor(settings, store, Inline(workplace), catalogs.load(), None)
    if orders is not None:
        left, claim = iter(range(orders)), conductor.next_order

        def claim_or_die() -> Any:
            if next(left, None) is None:
                raise Killed
            return claim()

        conductor.next_order = claim_or_die  # type: ignore[method-assign]
    try:
        conductor.conduct(until_idle=True)
    except Killed:
        pass
    finally:
        store.close()


def candidates(service: Service, sweep: int) -> list[list[str]]:
    return [[one.labels["optimizer.lr"] for one in cell.candidates] for cell in service.grid(sweep)]


def test_a_search_proposes_trains_and_selects(service: Service, settings: Settings) -> None:
    assert service.preview(spec()).trials == 24
    sweep = service.submit(spec()).id
    conduct(settings)
    found = service.sweep(sweep)
    assert (found.state, found.total, found.counts.finished) == ("finished", 24, 24)
    rates = candidates(service, sweep)
    assert [len(set(one)) for one in rates] == [6, 6]
    assert rates[0] != rates[1], "each cell has a study of its own"
    for cell in service.grid(sweep):
        assert sum(one.selected for one in cell.candidates) == 1


def test_a_search_that_is_killed_often_is_the_search_that_was_not(tmp_path: Path) -> None:
    found = []
    for name, orders in (("whole", None), ("killed", 5)):
        settings = Settings(
            home=tmp_path / name, engine="inline", train="tests.run.trainings:scripted", lease_seconds=1
        )
        service = Service.open(settings)
        sweep = service.submit(spec()).id
        for _ in range(6 if orders else 1):
            conduct(settings, orders)
        conduct(settings)
        assert service.sweep(sweep).state == "finished"
        found.append((candidates(service, sweep), service.table(sweep, "main", "csv").content))
        service.close()
    assert found[0] == found[1]


def test_failed_candidates_do_not_stop_a_search(service: Service, settings: Settings) -> None:
    wide = {"optimizer.lr": {"low": 0.01, "high": 0.6}}
    sweep = service.submit(spec(tune=wide, repeat={}, compare={}, search={"name": "random", "trials": 12})).id
    conduct(settings)
    counts = service.sweep(sweep).counts
    assert counts.finished + counts.failed == 12
    assert counts.failed or counts.diverged or counts.finished == 12
    assert any(one.selected for cell in service.grid(sweep) for one in cell.candidates)


def test_conditional_axes_and_cells_without_any(service: Service, settings: Settings) -> None:
    tune = {"regularizer.eta": [{"low": 0.1, "high": 1.0, "when": {"regularizer": "sec"}}]}
    compare = {"regularizer": ["none", "sec"]}
    given = spec(tune=tune, compare=compare, tables={"main": {"rows": ["regularizer"], "metrics": ["map@r"]}})
    assert service.preview(given).trials == 2 * (1 + 6)
    sweep = service.submit(given).id
    conduct(settings)
    cells = service.grid(sweep)
    assert [len(cell.candidates) for cell in cells] == [1, 6]
    assert service.sweep(sweep).state == "finished"


def test_brute_force_runs_the_grid(service: Service, settings: Settings) -> None:
    tune = {"optimizer.lr": [0.001, 0.01, 0.02], "embedding": [16, 32]}
    sweep = service.submit(spec(tune=tune, compare={}, search="brute_force")).id
    conduct(settings)
    labels = [tuple(one.labels.values()) for cell in service.grid(sweep) for one in cell.candidates]
    assert len(labels) == len(set(labels)) == 6


def test_the_best_candidate_is_reproduced(service: Service, settings: Settings) -> None:
    search = {"name": "gp", "trials": 4, "reproduce": 3}
    sweep = service.submit(spec(search=search, compare={}, repeat={"seed": [5]})).id
    conduct(settings)
    (cell,) = service.grid(sweep)
    sizes = sorted(len(one.trials) for one in cell.candidates)
    assert sizes == [1, 1, 1, 4]
    best = max(cell.candidates, key=lambda one: len(one.trials))
    assert best.selected
    trials = service.trials(sweep, None, None, None, 100).items
    seeds = [one.labels["seed"] for one in trials if one.id in {trial.trial for trial in best.trials}]
    assert seeds == ["5", "0", "1", "2"]


def test_cancel_ends_a_search_and_retry_goes_on_with_it(service: Service, settings: Settings) -> None:
    sweep = service.submit(spec(compare={})).id
    conduct(settings, orders=3)
    service.cancel(sweep)
    conduct(settings)
    assert service.sweep(sweep).state == "cancelled"
    before = candidates(service, sweep)[0]
    service.retry(sweep)
    conduct(settings)
    assert service.sweep(sweep).state == "finished"
    after = candidates(service, sweep)[0]
    assert len(after) == 6
    assert after[: len(before)] == before


@pytest.mark.parametrize(
    ("changes", "path", "said"),
    [
        ({"search": "grid"}, "tune.optimizer.lr", "adaptive search"),
        ({"search": "tpe"}, "search.trials", "is missing"),
        ({"search": {"name": "tep", "trials": 3}}, "search.name", "did you mean 'tpe'?"),
        ({"search": {"name": "grid", "trials": 3}, "tune": {}}, "search.trials", "takes no `trials`"),
        ({"tune": {"optimizer.lr": {"low": 1, "high": 0.1}}}, "tune.optimizer.lr", "`low` must be below `high`"),
        ({"tune": {"optimizer.lr": {"low": 0, "high": 1, "log": True}}}, "tune.optimizer.lr.low", "begins above 0"),
        ({"tune": {"iterations": {"low": 0, "high": 9}}}, "tune.iterations.low", "0"),
        ({"repeat": {"seed": {"low": 0, "high": 3}}}, "repeat.seed", "is for `tune` only"),
        ({"tune": {"embedding": {"low": 16, "high": 64, "stepp": 8}}}, "tune.embedding.stepp", "did you mean 'step'?"),
    ],
)
def test_what_is_wrong_with_a_search_is_said(service: Service, changes: Any, path: str, said: str) -> None:
    with pytest.raises(InvalidSpecError) as refused:
        service.preview(spec(**changes))
    assert any(one.path == path and said in one.message for one in refused.value.problems), refused.value.problems
