"""What trainings cost: which count as alike, and how measured lengths add up."""

from typing import Any

import pytest

from api.commands.previews import cost_in_words
from orchestrator.costs import Demand, Duration, estimate, models, shape, shape_of
from orchestrator.views import Cost
from tests.record.sample import recipe

CPU = Duration(1_800.0, "cpu", "a processor")
FAST, SLOW = Duration(3_600.0, "cuda", "a GPU"), Duration(10_800.0, "cuda", "a GPU")


@pytest.mark.parametrize(
    "changes",
    [
        {"loss": "semihard"},
        {"seed": 7},
        {"regularizer": {"name": "sec", "eta": 0.5}},
        {"optimizer": {"name": "sgd", "lr": 0.1}},
        {"validation": {"name": "class_holdout", "folds": 3, "fold": 2}},
        {"select": {"metric": "nmi"}},
        {"patience": 3},
    ],
)
def test_these_take_as_long(changes: dict[str, Any]) -> None:
    assert shape(recipe(**changes)) == shape(recipe())


@pytest.mark.parametrize(
    "changes",
    [
        {"iterations": 101},
        {"embedding": 128},
        {"dataset": "mnist"},
        {"backbone": {"name": "small_cnn", "width": 9}},
        {"head": "bn_fc"},
        {"sampler": {"name": "balanced", "classes": 4, "per_class": 9}},
        {"precision": "bf16"},
        {"crop": 7},
        {"validation": {"name": "class_holdout", "folds": 4}},
        {"validation": {"name": "cross_validation", "folds": 3}},
        {"select": {"beside": "test"}},
        {"evaluate_every": 5},
    ],
)
def test_these_do_not(changes: dict[str, Any]) -> None:
    assert shape(recipe(**changes)) != shape(recipe())


def test_a_stored_recipe_has_the_shape_it_had() -> None:
    assert shape_of(recipe().model_dump(mode="json")) == shape(recipe())
    assert shape_of({"dataset": {"name": "digits"}}) != shape(recipe()), "one of another version"


def test_cross_validation_trains_several_models() -> None:
    assert models(recipe()) == 1
    assert models(recipe(validation={"name": "cross_validation", "folds": 3})) == 3


def test_means_are_multiplied_by_device() -> None:
    demands = {"a": Demand(4, 4), "b": Demand(2, 8), "c": Demand(3, 3)}
    found = estimate(demands, {"a": [SLOW, FAST], "b": [CPU, FAST]}, "auto")
    assert found == Cost(
        trainings=9, models=15, measured=6, gpu_hours=8.0, cpu_hours=1.0, devices=["a GPU", "a processor"]
    )


@pytest.mark.parametrize(
    ("gpus", "gpu", "cpu"), [(0, None, 0.5), (0.5, 2.0, None), (1, 2.0, None), ("auto", None, 0.5)]
)
def test_the_slot_says_on_what(gpus: Any, gpu: float | None, cpu: float | None) -> None:
    found = estimate({"a": Demand(1, 1)}, {"a": [CPU, FAST, SLOW]}, gpus)
    assert (found.gpu_hours, found.cpu_hours, found.measured) == (gpu, cpu, 1)
    assert estimate({"a": Demand(1, 1)}, {"a": [FAST]}, 0).measured == 0


@pytest.mark.parametrize(
    ("cost", "words"),
    [
        (Cost(trainings=0, models=0, measured=0), "nothing is left to train"),
        (
            Cost(trainings=4, models=16, measured=0),
            "unknown for 4 trainings (16 models), since none of the same shape was measured",
        ),
        (
            Cost(trainings=528, models=528, measured=132, gpu_hours=1234.5, devices=["H200", "L4"]),
            "about 1,234 GPU hours for 132 of 528 trainings, as measured on H200, L4; the others are unknown",
        ),
        (
            Cost(trainings=3, models=3, measured=3, gpu_hours=2.34, cpu_hours=0.0123, devices=["L4", "x"]),
            "about 2.3 GPU hours and 0.012 CPU hours for 3 trainings, as measured on L4, x",
        ),
    ],
)
def test_what_is_unknown_is_said(cost: Cost, words: str) -> None:
    assert cost_in_words(cost) == words
