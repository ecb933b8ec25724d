"""Adaptive search over a real database and the inline engine: candidates one by one, resumed after any crash."""

from pathlib import Path
from typing import Any

import optuna
import pytest
import yaml

from orchestrator.conduct.search import export
from orchestrator.record.searches import SearchWriter
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from orchestrator.views.errors import ConflictError, InvalidSpecError, NotFoundError, UnavailableError
from tests.inline_conductor import conduct, ran, whole_and_killed
from tests.test_conductor import SPEC
from workers import catalog as catalogs


def spec(**changes: Any) -> bytes:
    searched: dict[str, Any] = {
        "tune": {"optimizer.lr": {"low": 1e-4, "high": 0.1, "log": True}},
        "search": {"name": "tpe", "trials": 6, "seed": 3},
    }
    return yaml.safe_dump({**SPEC, **searched, **changes}, sort_keys=False).encode()


def candidates(service: Service, sweep: int) -> list[list[str]]:
    return [[one.labels["optimizer.lr"] for one in cell.candidates] for cell in service.sweeps.grid(sweep)]


def test_a_search_proposes_trains_and_selects(service: Service, settings: Settings) -> None:
    assert service.submissions.preview(spec()).trials == 24
    sweep = ran(service, settings, spec())
    found = service.sweeps.get(sweep)
    assert (found.state, found.total, found.counts.finished) == ("finished", 24, 24)
    rates = candidates(service, sweep)
    assert [len(set(one)) for one in rates] == [6, 6]
    assert rates[0] != rates[1], "each cell has a study of its own"
    for cell in service.sweeps.grid(sweep):
        assert sum(one.selected for one in cell.candidates) == 1


def test_a_search_that_is_killed_often_is_the_search_that_was_not(settings: Settings) -> None:
    found = [
        (candidates(service, sweep), service.tables.render(sweep, "main", "csv").content)
        for service, sweep in whole_and_killed(settings, spec(), 5)
    ]
    assert found[0] == found[1]


def test_conditional_axes_and_cells_without_any(service: Service, settings: Settings) -> None:
    tune = {"regularizer.eta": [{"low": 0.1, "high": 1.0, "when": {"regularizer": "sec"}}]}
    compare = {"regularizer": ["none", "sec"]}
    given = spec(tune=tune, compare=compare, tables={"main": {"rows": ["regularizer"], "metrics": ["map@r"]}})
    assert service.submissions.preview(given).trials == 2 * (1 + 6)
    sweep = ran(service, settings, given)
    cells = service.sweeps.grid(sweep)
    assert [len(cell.candidates) for cell in cells] == [1, 6]
    assert service.sweeps.get(sweep).state == "finished"


def test_the_best_candidate_is_reproduced(service: Service, settings: Settings) -> None:
    search = {"name": "gp", "trials": 4, "reproduce": 3}
    sweep = ran(service, settings, spec(search=search, compare={}, repeat={"seed": [5]}))
    (cell,) = service.sweeps.grid(sweep)
    sizes = sorted(len(one.trials) for one in cell.candidates)
    assert sizes == [1, 1, 1, 4]
    best = max(cell.candidates, key=lambda one: len(one.trials))
    assert best.selected
    trials = service.store.trials.page(sweep, None, None, None, 100).items
    seeds = [one.labels["seed"] for one in trials if one.id in {trial.trial for trial in best.trials}]
    assert seeds == ["5", "0", "1", "2"]


def test_a_search_is_exported_for_optunas_own_tools(service: Service, settings: Settings, tmp_path: Path) -> None:
    tune = {"optimizer.lr": {"low": 0.01, "high": 0.6}, "embedding": {"low": 16, "high": 64, "step": 16}}
    sweep = ran(service, settings, spec(tune=tune, search={"name": "tpe", "trials": 5}), 9)
    for cell in range(2):
        file = tmp_path / f"cell{cell}.log"
        for _ in range(2):  # the second time it is replaced
            assert export(service.store, catalogs.load(), sweep, cell, file) >= 1
        storage = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(str(file)))
        (name,) = optuna.get_all_study_names(storage)
        assert name.startswith(f"{SPEC['name']}, sweep {sweep}, cell {cell}")
        study = optuna.load_study(study_name=name, storage=storage)
        recorded = service.store.searches.suggestions(sweep, cell)
        assert study.direction == optuna.study.StudyDirection.MAXIMIZE
        assert [one.number for one in study.trials] == [one.index for one in recorded]
        assert [one.params for one in study.trials] == [dict(one.values) for one in recorded]
        assert [one.value for one in study.trials] == [one.score if one.ended else None for one in recorded]
        states = ["RUNNING" if not one.ended else "FAIL" if one.score is None else "COMPLETE" for one in recorded]
        assert [one.state.name for one in study.trials] == states
        assert all(set(one.distributions) == set(tune) for one in study.trials)
    assert not [path for path in tmp_path.iterdir() if path.is_dir() and path.name.startswith("tmp")]


def test_an_export_says_what_it_does_not_have(service: Service, tmp_path: Path) -> None:
    grid = service.submissions.submit(spec(search="grid", tune={})).id
    searched = service.submissions.submit(spec()).id
    with pytest.raises(ConflictError, match="trains a grid"):
        export(service.store, catalogs.load(), grid, 0, tmp_path / "study.log")
    with pytest.raises(NotFoundError, match="expected 0 to 1"):
        export(service.store, catalogs.load(), searched, 2, tmp_path / "study.log")
    assert not (tmp_path / "study.log").exists()


def test_cancel_ends_a_search_and_retry_goes_on_with_it(
    service: Service, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep = ran(service, settings, spec(compare={}), 3)
    service.commands.cancel(sweep)
    conduct(settings)
    assert service.sweeps.get(sweep).state == "cancelled"
    before = candidates(service, sweep)[0]
    # As another release of Optuna may: what was tried before is learned all the same.
    monkeypatch.setattr(optuna.samplers.TPESampler, "sample_independent", lambda *given: 0.05)
    service.commands.retry(sweep)
    conduct(settings)
    assert service.sweeps.get(sweep).state == "finished"
    after = candidates(service, sweep)[0]
    assert len(after) == 6
    assert after[: len(before)] == before


WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({"search": "grid"}, "tune.optimizer.lr", "adaptive search"),
    ({"search": "tpe"}, "search.trials", "is missing"),
    ({"search": {"name": "tep", "trials": 3}}, "search.name", "did you mean 'tpe'?"),
    ({"search": {"name": "grid", "trials": 3}, "tune": {}}, "search.trials", "takes no `trials`"),
    ({"tune": {"optimizer.lr": {"low": 1, "high": 0.1}}}, "tune.optimizer.lr", "`low` must be below `high`"),
    ({"tune": {"optimizer.lr": {"low": 0, "high": 1, "log": True}}}, "tune.optimizer.lr.low", "must be above 0"),
    ({"tune": {"iterations": {"low": 0, "high": 9}}}, "tune.iterations.low", "0"),
    ({"repeat": {"seed": {"low": 0, "high": 3}}}, "repeat.seed", "is for `tune` only"),
    ({"tune": {"embedding": {"low": 16, "high": 64, "stepp": 8}}}, "tune.embedding.stepp", "did you mean 'step'?"),
]


def test_errors_of_a_search_are_reported(service: Service) -> None:
    for changes, path, said in WRONG:
        with pytest.raises(InvalidSpecError) as refused:
            service.submissions.preview(spec(**changes))
        assert any(one.path == path and said in one.message for one in refused.value.problems), refused.value.problems


def test_a_sampler_that_fails_ends_its_sweep_alone(
    service: Service, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = service.submissions.submit(spec(name="broken", search={"name": "tpe", "trials": 3})).id
    whole = service.submissions.submit(spec(compare={}, name="whole", search={"name": "random", "trials": 2})).id

    sample, left = optuna.samplers.TPESampler.sample_independent, iter([True])

    def fail_once(*given: Any, **named: Any) -> Any:
        if next(left, False):
            raise RuntimeError("the matrix is singular")
        return sample(*given, **named)

    monkeypatch.setattr(optuna.samplers.TPESampler, "sample_independent", fail_once)
    conduct(settings)
    assert (service.sweeps.get(broken).state, service.sweeps.get(whole).state) == ("failed", "finished")
    told = "the search of cell 0 cannot go on: RuntimeError: the matrix is singular"
    assert service.sweeps.get(broken).error == told
    assert service.store.trials.page(broken, None, None, None, 10).items == [], "nothing waits in its other cell"


def test_the_end_of_a_search_waits_for_what_is_retried(service: Service, settings: Settings) -> None:
    tune = {"optimizer.lr": {"values": [0.1, 0.2, 0.5]}}
    search = {"name": "brute_force", "reproduce": 2}
    sweep = ran(service, settings, spec(tune=tune, search=search, compare={}, repeat={"seed": [7]}))
    assert service.sweeps.get(sweep).counts.failed == 1
    (settings.storage / "mended").touch()
    service.commands.retry(sweep)
    conduct(settings)
    (cell,) = service.sweeps.grid(sweep)
    (best,) = (one for one in cell.candidates if one.selected)
    assert (best.labels["optimizer.lr"], len(best.trials)) == ("0.5", 3), "the best by now is reproduced too"
    assert service.sweeps.get(sweep).state == "finished"


def test_a_suggestion_that_was_not_recorded_is_requested_again(
    service: Service, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    add, failures = SearchWriter.add_candidate, iter([UnavailableError("the database does not answer")])

    def unavailable_once(*given: Any) -> None:
        for failure in failures:
            raise failure
        add(*given)

    monkeypatch.setattr(SearchWriter, "add_candidate", unavailable_once)
    sweep = ran(service, settings, spec(compare={}))
    found = service.store.searches.suggestions(sweep, 0)
    assert (service.sweeps.get(sweep).state, [each.index for each in found]) == ("finished", list(range(6)))
    assert sorted([each.suggest_event for each in found] + [each.score_event or 0 for each in found]) == list(range(12))
