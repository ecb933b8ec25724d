"""Every printed setting is a sound recipe with the printed rates, and published weights retrieve what they did."""

import io
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from tests.workers import published
from tests.workers.inputs import evaluate
from tests.workers.published.printed import settings
from workers import catalog, registry
from workers.contract import Part, Recipe
from workers.heads.bn_fc import BnFc
from workers.training.optimization import Optimization, length

SHARED = Path(os.environ.get("METRICSWEEP_SHARED", Path(__file__).parents[2].parent / "shared"))
FOLDER = SHARED / "published"
# Read when tests are collected, for each recipe is a test; without the folder pytest skips them all.
RECIPES = published.every(FOLDER) if (FOLDER / "configs.toml").is_file() else {}
printed = pytest.mark.skipif(not RECIPES, reason="the folder ../shared/published is not here")


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


V1 = Part(name="mobilenet_v1", width=0.25, weights="weights/mobilenet_v1_0.25_128_qat.pt")
V2 = Part(name="mobilenet_v2", flavour="tensorflow", weights="weights/mobilenet_v2_1.0_224_ptq.pt", resize=224)


@pytest.fixture(scope="module")
def birds(shared: Path) -> tuple[torch.Tensor, torch.Tensor]:
    """The images of the test classes, uint8 [2474, 3, 128, 128], and their labels."""
    path = shared / "data" / "cub100_bbox128_jpeg.npz"
    if not path.is_file() or not (shared / "data" / "weights").is_dir():
        pytest.skip("the birds or the weights of ../shared/data are not here")
    with np.load(path, allow_pickle=False) as pack:
        jpeg, offset = pack["jpeg"].tobytes(), pack["offset"]
        test = np.flatnonzero(pack["split"] == 1)
        labels = torch.from_numpy(pack["label"][test].astype(np.int64))
    decoded = [np.asarray(Image.open(io.BytesIO(jpeg[offset[i] : offset[i + 1]])).convert("RGB")) for i in test]
    return torch.from_numpy(np.stack(decoded)).permute(0, 3, 1, 2), labels - labels.min()


def embedded(part: Part, images: torch.Tensor, root: Path) -> torch.Tensor:
    backbone = registry.build("backbone", part, channels=3, side=128, root=root).eval()
    with torch.inference_mode():
        return torch.cat([backbone(backbone.preprocess(batch)) for batch in images.split(64)])


def recall(features: torch.Tensor, labels: torch.Tensor) -> float:
    """R@1 by the metric, which a plain argmax over the cosines confirms."""
    unit = torch.nn.functional.normalize(features, dim=1)
    nearest = (unit @ unit.T).fill_diagonal_(-2).argmax(dim=1)
    found = evaluate(features, labels, ["recall@1"])["recall@1"]
    partnered = labels.bincount()[labels] > 1
    assert found == pytest.approx((labels[nearest] == labels)[partnered].double().mean().item(), abs=1e-9)
    return found


def test_mobilenet_v1(birds: tuple[torch.Tensor, torch.Tensor], shared: Path) -> None:
    images, labels = birds
    assert recall(embedded(V1, images, shared / "data"), labels) == pytest.approx(0.571, abs=0.002)


def test_mobilenet_v2_on_a_few(birds: tuple[torch.Tensor, torch.Tensor], shared: Path) -> None:
    """Of all 2,474 images it is .730, as ../shared/data/README.md states."""
    images, labels = birds[0][:600:15], birds[1][:600:15]
    features = embedded(V2, images, shared / "data")
    assert features[0, :6].tolist() == pytest.approx([0.3579, 1.0537, 0.9223, 0.0, 0.0220, 0.4286], abs=0.01)
    assert recall(features, labels) == pytest.approx(0.447, abs=0.03)  # two images a class; at random it is .025
