"""Metrics that a recipe or a person asks for besides those of the data set, during training and of kept weights."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
import torch
from pydantic import JsonValue

from tests.workers import recipes
from tests.workers.recipes import DIGITS, numbers, place, recipe, run
from tests.workers.test_checkpoint import cut_and_resumed
from workers import catalog
from workers.__main__ import main
from workers.catalog import compatibility, load
from workers.contract import CheckpointError, Progress, Recipe, Stopped
from workers.train import evaluate
from workers.training import kept_weights

FURTHER = ("recall@3", "nmi_sec")


def trained(folder: Path, **changes: Any) -> tuple[Recipe, dict[str, float], Path]:
    """A short training of digits: its completed recipe, what it measured, and the file that it kept."""
    done = recipe(**{"iterations": 6, "evaluate_every": 2, **changes})
    result, _ = run(done, folder)
    (kept,) = [folder / name for name in result.artifacts if name.endswith(".pt")]
    return done, result.metrics, kept


CHANGES: Final[list[dict[str, Any]]] = [
    {},
    {"select": {"metric": "recall@1", "split": "last"}, "validation": {"name": "none"}},
    {"validation": {"name": "cross_validation", "folds": 2}},
]


@pytest.mark.parametrize("changes", CHANGES, ids=["best", "last", "folds"])
def test_kept_weights_give_what_a_training_would(tmp_path: Path, changes: dict[str, Any]) -> None:
    asked, measured, _ = trained(tmp_path / "asked", metrics=list(FURTHER), **changes)
    _, _, kept = trained(tmp_path / "plain", **changes)
    before = kept.read_bytes()
    told: list[Progress] = []
    result = evaluate(asked, place(tmp_path / "evaluation"), told.append, kept, FURTHER)
    head = f"{asked.select.checkpoint}/"
    known = {key: one for key, one in measured.items() if key.startswith(head)}
    further = {key: one for key, one in known.items() if key.rpartition("/")[2] in FURTHER}
    assert result.metrics == further
    assert {f"{head}test/{name}" for name in FURTHER} <= further.keys()
    assert (result.outcome, result.steps, result.artifacts) == ("ok", 0, ["queries.npz"])
    names = [*load().metrics(asked.dataset, asked.task), *FURTHER]
    assert kept_weights.evaluate(kept_weights.read(kept), names, place(tmp_path)) == known
    again, queries = (tmp_path / folder / "queries.npz" for folder in ("evaluation", "asked"))
    assert again.read_bytes() == queries.read_bytes()  # of all that are means over queries, whatever was asked for
    assert told[0].log == f"evaluating recall@3, nmi_sec of {kept.name}\n"
    assert kept.read_bytes() == before
    with pytest.raises(CheckpointError, match="belong to another recipe"):
        evaluate(asked.model_copy(update={"seed": 99}), place(tmp_path), told.append, kept, FURTHER)
    with pytest.raises(Stopped):
        evaluate(asked, replace(place(tmp_path), stop=lambda: True), told.append, kept, FURTHER)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, measured, kept = trained(tmp_path)
    assert main(["evaluate", str(kept), "--metric", "recall@1", "--metric", "recall@3", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["best/test/recall@1"] == measured["best/test/recall@1"]
    assert told["best/test/recall@3"] >= told["best/test/recall@1"]
    assert main(["evaluate", str(kept), "--metric", "recal@1"]) == 1
    assert "did you mean 'recall@1'" in capsys.readouterr().err
    assert main(["evaluate", str(kept), "--metric", "modes"]) == 1
    assert "reads samples" in capsys.readouterr().err
    assert main(["evaluate", str(tmp_path / "none.pt"), "--metric", "recall@1"]) == 1
    assert "does not exist" in capsys.readouterr().err
    torch.save({"format": 2, "step": 3}, tmp_path / "last.pt")
    with pytest.raises(CheckpointError, match=r"holds no weights that a training kept; these are best\.pt"):
        kept_weights.read(tmp_path / "last.pt")


def test_weights_for_another_version_of_their_backbone_are_refused(tmp_path: Path) -> None:
    _, _, kept = trained(tmp_path)
    found = kept_weights.read(kept)
    versions = {**found.recipe.pins.versions, "backbone": 99, "loss": 99}
    pins = found.recipe.pins.model_copy(update={"versions": versions})
    other = found._replace(recipe=found.recipe.model_copy(update={"pins": pins}))
    with pytest.raises(ValueError, match="version 99 of backbone 'small_cnn'"):
        kept_weights.evaluate(other, ["recall@3"], place(tmp_path))
    only_loss = pins.model_copy(update={"versions": {**versions, "backbone": 1}})
    same = found._replace(recipe=found.recipe.model_copy(update={"pins": only_loss}))
    assert kept_weights.evaluate(same, ["recall@3"], place(tmp_path)), "a loss reads no weights"


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
