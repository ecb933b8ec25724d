"""A process that is killed while it computes features: what it leaves is not taken for whole, and others go on."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from tests.workers.frozen_recipes import frozen, weights_file
from tests.workers.recipes import numbers, place, run
from workers.contract import Progress, Result
from workers.data import scratch
from workers.train import train

ROOT = Path(__file__).parents[2]
PROGRAM = """
import sys
from pathlib import Path
from tests.workers.recipes import place
from workers.contract import Recipe
from workers.train import train

asked = 0

def stop():  # asked after each batch of features: stays in the middle until it is killed
    global asked
    asked += 1
    if asked == 5:
        print("in the middle", flush=True)
        sys.stdin.read()
    return False

train(Recipe.model_validate_json(sys.argv[2]), place(Path(sys.argv[1]), stop=stop), lambda _: None)
"""


def test_killed_while_it_computes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch, "_WAITED", 0.01)
    for name in ("killed", "whole"):
        (tmp_path / name).mkdir()
        weights_file(tmp_path / name)
    home, what = tmp_path / "killed", frozen()
    lines: list[str] = []
    results: list[Result] = []
    waiting = threading.Event()

    def report(progress: Progress) -> None:
        lines.append(progress.log)
        waiting.set()

    other = threading.Thread(target=lambda: results.append(train(what, place(home), report)), daemon=True)
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(home), what.model_dump_json()],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
    ) as process:  # fmt: skip
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "in the middle\n"
            (aside,) = folders(home)
            assert aside.name.startswith(".")
            assert (aside / "features").stat().st_size == 1797 * 256 * 4
            other.start()
            assert waiting.wait(60)
            assert lines == ["waiting for features of mobilenet_v1, which another training of this machine computes\n"]
        finally:
            process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    other.join(120)
    assert lines[1] == "computing features of mobilenet_v1: 1,797 images, once for this machine\n"
    whole, _ = run(what, tmp_path / "whole")
    assert [numbers(one) for one in results] == [numbers(whole)]
    (left,), (right,) = folders(home), folders(tmp_path / "whole")
    assert left.name == right.name
    assert np.array_equal(*(np.fromfile(one / "features", "<f4") for one in (left, right)))


def folders(home: Path) -> list[Path]:
    """What lies in the store of features, half-written or whole."""
    return [one for one in (home / "scratch" / "features").iterdir() if one.is_dir()]
