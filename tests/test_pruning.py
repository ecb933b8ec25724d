"""Early stopping over a real database: who is pruned, what is spared, and that a crash changes nothing."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import optuna
import pytest
import sqlalchemy as sa
import yaml

from orchestrator.conduct.broker import LeasedBroker
from orchestrator.conduct.pruning import PruningSession, evaluations
from orchestrator.conduct.search import export
from orchestrator.conduct.upkeep import Retries
from orchestrator.record import schema
from orchestrator.record.searches import Competitor, RecordedEvaluation
from orchestrator.record.transitions import PruningWriter
from orchestrator.run.optuna import OptunaPruner
from orchestrator.run.spool import Message
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from orchestrator.views.errors import InvalidSpecError
from orchestrator.views.runs import Order
from orchestrator.views.states import TrialState
from orchestrator.views.trials import TrialSummary
from tests.inline_conductor import Killed, conduct, ran, whole_and_killed
from tests.test_conductor import SPEC
from tests.test_tasks_in_tables import over_ray
from workers import catalog as catalogs

RATES = [0.05, 0.04, 0.06, 0.001, 0.07, 0.002]
"""Candidates in their order; the fourth and the last are hopeless."""
MEDIAN = {"name": "median", "startup": 2}


def spec(prune: Any = MEDIAN, rates: Any = RATES, seeds: int = 2, **changes: Any) -> bytes:
    given = {"tune": {"optimizer.lr": rates}, "repeat": {"seed": list(range(seeds))}, "compare": {}}
    tables = {"main": {"rows": ["task"], "metrics": ["map@r"]}}
    found = {**SPEC, **given, "tables": tables, "prune": prune, **changes}
    return yaml.safe_dump({key: one for key, one in found.items() if one is not None}, sort_keys=False).encode()


TRAIN = "tests.run.trainings:evaluating"


def trials(service: Service, sweep: int) -> list[TrialSummary]:
    return service.store.trials.page(sweep, None, None, None, 1000).items


def pruned(service: Service, sweep: int) -> list[tuple[int, int, int]]:
    found = (one for one in trials(service, sweep) if one.state == "pruned")
    return [(one.cell, one.candidate, one.repeat) for one in found]


def steps(settings: Settings) -> Counter[str]:
    """Iterations by fingerprint."""
    file = settings.storage / "steps.txt"
    return Counter(file.read_text().split()) if file.exists() else Counter()


def refused(service: Service, **changes: Any) -> str:
    with pytest.raises(InvalidSpecError) as error:
        service.submissions.preview(spec(**changes))
    return "; ".join(f"{one.path} {one.message}" for one in error.value.problems)


def test_repeats_of_a_hopeless_candidate_are_not_started(service: Service, settings: Settings) -> None:
    sweep = ran(service, settings, spec())
    found = service.sweeps.get(sweep)
    assert (found.state, found.counts.pruned, found.counts.finished) == ("finished", 4, 8)
    assert pruned(service, sweep) == [(0, 3, 0), (0, 3, 1), (0, 5, 0), (0, 5, 1)]
    first, second = (service.trials.get(one.id) for one in trials(service, sweep) if one.candidate == 3)
    assert first.reason == "pruned after evaluation 2: validation/map@r 0.0002; its best is 0.0002, the median of " \
        "3 peers 0.01"  # fmt: skip
    assert second.reason == f"pruned with trial {first.id}, after" + (first.reason or "").partition("after")[2]
    assert [one.state for one in first.attempts] == ["stopped"]
    assert second.attempts == []
    assert steps(settings)[first.fingerprint] == 2
    (cell,) = service.sweeps.grid(sweep)
    assert [one.selected for one in cell.candidates] == [False, False, False, False, True, False]
    with service.store.database.reading() as connection:
        told = connection.execute(sa.select(schema.candidate.c.pruned)).scalars().all()
    assert told == [None, None, None, 2, None, 2], "evaluations that each had"
    assert sum(steps(settings).values()) == 8 * 10 + 2 * 2
    table = service.tables.render(sweep, "main", "latex").content.decode()
    assert "Hopeless candidates stopped early by the median rule" in table
    assert "on the validation split: 2 of 6." in table
    view = service.sweeps.cell(sweep, 0)
    assert view.status == "complete"
    assert [one.reason for one in view.candidates[4].trials] == [first.reason, second.reason]


@pytest.mark.parametrize(
    ("prune", "seeds", "expected"),
    [
        ({"name": "median", "startup": 1, "warmup": 0}, 1, [1, 3, 5]),
        ({"name": "median", "startup": 6}, 1, []),
        ("asha", 1, [1, 3, 5]),
        ({"name": "asha", "min_evaluations": 16}, 1, []),
        ({"name": "hyperband", "max_evaluations": 3}, 1, [3, 5]),
        ({"name": "wilcoxon", "p": 0.3}, 4, [1, 3, 5]),
        ({"name": "wilcoxon", "p": 0.1}, 5, [1, 3, 5]),
        ("race", 4, [0, 1, 2, 3, 5]),
    ],
)
def test_each_rule(service: Service, settings: Settings, prune: Any, seeds: int, expected: list[int]) -> None:
    sweep = ran(service, settings, spec(prune, seeds=seeds))
    assert service.sweeps.get(sweep).state == "finished"
    assert sorted({one for _, one, _ in pruned(service, sweep)}) == expected
    if expected and seeds > 1:
        spared = 3 if prune == "race" else 2 if prune["p"] == 0.3 else 4
        assert {one for _, _, one in pruned(service, sweep)} == set(range(spared, seeds)), "finished ones stay so"
        reasons = [service.trials.get(one.id).reason or "" for one in trials(service, sweep) if one.state == "pruned"]
        assert all(f"after {spared} repeats: mean validation/map@r" in one for one in reasons)


def decided(service: Service, sweep: int) -> tuple[list[tuple[int, int, int]], list[str | None], bytes]:
    """What was pruned and why, and what a table shows of it."""
    reasons = [service.trials.get(one.id).reason for one in trials(service, sweep)]
    return pruned(service, sweep), reasons, service.tables.render(sweep, "main", "csv").content


def test_a_conductor_that_is_killed_often_prunes_the_same(settings: Settings) -> None:
    found = [decided(service, sweep) for service, sweep in whole_and_killed(settings, spec(tables=None), 2)]
    assert len(found[0][0]) == 4
    assert found[0] == found[1]


def test_a_training_that_another_sweep_wants_trains_on(service: Service, settings: Settings) -> None:
    stopping, whole = service.submissions.submit(spec()).id, service.submissions.submit(spec(None, name="whole")).id
    conduct(settings)
    assert len(pruned(service, stopping)) == 4
    assert service.sweeps.get(whole).counts.finished == 12
    assert {one.state for one in trials(service, whole)} == {"finished"}
    assert set(steps(settings).values()) == {10}, "each was trained once, and from its start to its end"


def test_what_was_trained_already_competes(service: Service, settings: Settings) -> None:
    ran(service, settings, spec(None, rates=RATES[:3]))
    sweep = ran(service, settings, spec(rates=[*RATES[:3], 0.001]))
    assert pruned(service, sweep) == [(0, 3, 0), (0, 3, 1)]
    assert service.sweeps.get(sweep).counts.reused == 6


def test_retry_of_all_trains_pruned_trials_to_their_end(service: Service, settings: Settings) -> None:
    sweep = ran(service, settings, spec())
    service.commands.retry(sweep, actor=None)
    conduct(settings)
    assert len(pruned(service, sweep)) == 4, "pruned ones are asked for by name"
    service.commands.retry(sweep, actor=None, what="all")
    conduct(settings)
    assert (service.sweeps.get(sweep).state, service.sweeps.get(sweep).counts.finished) == ("finished", 12)
    assert set(steps(settings).values()) == {10}, "they went on from their checkpoints"
    assert {service.trials.get(one.id).reason for one in trials(service, sweep)} == {None}


WIDE = {"low": 1e-4, "high": 0.1, "log": True}


def test_a_search_hears_of_pruned_candidates_and_replays(settings: Settings, tmp_path: Path) -> None:
    found = []
    search = {"name": "tpe", "trials": 14, "seed": 3, "reproduce": 2}
    for service, sweep in whole_and_killed(settings, spec(rates=WIDE, search=search), 3):
        suggestions = service.store.searches.suggestions(sweep, 0)
        found.append([replace(one, mean=None) for one in suggestions])
        stopped = [one for one in suggestions if one.pruned is not None]
        assert stopped
        assert all(one.pruned and one.pruned >= 2 and one.mean is None for one in stopped)
        best = max(suggestions, key=lambda one: one.merit or 0.0)
        assert best.trials == 4, "the winner is reproduced, and is not pruned in that"
        assert {one.state for one in trials(service, sweep) if one.candidate == best.index} == {"finished"}
        file = tmp_path / "study.log"
        export(service.store, catalogs.load(), sweep, 0, file)
        storage = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(str(file)))
        study = optuna.load_study(study_name=optuna.get_all_study_names(storage)[0], storage=storage)
        states = ["PRUNED" if one.pruned is not None else "COMPLETE" for one in suggestions]
        assert [one.state.name for one in study.trials] == states
        assert [one.value for one in study.trials] == [one.score for one in suggestions]
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "given",
    [{"prune": "race", "seeds": 5}, {"rates": WIDE, "search": {"name": "tpe", "trials": 12, "seed": 3}}],
    ids=["race", "search"],
)
def test_what_is_submitted_again_is_pruned_the_same(service: Service, settings: Settings, given: Any) -> None:
    found, trained = [], []
    for name in ("first", "again"):
        sweep = ran(service, settings, spec(name=name, **given))
        all_trials = [service.trials.get(one.id) for one in trials(service, sweep)]
        reasons = [(one.reason or "").rpartition(", after")[2] for one in all_trials]
        found.append(([(one.labels, one.state) for one in all_trials], reasons))
        trained.append(sum(steps(settings).values()))
    assert any(state == "pruned" for _, state in found[0][0])
    assert found[0] == found[1]
    assert trained[0] == trained[1], "the decisions are on record: nothing is trained for them"


def test_how_many_evaluations_a_training_has() -> None:
    recipe = {**SPEC["recipe"], "iterations": 300}
    assert evaluations(recipe) == 10
    assert evaluations({**recipe, "evaluate_every": 70}) == 5
    assert evaluations({**recipe, "validation": {"name": "cross_validation", "folds": 3}}) == 30
    by_epoch = {key: one for key, one in recipe.items() if key != "iterations"}
    assert evaluations({**by_epoch, "epochs": 7, "evaluate_every": 2}) == 4


def test_errors_say_what_would_be_right(service: Service) -> None:
    assert refused(service, prune="medium") == "prune.name there is no pruning rule 'medium'; did you mean 'median'?"
    assert "so the pruning rule is unknown; expected one of 'median'" in refused(service, prune={"startup": 3})
    assert "expected a name or a mapping" in refused(service, prune=3)
    told = refused(service, prune={"name": "median", "reduction": 3, "start": 2, "warmup": -1})
    assert "prune.reduction is an option of hyperband and asha; 'median' takes `startup`, `warmup`" in told
    assert "prune.start there is no key 'start' here; did you mean 'startup'?" in told
    assert "prune.warmup expected at least 0, found -1" in told
    narrow = {"name": "hyperband", "min_evaluations": 4, "max_evaluations": 2}
    assert "max_evaluations is 2; expected at least min_evaluations, which is 4" in refused(service, prune=narrow)


def test_it_needs_rivals_and_the_test_needs_repeats(service: Service) -> None:
    assert "prune nothing competes: every cell has one candidate" in refused(service, rates=[0.1])
    told = refused(service, prune="wilcoxon")
    assert "can judge after 4 repeats at the earliest, so that of 5 it may spare one; found 2 repeats" in told
    service.submissions.preview(spec("wilcoxon", seeds=5))
    service.submissions.preview(spec({"name": "wilcoxon", "p": 0.3}, seeds=3))
    told = refused(service, prune={"name": "race", "first": 4}, seeds=4)
    assert "judges after 4 repeats at the earliest, so that of 5 it may spare one; found 4 repeats; add to `re" in told
    assert "prune.first expected at least 3, found 2" in refused(service, prune={"name": "race", "first": 2}, seeds=5)
    assert "prune.level expected" in refused(service, prune={"name": "race", "level": 0.0}, seeds=5)
    searched = refused(service, rates=WIDE, search={"name": "tpe", "trials": 9}, prune="race", seeds=5)
    assert "take 'wilcoxon', or leave `search` out" in searched
    service.submissions.preview(spec("race", seeds=4))


def test_it_needs_scores_on_the_way(service: Service) -> None:
    recipe = {
        "task": "self_supervised", "dataset": "digits_halves", "backbone": "mlp", "loss": "nt_xent",
        "augment": "simclr", "sampler": {"name": "shuffle", "batch": 8}, "iterations": 10,
    }  # fmt: skip
    tables = {"main": {"rows": ["task"], "metrics": ["knn@200"]}}
    given: dict[str, Any] = {"recipe": recipe, "tables": tables, "select": {"metric": "top@1", "split": "last"}}
    for rule in ("median", "asha", "hyperband"):
        message = f"prune '{rule}' judges by scores on the way, and 'top@1' is measured at the end only"
        right = "select by 'knn@200', or take 'wilcoxon', which judges by repeats, or leave `prune` out"
        assert refused(service, prune=rule, **given) == f"{message}; {right}"
    service.submissions.preview(spec("wilcoxon", seeds=5, **given))
    service.submissions.preview(spec("median", **given | {"select": {"metric": "knn@200", "split": "last"}}))


@pytest.mark.soak
@pytest.mark.ray
def test_a_pruned_training_is_stopped_long_before_its_next_report(own_ray: None, tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, train="tests.run.trainings:lingering", lease_seconds=5)
    service = Service.open(settings)
    one_by_one = {"cpus": 2, "gpus": 0}
    prune = {"name": "median", "startup": 1}
    sweep = service.submissions.submit(spec(prune, rates=[0.05, 0.001], seeds=1, slot=one_by_one)).id
    over_ray(settings)
    (trial,) = (one for one in trials(service, sweep) if one.state == "pruned")
    found = service.trials.get(trial.id)
    assert [(one.state, found.step) for one in found.attempts] == [("stopped", 2)]
    service.close()


def test_repeats_that_are_added_to_pruned_candidates_are_not_trained(service: Service, settings: Settings) -> None:
    sweep = ran(service, settings, spec())
    service.commands.extend(sweep, spec(seeds=3))
    conduct(settings)
    found = service.sweeps.get(sweep)
    assert (found.state, found.counts.pruned, found.counts.finished) == ("finished", 6, 12)
    assert sorted(pruned(service, sweep)) == [(0, one, repeat) for one in (3, 5) for repeat in range(3)]
    added = next(one for one in trials(service, sweep) if (one.candidate, one.repeat) == (3, 2))
    assert service.trials.get(added.id).reason == (
        "pruned with its candidate, which had been pruned before this repeat was added"
    )
    service.commands.retry(sweep, what="all")
    conduct(settings)
    service.commands.extend(sweep, spec(seeds=4))
    conduct(settings)
    assert service.sweeps.get(sweep).counts.finished == 24, "those that were retried get all repeats"


def test_kills_while_trainings_run_do_not_change_what_is_pruned(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, given = [], settings
    for kills in ((), (12, 31, 42)):
        settings = given.model_copy(update={"home": tmp_path / str(len(kills)), "lease_seconds": 1})
        service = Service.open(settings)
        sweep = service.submissions.submit(spec({"name": "hyperband", "max_evaluations": 3}, tables=None)).id
        told, count = LeasedBroker.record, iter(range(1, 10_000))

        def killed(
            self: LeasedBroker, order: Order, message: Message, at: Any = kills, next_: Any = count, go_on: Any = told
        ) -> None:
            if not message.final and next(next_) in at:
                raise Killed
            go_on(self, order, message)

        with monkeypatch.context() as patched:
            patched.setattr(LeasedBroker, "record", killed)
            patched.setattr(Retries, "resting", lambda self: frozenset())  # else another goes first
            for _ in range(len(kills) + 1):
                conduct(settings)
        assert service.sweeps.get(sweep).state == "finished"
        found.append(decided(service, sweep))
        service.close()
    assert found[0][0]
    assert found[0] == found[1]


def test_the_next_conductor_repeats_a_pruning_that_was_not_written(
    service: Service, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep = service.submissions.submit(spec({"name": "wilcoxon", "p": 0.3}, seeds=4)).id
    with monkeypatch.context() as patched:
        patched.setattr(PruningWriter, "prune", lambda *given: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            conduct(settings)
    assert pruned(service, sweep) == []
    conduct(settings)
    assert sorted({one for _, one, _ in pruned(service, sweep)}) == [1, 3, 5]


def test_an_end_by_a_slow_clock_and_a_step_that_is_passed_again_change_nothing_else() -> None:
    session = PruningSession("map@r", lambda: OptunaPruner("median", {"startup": 1, "warmup": 0}, higher=True))
    early, end, late = (datetime(2026, 1, 1, 12, minute, tzinfo=UTC) for minute in range(3))
    trials = [
        Competitor(1, 1, 0, 0, 0, 1, TrialState.FINISHED, end, False, 9, 0.9),
        Competitor(11, 1, 0, 1, 0, 11, TrialState.RUNNING, None, False, 9, None),
    ]
    rows = [RecordedEvaluation(1, 1, 3, 0.8, early), RecordedEvaluation(2, 11, 3, 0.1, late)]
    again = RecordedEvaluation(4, 11, 3, 0.9, late)  # by an attempt that was resumed
    session.take(trials, [*rows, RecordedEvaluation(3, 1, 9, 0.9, late), again])
    assert [(decision.candidate, decision.number) for decision in session.decisions()] == [(1, 1)]
