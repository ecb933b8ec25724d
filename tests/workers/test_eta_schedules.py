"""The weight of the regularizer over a training: formulas, golden values, and that the trainer applies them."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.workers.recipes import recipe, run
from workers import catalog, registry
from workers.contract import Part

GOLDEN = json.loads((Path(__file__).parent / "golden_values.json").read_text())


def schedule(name: str, *, eta: float = 1.0, total: int = 1000, epoch: int = 100, **options: Any) -> Any:
    part = Part.model_validate({"name": name, **options})
    return registry.build("eta_schedule", part, eta=eta, total=total, epoch=epoch, unit=1)


def test_golden_values() -> None:
    assert schedule("linear")(250) == GOLDEN["eta_eq29_t250_T1000_eta1"]
    assert schedule("min_ramp", total=30_000)(5) == pytest.approx(GOLDEN["eta_eq32_t5_T30000_eta1"], rel=1e-15)


@pytest.mark.parametrize("name", catalog.load().names("eta_schedule"))
def test_eta_is_between_zero_and_itself_at_every_step(name: str) -> None:
    made = schedule(name, eta=0.3)
    values = [made(step) for step in range(1000)]
    assert all(0 <= value <= 0.3 for value in values)
    assert values == sorted(values)
    assert values == [made(step) for step in range(1000)]  # stateless
    assert [schedule(name, eta=0.0)(step) for step in (0, 500, 999)] == [0, 0, 0]


def test_constant() -> None:
    assert {schedule("constant", eta=0.7)(step) for step in (0, 1, 999)} == {0.7}


def test_face_warmup() -> None:
    made = schedule("face_warmup", eta=2.0)
    assert [made(step) for step in (0, 299, 300, 350, 400, 999)] == [0, 0, 0, 1.0, 2.0, 2.0]
    assert [schedule("face_warmup", wait=0, rise=0)(step) for step in (0, 1)] == [1, 1]


def test_min_ramp_reaches_eta_at_a_five_hundredth() -> None:
    made = schedule("min_ramp", eta=2.0, total=30_000)
    assert made(119) < 2.0 == made(120) == made(29_999)


def test_the_trainer_weighs_by_it(tmp_path: Path) -> None:
    sec = {"name": "sec", "eta": 0.5}
    result, _ = run(recipe(regularizer=sec, eta_schedule="linear"), tmp_path / "a")
    assert [value for _, value in result.curves["train/eta"]] == pytest.approx([0.5 * t / 12 for t in range(12)])
    constant, _ = run(recipe(regularizer=sec), tmp_path / "b")
    assert "train/eta" not in constant.curves
    assert constant.metrics != result.metrics
    plain, _ = run(recipe(), tmp_path / "c")
    waits, _ = run(recipe(regularizer=sec, eta_schedule={"name": "face_warmup", "wait": 99.0}), tmp_path / "d")
    assert plain.metrics == waits.metrics
    ignored, _ = run(recipe(eta_schedule="linear"), tmp_path / "e")  # no regularizer, nothing to weigh
    assert ignored.metrics == plain.metrics


def test_a_regularizer_that_asks_for_labels_gets_them(tmp_path: Path) -> None:
    (tmp_path / "regularizers").mkdir()
    (tmp_path / "regularizers/by_class.py").write_text(
        "import torch\n\n\n"
        "class ByClass(torch.nn.Module):\n"
        '    """The mean norm of the first class."""\n\n    labelled = True\n\n'
        "    def __init__(self, *, eta: float = 1.0):\n        super().__init__()\n        self.eta = eta\n\n"
        "    def forward(self, embeddings, labels):\n"
        "        assert labels.shape == embeddings.shape[:1]\n"
        "        return embeddings[labels == labels[0]].norm(dim=1).mean()\n"
    )
    result, _ = run(recipe(tmp_path, regularizer="by_class"), tmp_path / "out", parts=tmp_path)
    assert result.outcome == "ok"
    assert not any(torch.isnan(torch.tensor(value)) for value in result.metrics.values())
