"""python -m workers: what a person types, sees and gets, without the service's dependencies."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.workers import trees
from workers import catalog
from workers.__main__ import RecipeError, main, read
from workers.contract import Result

ROOT = Path(__file__).parents[2]
RECIPE = """
# 1e-3 is a number and no a text, as in YAML 1.2
dataset: digits
backbone: {name: small_cnn, width: 8}
embedding: 16
loss: triplet
sampler: {name: balanced, classes: 3, per_class: 4}
optimizer: {name: adam, lr: 1e-3}
iterations: 12
validation: {name: class_holdout, folds: 3, fold: 0}
"""
BLOCKER = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in BLOCKED:
            raise ImportError(f"{name} is not to be imported here")

BLOCKED = {"ray", "mlflow", "optuna", "fastapi", "sqlalchemy", "uvicorn", "alembic", "altair", "orchestrator", "api"}
sys.meta_path.insert(0, Blocker())
sys.argv = ["workers", *sys.argv[1:]]
import runpy
runpy.run_module("workers", run_name="__main__")
"""


@pytest.fixture
def own_scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Decoded data goes to the folder of the test."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    path = tmp_path / "recipe.yaml"
    path.write_text(RECIPE)
    return path


def test_train_without_the_service(recipe: Path, tmp_path: Path) -> None:
    asked = ["train", str(recipe), "--out", str(tmp_path / "out"), "--device", "cpu"]
    done = subprocess.run(
        [sys.executable, "-c", BLOCKER, *asked], cwd=ROOT, capture_output=True, text=True, check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "step 12/12 loss " in done.stdout
    assert "best/test/recall@1" in done.stdout
    result = Result.model_validate_json((tmp_path / "out/result.json").read_text())
    assert result.outcome == "ok"
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"best.safetensors", "queries.npz", "result.json"}


def test_stopped_and_resumed(recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipe.write_text(RECIPE.replace("iterations: 12", "iterations: 3000\nevaluate_every: 5"))
    out = tmp_path / "out"
    with subprocess.Popen(
        [sys.executable, "-m", "workers", "train", str(recipe), "--out", str(out), "--device", "cpu"], cwd=ROOT,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stderr is not None
        lines: Iterator[str] = iter(process.stdout)
        assert any(line.startswith("step 5/") for line in lines)
        process.send_signal(signal.SIGINT)
        said = process.stderr.read()
        assert process.wait(120) == 1
    assert "of 3000 iterations; go on with --resume" in said
    assert [path.name for path in out.iterdir()] == ["last.pt"]
    other = tmp_path / "other.yaml"
    other.write_text(RECIPE)
    assert main(["train", str(other), "--out", str(out), "--resume", str(out / "last.pt"), "--device", "cpu"]) == 1
    assert capsys.readouterr().err == f"error: checkpoint {out / 'last.pt'} belongs to another recipe\n"


def test_a_file_that_is_no_recipe(tmp_path: Path) -> None:
    path = tmp_path / "recipe.yaml"
    for text, message in (
        ("- 1\n", "expected a mapping"),
        ("a: 1\na: 2\n", "line 2, column 1: the key 'a' stands twice"),
        ("a: [1\n", "line 2, column 1: did not find expected"),
        ("a: !!python/object/apply:os.getcwd []\n", "line 1, column 4: the tag"),
        ("a: &x [*x]\n", "the alias .* stands within what it names"),
        ("a: 1\nb: 2\n", ":1: a: a recipe has no field 'a'.*:2: b: "),
        ("? [a]\n: 1\n", "a key must be text"),
        (RECIPE + "regularizer: no\n", "no regularizer named 'no'"),  # YAML 1.2: no is a text
        (json.dumps({"dataset": "digits", "iterations": 1}), "loss: is missing"),
    ):
        path.write_text(text)
        with pytest.raises(RecipeError, match=message):
            read(path, catalog.load())
    path.write_text(RECIPE)
    assert read(path, catalog.load()).optimizer.options["lr"] == 0.001  # YAML 1.2: 1e-3 is a number


def test_files_that_cannot_be_read_and_problems_are_one_line_each(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "latin.yaml").write_bytes(b"name: \xe9\n")
    (tmp_path / "wrong.yaml").write_text(RECIPE.replace("triplet", "tripplet").replace("lr:", "lrr:"))
    assert [main(["train", str(tmp_path / f"{name}.yaml")]) for name in ("none", "latin", "wrong")] == [1, 1, 1]
    missing, latin, wrong = capsys.readouterr().err.splitlines()
    assert "cannot be read" in missing
    assert "is not UTF-8" in latin
    assert "did you mean 'triplet'" in wrong
    assert "optimizer.lrr" in wrong


def test_catalog(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["catalog"]) == 0
    assert "multi_similarity" in capsys.readouterr().out
    (tmp_path / "losses").mkdir()
    (tmp_path / "losses" / "mine.py").write_text('class Mine:\n    """Mine."""\n\n    order = "free"\n')
    assert main(["catalog", "--json", "--parts", str(tmp_path)]) == 0
    entries = json.loads(capsys.readouterr().out)["entries"]
    assert [entry["name"] for entry in entries if entry["own"]] == ["mine"]


def test_verify(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "verify", "digits"]) == 0
    assert "sha256:" in capsys.readouterr().out
    assert main(["data", "verify", "omniglot", "--data", str(tmp_path)]) == 1
    assert "omniglot28.npz is missing" in capsys.readouterr().err
    assert main(["data", "verify", "omniglott"]) == 1
    assert "did you mean 'omniglot'" in capsys.readouterr().err


@pytest.mark.usefixtures("own_scratch")
def test_verify_says_all_that_differs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trees.sop(tmp_path)
    trees.inshop(tmp_path / "inshop")
    assert main(["data", "verify", "sop", "--set", "side=16", "--data", str(tmp_path)]) == 1
    output = capsys.readouterr()
    assert "train       3 classes        6 images, 1 to 3 a class, 1 of one image\n" in output.out
    assert "train has 3 classes, expected 11,318" in output.err
    assert "test has 5 images, expected 60,502" in output.err
    assert main(["data", "verify", "inshop", "--set", "side=16", "--data", str(tmp_path)]) == 1
    output = capsys.readouterr()
    assert "2 of them are queries" in output.out
    assert "test has 2 queries, expected 14,218" in output.err
    chosen = ["--set", "side=16", "--set", "official=false"]
    assert main(["data", "verify", "sop", *chosen, "--data", str(tmp_path)]) == 0
    assert main(["data", "verify", "packed", "--data", str(tmp_path)]) == 1
    assert "needs the hyper-parameter 'file'" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["data", "verify", "packed", "--set", "file"])
    assert "expected NAME=VALUE, found 'file'" in capsys.readouterr().err
