"""Every printed setting of the papers is a sound recipe; some train in small on their data set's layout."""

import math
import os
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tests.workers import published, trees
from tests.workers.published.printed import settings
from workers import catalog, registry
from workers.contract import Place, Progress, Recipe
from workers.heads.bn_fc import BnFc
from workers.train import train
from workers.training.optimization import Optimization, length

SHARED = Path(os.environ.get("METRICSWEEP_SHARED", Path(__file__).parents[2].parent / "shared"))
FOLDER = SHARED / "published"
# Read when tests are collected, for each recipe is a test; without the folder pytest skips them all.
RECIPES = published.every(FOLDER) if (FOLDER / "configs.toml").is_file() else {}
RETRIEVAL = {name: recipe for name, recipe in RECIPES.items() if "task" not in recipe}
SIDE = 16
printed = pytest.mark.skipif(not RECIPES, reason="the folder ../shared/published is not here")


def traits(recipe: dict[str, Any]) -> set[str]:
    """What of a recipe may clash with something else of it."""
    found = set()
    for kind in ("dataset", "loss", "regularizer", "head", "sampler", "optimizer", "schedule"):
        part = recipe.get(kind, "none")
        part = {"name": part} if isinstance(part, str) else part
        variant = [str(value) for value in part.values() if isinstance(value, str | bool)]
        found.add(f"{kind}: {' '.join(variant)}")
    folds = isinstance(recipe["validation"], dict)
    return found | {f"augment: {recipe['augment']}", f"frozen: {recipe.get('warmup', 0) > 0}", f"folds: {folds}"}


def covering() -> list[str]:
    """Few recipes in which each trait occurs."""
    left = set[str]().union(*map(traits, RETRIEVAL.values()))
    found = []
    while left:
        found.append(max(RETRIEVAL, key=lambda name: len(traits(RETRIEVAL[name]) & left)))
        left -= traits(RETRIEVAL[found[-1]])
    return found


def small(recipe: dict[str, Any], side: int = SIDE, **changes: Any) -> dict[str, Any]:
    """The same in all but sizes: of images, batches, network and memory, and the length with what is counted in it."""
    sampler, schedule = dict(recipe["sampler"]), dict(recipe["schedule"])
    sampler |= {"classes": 2} if sampler["name"] == "balanced" else {"batch": 3}
    schedule |= {"at": [1, 2][: len(schedule["at"])]} if "at" in schedule else {}
    schedule |= {"every": 1} if "every" in schedule else {}
    loss = {"name": recipe["loss"]} if isinstance(recipe["loss"], str) else dict(recipe["loss"])
    loss |= {"memory": 8, "memory_epoch": 0, "filter_epoch": 1} if "memory" in loss else {}
    length = {"epochs": 3, "evaluate_every": 1} if "epochs" in recipe else {"iterations": 3, "evaluate_every": 2}
    length |= {"warmup": 1} if recipe.get("warmup") else {}
    folds = {**recipe["validation"], "folds": 2} if isinstance(recipe["validation"], dict) else recipe["validation"]
    return {
        **recipe, **length, "dataset": {"name": recipe["dataset"], "official": False, "side": side}, "crop": side,
        "backbone": {"name": "small_cnn", "width": 4}, "embedding": 8, "loss": loss, "sampler": sampler,
        "schedule": schedule, "validation": folds, **changes,
    }  # fmt: skip


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data root with all four data sets, small."""
    folder = tmp_path_factory.mktemp("trees")
    # Four classes train: enough for two folds.
    trees.cub(folder, {**trees.CUB, "003.Albatross": 2})
    trees.cars(folder, "devkit", {**trees.CARS, 3: 2})
    trees.sop(folder)
    trees.inshop(folder / "In-shop Clothes Retrieval Benchmark")
    return folder


def check_trains(recipe: dict[str, Any], root: Path, storage: Path) -> None:
    known = catalog.load(None)
    assert catalog.problems(recipe, known) == []
    complete = catalog.complete(Recipe.model_validate(recipe), known)
    reports: list[Progress] = []
    result = train(complete, Place(root, root / "scratch", storage, checkpoint_seconds=1e9), reports.append)
    assert result.outcome == "ok"
    assert result.steps >= 3
    wanted = {f"best/test/{metric}" for metric in known.metrics(complete.dataset.name)}
    assert wanted <= result.metrics.keys()
    assert all(math.isfinite(result.metrics[name]) for name in wanted)
    assert all(math.isfinite(value) for _, value in result.curves["train/loss"])
    if complete.select.split == "test":
        assert result.metrics[complete.select.key] == max(value for _, value in result.curves["test/recall@1"])


@pytest.mark.parametrize("name", covering())
def test_it_trains_in_small(name: str, root: Path, tmp_path: Path) -> None:
    check_trains(small(RECIPES[name]), root, tmp_path)


@pytest.mark.parametrize("name", ["proxy_anchor-cub", "svmax-t3-cub-resnet50-0"] if RECIPES else [])
def test_its_backbone_trains(name: str, root: Path, tmp_path: Path) -> None:
    backbone = {**RECIPES[name]["backbone"], "pretrained": False}
    check_trains(small(RECIPES[name], side=32, backbone=backbone), root, tmp_path)


@printed
def test_every_printed_setting_is_a_sound_recipe_of_its_own() -> None:
    """Two tables may print one setting alike: their trainings are shared."""
    known = catalog.load(None)
    wrong, prints = {}, dict[str, list[str]]()
    for name, recipe in RECIPES.items():
        if problems := catalog.problems(recipe, known):
            wrong[name] = problems
            continue
        complete = catalog.complete(Recipe.model_validate(recipe), known)
        if catalog.complete(complete, known) != complete:
            wrong[name] = ["is completed differently a second time"]
        prints.setdefault(complete.fingerprint, []).append(name)
    assert wrong == {}
    for alike in prints.values():
        assert len({name.partition("-")[2].partition("-")[0] for name in alike}) == len(alike), alike


def groups(name: str, value: str, step: int = 0) -> dict[str, float]:
    """The `lr` or `weight_decay` of each parameter group of a full-size recipe at an iteration, with CUB's epochs."""
    recipe = catalog.complete(Recipe.model_validate(RECIPES[name]), catalog.load(None))
    modules = {"backbone": nn.Linear(2, 2), "head": BnFc(2, 2), "loss": nn.Linear(2, 2)}
    descent = Optimization(recipe, length(recipe, 5864, 128), modules, torch.device("cpu"), None)
    descent.prepare(step)
    return {group["name"]: group[value] for group in descent.optimizer.param_groups}


def rates(name: str, step: int) -> dict[str, float]:
    return groups(name, "lr", step)


def decays(name: str) -> dict[str, float]:
    return groups(name, "weight_decay")


@printed
def test_rates_are_those_that_the_papers_print() -> None:
    for step, factor in {0: 1, 2999: 1, 3000: 0.1, 5999: 0.1, 6000: 0.01}.items():
        found = rates("sec-t6-cub-multi_similarity-sec-0.5", step)
        assert found["head"] == found["head/norm"] == pytest.approx(5e-5 * factor)
        assert found["backbone"] == pytest.approx(2.5e-5 * factor)
    assert rates("response-t3-cub-multi_similarity", 3000)["head"] == pytest.approx(5e-5)  # C2
    found = rates("response-t4-inshop-sec-0.5", 0)
    assert (found["head"], found["backbone"]) == pytest.approx((1e-3, 2e-4))
    for lr in ("0.01", "0.0001"):
        name = f"svmax-t1-cub-npair-{lr}-svmax-1"
        assert [rates(name, step)["head"] for step in (0, 2500, 5000)] == pytest.approx([float(lr), float(lr), 1e-7])
    epoch = 5864 // 128
    found = rates("isa-cub-0.9", 10 * epoch - 1)
    assert (found["backbone"], found["head"], found["loss"]) == pytest.approx((1e-4, 1e-4, 1e-2))
    assert rates("isa-cub-0.9", 10 * epoch)["loss"] == pytest.approx(5e-3)


@printed
def test_rates_of_the_losses_that_proxy_isa_compares_with() -> None:
    epoch = 5864 // 128
    assert rates("isa-t1-cub-soft_triple", 0)["loss"] == pytest.approx(1e-2)
    assert rates("isa-t1-cub-soft_triple", 40 * epoch)["loss"] == pytest.approx(1e-4)
    assert rates("isa-t1-cub-proxy_gml", 0)["loss"] == pytest.approx(0.03)
    assert rates("isa-t1-sop-proxy_gml", 0)["loss"] == pytest.approx(0.3)
    assert rates("isa-t1-sop-proxy_gml", 20 * epoch)["loss"] == pytest.approx(0.03)
    found = rates("isa-t1-inshop-proxy_anchor", epoch)
    assert (found["head"], found["loss"]) == pytest.approx((6e-4, 6e-2))
    found = rates("isa-t2-cub-arcface", 1000)
    assert (found["backbone"], found["head"], found["loss"]) == pytest.approx((1e-6, 1e-6, 1e-3))
    assert decays("isa-t2-cub-cosface")["loss"] == 1e-4


@printed
def test_rates_and_weights_of_faces_are_those_of_the_appendix() -> None:
    epoch = 5864 // 128
    for name in ("sec-t11-softmax-none-0", "sec-t11-arcface-sec-5"):
        found = [rates(name, step) for step in (0, 10 * epoch - 1, 10 * epoch, 14 * epoch)]
        assert [one["backbone"] for one in found] == pytest.approx([0.1, 0.1, 0.01, 0.001])
        assert [one["loss"] for one in found] == pytest.approx([0.1, 0.1, 0.01, 0.001])
    weight = {}
    for name in ("sec-t11-arcface-sec-5", "sec-t11-arcface-l2-0.001", "sec-t11-arcface-sec_ema-1"):
        recipe = Recipe.model_validate(RECIPES[name])
        eta = recipe.regularizer.options["eta"]
        made = registry.build("eta_schedule", recipe.eta_schedule, eta=eta, total=16 * epoch, epoch=epoch, unit=epoch)
        weight[recipe.regularizer.name] = [
            made(step) for step in (0, 3 * epoch, 3.5 * epoch, 4 * epoch, 16 * epoch - 1)
        ]
    assert weight["sec"] == [0, 0, 2.5, 5.0, 5.0]
    assert weight["l2"] == [0, 0, 0.0005, 0.001, 0.001]
    assert weight["sec_ema"] == [0, 1.0, 1.0, 1.0, 1.0]


@printed
def test_each_number_of_two_tables_of_proxy_isa_has_its_recipe() -> None:
    for table, wanted in (("t1", "isa_t1_sota.csv"), ("t2", "isa_t2_mlrc.csv")):
        for row in settings(FOLDER / wanted):
            own = row["loss"] == "proxy_isa"
            assert (f"isa-{row['dataset']}-0.9" if own else f"isa-{table}-{row['dataset']}-{row['loss']}") in RECIPES


@printed
def test_weight_decay_is_that_of_the_code() -> None:
    assert decays("sec-t6-cub-triplet") == {"backbone": 2.5e-3, "head": 2.5e-3, "head/norm": 0, "loss": 2.5e-3}
    assert decays("sec-t6-sop-triplet")["head"] == 1e-5
    assert set(decays("isa-cub-0.9").values()) == {1e-4}
