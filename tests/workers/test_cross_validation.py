"""Cross-validation, and selection on the test split next to the honest one: cut anywhere, and the same numbers."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from pydantic import ValidationError

from tests.workers import recipes as samples
from tests.workers.inputs import evaluate
from tests.workers.recipes import batches, numbers, recipe, run, same, weights, weights_of_folds
from tests.workers.test_checkpoint import cut_and_resumed
from tests.workers.test_optimization import OWN
from workers import catalog, geometry
from workers.contract import ClassHoldout, Recipe, Result, Select
from workers.training import checkpoint
from workers.training.folds import fold_recipes
from workers.training.session import Session

FOLDS: dict[str, Any] = {"validation": {"name": "cross_validation", "folds": 3}, "regularizer": "sec_ema"}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Result, Path]:
    folder = tmp_path_factory.mktemp("whole")
    return run(recipe(**FOLDS), folder)[0], folder


def test_each_fold_holds_out_its_own_classes_and_has_a_seed_of_its_own() -> None:
    recipes = fold_recipes(recipe(**FOLDS))
    assert [one.validation for one in recipes] == [ClassHoldout(folds=3, fold=fold) for fold in range(3)]
    assert len({one.seed for one in recipes}) == 3
    assert fold_recipes(recipe(**FOLDS)) == recipes
    assert Recipe.model_validate(recipes[0].model_dump()) == recipes[0]
    with pytest.raises(ValueError, match="no folds"):
        fold_recipes(recipe())


def test_separated_metrics_are_means_over_the_models(whole: tuple[Result, Path], tmp_path: Path) -> None:
    result, _ = whole
    apart = [run(one, tmp_path / str(one.seed))[0] for one in fold_recipes(recipe(**FOLDS))]
    for name in ("map@r", "recall@1", "nmi", "norm_var"):
        for theirs, ours in (("test", "test_separated"), ("validation", "validation")):
            for which in ("best", "last"):
                mean = math.fsum(one.metrics[f"{which}/{theirs}/{name}"] for one in apart) / 3
                assert result.metrics[f"{which}/{ours}/{name}"] == mean
    assert result.steps == 36
    assert result.outcome == "ok"
    folds = result.provenance["folds"]
    assert isinstance(folds, list)
    assert [fold["step"] for fold in folds if isinstance(fold, dict)] == [one.best_step for one in apart]


def test_concatenated_metrics_are_of_the_joined_unit_embeddings(whole: tuple[Result, Path], tmp_path: Path) -> None:
    result, folder = whole
    kept, _ = checkpoint.kept(folder / "best.safetensors")
    assert {path.name for path in folder.iterdir()} == {"best.safetensors", "queries.npz"}
    parts = []
    one = Session(fold_recipes(recipe(**FOLDS))[0], samples.place(tmp_path), torch.device("cpu"))
    for model in kept:
        one.load(model)
        parts.append(geometry.unit(samples.retrieval(one).embed(batches(one).splits.test)))
    joined = torch.cat(parts, dim=1)
    assert joined.shape[1] == 3 * 16
    assert geometry.norms(joined).sub(math.sqrt(3)).abs().max() < 1e-5
    # Divided by their norm, which is the same for all, as it does: else the last bit may have near ties change places.
    expected = evaluate(geometry.unit(joined), batches(one).splits.test.labels, ["map@r", "recall@1"])
    assert result.metrics["best/test/map@r"] == pytest.approx(expected["map@r"], abs=1e-6)
    assert result.metrics["best/test/recall@1"] == pytest.approx(expected["recall@1"], abs=1e-6)
    assert result.metrics["best/test/norm_mean"] == pytest.approx(1)  # re-normalized
    assert not any(key.startswith("last/test/") for key in result.metrics)
    assert len(result.model_dump_json()) < 2**20


def test_steps_count_on_through_the_folds(whole: tuple[Result, Path]) -> None:
    result, _ = whole
    points = result.curves["validation/map@r"]
    assert [step for step, _ in points] == [5, 10, 12, 17, 22, 24, 29, 34, 36]


@pytest.mark.parametrize("cuts", [[12], [17, 3], [36]])
def test_cut_in_any_fold(whole: tuple[Result, Path], cuts: list[int], tmp_path: Path) -> None:
    """The stop flag is read once before each iteration, and once more at the end of each fold."""
    result = cut_and_resumed(recipe(**FOLDS), tmp_path, cuts)
    expected, folder = whole
    assert numbers(result) == numbers(expected)
    assert result.provenance["folds"] == expected.provenance["folds"]
    models = zip(
        weights_of_folds(tmp_path / "end/best.safetensors"), weights_of_folds(folder / "best.safetensors"), strict=True
    )
    assert all(same(ours, theirs) for ours, theirs in models)


def test_a_loss_with_parameters_and_patience_go_on_too(tmp_path: Path) -> None:
    (tmp_path / "losses").mkdir()
    (tmp_path / "losses/proxies.py").write_text(OWN)
    changes = {"loss": "proxies", "patience": 1, "evaluate_every": 1, "optimizer": {"name": "adam", "lr": 1e-4}}
    what = recipe(tmp_path, **{**FOLDS, **changes})
    result, reports = run(what, tmp_path / "whole", parts=tmp_path)
    assert result.steps < 36
    steps = [report.step for report in reports]
    assert steps == sorted(steps)
    assert {report.total for report in reports} == {36}
    assert numbers(cut_and_resumed(what, tmp_path / "cut", [4], parts=tmp_path)) == numbers(result)


def test_the_last_weights_where_these_are_selected(tmp_path: Path) -> None:
    result, _ = run(recipe(**{**FOLDS, "select": {"split": "last"}}), tmp_path)
    assert result.artifacts == ["final.safetensors", "queries.npz"]
    assert {"last/test/map@r", "last/test_separated/map@r", "last/validation/map@r"} <= set(result.metrics)
    assert recipe(select={"split": "last"}).select.key in result.metrics


def test_a_fold_that_diverges_is_the_outcome(tmp_path: Path) -> None:
    what = recipe(**{**FOLDS, "optimizer": {"name": "sgd", "lr": 1e36}, "regularizer": {"name": "l2", "eta": 1.0}})
    result, reports = run(what, tmp_path)
    assert (result.outcome, result.artifacts, result.metrics) == ("diverged", [], {})
    assert "fold 0 diverged" in reports[-1].log
    assert list(tmp_path.iterdir()) == []


PLAIN: dict[str, Any] = {"iterations": 40, "evaluate_every": 2, "optimizer": {"name": "adam", "lr": 0.01}}
BESIDE: dict[str, Any] = {**PLAIN, "select": {"metric": "map@r", "beside": "test"}}
BOTH: dict[str, Any] = {**BESIDE, "iterations": 8, "validation": {"name": "cross_validation", "folds": 3}}


@pytest.fixture(scope="module")
def whole_beside(tmp_path_factory: pytest.TempPathFactory) -> tuple[Result, Path]:
    folder = tmp_path_factory.mktemp("whole")
    return run(recipe(**BESIDE), folder)[0], folder


@pytest.fixture(scope="module")
def folds_beside(tmp_path_factory: pytest.TempPathFactory) -> tuple[Result, Path]:
    folder = tmp_path_factory.mktemp("folds")
    return run(recipe(**BOTH), folder)[0], folder


def test_it_is_refused_without_selection_by_validation() -> None:
    for split in ("test", "last"):
        with pytest.raises(ValidationError, match="only for `split: validation`"):
            Select.model_validate({"split": split, "beside": "test"})
        found = catalog.problems({**samples.DIGITS, "select": {"split": split, "beside": "test"}}, catalog.load())
        message = f"is only for `split: validation`, but split is '{split}'; leave it out"
        assert [(one.path, one.message) for one in found] == [("select.beside", message)]


def test_the_training_and_its_honest_choice_stay_as_they_are(whole_beside: tuple[Result, Path], tmp_path: Path) -> None:
    result, folder = whole_beside
    plain, _ = run(recipe(**PLAIN), tmp_path)
    assert {key: value for key, value in result.metrics.items() if not key.startswith("best_test/")} == plain.metrics
    assert {key: points for key, points in result.curves.items() if not key.startswith("test/")} == plain.curves
    assert (result.best_step, result.artifacts) == (plain.best_step, plain.artifacts)
    assert same(weights(folder / "best.safetensors"), weights(tmp_path / "best.safetensors"))


def test_the_other_choice_is_what_selection_on_the_test_split_would_keep(
    whole_beside: tuple[Result, Path], tmp_path: Path
) -> None:
    result, _ = whole_beside
    greedy, _ = run(recipe(**{**PLAIN, "select": {"metric": "map@r", "split": "test"}}), tmp_path)
    assert greedy.best_step != result.best_step  # else this would show nothing
    kept = {key: value for key, value in result.metrics.items() if key.startswith("best_test/")}
    expected = {key: value for key, value in greedy.metrics.items() if key.startswith("best/test/")}
    assert kept == {key.replace("best/", "best_test/"): value for key, value in expected.items()}
    assert result.metrics["best_test/test/map@r"] == max(value for _, value in result.curves["test/map@r"])
    assert result.metrics["best_test/test/map@r"] > result.metrics["best/test/map@r"]


def test_a_cut_anywhere_resumes_with_beside(whole_beside: tuple[Result, Path], tmp_path: Path) -> None:
    expected, folder = whole_beside
    for index, cuts in enumerate([[expected.best_step or 1], [3, 20, 16]]):
        assert numbers(cut_and_resumed(recipe(**BESIDE), tmp_path / str(index), cuts)) == numbers(expected), cuts
        assert same(weights(tmp_path / str(index) / "end/best.safetensors"), weights(folder / "best.safetensors")), cuts


def test_patience_waits_for_the_honest_choice(tmp_path: Path) -> None:
    changes = {"patience": 2, "optimizer": {"name": "adam", "lr": 0.02}}
    plain, _ = run(recipe(**{**PLAIN, **changes}), tmp_path / "plain")
    result, _ = run(recipe(**{**BESIDE, **changes}), tmp_path / "beside")
    assert result.steps == plain.steps < 40
    assert result.metrics["best_test/test/map@r"] == max(value for _, value in result.curves["test/map@r"])


def test_folds_apart(folds_beside: tuple[Result, Path], tmp_path: Path) -> None:
    """How their models are joined, test_cross_validation.py shows."""
    result, _ = folds_beside
    apart = [run(one, tmp_path / str(one.seed))[0] for one in fold_recipes(recipe(**BOTH))]
    for name in ("map@r", "recall@1", "nmi"):
        mean = math.fsum(one.metrics[f"best_test/test/{name}"] for one in apart) / 3
        assert result.metrics[f"best_test/test_separated/{name}"] == mean
    assert result.metrics["best_test/test/map@r"] != result.metrics["best/test/map@r"]


def test_cut_in_any_fold_of_both(folds_beside: tuple[Result, Path], tmp_path: Path) -> None:
    result = cut_and_resumed(recipe(**BOTH), tmp_path, [5, 8])
    assert numbers(result) == numbers(folds_beside[0])
    assert result.provenance["folds"] == folds_beside[0].provenance["folds"]
