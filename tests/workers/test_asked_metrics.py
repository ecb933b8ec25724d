"""Metrics that a recipe asks for beside those of its data set, and those that are dear and come at the end only."""

import math
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from tests.workers import recipes
from tests.workers.recipes import DIGITS, numbers, recipe, run
from tests.workers.test_checkpoint import cut_and_resumed
from workers import catalog
from workers.catalog import compatibility
from workers.contract import Recipe

ASKED: dict[str, Any] = {"metrics": ["nmi_sec", "f1_sec"]}
CHOSEN: dict[str, Any] = {**ASKED, "iterations": 20, "evaluate_every": 2, "optimizer": {"name": "adam", "lr": 0.01}}
KEYS = ("test/nmi_sec", "test/f1_sec")


def problems(**changes: JsonValue) -> dict[str, str]:
    return recipes.problems({**DIGITS, **changes})


def test_a_recipe_that_asks_for_none_keeps_its_fingerprint() -> None:
    assert recipe().fingerprint == recipe(metrics=[]).fingerprint
    assert "metrics" not in recipe().model_dump(mode="json")
    assert recipe(**ASKED).fingerprint != recipe().fingerprint


def test_neither_order_nor_repetition_nor_what_is_computed_anyway_matters() -> None:
    asked = recipe(**ASKED)
    assert asked.metrics == ["f1_sec", "nmi_sec"]
    assert recipe(metrics=["f1_sec", "nmi_sec", "f1_sec", "recall@1"]).fingerprint == asked.fingerprint
    assert recipe(metrics=["recall@1", "nmi"]).fingerprint == recipe().fingerprint
    assert catalog.complete(asked, catalog.load()) == asked
    assert Recipe.model_validate_json(asked.model_dump_json()).fingerprint == asked.fingerprint


def test_what_cannot_be_asked_for_or_select_is_refused() -> None:
    said = "no metric named 'nmi_secc'; did you mean 'nmi_sec'?"
    assert problems(metrics=["nmi_sec", "nmi_secc"]) == {"metrics.1": said}
    assert "metrics" in problems(metrics="nmi_sec")
    assert problems(**ASKED, select={"metric": "nmi_sec"}) == {}
    assert "select.metric" in problems(select={"metric": "nmi_sec"})
    sop = {"dataset": "sop", "backbone": "resnet50", "embedding": 512, **ASKED}
    wanted = "metric 'nmi_sec' is dear on dataset 'sop', and computed only at the end; select by another"
    assert problems(**sop, validation="none", select={"metric": "nmi_sec", "split": "test"})["select.metric"] == wanted
    assert "select.metric" not in problems(**sop, select={"metric": "nmi_sec"})  # of fewer classes, and not stated
    small = {**sop, "embedding": 8}
    assert "select.metric" not in problems(**small, validation="none", select={"metric": "nmi_sec", "split": "test"})


def test_the_distance_is_what_ranks_and_clusters(tmp_path: Path) -> None:
    assert "distance" not in recipe().model_dump(mode="json")
    assert recipe(distance="cosine").fingerprint == recipe().fingerprint
    raw: dict[str, Any] = {**DIGITS, "loss": {"name": "npair", "unit": False}, "metrics": ["nmi_sec", "cos_ap"],
                           "sampler": {"name": "balanced", "classes": 4, "per_class": 2}}  # fmt: skip
    shown = {"figures": ["panels", {"name": "tsne", "points": 30}]}
    found = {one: run(recipe(**raw, **shown, distance=one), tmp_path / one)[0] for one in ("cosine", "euclidean")}
    cosine, euclidean = (result.metrics for result in found.values())
    differ = {key.rpartition("/")[2] for key in cosine if cosine[key] != euclidean[key] and key.startswith("last/")}
    assert differ >= {"recall@1", "map@r", "r_precision", "nmi", "nmi_sec", "f1"}
    assert not differ & {"norm_mean", "norm_var", "s_mu", "cos_ap"}  # of norms and of directions, whatever ranks
    for name in ("panels.npz", "tsne.npz"):
        assert (tmp_path / "cosine" / name).read_bytes() != (tmp_path / "euclidean" / name).read_bytes()


def test_models_of_folds_are_joined_by_the_distance(tmp_path: Path) -> None:
    folds = {"validation": {"name": "cross_validation", "folds": 3}, "iterations": 4}
    found = [run(recipe(**folds, distance=one), tmp_path / one)[0].metrics for one in ("cosine", "euclidean")]
    assert found[0]["best/test/map@r"] != found[1]["best/test/map@r"]


def test_a_distance_that_the_task_does_not_rank_by_is_refused() -> None:
    assert problems(distance="euclidean") == {}
    message = "expected 'cosine' or 'euclidean', found 'manhattan'"
    assert problems(distance="manhattan") == {"distance": message}
    told = problems(distance="euclidean", task="verification")
    assert told["distance"] == "task 'verification' does not rank by the distance 'euclidean'; leave `distance` out"


class TestDear:
    """Where clustering is expensive, only the kept weights are judged by it, and only on test images."""

    @pytest.fixture(autouse=True)
    def _everything_is_dear(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(compatibility, "DEAR", 1)

    def test_it_is_what_the_kept_weights_give_also_when_resumed(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        dear, reports = run(recipe(**CHOSEN), tmp_path / "dear")
        assert dear.best_step is not None
        found = {key.partition("/")[0] for key in dear.metrics if key.endswith(KEYS)}
        assert found == ({"best"} if dear.best_step < dear.steps else {"best", "last"})
        assert not any("validation/nmi_sec" in key for key in dear.metrics)
        assert any("dear of so many images" in report.log for report in reports)
        assert numbers(cut_and_resumed(recipe(**CHOSEN), tmp_path / "cut", [3, 11])) == numbers(dear)
        monkeypatch.undo()
        cheap, _ = run(recipe(**CHOSEN), tmp_path / "cheap")
        assert {key: cheap.metrics[key] for key in dear.metrics} == dear.metrics

    def test_which_weights_it_judges(self, tmp_path: Path) -> None:
        test = ["best/test/f1_sec", "best/test/nmi_sec"]
        for name, changes, wanted in (
            ("last", {"validation": "none", "select": {"metric": "map@r", "split": "last"}},
             ["last/test/f1_sec", "last/test/nmi_sec"]),
            ("folds", {"iterations": 6, "validation": {"name": "cross_validation", "folds": 3}}, test),
            ("beside", {"select": {"metric": "map@r", "beside": "test"}, "iterations": 6},
             [*test, *(one.replace("best/", "best_test/") for one in test)]),
        ):  # fmt: skip
            result, _ = run(recipe(**{**CHOSEN, **changes}), tmp_path / name)
            found = {key for key in result.metrics if key.endswith(KEYS)}
            assert set(wanted) <= found, name
            assert name == "beside" or found == set(wanted), name
            assert all(math.isfinite(result.metrics[key]) for key in wanted), name

    def test_it_cannot_select(self, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match="'nmi_sec' is dear of so many images"):
            run(recipe(**{**CHOSEN, "select": {"metric": "nmi_sec"}}), tmp_path)
