"""What a slot requests of Slurm, and which of our variables Slurm does not get."""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from orchestrator.run import slurm
from orchestrator.run.files.engine import DemandFile
from orchestrator.run.files.slot import JOINED_FOLDER, Mailbox, State, mailboxes, slots_folder
from orchestrator.run.slurm import KEPT, PLENTY, Keeper, Queued, SlotJob, _without_secrets, tidy_logs
from orchestrator.views.operations import Shape

JOB = SlotJob(partition="gpu", account="lab", gres="gpu:a100:2", cpus=4, mem="16G", time="4:00:00", more=("--nice",))


def test_every_option_reaches_sbatch(tmp_path: Path) -> None:
    options = JOB.options(tmp_path, 3)
    assert {
        "--partition=gpu", "--account=lab", "--gres=gpu:a100:2", "--cpus-per-task=4", "--mem=16G", "--time=4:00:00",
        "--nice", "--array=1-3", "--requeue", "--signal=B:USR1@120", f"--job-name={JOB.name(tmp_path)}",
    } <= set(options)  # fmt: skip
    assert not [one for one in SlotJob(requeue=False).options(tmp_path, 1) if "qos" in one or one == "--requeue"]


def test_what_a_job_offers() -> None:
    gres = {None: 0, "gpu": 1, "gpu:2": 2, "gpu:a100": 1, "gpu:a100:4(S:0)": 4, "lic:3,gpu:1": 1}
    for asked, gpus in gres.items():
        assert SlotJob(gres=asked, mem="512M").offer == {"CPU": 1, "GPU": gpus, "memory": 2**29}, asked
    assert SlotJob(resources={"a100": 1}).offer == {"CPU": 1, "GPU": 0, "memory": PLENTY, "a100": 1}


def test_wrong_amounts_are_refused() -> None:
    with pytest.raises(ValueError, match="--mem: expected a number"):
        SlotJob(mem="plenty")
    for amount in (float("nan"), float("inf"), 0.0, -1.0):
        with pytest.raises(ValueError, match="--resource: expected NAME=AMOUNT"):
            SlotJob(resources={"a100": amount})


def test_the_slot_takes_the_place_of_the_shell(tmp_path: Path) -> None:
    script = SlotJob(setup=("module load cuda",), python="/opt/my python").script({"METRICSWEEP_STORAGE_URL": "/a b"})
    assert script.splitlines()[-2:] == [
        "module load cuda",
        "exec '/opt/my python' -P -m orchestrator.run.files --idle=300",
    ]
    assert "export METRICSWEEP_STORAGE_URL='/a b'" in script


def test_no_secret_goes_into_a_job() -> None:
    told = {"METRICSWEEP_TOKEN": "x", "METRICSWEEP_DATABASE_URL": "x", "AWS_SECRET_ACCESS_KEY": "x", "HOME": "/me"}
    assert _without_secrets(told) == {"HOME": "/me"}


def test_a_slot_that_reports_keeps_its_place_and_its_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slurmctld that was killed goes on from what it had saved: of a job that runs it may say that it waits."""
    there, cancelled, submitted = slots_folder(tmp_path), list[str](), list[Sequence[str]]()
    box = Mailbox(there / JOINED_FOLDER / "7_1-aaaaaaaa")
    box.make(State())
    said = [[Queued("7_1", "RUNNING", "None")], *[[Queued("7_1", "PENDING", "None"), Queued("7_2", "PENDING", "")]] * 5]
    monkeypatch.setattr(slurm, "queued", lambda name: said.pop(0))
    monkeypatch.setattr(slurm, "cancel", lambda jobs: cancelled.extend(job.number for job in jobs))
    monkeypatch.setattr(slurm, "submit", lambda options, script: submitted.append(options))
    keeper, demand = Keeper(there, SlotJob(), 4, {}, lambda line: None), DemandFile(there)
    demand.write([], [])
    for beat in range(5):
        box.put_state(State(beat=beat))
        keeper.turn()
    assert mailboxes(there), "it trains"
    assert (set(cancelled), submitted) == ({"7_2"}, [])
    demand.write([], [Shape(1, 0, 0)] * 9)
    keeper.turn()
    assert "--array=1-2" in submitted[0], "four are wanted at most, and two are there"


def test_a_job_that_cannot_end_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there, submitted, now = slots_folder(tmp_path), list[Sequence[str]](), [0.0]
    monkeypatch.setattr(slurm, "time", SimpleNamespace(monotonic=lambda: now[0], time=time.time))
    monkeypatch.setattr(slurm, "queued", lambda name: [Queued("7_1", "COMPLETING", "None")])
    monkeypatch.setattr(slurm, "submit", lambda options, script: submitted.append(options))
    keeper = Keeper(there, SlotJob(), 1, {}, lambda line: None)
    DemandFile(there).write([], [Shape(1, 0, 0)])
    for now[0], count in ((0.0, 0), (59.0, 0), (61.0, 1)):
        keeper.turn()
        assert len(submitted) == count, now


def test_logs_of_ended_jobs_stay_a_while_and_do_not_grow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slurm, "MOST_BYTES", 1_000)
    for index in range(KEPT + 5):
        log = tmp_path / f"7_{index}.log"
        log.write_text("x" * (1_001 if index == 1 else 9))
        os.utime(log, (index, index))
    tidy_logs(tmp_path, {"7_0", "7_1"})
    left = {path.stem for path in tmp_path.iterdir()}
    assert len(left) == KEPT + 2
    assert {"7_0", "7_1", "7_5", f"7_{KEPT + 4}"} <= left
    assert (tmp_path / "7_1.log").stat().st_size == 0


def test_a_folder_of_an_odd_name_is_no_pattern_of_slurms(tmp_path: Path) -> None:
    assert f"--output={tmp_path}/50%%j/logs/%A_%a.log" in SlotJob().options(tmp_path / "50%j", 1)
