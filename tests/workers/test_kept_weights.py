"""Metrics that a recipe or a person asks for besides those of the data set, during training and of kept weights."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
import torch
from PIL import Image
from pydantic import JsonValue
from safetensors.torch import save_file
from sklearn.datasets import load_digits

from tests.workers import recipes
from tests.workers.recipes import DIGITS, numbers, place, recipe, run
from tests.workers.test_checkpoint import cut_and_resumed
from workers import catalog, model
from workers.__main__ import main
from workers.catalog import compatibility, further_of_recipe, load
from workers.contract import CheckpointError, Progress, Recipe, Stopped
from workers.train import evaluate
from workers.training import checkpoint, determinism, kept_weights
from workers.training.folds import fold_recipes
from workers.training.session import Session

FURTHER = ("recall@3", "nmi_sec")


def trained(folder: Path, **changes: Any) -> tuple[Recipe, dict[str, float], Path]:
    """A short training of digits: its completed recipe, what it measured, and the file that it kept."""
    done = recipe(**{"iterations": 6, "evaluate_every": 2, **changes})
    result, _ = run(done, folder)
    (kept,) = [folder / name for name in result.artifacts if name.endswith(".safetensors")]
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
    assert (
        again.read_bytes() == queries.read_bytes()
    )  # of all metrics that are means over queries, whatever the recipe requests
    assert told[0].log == f"evaluating recall@3, nmi_sec of {kept.name}\n"
    assert kept.read_bytes() == before
    with pytest.raises(CheckpointError, match="belong to another recipe"):
        evaluate(asked.model_copy(update={"seed": 99}), place(tmp_path), told.append, kept, FURTHER)
    with pytest.raises(Stopped):
        evaluate(asked, replace(place(tmp_path), stop=lambda: True), told.append, kept, FURTHER)


def test_kept_weights_give_the_figures_that_a_training_would(tmp_path: Path) -> None:
    figures = ["panels", {"name": "tsne", "points": 30}, {"name": "norms", "split": "train"}, "norm_traces"]
    for name, changes in (("best", {}), ("folds", {"validation": {"name": "cross_validation", "folds": 2}})):
        asked, _, _ = trained(tmp_path / name / "asked", figures=figures, **changes)
        _, _, kept = trained(tmp_path / name / "plain", figures=figures[-1:], **changes)
        keys = further_of_recipe(asked.model_dump(mode="json"))
        assert [key.partition(" ")[0] for key in keys] == ["panels", "tsne", "norms-train"]
        result = evaluate(asked, place(tmp_path / name / "later"), lambda _: None, kept, keys)
        files = [file for file in result.artifacts if file != "queries.npz"]
        assert len(files) == 4 * len(kept_weights.read(kept).models)
        for file in files:
            assert (tmp_path / name / "later" / file).read_bytes() == (tmp_path / name / "asked" / file).read_bytes()


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, measured, kept = trained(tmp_path)
    command = ["evaluate", str(kept), "--device", "cpu"]  # where it was trained
    assert main([*command, "--metric", "recall@1", "--metric", "recall@3", "--json"]) == 0
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
    with pytest.raises(CheckpointError, match="is damaged or no kept weights"):
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


def test_weights_that_cannot_be_requested_or_selected_are_refused() -> None:
    message = "no metric named 'nmi_secc'; did you mean 'nmi_sec'?"
    assert problems(metrics=["nmi_sec", "nmi_secc"]) == {"metrics.1": message}
    assert "metrics" in problems(metrics="nmi_sec")
    assert problems(**ASKED, select={"metric": "nmi_sec"}) == {}
    assert "select.metric" in problems(select={"metric": "nmi_sec"})
    sop = {"dataset": "sop", "backbone": "resnet50", "embedding": 512, **ASKED}
    wanted = "metric 'nmi_sec' is expensive on dataset 'sop', and computed only at the end; select by another"
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
    def _everything_is_expensive(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(compatibility, "EXPENSIVE", 1)

    def test_it_is_what_the_kept_weights_give_also_when_resumed(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        costly, reports = run(recipe(**CHOSEN), tmp_path / "costly")
        assert costly.best_step is not None
        found = {key.partition("/")[0] for key in costly.metrics if key.endswith(KEYS)}
        assert found == ({"best"} if costly.best_step < costly.steps else {"best", "last"})
        assert not any("validation/nmi_sec" in key for key in costly.metrics)
        assert any("expensive for so many images" in report.log for report in reports)
        assert numbers(cut_and_resumed(recipe(**CHOSEN), tmp_path / "cut", [3, 11])) == numbers(costly)
        monkeypatch.undo()
        cheap, _ = run(recipe(**CHOSEN), tmp_path / "cheap")
        assert {key: cheap.metrics[key] for key in costly.metrics} == costly.metrics

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
        with pytest.raises(ValueError, match="'nmi_sec' is expensive for so many images"):
            run(recipe(**{**CHOSEN, "select": {"metric": "nmi_sec"}}), tmp_path)


IMAGES: Final = np.rint(load_digits().images * (255 / 16)).astype(np.uint8)
"""scikit-learn's digits as bytes [n, 8, 8]; 6 to 9 are the test images."""


@pytest.mark.parametrize("changes", CHANGES, ids=["best", "last", "folds"])
def test_a_loaded_model_embeds_images_as_an_evaluation_does(tmp_path: Path, changes: dict[str, Any]) -> None:
    done, _, kept = trained(tmp_path, **changes)
    test = IMAGES[load_digits().target > 5]
    found = model.load(kept, "cpu", threads=1).embed(test)
    weights = kept_weights.read(kept).models
    session = Session(fold_recipes(done)[0] if len(weights) > 1 else done, place(tmp_path), torch.device("cpu"))
    task, images = recipes.retrieval(session), recipes.batches(session).splits.test
    with determinism.applied(torch.device("cpu"), 1):
        if len(weights) > 1:
            with task.joined(weights):
                expected = task.embed(images)
        else:
            session.load(weights[0])
            expected = task.embed(images)
    assert found.dtype == np.float32
    assert np.array_equal(found, expected.numpy())


def test_paths_images_and_arrays_give_the_same_embeddings(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "photos"
    drawn = np.random.default_rng(0).integers(0, 256, (12, 20, 30, 3), dtype=np.uint8)
    for number, pixels in enumerate(drawn):
        (folder / f"class{number // 3}").mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(folder / f"class{number // 3}" / f"{number}.png")
    data = {"name": "image_folder", "folder": "photos", "side": 16}
    done = recipe(
        dataset=data, augment="none", crop=12, validation="none", select={"split": "last"}, iterations=2,
        sampler={"name": "balanced", "classes": 2, "per_class": 2}, backbone={"name": "small_cnn"},
    )  # fmt: skip
    result, _ = run(done, tmp_path)
    loaded = model.load(tmp_path / result.artifacts[0], "cpu", threads=1)
    paths = sorted((folder / "class3").iterdir())
    of_paths = loaded.embed(paths)
    opened = [Image.open(path) for path in paths]
    assert np.array_equal(loaded.embed(opened), of_paths)
    assert np.array_equal(loaded.embed(np.stack([np.array(image) for image in opened])), of_paths)
    assert of_paths.shape == (3, done.embedding)
    assert (loaded.recipe.fingerprint, len(loaded.embed([]))) == (done.fingerprint, 0)


@pytest.mark.parametrize(
    ("fact", "value"), [("models", 10**9), ("models", "many"), ("others", []), ("steps", None), ("recipe", {"loss": 1})]
)
def test_weights_with_other_facts_than_a_training_keeps_are_refused(tmp_path: Path, fact: str, value: Any) -> None:
    about = {"models": 1, "others": {}, "recipe": {}, "steps": [1], "network": {}, fact: value}
    facts = {"metricsweep": "1"} | {name: json.dumps(its) for name, its in about.items() if its is not None}
    tensors = {"backbone.weight": torch.ones(2)}
    facts["sha256"] = checkpoint._digest(tensors, facts)
    save_file(tensors, tmp_path / "best.safetensors", facts)
    with pytest.raises(CheckpointError, match="holds no weights"):
        model.load(tmp_path / "best.safetensors")


def test_a_model_that_this_machine_cannot_build_is_refused(tmp_path: Path) -> None:
    _, _, kept = trained(tmp_path)
    models, about = checkpoint.kept(kept)
    recipe_, whole = about["recipe"], kept.read_bytes()
    versions = {**recipe_["pins"]["versions"], "backbone": 99, "loss": 98}
    other = {**recipe_, "pins": {**recipe_["pins"], "versions": versions}}
    checkpoint.keep(tmp_path / "other.safetensors", models, {**about, "recipe": other})
    with pytest.raises(
        ValueError, match=r"other parts than this machine has: backbone 'small_cnn' \(version 99, now 1"
    ):
        model.load(tmp_path / "other.safetensors")
    checkpoint.keep(tmp_path / "none.safetensors", models, {**about, "network": {}})
    with pytest.raises(ValueError, match="trains no network that embeds images"):
        model.load(tmp_path / "none.safetensors")
    at = whole.index(b'\\"embedding\\":') + len(b'\\"embedding\\":') + 1
    for byte in (at, len(whole) - 1):  # in the recipe, and in the last tensor
        kept.write_bytes(whole[:byte] + bytes([whole[byte] ^ 1]) + whole[byte + 1 :])
        with pytest.raises(CheckpointError, match="its content differs from its hash"):
            model.load(kept)
    kept.write_bytes(whole)
    with pytest.raises(ValueError, match="the model takes images of 8x8 pixels, found 9x9"):
        model.load(kept).embed(np.zeros((1, 9, 9), np.uint8))
