"""Slots as jobs of a real Slurm: arrays, a limit, a preemption, a kill, and daemons that restart; each trial once."""

import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from api.local.processes import ChildSpec
from orchestrator.run.files.engine import DemandFile
from orchestrator.run.files.slot import slots_folder
from orchestrator.run.slurm import Keeper, SlotJob
from orchestrator.views.operations import Shape
from tests.faults.disturbing import HELD, begin, deafen, held, whole
from tests.faults.evidence import Found, rows
from tests.faults.installation import Installation
from tests.faults.sweeps import spec
from tests.faults.trainings import EVERY
from tests.slurm_cluster import SlurmCluster, lacking

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.faults,
    pytest.mark.soak,
    pytest.mark.skipif(lacking() is not None, reason=f"Slurm cannot be started: {lacking()}"),
]

BODY = spec(steps=16, seeds=1)
SLOTS = 2
TOLD = 60
"""Seconds before its limit, by --signal=B:USR1@60, in which Slurm tells a job of it."""
KEEP = (
    *("slots", "--slurm", "--most", str(SLOTS), "--every", "1", "--idle", "120", "--partition", "low"),
    *("--account", "lab", "--gres", "gpu:1", "--mem", "512M", "--time", "30", "--signal", str(TOLD)),
    *("--sbatch=--comment=a slot", "--setup", "export FROM_SETUP=1"),
)


class OnSlurm(Installation):
    """An installation whose conductor has no Ray and whose slots are jobs."""

    def __init__(self, folder: Path, slurm: SlurmCluster) -> None:
        super().__init__(folder, None, engine="files", slots=SLOTS)
        self.slurm = slurm

    def start_keeper(self) -> None:
        """Keep the slots alive, as a user of the cluster would."""
        command = (sys.executable, "-c", "from api.cli import main; main()", *KEEP)
        told = {name: self.slurm.environment[name] for name in ("SLURM_CONF", "PATH")}
        self.start(ChildSpec("keeper", command, environment=told), self.environment, again=True)

    def jobs(self) -> list[str]:
        """The ids of the jobs that run."""
        return self.slurm.ask("squeue", "-h", "--states=R", "--partition=low", "--format=%A").split()

    def end_in(self, job: str, seconds: float) -> None:
        """Give a job that runs another limit."""
        end = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(time.time() + seconds))
        self.slurm.ask("scontrol", "update", f"JobId={job}", f"EndTime={end}")

    def attempts(self, sweep: int) -> list[str]:
        """How the attempts of a sweep ended, and why."""
        query = (
            "SELECT a.state, a.reason FROM attempt a JOIN trial t ON t.training_id = a.training_id"
            " WHERE t.sweep_id = :sweep ORDER BY a.id"
        )
        return [f"{row.state}: {row.reason}" for row in rows(self.settings.database, query, sweep=sweep)]


@pytest.fixture(scope="module")
def slurm() -> Iterator[SlurmCluster]:
    with tempfile.TemporaryDirectory(prefix="slurm-") as folder:
        cluster = SlurmCluster(Path(folder))
        try:
            cluster.up()
            yield cluster
        finally:
            cluster.down()


@pytest.fixture(scope="module")
def on_slurm(slurm: SlurmCluster) -> Iterator[OnSlurm]:
    with tempfile.TemporaryDirectory(prefix="ms-", ignore_cleanup_errors=True) as folder:
        installation = OnSlurm(Path(folder), slurm)
        try:
            installation.start_api()
            installation.start_conductor()
            installation.start_keeper()
            yield installation
        finally:
            installation.end_all()
            slurm.end_jobs()  # or they write into the folder while it is removed


def test_jobs_that_end_as_soon_as_they_begin_are_reported_and_not_resubmitted_forever(
    slurm: SlurmCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SLURM_CONF", "PATH"):
        monkeypatch.setenv(name, slurm.environment[name])
    said: list[str] = []
    there = slots_folder(tmp_path / "storage")
    broken = SlotJob(partition="low", mem="64M", setup=("echo no such module >&2", "exit 3"))
    DemandFile(there).write([], [Shape(1, 0, 0)])
    keeper = Keeper(there, broken, 4, {}, said.append)
    for _ in range(100):
        keeper.turn()
        if any("as soon as they had begun" in line for line in said):
            break
        time.sleep(0.1)
    for _ in range(3):
        keeper.turn()
    assert len([line for line in said if line.startswith("submitted array")]) == 1, said
    (log,) = (there / "logs").glob("*.log")
    assert "no such module" in log.read_text()
    refused = Keeper(there, SlotJob(partition="none"), 4, {}, said.append)
    refused.turn()
    assert "invalid partition" in said[-1]


def since_checkpoints(found: Found) -> bool:
    """Whether no step was taken again but those that no checkpoint held."""
    return found.repeated <= SLOTS * (HELD % EVERY)


def test_a_sweep_goes_through_an_array_while_login_node_and_slurmctld_restart(on_slurm: OnSlurm) -> None:
    sweep = begin(on_slurm, BODY, hold=HELD)
    held(on_slurm, sweep)
    assert on_slurm.slurm.ask("squeue", "-h", "--array", "--format=%a %P").split("\n")[:SLOTS] == ["lab low"] * SLOTS
    on_slurm.slurm.stop_controller()
    on_slurm.kill("keeper")
    on_slurm.kill("conductor")
    on_slurm.until(lambda: on_slurm.exits("conductor"), "the conductor was killed")
    on_slurm.slurm.start_controller()
    found = whole(on_slurm, sweep, BODY)
    assert (found.repeated, found.attempts) == (0, 0), on_slurm.attempts(sweep)
    assert on_slurm.log("keeper").count("submitted array") == 1, "slots that live are not submitted again"


def test_a_preempted_job_gives_back_and_goes_on_where_it_was(on_slurm: OnSlurm) -> None:
    sweep = begin(on_slurm, BODY, hold=HELD)
    held(on_slurm, sweep)
    before = on_slurm.jobs()
    on_slurm.slurm.ask("sbatch", "--partition=high", "--exclusive", "--output=/dev/null", "--wrap", "true")
    waiting = ("squeue", "-h", "--array", "--states=PD", "--partition=low")
    on_slurm.until(lambda: len(on_slurm.slurm.ask(*waiting).splitlines()) == SLOTS, "Slurm has requeued both")
    for job in before:  # Slurm would wait for a minute or two
        on_slurm.slurm.ask("scontrol", "update", f"JobId={job}", "StartTime=now")
    found = whole(on_slurm, sweep, BODY)
    assert since_checkpoints(found)
    ended = on_slurm.attempts(sweep)
    assert [one for one in ended if "time was up" in one] == ended[:SLOTS], "given back, and not counted as failures"
    assert set(on_slurm.jobs()) <= set(before), "the same jobs, requeued"


def test_of_two_jobs_one_hears_of_its_limit_and_one_is_killed_by_it(on_slurm: OnSlurm) -> None:
    sweep = begin(on_slurm, BODY, hold=HELD)
    hearing, deaf = (process for _, process in held(on_slurm, sweep))
    told, killed = (psutil.Process(process).environ()["SLURM_JOB_ID"] for process in (hearing, deaf))
    deafen(on_slurm, deaf)
    on_slurm.end_in(killed, 1)  # Slurm looks twice a minute
    on_slurm.end_in(told, TOLD + 20)  # so that its own timer sends USR1 at its next look
    on_slurm.until(lambda: len(on_slurm.attempts(sweep)) == 2 * SLOTS, "both go on in other jobs")
    found = whole(on_slurm, sweep, BODY)
    assert since_checkpoints(found)
    ended = sorted(on_slurm.attempts(sweep))
    assert [one.partition(":")[0] for one in ended] == ["finished", "finished", "lost", "stopped"], ended
    assert "it has not written for 60 s" in ended[2]
    assert not {told, killed} & set(on_slurm.jobs())
