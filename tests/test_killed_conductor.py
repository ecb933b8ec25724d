"""SIGKILL of the conductor in the middle of a sweep, with the real processes: nothing lost, nothing trained twice."""

import contextlib
import signal
from collections import Counter
from pathlib import Path
from stat import S_ISLNK, S_ISSOCK
from typing import Any

import psutil
import pytest
import yaml

from orchestrator.views.lifecycle import TrialState
from tests.served import Served, until

pytestmark = pytest.mark.ray

SPEC: dict[str, Any] = {
    "version": 1,
    "name": "killed",
    "recipe": {
        "dataset": "digits",
        "backbone": {"name": "mlp", "width": 16},
        "embedding": 16,
        "loss": "unhurried",
        "sampler": {"name": "balanced", "classes": 4, "per_class": 8},
        "iterations": 400,
        "validation": {"name": "class_holdout", "folds": 3, "fold": 0},
    },
    "compare": {"regularizer": ["none", "sec"]},
    "repeat": {"seed": [0, 1]},
    "slot": {"cpus": 1, "gpus": 0},
}


ADOPTED = "2 attempts were left running; going on with them"


def conductor_of(serve: psutil.Process, besides: int = 0) -> psutil.Process | None:
    for child in serve.children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
            line = child.cmdline()
            if "orchestrator" in line and "conduct" in line and child.pid != besides:
                return child
    return None


def test_the_sweep_goes_on_where_it_was(served_home: Served) -> None:
    client, serve, home = served_home.client, served_home.process, served_home.home
    before = set((home / "storage").glob("*/*/spool.jsonl"))  # of other tests, whose service it is too
    hold = home / "hold"  # while it is there a training takes 200 s, so that both slots train at the kill
    hold.touch(mode=0o600)
    held = {**SPEC, "recipe": {**SPEC["recipe"], "loss": {"name": "unhurried", "held": str(hold)}}}
    sweep = client.submit(yaml.safe_dump(held).encode()).id

    def both_train() -> bool:
        return sum(trial.step > 0 for trial in client.trials(sweep, TrialState.RUNNING)) == 2

    log = home / "logs" / "conductor.log"
    until(both_train, "both slots train")
    victim = conductor_of(serve)
    assert victim is not None
    victim.send_signal(signal.SIGKILL)
    until(lambda: conductor_of(serve, besides=victim.pid) is not None, "another conductor runs")
    until(lambda: ADOPTED in log.read_text(), "it goes on with what trains")
    hold.unlink()
    until(lambda: client.sweep(sweep).ended is not None, "the sweep ended")
    ended = client.sweep(sweep)
    assert (ended.state, ended.counts.finished) == ("finished", 4), log.read_text()[-3000:]
    trials = [client.trial(trial.id) for trial in client.trials(sweep)]
    attempts = Counter(len(trial.attempts) for trial in trials)
    assert attempts == {1: 4}, "the slots outlived the conductor: no attempt was lost, no trial trained twice"
    spools = sorted(path.parent.name for path in set((home / "storage").glob("*/*/spool.jsonl")) - before)
    assert spools == ["1"] * 4
    assert [path for path in opened(home) if path.name != "serve.out"] == []  # which is the test's own


def opened(folder: Path) -> list[Path]:
    """What others could read, were they let in; Ray opens its own on purpose, and has a closed folder around it."""
    found = [folder, *(path for path in folder.rglob("*") if folder / "ray" / "t" not in (path, *path.parents))]
    modes: dict[Path, int] = {}
    for path in found:
        with contextlib.suppress(FileNotFoundError):  # the journal of a database that is being written, say
            modes[path] = path.lstat().st_mode
    # MLflow's socket is open too, behind a folder that is closed.
    return [path for path, mode in modes.items() if not (S_ISLNK(mode) or S_ISSOCK(mode)) and mode & 0o077]
