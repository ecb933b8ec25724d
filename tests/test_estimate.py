"""What trainings cost: which count as alike, what they do, and how measured lengths add up."""

from pathlib import Path
from typing import Any

import pytest
from torch.nn.modules.module import register_module_forward_hook

from orchestrator.cost.estimate import Demand, Duration, Slots, estimate, shape, shape_of
from orchestrator.cost.view import Cost, DeviceHours
from orchestrator.cost.words import cost_in_words
from orchestrator.cost.workload import Workload, models, units, workload
from orchestrator.cost.workload import _length as workload_length
from orchestrator.spec.slot import Slot
from orchestrator.views import resources
from orchestrator.views.nodes import Node
from tests.record.sample import recipe
from workers.catalog import Catalog, complete, load
from workers.contract import Place
from workers.train import train
from workers.training.optimization import length


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load()


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
        {"iterations": 101},  # which is counted
    ],
)
def test_these_take_as_long(changes: dict[str, Any]) -> None:
    assert shape(recipe(**changes)) == shape(recipe())


@pytest.mark.parametrize(
    "changes",
    [
        {"iterations": None, "epochs": 3},
        {"select": {"split": "test"}},
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
    folds = recipe(validation={"name": "cross_validation", "folds": 3})
    assert (models(folds), units(folds.model_dump(mode="json"))) == (3, 300)
    assert units(recipe(iterations=None, epochs=7).model_dump(mode="json")) == 7


# Hours


def lasting(*rates: float, device: str = "cuda", name: str = "a GPU") -> list[Duration]:
    """Trainings of ten iterations each, by the seconds of one."""
    return [Duration(rate * 10, 10, device, name) for rate in rates]


def test_hours_are_those_of_the_median_step_with_the_quartiles_beside() -> None:
    demand = Demand(trainings=4, models=4, units=3_600, work=Workload(3_600, 36_000, 100))
    found = estimate({"a": demand}, {"a": lasting(2.0, 1.0, 10.0, 3.0, 2.5)}, "auto")
    assert (found.trainings, found.steps, found.images, found.evaluated) == (4, 3_600, 36_000, 100)
    assert found.hours == [
        DeviceHours(kind="gpu", device="a GPU", trainings=4, hours=2.5, low=2.0, high=3.0, slots=None, wall_hours=None)
    ]
    assert (found.measured, found.unmeasured_shapes) == (4, 0)


def test_hours_need_three_trainings_of_the_shape_on_the_device() -> None:
    other = lasting(1.0, 1.0, device="cpu", name="a processor")
    for few, nearest in (([], 0), (lasting(1.0), 1), (lasting(1.0, 1.0) + other, 2)):
        found = estimate({"a": Demand(2, 2, 20)}, {"a": few}, "auto")
        assert (found.hours, found.measured, found.unmeasured_shapes) == ([], 0, 1)
        assert (found.nearest, found.needed) == (nearest, 3)


def test_shapes_add_up_by_device() -> None:
    demands = {"a": Demand(1, 1, 3_600), "b": Demand(2, 2, 7_200), "c": Demand(4, 4, 10), "done": Demand()}
    cpu = lasting(4.0, 4.0, 4.0, device="cpu", name="a processor")
    measured = {"a": lasting(1.0, 1.0, 1.0) + cpu, "b": lasting(2.0, 2.0, 2.0), "c": lasting(9.0)}
    found = estimate(demands, measured, "auto")
    assert {one.device: (one.kind, one.trainings, one.hours) for one in found.hours} == {
        "a GPU": ("gpu", 3, 5.0), "a processor": ("cpu", 1, 4.0),
    }  # fmt: skip
    assert (found.trainings, found.measured, found.unmeasured_shapes, found.nearest) == (7, 3, 1, 1)


@pytest.mark.parametrize(
    ("gpus", "devices"), [(0, ["a processor"]), (0.5, ["a GPU"]), (1, ["a GPU"]), ("auto", ["a processor", "a GPU"])]
)
def test_the_slot_says_on_what(gpus: Any, devices: list[str]) -> None:
    measured = lasting(1.0, 1.0, 1.0, device="cpu", name="a processor") + lasting(1.0, 1.0, 1.0)
    assert [one.device for one in estimate({"a": Demand(1, 1, 10)}, {"a": measured}, gpus).hours] == devices


@pytest.mark.parametrize(
    ("slots", "at_once", "wall"),
    [(Slots(2, on_gpu=True), 2, 2.0), (Slots(9, on_gpu=True), 4, 1.0), (Slots(9, on_gpu=False), None, None),
     (Slots(0, on_gpu=True), None, None), (None, None, None)],
)  # fmt: skip
def test_slots_share_the_hours(slots: Slots | None, at_once: int | None, wall: float | None) -> None:
    (found,) = estimate({"a": Demand(4, 4, 14_400)}, {"a": lasting(1.0, 1.0, 1.0)}, "auto", slots).hours
    assert (found.hours, found.slots, found.wall_hours) == (4.0, at_once, wall)


def test_slots_are_counted_over_nodes() -> None:
    nodes = [Node("a", "a", {"CPU": 8, "GPU": 2}), Node("b", "b", {"CPU": 3}), Node("head", "head", {})]
    assert [resources.slots(Slot(cpus=4, gpus=gpus), nodes) for gpus in (0, 1, 0.5, "auto")] == [2, 2, 2, 2]
    assert resources.slots(Slot(cpus=1, gpus=0.5), nodes) == 4
    assert resources.slots(Slot(cpus=1, gpus=0), nodes) == 11
    assert resources.slots(Slot(cpus=1), []) == 0


# Work


def test_steps_and_images_need_no_data(catalog: Catalog) -> None:
    made = recipe(iterations=100, evaluate_every=10)
    held_out = 1_083 // 3
    looks = 9 * held_out + 2 * (714 + held_out + 1_083 - held_out)
    assert workload(made, catalog) == Workload(100, 3_200, looks)
    in_epochs = recipe(iterations=None, epochs=5, evaluate_every=1, sampler={"name": "shuffle", "batch": 10})
    steps = 5 * (722 // 10)
    assert workload(in_epochs, catalog) == Workload(steps, 10 * steps, 4 * held_out + 2 * (714 + 1_083))
    last = recipe(select={"split": "last"}, validation={"name": "none"})
    assert workload(last, catalog).evaluated == 9 * 714 + 714 + 1_083
    folds = recipe(validation={"name": "cross_validation", "folds": 3})
    assert workload(folds, catalog) == Workload(300, 9_600, 3 * (looks + 714))


def test_what_only_the_data_could_say_is_not_known(catalog: Catalog) -> None:
    assert workload(recipe(dataset="unheard_of"), catalog) == Workload(100, 3_200, None)
    assert workload(recipe(dataset="unheard_of", iterations=None, epochs=3), catalog) == Workload(None, None, None)
    assert workload(recipe(sampler={"name": "own"}), catalog) == Workload(100, None, None)
    assert workload(recipe(dataset={"name": "cub200", "official": False}), catalog).evaluated is None
    assert Workload(1, 2, 3) + Workload(1, None, 3).times(2) == Workload(3, None, 9)


@pytest.mark.parametrize("changes", [{"iterations": 7, "evaluate_every": 3}, {"iterations": None, "epochs": 3}])
def test_the_length_is_that_of_the_workers(changes: dict[str, Any]) -> None:
    made = recipe(**{"evaluate_every": None} | changes)
    spans = length(made, 722, 32)
    assert workload_length(made, 722 // 32) == (spans.total, spans.every)


def test_it_is_what_a_training_does(catalog: Catalog, tmp_path: Path) -> None:
    """The images that go through the backbone of a real training are counted."""
    made = complete(recipe(iterations=12, evaluate_every=4), catalog)
    seen = {"train": 0, "evaluate": 0}

    def count(module: Any, inputs: Any, output: Any) -> None:
        if type(module).__name__ == "SmallCnn":
            seen["train" if module.training else "evaluate"] += len(inputs[0])

    hook = register_module_forward_hook(count)
    try:
        trained = train(made, Place(tmp_path, tmp_path, tmp_path), lambda _: None)
    finally:
        hook.remove()
    expected = workload(made, catalog)
    assert (trained.steps, seen["train"]) == (expected.steps, expected.trained)
    assert expected.evaluated is not None
    assert 0.5 * expected.evaluated <= seen["evaluate"] <= 1.05 * expected.evaluated


def test_dear_clusterings_are_counted_of_the_weights_that_are_kept(catalog: Catalog) -> None:
    def of(**changes: Any) -> tuple[int, int]:
        made = workload(recipe(**{"dataset": "sop", "embedding": 512, "metrics": ["nmi_sec"], **changes}), catalog)
        return made.clusterings, made.products

    products = 10 * 60_502 * 11_316 * 512  # of one iteration of all starts
    assert of() == (1, products)
    assert of(select={"beside": "test"}) == (2, 2 * products)
    assert of(validation={"name": "cross_validation", "folds": 4}) == (1, 4 * products)  # of the folds side by side
    assert of(metrics=[]) == of(dataset="digits") == of(dataset="cub200") == (0, 0)
    assert of(dataset={"name": "sop", "official": False}) == (0, 0)
    assert (Workload(1, 2, 3, 4, 5) + Workload(clusterings=1, products=2).times(3)) == Workload(1, 2, 3, 7, 11)


# Words


GPU = DeviceHours(kind="gpu", device="H200", trainings=132, hours=1234.5, low=1100.0, high=1400.0)


@pytest.mark.parametrize(
    ("cost", "lines"),
    [
        (Cost(trainings=0, models=0), ["cost: nothing is left to train"]),
        (
            Cost(trainings=4, models=16, unmeasured_shapes=1, nearest=1),
            [
                "work: 4 trainings for 16 models, whose steps are not known before the data is read",
                "hours: not known yet: 1 of 3 trainings of this shape measured",
            ],
        ),
        (
            Cost(trainings=2, models=2, steps=5_160, clusterings=2, products=7_010_720_071_680, unmeasured_shapes=1),
            [
                "work: 5,160 steps",
                "clustering: 2 expensive clusterings for nmi_sec and f1_sec at the ends of trainings: 7.01 trillion "
                "multiplications an iteration, of some tens",
                "hours: not known yet: 0 of 3 trainings of this shape measured",
            ],
        ),
        (
            Cost(trainings=528, models=528, steps=5_280_000, images=633_600_000, evaluated=900, measured=132,
                 unmeasured_shapes=4, hours=[GPU]),
            [
                "work: 5.28 million steps, 634 million images through the network, and up to 900 by evaluations",
                "hours: about 1,234 (1,100 to 1,400) on H200 for 132 of 528 trainings",
                "hours: not known yet for 396 trainings: 4 shapes, each with at most 0 of 3 trainings measured",
            ],
        ),
        (
            Cost(trainings=132, models=132, steps=1_000, images=2_000, measured=132, at_most=["a", "b"],
                 hours=[GPU.model_copy(update={"slots": 8, "wall_hours": 154.3})]),
            [
                "work: at most 1,000 steps, 2,000 images through the network (a; b)",
                "hours: about 1,234 (1,100 to 1,400) on H200; 154 in 8 present slots at once",
            ],
        ),
    ],
)  # fmt: skip
def test_what_is_known_and_what_is_not_is_said(cost: Cost, lines: list[str]) -> None:
    assert list(cost_in_words(cost)) == lines
