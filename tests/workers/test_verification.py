"""Verification: its pairs, and its accuracy against a naive loop over folds, thresholds and pairs."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.workers.recipes import batches, place, recipe, run
from workers import catalog
from workers.contract import Recipe
from workers.data.pair_set import PairSet
from workers.embeddings import geometry
from workers.evaluation.verification_pairs import FOLDS, MOST, Scores, pairs
from workers.metrics.accuracy import Accuracy
from workers.tasks.verification import Verification
from workers.training.session import Session


def naive(scores: Scores) -> float:
    """The same in loops."""
    rows = list(zip(scores.cosine.tolist(), scores.same.tolist(), scores.fold.tolist(), strict=True))
    shares = []
    for number in range(FOLDS):
        others = [row for row in rows if row[2] != number]
        best, threshold = -1, 0.0
        for candidate in [*sorted(cosine for cosine, _, _ in others), float("inf")]:
            right = sum((cosine >= candidate) == same for cosine, same, _ in others)
            if right > best:
                best, threshold = right, candidate
        own = [(cosine >= threshold) == same for cosine, same, fold in rows if fold == number]
        shares.append(sum(own) / len(own))
    return sum(shares) / FOLDS


@pytest.mark.parametrize("separation", [-5.0, 0.0, 0.3, 2.0])
@pytest.mark.parametrize("steps", [4, 10_000])
def test_accuracy_is_that_of_a_naive_loop(separation: float, steps: int) -> None:
    asked = pairs(torch.arange(40) // 5)
    drawn = torch.randn(len(asked.same), generator=torch.Generator().manual_seed(3))
    cosine = torch.tanh(drawn + separation * asked.same)
    scores = Scores((cosine * steps).round() / steps, asked.same, asked.fold)  # with few steps many are equal
    assert Accuracy()(scores) == pytest.approx(naive(scores), abs=1e-12)


def test_equal_cosines_of_all_pairs_tell_half_of_them() -> None:
    asked = pairs(torch.arange(40) // 5)
    assert Accuracy()(Scores(torch.zeros(len(asked.same)), asked.same, asked.fold)) == 0.5
    assert Accuracy()(Scores(asked.same.float(), asked.same, asked.fold)) == 1.0


def test_pairs_are_all_of_one_class_and_as_many_of_two() -> None:
    labels = torch.arange(60) // 6
    asked = pairs(labels)
    assert len(asked.same) == 2 * 10 * 15
    assert torch.equal(labels[asked.first] == labels[asked.second], asked.same)
    assert len({frozenset(pair) for pair in zip(asked.first.tolist(), asked.second.tolist(), strict=True)}) >= 150
    assert asked.fold.bincount().tolist() == [30] * FOLDS
    assert all(torch.equal(one, other) for one, other in zip(asked, pairs(labels), strict=True))
    assert len(pairs(torch.arange(400) // 200).same) == 2 * MOST


def test_the_pairs_that_a_data_set_drew_up_go_before_those_of_labels(tmp_path: Path) -> None:
    place_ = torch.arange(20)
    drawn = PairSet(place_, place_ % 7, place_ % 2 == 0, place_ // 2)
    session = Session(recipe(task="verification"), place(tmp_path), torch.device("cpu"))
    task, batches_ = session.task, batches(session)
    assert isinstance(task, Verification)
    usual = task.evaluate("test", ["accuracy"])
    batches_.splits = replace(batches_.splits, test=replace(batches_.splits.test, pairs=drawn))
    unit = geometry.unit(task.embed(batches_.splits.test))
    scores = Scores((unit[drawn.first] * unit[drawn.second]).sum(dim=1), drawn.same, drawn.fold)
    assert task.evaluate("test", ["accuracy"]) == {"accuracy": pytest.approx(naive(scores))} != usual


def test_too_few_to_pair_are_refused() -> None:
    with pytest.raises(ValueError, match="expected two classes and 10 pairs"):
        pairs(torch.zeros(30, dtype=torch.int64))
    with pytest.raises(ValueError, match="expected two classes and 10 pairs"):
        pairs(torch.arange(8) // 2)


def test_faces_of_people_who_did_not_train_are_told_apart(shared: Path, tmp_path: Path) -> None:
    raw = {
        "task": "verification",
        "dataset": {"name": "packed", "file": "orl_faces.npz"},
        "backbone": {"name": "small_cnn", "width": 8},
        "loss": "triplet",
        "sampler": {"name": "balanced", "classes": 5, "per_class": 4},
        "iterations": 30,
        "validation": {"name": "class_holdout", "folds": 4},
    }
    assert catalog.problems(raw, catalog.load()) == []
    what = catalog.complete(Recipe.model_validate(raw), catalog.load())
    (tmp_path / "data").symlink_to(shared / "data")
    result, _ = run(what, tmp_path)
    assert result.outcome == "ok"
    assert 0.6 < result.metrics["best/test/accuracy"] <= 1
