"""Several views of an image: what stands in a batch, what it costs, and what does not go with it."""

from pathlib import Path
from typing import Any

import pytest
import torch

from orchestrator.cost.estimate import workload
from tests.workers.recipes import numbers, place, recipe, run
from tests.workers.test_checkpoint import cut_and_resumed
from workers import catalog
from workers.contract import Recipe
from workers.data.batches import Batches
from workers.training import determinism

TASK = '''
from workers.evaluation.evaluate import Evaluation
from workers.tasks._embedding import Embedding


class Alike(Embedding):
    """The views of an image shall lie near each other."""

    label = "Alike"
    version = 1
    metrics = ("recall@1",)
    selects = "recall@1"
    split = "last"
    reads = "embeddings"
    curves = ("loss", "lr", "norm_mean", "norm_var", "s_mu", "cos_ap", "cos_an")
    views = 2

    def __init__(self, model, loss, regularizer, eta, batches, measures, figures):
        super().__init__(model, loss, regularizer, eta, batches, figures)
        self.measures = measures

    def evaluate(self, split, names):
        images = self.batches.splits.named(split)
        return self.measures.of(Evaluation(self.embed(images), images.labels), names)
'''
ALIKE = {
    "task": "alike",
    "loss": "nt_xent",
    "augment": "simclr",
    "sampler": {"name": "shuffle", "batch": 16},
    "iterations": 3,
    "evaluate_every": 2,
}


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    """A folder of own parts with a task that looks at two views of each image."""
    (tmp_path / "parts" / "tasks").mkdir(parents=True)
    (tmp_path / "parts" / "tasks" / "alike.py").write_text(TASK)
    return tmp_path / "parts"


def batches(folder: Path, views: int, **changes: Any) -> Batches:
    def seed(purpose: str) -> int:
        return determinism.derived(0, purpose)

    return Batches(recipe(**changes), place(folder), torch.device("cpu"), seed, views)


def test_all_images_stand_once_for_each_view(tmp_path: Path) -> None:
    views = 3
    made = batches(tmp_path, views, augment="simclr")
    batch = made.next()
    assert len(batch.images) == made.batch == 12 * views
    assert torch.equal(batch.labels, torch.arange(12).repeat(views))
    first, second = batch.images[:12], batch.images[12:24]
    assert not any(torch.equal(one, other) for one, other in zip(first, second, strict=True))
    alone, both = batches(tmp_path, 1).next().images, batches(tmp_path, views).next().images
    assert torch.equal(both, alone.repeat(views, 1, 1, 1))  # the sampler draws images as it does for one view
    state, after = made.state_dict(), made.next()
    other = batches(tmp_path, views, augment="simclr")
    other.load_state_dict(state)
    assert torch.equal(other.next().images, after.images)


def raw(**changes: Any) -> dict[str, Any]:
    return recipe().model_dump(mode="json", include={"dataset", "backbone", "embedding"}) | ALIKE | changes


def made(parts: Path, **changes: Any) -> Recipe:
    return catalog.complete(Recipe.model_validate(raw(**changes)), catalog.load(parts))


def problems(parts: Path, **changes: Any) -> dict[str, str]:
    return {one.path: one.message for one in catalog.problems(raw(**changes), catalog.load(parts))}


def test_a_task_of_views_trains_and_resumes(parts: Path, tmp_path: Path) -> None:
    assert problems(parts) == {}
    what = made(parts, regularizer="sec_ema")
    whole, _ = run(what, tmp_path / "whole", parts=parts)
    assert whole.outcome == "ok"
    assert numbers(cut_and_resumed(what, tmp_path, [1, 1], parts=parts)) == numbers(whole)
    assert workload(what, catalog.load(parts)).trained == 3 * 16 * 2, "every view goes through the network"


def test_what_asks_for_labels_or_leaves_views_equal_is_refused(parts: Path) -> None:
    blind = "but task 'alike' looks at views of images and at no labels"
    found = problems(parts, loss="proxy_anchor")
    assert found["loss"].startswith(f"loss 'proxy_anchor' needs the classes of images, {blind}; losses that fit: ")
    assert "'nt_xent'" in found["loss"]
    assert f"loss 'npair' needs the classes of images, {blind}" in problems(parts, loss="npair")["loss"]
    assert problems(parts, sampler="balanced") == {
        "sampler": f"sampler 'balanced' draws by classes, {blind}; samplers that fit: 'shuffle'"
    }
    equal = "task 'alike' looks at 2 views of each image, which `none` leaves equal"
    assert problems(parts, augment="none") == {"augment": f"{equal}; take 'simclr' or 'crop_flip'"}
