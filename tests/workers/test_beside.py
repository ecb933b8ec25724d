"""Selection on the test split kept beside the honest one: the same training, its other choice, cut anywhere."""

import math
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from tests.workers.recipes import DIGITS, numbers, recipe, run, same, weights
from tests.workers.test_checkpoint import cut_and_resumed
from workers import catalog
from workers.contract import Result, Select
from workers.training.folds import fold_recipes

PLAIN: dict[str, Any] = {"iterations": 40, "evaluate_every": 2, "optimizer": {"name": "adam", "lr": 0.01}}
BESIDE: dict[str, Any] = {**PLAIN, "select": {"metric": "map@r", "beside": "test"}}
FOLDS: dict[str, Any] = {**BESIDE, "iterations": 8, "validation": {"name": "cross_validation", "folds": 3}}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Result, Path]:
    folder = tmp_path_factory.mktemp("whole")
    return run(recipe(**BESIDE), folder)[0], folder


@pytest.fixture(scope="module")
def folds(tmp_path_factory: pytest.TempPathFactory) -> tuple[Result, Path]:
    folder = tmp_path_factory.mktemp("folds")
    return run(recipe(**FOLDS), folder)[0], folder


def test_it_is_refused_without_selection_by_validation() -> None:
    for split in ("test", "last"):
        with pytest.raises(ValidationError, match="only for `split: validation`"):
            Select.model_validate({"split": split, "beside": "test"})
        found = catalog.problems({**DIGITS, "select": {"split": split, "beside": "test"}}, catalog.load())
        said = f"is only for `split: validation`, but split is '{split}'; leave it out"
        assert [(one.path, one.message) for one in found] == [("select.beside", said)]


def test_the_training_and_its_honest_choice_stay_as_they_are(whole: tuple[Result, Path], tmp_path: Path) -> None:
    result, folder = whole
    plain, _ = run(recipe(**PLAIN), tmp_path)
    assert {key: value for key, value in result.metrics.items() if not key.startswith("best_test/")} == plain.metrics
    assert {key: points for key, points in result.curves.items() if not key.startswith("test/")} == plain.curves
    assert (result.best_step, result.artifacts) == (plain.best_step, plain.artifacts)
    assert same(weights(folder / "best.pt"), weights(tmp_path / "best.pt"))


def test_the_other_choice_is_what_selection_on_the_test_split_would_keep(
    whole: tuple[Result, Path], tmp_path: Path
) -> None:
    result, _ = whole
    greedy, _ = run(recipe(**{**PLAIN, "select": {"metric": "map@r", "split": "test"}}), tmp_path)
    assert greedy.best_step != result.best_step  # else this would show nothing
    kept = {key: value for key, value in result.metrics.items() if key.startswith("best_test/")}
    expected = {key: value for key, value in greedy.metrics.items() if key.startswith("best/test/")}
    assert kept == {key.replace("best/", "best_test/"): value for key, value in expected.items()}
    assert result.metrics["best_test/test/map@r"] == max(value for _, value in result.curves["test/map@r"])
    assert result.metrics["best_test/test/map@r"] > result.metrics["best/test/map@r"]


def test_cut_anywhere(whole: tuple[Result, Path], tmp_path: Path) -> None:
    expected, folder = whole
    for index, cuts in enumerate([[expected.best_step or 1], [3, 20, 16]]):
        assert numbers(cut_and_resumed(recipe(**BESIDE), tmp_path / str(index), cuts)) == numbers(expected), cuts
        assert same(weights(tmp_path / str(index) / "end/best.pt"), weights(folder / "best.pt")), cuts


def test_patience_waits_for_the_honest_choice(tmp_path: Path) -> None:
    changes = {"patience": 2, "optimizer": {"name": "adam", "lr": 0.02}}
    plain, _ = run(recipe(**{**PLAIN, **changes}), tmp_path / "plain")
    result, _ = run(recipe(**{**BESIDE, **changes}), tmp_path / "beside")
    assert result.steps == plain.steps < 40
    assert result.metrics["best_test/test/map@r"] == max(value for _, value in result.curves["test/map@r"])


def test_folds_apart(folds: tuple[Result, Path], tmp_path: Path) -> None:
    """How their models are joined, test_cross_validation.py shows."""
    result, _ = folds
    apart = [run(one, tmp_path / str(one.seed))[0] for one in fold_recipes(recipe(**FOLDS))]
    for name in ("map@r", "recall@1", "nmi"):
        mean = math.fsum(one.metrics[f"best_test/test/{name}"] for one in apart) / 3
        assert result.metrics[f"best_test/test_separated/{name}"] == mean
    assert result.metrics["best_test/test/map@r"] != result.metrics["best/test/map@r"]


def test_cut_in_any_fold(folds: tuple[Result, Path], tmp_path: Path) -> None:
    result = cut_and_resumed(recipe(**FOLDS), tmp_path, [5, 8])
    assert numbers(result) == numbers(folds[0])
    assert result.provenance["folds"] == folds[0].provenance["folds"]
