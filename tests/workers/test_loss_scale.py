"""float16: what overflows makes no step and leaves no trace, a run of it is a divergence, and all of it resumes."""

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.workers.recipes import numbers, own_part, recipe, run, same, weights
from tests.workers.test_checkpoint import cut_and_resumed
from workers.catalog import load
from workers.catalog.recipe import changes, stamp
from workers.contract import Recipe
from workers.training import session
from workers.training.optimization import LONGEST_RUN

WILD = (
    "import torch\n\n\n"
    "class Wild(torch.nn.Module):\n"
    '    """Batch norm and a linear layer, of features that are now and then beyond what float16 holds."""\n\n'
    '    output = "raw"\n\n'
    "    def __init__(self, features, dim, *, chance: float = 0.3):\n        super().__init__()\n"
    "        self.chance, self.norm = chance, torch.nn.BatchNorm1d(features)\n"
    "        self.linear = torch.nn.Linear(features, dim)\n\n"
    "    def forward(self, features):\n"
    "        wild = self.training and float(torch.rand(())) < self.chance\n"
    "        return self.linear(self.norm(features * 1e8 if wild else features))\n"
)
"""A head that overflows in float16 by a draw of the training's own generator."""

STEEP = (
    "import torch\n\n\n"
    "class Steep(torch.nn.Module):\n"
    '    """Is 0, with an infinite slope."""\n\n    order = "free"\n\n'
    "    def forward(self, embeddings, labels):\n        return (embeddings - embeddings.detach()).abs().sum().sqrt()\n"
)
"""A loss that is finite where its gradient is not."""


def wild(folder: Path, chance: float, **changes: Any) -> Recipe:
    head = {"head": {"name": "wild", "chance": chance}, "precision": "fp16"}
    return own_part(folder, "heads", "wild", WILD, **{**head, **changes})


GPU = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")]


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=GPU)])
def test_an_overflow_makes_no_step_and_leaves_no_trace(device: str, tmp_path: Path) -> None:
    what = wild(tmp_path, 0.3, iterations=20, regularizer={"name": "sec_ema", "eta": 0.5})
    result, reports = run(what, tmp_path / "out", parts=tmp_path, device=device)
    assert (result.outcome, result.steps) == ("ok", 20)
    told = [line for report in reports for line in report.log.splitlines() if "is not finite" in line]
    assert len(told) == 1, "the first, and others only after a while"
    assert "no step, 1 in a row; gradients are scaled by " in told[0]
    steps = {step for step, _ in result.curves["train/loss"]}
    assert 0 < len(steps) < 20, "what was left out is no point of a curve"
    kept = weights(tmp_path / "out" / result.artifacts[0])
    assert all(value.isfinite().all() for value in kept.values())


def test_a_run_of_overflows_is_a_divergence(tmp_path: Path) -> None:
    what = wild(tmp_path, 1.0, iterations=30, validation="none", select={"split": "test"})
    result, reports = run(what, tmp_path / "whole", parts=tmp_path)
    assert (result.outcome, result.steps) == ("diverged", LONGEST_RUN)
    assert "the loss is not finite, in the 17th iteration in a row, in float16" in reports[-1].log


def test_an_infinite_gradient_counts_too(tmp_path: Path) -> None:
    what = own_part(tmp_path, "losses", "steep", STEEP, loss="steep", iterations=30, precision="fp16")
    result, reports = run(what, tmp_path / "out", parts=tmp_path)
    assert (result.outcome, result.steps) == ("diverged", LONGEST_RUN)
    assert "the gradient is not finite" in reports[-1].log


@pytest.mark.parametrize(("chance", "cuts"), [(0.3, [1, 2, 3]), (1.0, [10])])
def test_it_resumes_bit_for_bit_with_its_count(chance: float, cuts: list[int], tmp_path: Path) -> None:
    what = wild(tmp_path, chance, iterations=20, clip_norm=0.5)
    whole, _ = run(what, tmp_path / "whole", parts=tmp_path)
    found = cut_and_resumed(what, tmp_path, cuts, parts=tmp_path)
    assert numbers(found) == numbers(whole)
    if whole.artifacts:
        assert same(weights(tmp_path / "end/best.pt"), weights(tmp_path / "whole/best.pt"))


def test_only_recipes_of_float16_have_another_version() -> None:
    assert "precision" not in {**recipe().pins.versions, **recipe(precision="bf16").pins.versions}
    half = recipe(precision="fp16")
    assert half.pins.versions["precision"] == 2
    session.check(half, None)
    versions = {name: version for name, version in half.pins.versions.items() if name != "precision"}
    older = half.model_copy(update={"pins": half.pins.model_copy(update={"versions": versions})})
    assert older.fingerprint != half.fingerprint
    said = changes(stamp(older.model_dump(mode="json")), load())
    assert [str(one) for one in said] == ["precision 'fp16' (version 1, now 2)"]
    with pytest.raises(ValueError, match="for version 1 of `precision: fp16`; this machine has 2"):
        session.check(older, None)
