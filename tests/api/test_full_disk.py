"""A home on a disk that is full or read-only: `serve` holds and goes on by itself, and commands cut no file."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from api.local.record import read
from api.local.serve import Stack
from orchestrator.host.disk import replace_file
from orchestrator.record.store import Store
from orchestrator.settings import Settings
from orchestrator.views.errors import MetricsweepError
from tests.api.conftest import TOKEN
from tests.api.test_serve import Told, elsewhere, ours, pid_of, wait_until
from tests.disk_limits import files_of_at_most, read_only, small_disk

BLOCK = 4096
ROOT = Path(__file__).parents[2]


def command(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    known = {name: value for name, value in os.environ.items() if not name.startswith("METRICSWEEP_")}
    return subprocess.run(
        [sys.executable, "-m", "api.cli", *arguments],
        cwd=ROOT, env={**known, **variables}, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip


def test_the_supervisor_outlives_a_full_disk_and_goes_on_by_itself(tmp_path: Path) -> None:
    told, folder = Told(), tmp_path / "stand-ins"
    with (
        small_disk(tmp_path / "small", "256k") as disk,
        Stack(elsewhere(disk.folder / "home"), told, ours(folder)) as s,
    ):
        s.start()
        log = disk.folder / "home" / "logs" / "conductor.log"
        with log.open("a") as end:  # else its last block has room for another line
            end.write("\n" * (BLOCK - log.stat().st_size % BLOCK))
        disk.fill()
        api, conductor = pid_of(folder, "api"), pid_of(folder, "conductor")
        os.kill(api, signal.SIGKILL)
        os.kill(conductor, signal.SIGKILL)
        wait_until(lambda: pid_of(folder, "api") != api)  # which is ready by its answers, and needs no log
        wait_until(lambda: any("cannot be started: No space left on device" in one for one in told.of("conductor")))
        assert pid_of(folder, "conductor") == conductor
        disk.empty()
        wait_until(lambda: pid_of(folder, "conductor") != conductor)
        wait_until(lambda: told.of("conductor")[-1] == "ready")
        pids = {one["name"]: one["pid"] for one in read(disk.folder / "home")["children"]}
        wait_until(lambda: pids.get("conductor") == pid_of(folder, "conductor"))


def test_the_supervisor_outlives_a_home_that_becomes_read_only(tmp_path: Path) -> None:
    told, folder = Told(), tmp_path / "stand-ins"
    with Stack(elsewhere(tmp_path / "home"), told, ours(folder)) as stack:
        stack.start()
        conductor = pid_of(folder, "conductor")
        with read_only(tmp_path / "home"):
            os.kill(conductor, signal.SIGKILL)
            wait_until(lambda: any("cannot be started: Read-only" in one for one in told.of("conductor")))
        wait_until(lambda: pid_of(folder, "conductor") != conductor)


def test_a_process_whose_line_of_being_ready_was_lost_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("api.local.serve.READY_SECONDS", 2.0)
    told, folder, log = Told(), tmp_path / "stand-ins", tmp_path / "home" / "logs" / "conductor.log"
    with Stack(elsewhere(tmp_path / "home"), told, ours(folder)) as stack:
        stack.start()
        log.unlink()
        log.symlink_to(os.devnull)  # which loses all lines
        os.kill(pid_of(folder, "conductor"), signal.SIGKILL)
        wait_until(lambda: "not ready after 2 s; starting again" in told.of("conductor"))
        assert told.of("conductor").count("ready") == 1
        log.unlink()
        wait_until(lambda: told.of("conductor").count("ready") == 2)


def test_a_start_on_a_full_disk_is_refused_in_a_sentence(tmp_path: Path) -> None:
    with small_disk(tmp_path / "small", "256k") as disk:
        (disk.folder / "home").mkdir()
        disk.fill()
        with pytest.raises(MetricsweepError, match=r"the home folder .*/home cannot be written: No space left"):
            Stack(elsewhere(disk.folder / "home"), Told(), []).start()


def test_commands_on_a_read_only_home_say_so_in_a_sentence(tmp_path: Path) -> None:
    home = tmp_path / "home"
    made = command("users", "add", "ada", "--home", str(home))
    assert "no database" in made.stderr
    Store.open(f"sqlite:///{home}/metricsweep.db").close()
    said = {
        "cannot be written: Read-only file system": [
            ["serve", "--home", str(home)], ["run", "sweeps/digits.yaml", "--home", str(home)],
        ],
        "database": [["users", "add", "ada", "--home", str(home)]],
    }  # fmt: skip
    wrong = []
    with read_only(home):
        for sentence, commands in said.items():
            for arguments in commands:
                done = command(*arguments)
                if done.returncode != 1 or sentence not in done.stderr or "Traceback" in done.stderr:
                    wrong.append((arguments, done.returncode, done.stderr))
    assert not wrong


def test_an_export_on_a_full_disk_leaves_the_older_file(tmp_path: Path) -> None:
    published = ["published", "SEC-T3", "--like", "sweeps/sec_t3.yaml", "--out"]
    with small_disk(tmp_path / "small", "64k") as disk:
        older = disk.folder / "table.md"
        older.write_text("the table of last week")
        disk.fill()
        done = command(*published, str(older))
        assert (done.returncode, done.stderr) == (1, f"metricsweep: {older}: No space left on device\n")
        assert older.read_text() == "the table of last week"
        assert sorted(path.name for path in disk.folder.iterdir()) == ["filler", "table.md"]


def test_a_backup_without_room_leaves_nothing_and_can_be_tried_again(tmp_path: Path) -> None:
    home = tmp_path / "home"
    Store.open(f"sqlite:///{home}/metricsweep.db").close()
    (home / "storage" / "1").mkdir(parents=True)
    (home / "storage" / "1" / "best.safetensors").write_bytes(b"x" * 1_000_000)
    with small_disk(tmp_path / "small", "2m") as disk:
        disk.fill(but=900_000)  # the database fits, and not the weights
        words = ["backup", str(disk.folder / "backup"), "--home", str(home)]
        refused = command(*words)
        assert (refused.returncode, len(refused.stderr.splitlines())) == (1, 1), refused.stderr
        assert "No space left on device" in refused.stderr
        assert list((disk.folder / "backup").iterdir()) == []
        disk.empty()
        assert command(*words).returncode == 0


def test_a_full_disk_behind_the_standard_output_is_an_error(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "api.cli", "published", "SEC-T3", "--like", "sweeps/sec_t3.yaml"],
            cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, "metricsweep: cannot write: No space left on device\n")


def test_a_file_is_replaced_whole_and_stays_what_it_was(tmp_path: Path) -> None:
    """Its permissions, a link to it, and a name as long as names can be; a pipe is written in place."""
    file, link, long = tmp_path / "t.md", tmp_path / "link.md", tmp_path / ("n" * 255)
    file.write_bytes(b"old")
    file.chmod(0o640)
    link.symlink_to(file)
    with files_of_at_most(10), pytest.raises(OSError, match=r"File too large: '.*/link.md'"):
        replace_file(link, b"x" * 100)
    assert file.read_bytes() == b"old"
    replace_file(link, b"new")
    replace_file(long, b"long")
    replace_file(Path(os.devnull), b"nothing")
    assert (file.read_bytes(), file.stat().st_mode & 0o777, link.is_symlink()) == (b"new", 0o640, True)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([file.name, link.name, long.name])


def test_who_logs_out_on_a_disk_that_takes_nothing_is_out_and_learns_why(
    stranger: TestClient, settings: Settings
) -> None:
    stranger.post("/login", data={"token": TOKEN})
    assert stranger.get("/v1/sweeps").status_code == 200
    with read_only(settings.resolved_home):
        refused = stranger.post("/logout")
    assert (refused.status_code, refused.json()["detail"]) == (
        503, "a disk of the server takes no more: Read-only file system",
    )  # fmt: skip
    assert stranger.get("/v1/sweeps").status_code == 401
