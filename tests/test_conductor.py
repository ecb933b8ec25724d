"""The conductor over a real database and the inline engine: from a queued sweep to its table."""

import socket
import threading
from contextlib import ExitStack, closing
from typing import Any

import pytest
import yaml

from orchestrator.conduct.conductor import Conductor
from orchestrator.record.lease import LeaseWriter
from orchestrator.record.mlflow.client import MlflowTracker
from orchestrator.record.store import Store
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from orchestrator.views.errors import FencedError, UnavailableError
from tests.inline_conductor import Wiretapped, conduct, inline, ran, stealing, workplace
from tests.served import until
from workers import catalog as catalogs

SPEC: dict[str, Any] = {
    "version": 1,
    "name": "rates",
    "recipe": {
        "dataset": "digits",
        "backbone": "mlp",
        "loss": "triplet",
        "sampler": {"name": "balanced", "classes": 4, "per_class": 4},
        "iterations": 10,
        "validation": {"name": "class_holdout", "folds": 3, "fold": 0},
    },
    "compare": {"loss": ["triplet", "semihard"]},
    "tune": {"optimizer.lr": [0.001, 0.01]},
    "repeat": {"seed": [0, 1]},
    "tables": {"main": {"rows": ["loss"], "columns": [], "metrics": ["map@r"]}},
}


def spec(**changes: Any) -> bytes:
    return yaml.safe_dump({**SPEC, **changes}, sort_keys=False).encode()


def trained(settings: Settings) -> list[str]:
    tally = settings.storage / "tally.txt"
    return tally.read_text().split() if tally.exists() else []


def test_a_sweep_becomes_a_table(service: Service, settings: Settings) -> None:
    sweep = ran(service, settings, spec())
    found = service.sweeps.get(sweep)
    assert (found.state, found.counts.finished) == ("finished", 8)
    cells = service.sweeps.grid(sweep)
    assert [[candidate.selected for candidate in cell.candidates] for cell in cells] == [[False, True]] * 2
    text = service.tables.render(sweep, "main", "markdown").content.decode()
    assert "1.05" in text, "the mean over seeds of 0.010 and 0.011, in percent"


def test_a_known_training_is_reused_and_a_fresh_one_is_not(service: Service, settings: Settings) -> None:
    ran(service, settings, spec())
    second = ran(service, settings, spec(name="again"))
    assert len(trained(settings)) == 8
    assert service.sweeps.get(second).counts.reused == 8
    ran(service, settings, spec(name="fresh", fresh=True))
    assert len(trained(settings)) == 16


def test_failures_and_divergence_leave_the_rest_alone(service: Service, settings: Settings) -> None:
    sweep = ran(service, settings, spec(tune={"optimizer.lr": [0.5, 0.25, 0.01]}))
    found = service.sweeps.get(sweep)
    assert (found.state, found.counts.failed, found.counts.diverged, found.counts.finished) == ("failed", 4, 4, 8)
    problem = next(problem for problem in found.problems if problem.state == "failed")
    assert problem.message == "ValueError: 0.5 is too much"
    assert problem.log == f"/v1/trials/{problem.trial}/logs"
    trial = service.trials.get(problem.trial)
    assert trial.trace is not None
    assert "scripted" in trial.trace
    assert (
        "1.05" in service.tables.render(sweep, "main", "csv").content.decode()
        or service.sweeps.grid(sweep)[0].candidates[2].selected
    )


def test_a_cancelled_sweep_trains_nothing_more_and_can_be_taken_up_again(service: Service, settings: Settings) -> None:
    sweep = service.submissions.submit(spec()).id
    service.commands.cancel(sweep)
    conduct(settings)
    assert (service.sweeps.get(sweep).state, trained(settings)) == ("cancelled", [])
    service.commands.retry(sweep)
    conduct(settings)
    assert service.sweeps.get(sweep).state == "finished"


def test_a_conductor_without_the_lease_writes_nothing(service: Service, settings: Settings) -> None:
    sweep = service.submissions.submit(spec()).id
    with closing(Store.open(settings.database)) as thief, pytest.raises(FencedError):
        conduct(settings, record=stealing(thief))
    assert service.sweeps.get(sweep).counts.finished == 0


def test_a_conductor_ends_though_the_database_is_away(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it cannot give back runs out, and the next one takes it."""
    store = Store.open(settings.database)
    conductor = inline(settings.model_copy(update={"lease_seconds": 0.2}), store)

    def away(writer: LeaseWriter) -> None:
        raise UnavailableError("the database cannot be used: a test")

    with monkeypatch.context() as broken:
        broken.setattr(LeaseWriter, "release", away)
        conductor.conduct(until_idle=True)
    held = store.lease.held()
    assert held is not None
    conductor.conduct(until_idle=True)
    after = store.lease.held()
    assert after is not None
    assert (after.fence, after.free) == (held.fence + 1, True)
    store.close()


def test_an_mlflow_that_never_answers_delays_nothing(
    service: Service, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It accepts the mirror's connection and stays silent; meanwhile a sweep is trained and another one deleted."""
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "600")
    store = Store.open(settings.database)
    engine = Wiretapped(workplace(settings))
    with ExitStack() as ending:
        silent = ending.enter_context(socket.create_server(("127.0.0.1", 0)))
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        conductor = Conductor(settings, store, engine, catalogs.load(), lambda: MlflowTracker(url))
        conducting = threading.Thread(target=conductor.conduct)
        first = service.submissions.submit(spec()).id
        conducting.start()
        ending.callback(conductor.close)
        silent.settimeout(60)
        ending.enter_context(silent.accept()[0])  # from now on the mirror waits for an answer
        until(lambda: service.sweeps.get(first).state == "finished", "the first sweep finishes")
        held = store.lease.held()
        assert held is not None
        store.writer(held.fence).outbox.keep_experiment(first, "7")
        service.commands.delete(first, confirm="rates")
        second = service.submissions.submit(spec(name="second", fresh=True)).id
        until(lambda: service.sweeps.get(second).state == "finished", "the second sweep finishes")
        until(lambda: not store.requests.pending(), "the first sweep is deleted")
        assert store.outbox.lag(second) > 0, "MLflow shows nothing of it"
    conducting.join(60)
    assert not conducting.is_alive()
    store.close()
