"""A training that was cut anywhere, or found its disk full, and was resumed equals one that was not, bit for bit."""

import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.workers.recipes import numbers, own_part, place, recipe, run, same, weights
from workers.contract import CheckpointError, Progress, Recipe, Result, Stopped
from workers.train import train
from workers.training import checkpoint

ROOT = Path(__file__).parents[2]
CASES: dict[str, dict[str, Any]] = {
    "sec_ema, adam, balanced": {"regularizer": {"name": "sec_ema", "eta": 1.0, "rho": 0.1}},
    "svmax, sgd, shuffle, cosine": {
        "loss": "multi_similarity",
        "regularizer": {"name": "svmax", "eta": 0.5},
        "sampler": {"name": "shuffle", "batch": 300},
        "optimizer": {"name": "sgd", "lr": 0.05},
        "schedule": {"name": "cosine", "warmup": 3},
    },
    "adamw, mlp, last": {
        "optimizer": "adamw",
        "backbone": {"name": "mlp", "width": 24},
        "select": {"split": "last"},
        "schedule": {"name": "polynomial"},
    },
    "warm-up, clipping, eta, rates": {
        "warmup": 4,
        "backbone_rate": 0.3,
        "clip_value": 0.02,
        "clip_norm": 0.1,
        "undecayed": "norm_and_bias",
        "regularizer": {"name": "sec_ema", "eta": 0.5},
        "eta_schedule": "linear",
        "optimizer": {"name": "rmsprop", "momentum": 0.9, "weight_decay": 1e-3},
    },
    "random crops in bfloat16": {
        "augment": "crop_flip",
        "crop": 7,
        "precision": "bf16",
        "channels_last": True,
        "chunk": 8,
    },
    "float16 with a scaled gradient": {"precision": "fp16", "clip_norm": 0.1},
    "epochs": {
        "iterations": None,
        "epochs": 4,
        "loss": "multi_similarity",
        "evaluate_every": 1,
        "warmup": 1,
        "sampler": {"name": "shuffle", "batch": 350},
        "schedule": {"name": "step", "every": 2},
        "regularizer": {"name": "sec", "eta": 0.5},
        "eta_schedule": {"name": "face_warmup", "wait": 1.0},
    },
    "patience": {"patience": 2, "evaluate_every": 1, "optimizer": {"name": "sgd", "lr": 1e-4}},
}


def stopping_after(steps: int) -> Any:
    """A stop flag that turns true once `steps` iterations of this attempt are done: it is read once before each."""
    turns = iter([False] * steps)
    return lambda: next(turns, True)


def cut_and_resumed(what: Recipe, folder: Path, cuts: list[int], **at: Any) -> Result:
    """Train with a stop after each number of iterations, every attempt in a folder of its own."""
    resume = None
    for attempt, steps in enumerate(cuts):
        with pytest.raises(Stopped):
            run(what, folder / str(attempt), resume, stop=stopping_after(steps), **at)
        resume = folder / str(attempt) / "last.pt"
    return run(what, folder / "end", resume, **at)[0]


@pytest.mark.parametrize("case", CASES)
def test_cut_anywhere(case: str, tmp_path: Path) -> None:
    """tests/workers/test_tasks.py cuts a training of each task at every step."""
    what = recipe(**CASES[case])
    whole, _ = run(what, tmp_path / "whole")
    kept = whole.artifacts[0]
    pieces = [[5], [1, 3, 2]] if whole.steps > 5 else [[2]]
    for index, cuts in enumerate(pieces):
        folder = tmp_path / str(index)
        assert numbers(cut_and_resumed(what, folder, cuts)) == numbers(whole), cuts
        assert same(weights(folder / "end" / kept), weights(tmp_path / "whole" / kept)), cuts
        assert {path.name for path in (folder / "end").iterdir()} == {kept, "queries.npz"}
        assert (folder / "end/queries.npz").read_bytes() == (tmp_path / "whole/queries.npz").read_bytes(), cuts


def test_what_a_part_draws_at_random_goes_on_too(tmp_path: Path) -> None:
    what = own_part(
        tmp_path, "heads", "drop",
        "import random\nimport numpy\nimport torch\n\n\n"
        "class Drop(torch.nn.Module):\n"
        '    """Drops features, and draws from every global generator."""\n\n    output = "raw"\n\n'
        "    def __init__(self, features, dim):\n        super().__init__()\n"
        "        self.linear = torch.nn.Linear(features, dim)\n\n"
        "    def forward(self, features):\n"
        "        drawn = random.random() + numpy.random.rand() if self.training else 1.0\n"
        "        return drawn * self.linear(torch.nn.functional.dropout(features, 0.3, self.training))\n",
        head="drop",
    )  # fmt: skip
    whole, _ = run(what, tmp_path / "whole", parts=tmp_path)
    with pytest.raises(Stopped):
        run(what, tmp_path / "cut", parts=tmp_path, stop=stopping_after(7))
    assert numbers(run(what, tmp_path / "end", tmp_path / "cut/last.pt", parts=tmp_path)[0]) == numbers(whole)


def test_killed_by_the_system(tmp_path: Path) -> None:
    what = recipe(regularizer="sec_ema", iterations=60, evaluate_every=30)
    program = (
        "import sys; from pathlib import Path\n"
        "from tests.workers.recipes import place\n"
        "from workers.contract import Recipe; from workers.train import train\n"
        "recipe = Recipe.model_validate_json(sys.argv[2])\n"
        "say = lambda progress: print(progress.step, progress.checkpoint, flush=True)\n"
        "train(recipe, place(Path(sys.argv[1]), checkpoint_seconds=0.01), say)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "killed"), what.model_dump_json()],
        cwd=ROOT, stdout=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
    ) as process:  # fmt: skip
        assert process.stdout is not None
        for line in process.stdout:
            step, name = line.split()
            if int(step) > 20 and name == "last.pt":
                process.send_signal(signal.SIGKILL)
                break
        process.stdout.read()
    assert process.returncode == -signal.SIGKILL
    whole, _ = run(what, tmp_path / "whole")
    resumed, reports = run(what, tmp_path / "end", tmp_path / "killed" / "last.pt")
    assert reports[0].step > 20
    assert numbers(resumed) == numbers(whole)
    assert same(weights(tmp_path / "end/best.safetensors"), weights(tmp_path / "whole/best.safetensors"))


def test_resumed_from_an_older_checkpoint(tmp_path: Path) -> None:
    """The last checkpoint of a killed training may be behind its last report."""
    what = recipe(regularizer="sec_ema")
    whole, _ = run(what, tmp_path / "whole")

    def keep_and_die(progress: Progress) -> None:
        if progress.checkpoint and progress.step in {4, 5, 7}:
            shutil.copy(tmp_path / "cut" / progress.checkpoint, tmp_path / f"{progress.step}.pt")
        if progress.step == 9:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(what, place(tmp_path / "cut", checkpoint_seconds=0.0), keep_and_die)
    for step in (4, 5, 7):
        resumed, reports = run(what, tmp_path / f"end{step}", tmp_path / f"{step}.pt")
        assert f"from step {step} " in reports[0].log
        assert numbers(resumed) == numbers(whole), step
        assert same(weights(tmp_path / f"end{step}/best.safetensors"), weights(tmp_path / "whole/best.safetensors")), (
            step
        )


def test_a_stop_says_where_it_can_go_on(tmp_path: Path) -> None:
    reports: list[Progress] = []
    with pytest.raises(Stopped, match="after 6 of 12 iterations"):
        train(recipe(), place(tmp_path, stop=stopping_after(6)), reports.append)
    assert (reports[-1].checkpoint, reports[-1].step) == ("last.pt", 6)
    assert [path.name for path in tmp_path.iterdir()] == ["last.pt"]
    spent = checkpoint.load(tmp_path / "last.pt")["seconds"]
    assert run(recipe(), tmp_path, tmp_path / "last.pt")[0].seconds > spent > 0, "the time of attempts adds up"


@pytest.fixture
def written(tmp_path: Path) -> Path:
    with pytest.raises(Stopped):
        run(recipe(), tmp_path, stop=stopping_after(3))
    return tmp_path / "last.pt"


def test_damage_anywhere_is_a_damaged_checkpoint_or_changes_nothing(written: Path) -> None:
    """Flipped bits, overwritten bytes and cuts; many in the zip's own records, since readers trust these."""
    content, intact, drawn = written.read_bytes(), checkpoint.load(written), random.Random(0)
    central = content.rfind(b"PK\x01\x02", 0, content.find(b"PK\x05\x06"))
    places = [drawn.randrange(len(content)) for _ in range(100)]
    places += range(central, len(content), 4)
    places += [at + offset for at in _starts(content, b"PK\x01\x02")[:3] for offset in range(46)]
    places += [at + offset for at in _starts(content, b"PK\x03\x04")[:3] for offset in range(30)]
    damages = [bytes([content[place] ^ 1 << drawn.randrange(8)]) for place in places]
    damages[:50] = [drawn.randbytes(16) for _ in range(50)]
    variants = [content[:at] + damage + content[at + len(damage) :] for at, damage in zip(places, damages, strict=True)]
    variants += [content[: drawn.randrange(len(content))] for _ in range(50)] + [b"", content[:-1], content[1:]]
    wrong, refused = [], 0
    for number, variant in enumerate(variants):
        written.write_bytes(variant)
        try:
            state = checkpoint.load(written)
        except CheckpointError as error:
            refused += str(written) in str(error)
        except Exception as error:
            wrong.append(f"{number}: {error!r}")
        else:  # the damage lies where nothing is stored
            wrong += [] if _equal(state, intact) else [f"{number}: another state"]
    assert not wrong, wrong[:10]
    assert refused > len(variants) // 2


def _starts(content: bytes, mark: bytes) -> list[int]:
    return [found.start() for found in re.finditer(re.escape(mark), content)]


def _equal(first: Any, second: Any) -> bool:
    if isinstance(first, torch.Tensor):
        return torch.equal(first, second)
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(_equal(first[key], second[key]) for key in first)
    if isinstance(first, list | tuple):
        return len(first) == len(second) and all(map(_equal, first, second))
    return bool(first == second)


def test_a_missing_checkpoint_a_foreign_one_and_another_format(written: Path, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="does not exist"):
        run(recipe(), tmp_path, tmp_path / "none.pt")
    with pytest.raises(CheckpointError, match="another recipe"):
        run(recipe(seed=1), tmp_path, written)
    torch.save({"format": 0}, written)
    with pytest.raises(CheckpointError, match="another format"):
        run(recipe(), tmp_path, written)
    torch.save({"format": checkpoint.FORMAT, "fingerprint": recipe().fingerprint}, written)
    with pytest.raises(CheckpointError, match="does not fit"):
        run(recipe(), tmp_path, written)


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "last.pt"
    checkpoint.save(path, {"value": 1})
    with pytest.raises(Exception, match=r"pickle|local object"):
        checkpoint.save(path, {"value": lambda: None})
    assert checkpoint.load(path)["value"] == 1
    assert [file.name for file in tmp_path.iterdir()] == ["last.pt"]


def limit(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


def test_checkpoints_come_again_once_there_is_room(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    reports: list[Progress] = []

    def report(progress: Progress) -> None:
        reports.append(progress)
        # iterations 1 to 3 have room, 4 to 8 have none
        if progress.checkpoint and progress.step == 3:
            limit(2000)
        if progress.log.startswith("no checkpoint at step 8"):
            limit(before)

    where = place(tmp_path / "short", checkpoint_seconds=0.0)
    try:
        result = train(recipe(), where, report)
    finally:
        limit(before)
    assert [one.step for one in reports if one.checkpoint] == [1, 2, 3, 9, 10, 11, 12, 12]  # once at the end
    lost = [one for one in reports if "no checkpoint" in one.log]
    assert [one.step for one in lost] == [4, 5, 6, 7, 8]
    expected = f"no checkpoint at step 4: File too large ({tmp_path}/short/last.pt); going on without\n"
    assert lost[0].log == expected
    assert numbers(result) == numbers(run(recipe(), tmp_path / "long")[0]), "as if there had been room"
    assert sorted(path.name for path in (tmp_path / "short").iterdir()) == ["best.safetensors", "queries.npz"]


def test_a_checkpoint_before_the_disk_was_full_can_be_resumed(tmp_path: Path) -> None:
    where = place(tmp_path, checkpoint_seconds=0.0, stop=stopping_after(4))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    reports: list[Progress] = []

    def report(progress: Progress) -> None:
        reports.append(progress)
        if progress.checkpoint:
            limit(2000)

    try:
        with pytest.raises(Stopped, match="stopped after 4 of 12"):
            train(recipe(), where, report)
    finally:
        limit(before)
    assert [one.step for one in reports if one.checkpoint] == [1]
    assert "no checkpoint at step 4" in reports[-1].log
    assert [path.name for path in tmp_path.iterdir()] == ["last.pt"], "no half-written file is left"
    result, again = run(recipe(), tmp_path / "again", tmp_path / "last.pt")
    assert "training from step 1" in again[0].log
    assert numbers(result) == numbers(run(recipe(), tmp_path / "whole")[0])
