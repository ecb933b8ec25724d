"""SEC's training on faces in small: a preset's recipe on files as people have them, judged on each of its sets."""

import math
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from orchestrator.plan.check import check
from orchestrator.plan.grid import expand
from orchestrator.plan.yaml import parse
from tests.workers import faces
from workers import catalog
from workers.contract import Place, Recipe
from workers.datasets.megaface import Megaface
from workers.train import train

SWEEPS = Path(__file__).parents[2] / "sweeps"
SETS = ("lfw", "agedb30", "cfp_fp")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data root with faces of six people, pairs, and ten distractors."""
    faces.of_sec(tmp_path)
    monkeypatch.setattr("workers.datasets.casia_webface.Megaface", partial(Megaface, sizes=(10,)))
    return tmp_path


def small(recipe: Recipe) -> dict[str, Any]:
    """The same in all but sizes."""
    raw = recipe.model_dump(mode="json", exclude={"pins"})
    changes: dict[str, Any] = {
        "dataset": {**raw["dataset"], "official": False, "side": 8}, "backbone": {"name": "small_cnn", "width": 4},
        "embedding": 8, "epochs": 3, "schedule": {"name": "step", "at": [1, 2]},
        "sampler": {"name": "shuffle", "batch": 4}, "validation": {"name": "class_holdout", "folds": 3},
        "metrics": ["verification_accuracy", "eer", "rank1@1e1"],
    }  # fmt: skip
    return {**raw, **changes}


@pytest.mark.parametrize("regularizer", ["none", "sec", "sec_ema"])
def test_a_training_is_judged_on_each_set(regularizer: str, root: Path, tmp_path: Path) -> None:
    known = catalog.load()
    plan = expand(check(parse((SWEEPS / "sec_t11.yaml").read_bytes()), known), known)
    wanted = {"loss": "arcface", "regularizer": regularizer}
    cell = next(one.index for one in plan.cells if dict(one.labels) == wanted)
    raw = small(next(trial.recipe for trial in plan.trials() if trial.cell == cell))
    assert catalog.problems(raw, known) == []
    recipe = catalog.complete(Recipe.model_validate(raw), known)
    result = train(recipe, Place(root, root / "scratch", tmp_path / "kept", checkpoint_seconds=1e9), lambda _: None)
    assert result.outcome == "ok"
    judged = {key.removeprefix("best/") for key in result.metrics if key.startswith("best/")}
    assert {f"test_{name}/verification_accuracy" for name in SETS} | {"test_megaface/rank1@1e1"} <= judged
    # Pairs have no gallery to rank in, and a gallery has no pairs to judge.
    without_value = {key for key, value in result.metrics.items() if not math.isfinite(value)}
    assert all(("test_megaface" in key) != key.endswith("rank1@1e1") for key in without_value), without_value
    assert {"best/test_megaface/eer", "best/test_lfw/rank1@1e1"} <= without_value
    assert result.metrics["best/test_lfw/eer"] == result.metrics["best/test/eer"]
    if regularizer == "sec":
        eta = dict(result.curves["train/eta"])
        assert eta[min(eta)] == 0.0, "which begins in the fourth epoch"
