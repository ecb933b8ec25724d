"""Further metrics of what has finished are evaluated of its kept weights, by the inline engine."""

from pathlib import Path
from typing import Any

import pytest

from dashboards import sweeps
from orchestrator.plan.edit import with_figures, with_metrics
from orchestrator.record.store import Store
from orchestrator.run.inline import Inline
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from orchestrator.views.errors import FencedError, InvalidSpecError
from tests.inline_conductor import Killed, conduct, ran, stealing
from tests.test_conductor import SPEC, spec
from tests.test_upgrade import raised

TRAIN = "tests.run.evaluated:train"


def wider(*further: str, **changes: Any) -> bytes:
    """The spec with further metrics in its recipe and its table."""
    table = {"rows": ["loss"], "columns": [], "metrics": ["map@r", *further]}
    recipe = {**SPEC["recipe"], **({"metrics": list(further)} if further else {})}
    return spec(recipe=recipe, **{"tables": {"main": table}, **changes})


def tally(settings: Settings, what: str) -> int:
    path = settings.storage / f"{what}.txt"
    return len(path.read_text().split()) if path.exists() else 0


def numbers(service: Service, sweep: int) -> str:
    return service.tables.render(sweep, "main", "csv").content.decode()


def trials(service: Service, sweep: int) -> list[Any]:
    return [service.trials.get(one.id) for one in service.store.trials.page(sweep, None, None, None, 100).items]


def finished(service: Service, settings: Settings) -> int:
    """A sweep of four trials that has finished."""
    return ran(service, settings, wider(tune={}))


def killed(self: Inline, broker: Any, order: Any) -> None:
    """In place of carrying an order out: the conductor dies of it."""
    broker.started(order, "inline", "here")
    raise Killed


def _killed_amid_evaluations(service: Service, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> int:
    """A sweep whose conductor dies of the first of its evaluations."""
    sweep = finished(service, settings)
    service.commands.extend(sweep, wider("nmi_sec", tune={}))
    with monkeypatch.context() as patched:
        patched.setattr(Inline, "_execute", killed)
        conduct(settings)
    return sweep


def storage_of(settings: Settings, trial: Any) -> Path:
    return settings.storage / trial.training / "1"


class TestSubmitted:
    def test_a_sweep_that_differs_by_metrics_trains_nothing(self, service: Service, settings: Settings) -> None:
        ran(service, settings, wider())
        assert (tally(settings, "train"), tally(settings, "evaluate")) == (8, 0)
        seen = service.submissions.preview(wider("nmi_sec", repeat={"seed": [0, 1, 2]}))
        assert (seen.trials, seen.evaluated, seen.cost.trainings) == (12, 8, 4)
        second = ran(service, settings, wider("nmi_sec", name="further"))
        assert (tally(settings, "train"), tally(settings, "evaluate")) == (8, 8)
        assert service.sweeps.get(second).state == "finished"
        first = trials(service, second)[0]
        assert first.evaluated_from.sweep == 1
        assert first.evaluated_from.metrics == ["nmi_sec"]
        assert first.provenance["host"] == "here"
        assert first.provenance["evaluated"]["host"] == "there"
        assert [curve.key for curve in service.store.curves.of(first.id)] == ["train/loss", "validation/map@r"]
        assert service.store.logs.of(first.id, 0).text == "trained\nevaluating nmi_sec\n"
        third = ran(service, settings, wider("nmi_sec", name="anew", fresh=True))
        assert (tally(settings, "train"), tally(settings, "evaluate")) == (16, 8)
        assert [one.metrics for one in trials(service, second)] == [one.metrics for one in trials(service, third)]
        assert numbers(service, second) == numbers(service, third)

    def test_figures_of_kept_weights_train_nothing(self, service: Service, settings: Settings) -> None:
        sweep = finished(service, settings)
        view = service.sweeps.get(sweep)
        service.commands.extend(sweep, with_figures(view.text.encode(), ["tsne", "panels"]))
        conduct(settings)
        assert (tally(settings, "train"), tally(settings, "evaluate")) == (4, 4)
        first = trials(service, sweep)[0]
        assert first.evaluated_from.metrics == ["tsne", "panels"]
        assert [figure["name"] for figure in first.recipe["figures"]] == ["tsne", "panels"]
        recipe = {**SPEC["recipe"], "figures": [{"name": "tsne", "points": 50}]}
        assert service.submissions.preview(spec(recipe=recipe, tune={}, name="others")).evaluated == 4
        with pytest.raises(InvalidSpecError, match="changes trials of the sweep"):
            service.commands.extend(sweep, spec(recipe=recipe, tune={}, tables=SPEC["tables"]))
        recipe["figures"] = ["tsne", "norm_traces"]  # which looks at the training
        assert service.submissions.preview(spec(recipe=recipe, tune={}, name="traced")).evaluated == 0

    def test_what_kept_weights_cannot_tell_is_trained(self, service: Service, settings: Settings) -> None:
        select = {"metric": "map@r", "split": "validation", "beside": "test"}
        ran(service, settings, wider(select=select))
        seen = service.submissions.preview(wider("nmi_sec", select=select))
        assert (seen.evaluated, seen.cost.trainings) == (0, 8)
        assert "best_test/test/nmi_sec" in seen.notes[0]
        ran(service, settings, wider("nmi_sec", select=select))
        assert (tally(settings, "train"), tally(settings, "evaluate")) == (16, 0)

    def test_damaged_weights_are_trained_anew(self, service: Service, settings: Settings) -> None:
        sweep = finished(service, settings)
        first, second, *_ = trials(service, sweep)
        (storage_of(settings, first) / "best.safetensors").write_text("{")
        (storage_of(settings, second) / "best.safetensors").unlink()
        further = ran(service, settings, wider("nmi_sec", tune={}))
        assert (tally(settings, "train"), tally(settings, "evaluate")) == (6, 3)
        assert service.sweeps.get(further).state == "finished"
        assert all("best/test/nmi_sec" in one.metrics for one in trials(service, further))
        anew = trials(service, further)[0]
        assert anew.evaluated_from is None
        assert [one.state for one in anew.attempts] == ["failed", "finished"]
        text = service.store.logs.of(anew.id, 0).text
        assert "kept weights: checkpoint best.safetensors is damaged; training in place of that" in text

    def test_the_files_of_a_deleted_sweep_stay_while_they_are_needed(
        self, service: Service, settings: Settings
    ) -> None:
        first = ran(service, settings, wider(tune={}))
        kept = [storage_of(settings, one) / "best.safetensors" for one in trials(service, first)]
        further = ran(service, settings, wider("nmi_sec", tune={}), 1)
        service.commands.delete(first, "rates")
        conduct(settings)
        assert service.sweeps.get(further).counts.finished == 4
        assert (tally(settings, "train"), all(path.exists() for path in kept)) == (4, True)
        evaluated = trials(service, further)[0].id
        files = service.store.artifacts.of_trial(evaluated)
        assert service.files.read(evaluated, "queries.npz").content == b"nmi_sec"  # as the evaluation wrote it
        assert files is not None
        assert (settings.storage / files.folder / files.names[0]) in kept
        service.commands.delete(further, "rates")
        conduct(settings)
        assert not any(path.exists() for path in kept)
        assert sorted(one.name for one in settings.storage.iterdir() if one.is_dir()) == []

    def test_deleting_leaves_no_files_of_a_trial_that_moved_to_another_training(
        self, service: Service, settings: Settings
    ) -> None:
        sweep = finished(service, settings)
        other = service.submissions.submit(wider("nmi_sec", tune={}, fresh=True)).id
        conduct(settings)
        service.commands.extend(sweep, wider("nmi_sec", tune={}))
        conduct(settings)
        assert (tally(settings, "train"), tally(settings, "evaluate")) == (8, 0)
        assert [trial.replaced for trial in trials(service, sweep)] == [[]] * 4
        service.commands.delete(other, "rates")
        service.commands.delete(sweep, "rates")
        conduct(settings)
        assert [one.name for one in settings.storage.iterdir() if one.is_dir()] == []


class TestExtended:
    def test_a_column_is_evaluated(self, service: Service, settings: Settings) -> None:
        sweep = ran(service, settings, wider())
        before = numbers(service, sweep)
        service.commands.extend(sweep, wider("nmi_sec"))
        conduct(settings, orders=3)
        found = service.sweeps.get(sweep)
        assert (found.state, found.counts.finished, found.counts.evaluations) == ("running", 8, 5)
        markdown = service.tables.render(sweep, "main", "markdown").content.decode()
        assert "1.05" in markdown, "what was known stays"
        assert "…" in markdown, "what comes is said to come"
        conduct(settings)
        assert (tally(settings, "train"), tally(settings, "evaluate")) == (8, 8)
        assert service.sweeps.get(sweep).state == "finished"
        assert all("best/test/nmi_sec" in one.metrics for one in trials(service, sweep))
        assert numbers(service, sweep) != before
        fresh = ran(service, settings, wider("nmi_sec", fresh=True))
        assert numbers(service, sweep) == numbers(service, fresh)

    def test_twice_and_back(self, service: Service, settings: Settings) -> None:
        sweep = finished(service, settings)
        for further in (["nmi_sec"], ["nmi_sec", "recall@16"], ["recall@16"], ["f1_sec"]):
            service.commands.extend(sweep, wider(*further, tune={}))
            conduct(settings)
        assert (tally(settings, "train"), tally(settings, "evaluate")) == (4, 12)
        one = trials(service, sweep)[0]
        assert {"best/test/nmi_sec", "best/test/recall@16", "best/test/f1_sec"} <= one.metrics.keys()
        assert one.evaluated_from.metrics == ["f1_sec", "nmi_sec", "recall@16"]

    def test_what_waits_runs_failed_or_diverged(self, service: Service, settings: Settings) -> None:
        tune = {"optimizer.lr": [0.5, 0.25, 0.01]}
        sweep = service.submissions.submit(wider(tune=tune, compare={"loss": ["triplet"]})).id
        conduct(settings, orders=5)  # and one waits
        service.commands.extend(sweep, wider("nmi_sec", tune=tune, compare={"loss": ["triplet"]}))
        conduct(settings)
        found = service.sweeps.get(sweep)
        assert (found.state, found.counts.failed, found.counts.diverged, found.counts.evaluations) == (
            "failed", 2, 2, 0
        )  # fmt: skip
        assert tally(settings, "evaluate") == 1, "the last one was trained with it"
        (settings.storage / "mended").touch()
        service.commands.retry(sweep)
        conduct(settings)
        assert service.sweeps.get(sweep).state == "finished"
        good = [one for one in trials(service, sweep) if not one.diverged]
        assert all("best/test/nmi_sec" in one.metrics for one in good)
        assert len(good) == 4

    def test_an_evaluation_that_fails_takes_nothing(self, service: Service, settings: Settings) -> None:
        sweep = finished(service, settings)
        before = [one.metrics for one in trials(service, sweep)]
        (settings.storage / "refuse").touch()
        service.commands.extend(sweep, wider("nmi_sec", tune={}))
        conduct(settings)
        found = service.sweeps.get(sweep)
        assert (found.state, found.counts.finished, len(found.problems)) == ("failed", 4, 4)
        assert found.problems[0].message == (
            "keeps its numbers, but nmi_sec could not be evaluated: ValueError: it cannot be computed"
        )
        assert [one.metrics for one in trials(service, sweep)] == before
        assert trials(service, sweep)[0].evaluation.state == "failed"
        (settings.storage / "refuse").unlink()
        (storage_of(settings, trials(service, sweep)[0]) / "best.safetensors").unlink()
        (settings.storage / "lose").touch()
        service.commands.retry(sweep)
        conduct(settings)
        found = service.sweeps.get(sweep)
        assert (found.state, len(found.problems)) == ("failed", 1)
        assert "kept weights: " in found.problems[0].message
        assert "not in the storage" in found.problems[0].message
        assert tally(settings, "train") == 4

    def test_cancelled_evaluations_leave_the_numbers(self, service: Service, settings: Settings) -> None:
        sweep = finished(service, settings)
        service.commands.extend(sweep, wider("nmi_sec", tune={}))
        conduct(settings, orders=2)
        service.commands.cancel(sweep)
        conduct(settings)
        found = service.sweeps.get(sweep)
        assert (found.state, found.counts.finished, found.counts.evaluations) == ("finished", 4, 0)
        assert found.requests[0].outcome == "0 trials and 2 evaluations cancelled"
        assert tally(settings, "evaluate") == 2
        service.commands.extend(sweep, wider("nmi_sec", tune={}))
        conduct(settings)
        assert all("best/test/nmi_sec" in one.metrics for one in trials(service, sweep))

    def test_a_conductor_that_is_killed_costs_an_attempt(
        self, service: Service, settings: Settings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        sweep = _killed_amid_evaluations(service, settings, monkeypatch)
        found = trials(service, sweep)[0]
        assert (found.state, found.evaluation.state) == ("finished", "running")
        assert [one.state for one in found.evaluation.attempts] == ["running"]
        shown = sweeps.trial_page(found, None, service.store.logs.of(found.id))
        assert "nmi_sec of the weights that its training has kept" in shown
        view = service.sweeps.get(sweep)
        assert "<b>4 evaluations</b> left" in sweeps.sweep_page(view, service.sweeps.grid(sweep), {})
        conduct(settings)
        after = trials(service, sweep)[0]
        assert [one.state for one in after.attempts] == ["lost", "finished"]
        assert "evaluated from the weights of training" in sweeps.trial_page(
            after, None, service.store.logs.of(after.id)
        )
        assert (service.sweeps.get(sweep).state, tally(settings, "evaluate")) == ("finished", 4)
        assert tally(settings, "train") == 4

    def test_a_conductor_that_lost_its_lease_writes_no_metric(self, service: Service, settings: Settings) -> None:
        sweep = finished(service, settings)
        view = service.sweeps.get(sweep)
        service.commands.extend(sweep, with_metrics(view.text.encode(), view.spec, ["nmi_sec"]))
        thief = Store.open(settings.database)
        with pytest.raises(FencedError):
            conduct(settings, record=stealing(thief))
        assert [one.evaluation.state for one in trials(service, sweep)] == ["running", *["waiting"] * 3]
        held = thief.lease.held()
        assert held is not None
        thief.writer(held.fence).lease.release()
        thief.close()
        conduct(settings)
        assert all("best/test/nmi_sec" in one.metrics for one in trials(service, sweep))
        assert service.sweeps.get(sweep).state == "finished"

    def test_a_metric_whose_version_changed_meanwhile_is_requested_again(
        self, service: Service, settings: Settings
    ) -> None:
        sweep = finished(service, settings)
        service.commands.extend(sweep, wider("nmi_sec", tune={}))
        conduct(settings, orders=0)
        conduct(settings, catalog=raised(nmi_sec=1))
        found = service.sweeps.get(sweep)
        assert (found.state, found.counts.evaluations_failed, tally(settings, "evaluate")) == ("failed", 4, 0)
        assert "numbers changed in metric 'nmi_sec'" in found.problems[0].message
        assert "ask for it once more" in found.problems[0].message
        assert [one.state for one in trials(service, sweep)] == ["finished"] * 4
        assert "4 evaluations failed, to be asked for once more" in (found.requests[0].outcome or "")
        today = raised(nmi_sec=1)
        Service(settings, service.store, today).commands.extend(sweep, wider("nmi_sec", tune={}))
        conduct(settings, catalog=today)
        found = service.sweeps.get(sweep)
        assert (found.state, found.counts.evaluations_failed, tally(settings, "evaluate")) == ("finished", 0, 4)

    def test_what_differs_by_more_is_refused(self, service: Service, settings: Settings) -> None:
        select = {"metric": "map@r", "split": "validation", "beside": "test"}
        sweep = ran(service, settings, wider(tune={}, select=select))
        with pytest.raises(InvalidSpecError, match="best_test/test/nmi_sec"):
            service.commands.extend(sweep, wider("nmi_sec", tune={}, select=select))
        with pytest.raises(InvalidSpecError, match="changes trials of the sweep"):
            service.commands.extend(sweep, wider("nmi_sec", tune={}))

    def test_an_evaluation_that_runs_when_a_version_changes_fails_once(
        self, service: Service, settings: Settings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        sweep = _killed_amid_evaluations(service, settings, monkeypatch)
        conduct(settings, catalog=raised(nmi_sec=1))
        found = service.sweeps.get(sweep)
        assert (found.state, found.counts.evaluations_failed, tally(settings, "evaluate")) == ("failed", 4, 0)
        assert [one.kind for one in found.requests] == ["renew", "extend"]
