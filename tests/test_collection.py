"""Weights are collected by age, state and rank: what goes, what stays, and what a killed conductor leaves."""

import shutil
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from pydantic import ValidationError

from dashboards import sweeps
from orchestrator.record.retention import WEIGHTS
from orchestrator.record.schema import collected, training
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from orchestrator.views.errors import ConflictError, InvalidSpecError, NotFoundError
from orchestrator.views.operations import CollectionPolicy, CollectionView
from orchestrator.views.states import TrialState
from tests.inline_conductor import conduct, ran
from tests.object_store import bucket_at, bucket_url, object_store  # noqa: F401 - fixtures
from tests.test_conductor import spec
from tests.test_evaluations import tally, trials, wider

SOON = timedelta(hours=1)
ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a sweep that has ended; each training keeps its weights."""
    home = tmp_path_factory.mktemp("trained")
    settings = at(home)
    service = Service.open(settings)
    number = ran(service, settings, wider())
    for trial in trials(service, number):
        folder = settings.storage / trial.training / "1"
        for name in ("norms.npz", "spool.jsonl", "last.pt"):
            (folder / name).write_text("12345678")
    service.close()
    return home


def at(home: Path) -> Settings:
    return Settings(home=home, engine="inline", train="tests.run.evaluated:train", lease_seconds=1)


@pytest.fixture
def settings(trained: Path, tmp_path: Path) -> Settings:
    """A copy of it."""
    return at(Path(shutil.copytree(trained, tmp_path / "home")))


@pytest.fixture
def sweep(service: Service) -> int:
    """Its number."""
    return service.sweeps.page(None, None, None, 1).items[0].id


def policy(**more: Any) -> CollectionPolicy:
    return CollectionPolicy(**{"before": datetime.now(UTC) + SOON, **more})


def collect(service: Service, dry_run: bool = False, sweep: int | None = None, **more: Any) -> CollectionView:
    return service.retention.collect(policy(**more), sweep, "ada", dry_run=dry_run)


def weights(settings: Settings) -> set[str]:
    return {
        path.relative_to(settings.storage).as_posix() for path in settings.storage.rglob("*") if path.suffix in WEIGHTS
    }


def records(service: Service) -> dict[str, Any]:
    query = sa.select(training.c.uid, collected).join(training, training.c.id == collected.c.training_id)
    with service.store.database.reading() as connection:
        return {row.uid: row for row in connection.execute(query)}


def shown(service: Service, sweep: int) -> set[str]:
    """The trainings of each cell's best candidate."""
    best = [c for cell in service.sweeps.grid(sweep) for c in cell.candidates if c.selected]
    return {service.trials.get(square.trial).training for one in best for square in one.trials}


def test_a_dry_run_says_what_would_go_and_changes_nothing(service: Service, settings: Settings, sweep: int) -> None:
    before = weights(settings)
    found = collect(service, dry_run=True)
    (row,) = found.sweeps
    kept = shown(service, sweep)
    everything = {trial.training for trial in trials(service, sweep)}
    assert kept
    assert kept < everything
    assert (row.sweep, row.trainings, row.kept) == (sweep, len(everything - kept), len(kept))
    assert row.files == 2 * row.trainings
    lying = [settings.storage / path for path in before if path.split("/")[0] in everything - kept]
    assert found.bytes == row.bytes == sum(path.stat().st_size for path in lying)
    assert {"recall@k", "nmi_sec"} <= set(row.retrained)
    assert "map@r" not in row.retrained, "it is known"
    conduct(settings)
    assert (weights(settings), records(service), row.request) == (before, {}, None)


def test_what_goes_is_recorded_and_all_but_weights_stays(service: Service, settings: Settings, sweep: int) -> None:
    numbers = service.tables.render(sweep, "main", "csv").content
    (row,) = collect(service).sweeps
    conduct(settings)
    request = service.store.requests.get(row.request or 0)
    assert (request.state, request.kind, request.actor) == ("done", "collect", "ada")
    assert request.outcome == f"{row.files} files of {row.trainings} trainings collected, 0.0 MiB"
    kept = shown(service, sweep)
    assert {path.split("/")[0] for path in weights(settings)} == kept
    for trial in trials(service, sweep):
        folder = settings.storage / trial.training / "1"
        assert {"norms.npz", "spool.jsonl"} <= {path.name for path in folder.iterdir()}
        assert (trial.collected is None) == (trial.training in kept)
    gone = next(trial for trial in trials(service, sweep) if trial.collected)
    assert gone.collected.removed
    assert gone.collected.files == 2
    assert "each cell keeps its best candidate" in gone.collected.reason
    page = sweeps.trial_page(gone, None, service.store.logs.of(gone.id))
    assert "The weights of this training were collected" in page
    assert service.tables.render(sweep, "main", "csv").content == numbers
    assert collect(service).sweeps == [], "there is nothing more"


@pytest.mark.parametrize(
    "moment", ["recorded", "third", *(pytest.param(one, marks=pytest.mark.soak) for one in ("counted", "gone"))]
)
def test_a_killed_conductor(service: Service, settings: Settings, sweep: int, moment: str) -> None:
    """Whatever moment it is, no file is gone that the record does not tell of, and the next one ends it."""
    (row,) = collect(service).sweeps
    before = weights(settings)
    done = subprocess.run(
        [sys.executable, "-m", "tests.collecting", str(settings.home), moment], cwd=ROOT, capture_output=True,
        text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL, done.stderr
    told, missing = records(service), before - weights(settings)
    assert {path.split("/")[0] for path in missing} <= told.keys()
    assert len(told) == row.trainings
    assert all(one.removed is None for one in told.values())
    assert bool(missing) == (moment in {"third", "gone"})
    assert service.store.requests.get(row.request or 0).state == "waiting"
    conduct(settings)
    told = records(service)
    assert all(one.removed for one in told.values())
    assert {path.split("/")[0] for path in weights(settings)} == shown(service, sweep)
    counted = sum(one.files for one in told.values())
    assert counted in {row.files, row.files - 1, row.files - 2}, "of one training some may have gone uncounted"
    assert service.store.requests.get(row.request or 0).state == "done"


def test_a_new_column_trains_where_the_weights_are_gone(service: Service, settings: Settings, sweep: int) -> None:
    (row,) = collect(service).sweeps
    conduct(settings)
    seen = service.submissions.preview(wider("nmi_sec"))
    assert (seen.evaluated, seen.cost.trainings) == (row.kept, row.trainings)
    trained = tally(settings, "train")
    ran(service, settings, wider("nmi_sec", name="further"))
    assert tally(settings, "train") - trained == row.trainings


def test_an_extension_that_needs_collected_weights_is_refused(service: Service, settings: Settings, sweep: int) -> None:
    (row,) = collect(service).sweeps
    conduct(settings)
    with pytest.raises(InvalidSpecError, match=f"the weights of {row.trainings} of the sweep's trials were collected"):
        service.commands.extend(sweep, wider("nmi_sec"))
    assert service.commands.extend(sweep, wider(repeat={"seed": [0, 1, 2]})).state == "waiting", "it only adds trials"
    conduct(settings)
    ran(service, settings, wider("nmi_sec", name="further", repeat={"seed": [0, 1, 2]}))
    service.commands.extend(sweep, wider("nmi_sec", repeat={"seed": [0, 1, 2]}))
    conduct(settings)
    assert all("best/test/nmi_sec" in trial.metrics for trial in trials(service, sweep))


def test_rank_age_and_state_decide(service: Service, settings: Settings, sweep: int) -> None:
    candidates = len(service.sweeps.grid(sweep)[0].candidates)
    assert candidates > 1
    assert collect(service, dry_run=True, keep=candidates).sweeps == []
    assert collect(service, dry_run=True, before=datetime.now(UTC) - SOON).sweeps == []
    assert collect(service, dry_run=True, states=[TrialState.FAILED]).sweeps == []
    assert collect(service, dry_run=True, states=[TrialState.FINISHED]).sweeps
    with pytest.raises(ValidationError):
        policy(keep=0)


def test_what_goes_on_is_left_alone(service: Service, settings: Settings, sweep: int) -> None:
    with pytest.raises(NotFoundError):
        collect(service, sweep=sweep + 7)
    going = service.submissions.submit(spec(name="other", repeat={"seed": [7]})).id
    with pytest.raises(
        ConflictError, match=f"sweep {going} is queued; weights are removed only after a sweep has ended"
    ):
        collect(service, sweep=going)
    assert [row.sweep for row in collect(service, dry_run=True).sweeps] == [sweep]


def test_what_another_sweep_shows_is_kept(service: Service, settings: Settings, sweep: int) -> None:
    ran(service, settings, wider(name="the same"))
    assert collect(service, dry_run=True).sweeps == []


def test_what_another_sweep_evaluates_is_kept(service: Service, settings: Settings, sweep: int) -> None:
    second = ran(service, settings, wider("nmi_sec", name="further"))
    assert tally(settings, "evaluate") > 0
    assert collect(service, dry_run=True, sweep=sweep).sweeps == []
    service.commands.delete(second, "further")
    conduct(settings)
    assert collect(service, dry_run=True, sweep=sweep).sweeps


def test_an_extension_that_waits_has_its_weights(service: Service, settings: Settings, sweep: int) -> None:
    """Independent of the order of the requests."""
    before = weights(settings)
    (row,) = collect(service).sweeps
    service.commands.extend(sweep, wider("nmi_sec"))
    conduct(settings)
    request = service.store.requests.get(row.request or 0)
    assert request.state == "refused"
    assert "an extension or a retry" in (request.outcome or "")
    assert before <= weights(settings)
    assert all("best/test/nmi_sec" in trial.metrics for trial in trials(service, sweep))


def test_links_are_never_followed(service: Service, settings: Settings, sweep: int, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (outside / "1").mkdir(parents=True)
    (outside / "1" / "best.safetensors").write_text("precious")
    (outside / "theirs.pt").write_text("precious")
    going = [one for one in trials(service, sweep) if one.training not in shown(service, sweep)]
    first, second = (settings.storage / trial.training for trial in going[:2])
    (first / "1" / "best.safetensors").unlink()
    (first / "1" / "best.safetensors").symlink_to(outside / "theirs.pt")
    second.rename(tmp_path / "moved")
    second.symlink_to(outside)
    collect(service)
    conduct(settings)
    assert (outside / "1" / "best.safetensors").read_text() == "precious"
    assert (outside / "theirs.pt").read_text() == "precious"
