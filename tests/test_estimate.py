"""What trainings cost, how much time is left, and what is left to train."""

import math
import random
from pathlib import Path
from typing import Any

import pytest
from torch.nn.modules.module import register_module_forward_hook

from orchestrator.cost import estimate as costs
from orchestrator.cost.estimate import (
    Cost,
    Demand,
    Pending,
    Slots,
    Timed,
    TimeLeft,
    Workload,
    estimate,
    shape,
    time_left,
    workload,
)
from orchestrator.record.progress import expected_share
from orchestrator.service.forecast import MOST_TRIALS
from orchestrator.service.service import Service
from orchestrator.service.sweeps import LEFT_SECONDS, SweepQueries
from orchestrator.settings import Settings
from orchestrator.views.states import SweepState
from orchestrator.views.sweeps import Links
from tests.inline_conductor import conduct
from tests.record.sample import recipe
from tests.test_conductor import spec
from workers.catalog import Catalog, complete, load
from workers.contract import Place
from workers.train import train


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load()


def test_what_takes_as_long_has_the_same_shape() -> None:
    alike: list[dict[str, Any]] = [
        {"loss": "semihard"}, {"seed": 7}, {"regularizer": {"name": "sec", "eta": 0.5}},
        {"optimizer": {"name": "sgd", "lr": 0.1}}, {"validation": {"name": "class_holdout", "folds": 3, "fold": 2}},
        {"select": {"metric": "nmi"}}, {"patience": 3}, {"iterations": 101},
    ]  # fmt: skip
    unlike: list[dict[str, Any]] = [
        {"iterations": None, "epochs": 3}, {"select": {"split": "test"}}, {"embedding": 128}, {"dataset": "mnist"},
        {"backbone": {"name": "small_cnn", "width": 9}}, {"head": "bn_fc"},
        {"sampler": {"name": "balanced", "classes": 4, "per_class": 9}}, {"precision": "bf16"}, {"crop": 7},
        {"validation": {"name": "class_holdout", "folds": 4}}, {"validation": {"name": "cross_validation", "folds": 3}},
        {"select": {"beside": "test"}}, {"evaluate_every": 5},
    ]  # fmt: skip
    assert [changes for changes in alike if shape(recipe(**changes)) != shape(recipe())] == []
    assert [changes for changes in unlike if shape(recipe(**changes)) == shape(recipe())] == []


def test_cross_validation_trains_several_models() -> None:
    assert costs.models(recipe()) == 1
    folds = recipe(validation={"name": "cross_validation", "folds": 3})
    assert (costs.models(folds), costs.units(folds.model_dump(mode="json"))) == (3, 300)
    assert costs.units(recipe(iterations=None, epochs=7).model_dump(mode="json")) == 7


# Hours


def lasting(*rates: float, device: str = "cuda", name: str = "a GPU") -> list[costs.Duration]:
    """Trainings of ten iterations each, by the seconds of one."""
    return [costs.Duration(rate * 10, 10, device, name) for rate in rates]


def test_hours_are_of_the_median_step_with_quartiles() -> None:
    demand = Demand(trainings=4, models=4, units=3_600, work=Workload(3_600, 36_000, 100))
    found = estimate({"a": demand}, {"a": lasting(2.0, 1.0, 10.0, 3.0, 2.5)}, "auto")
    assert (found.trainings, found.steps, found.images, found.evaluated) == (4, 3_600, 36_000, 100)
    assert found.hours == [
        costs.DeviceHours(
            kind="gpu", device="a GPU", trainings=4, hours=2.5, low=2.0, high=3.0, slots=None, wall_hours=None
        )
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


def test_the_slot_says_on_what() -> None:
    measured = lasting(1.0, 1.0, 1.0, device="cpu", name="a processor") + lasting(1.0, 1.0, 1.0)
    for gpus, devices in (
        (0, ["a processor"]), (0.5, ["a GPU"]), (1, ["a GPU"]), ("auto", ["a processor", "a GPU"])
    ):  # fmt: skip
        found = estimate({"a": Demand(1, 1, 10)}, {"a": measured}, gpus).hours  # type: ignore[arg-type]
        assert [one.device for one in found] == devices, gpus


def test_slots_share_the_hours() -> None:
    for slots, at_once, wall in (
        (Slots(2, on_gpu=True), 2, 2.0), (Slots(9, on_gpu=True), 4, 1.0), (Slots(9, on_gpu=False), None, None),
        (Slots(0, on_gpu=True), None, None), (None, None, None),
    ):  # fmt: skip
        (found,) = estimate({"a": Demand(4, 4, 14_400)}, {"a": lasting(1.0, 1.0, 1.0)}, "auto", slots).hours
        assert (found.hours, found.slots, found.wall_hours) == (4.0, at_once, wall), slots


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
    views = recipe("nt_xent", task={"name": "self_supervised"}, sampler={"name": "shuffle", "batch": 16})
    assert workload(views, catalog).trained == 100 * 16 * 2, "both views of an image go through the network"


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


def test_expensive_clusterings_are_counted_for_the_kept_weights(catalog: Catalog) -> None:
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


GPU = costs.DeviceHours(kind="gpu", device="H200", trainings=132, hours=1234.5, low=1100.0, high=1400.0)


SAID = [
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
                "multiplications in each of some tens of iterations",
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
    ]  # fmt: skip


def test_an_estimate_says_what_is_known_and_what_is_not() -> None:
    assert [list(costs.cost_in_words(cost)) for cost, _ in SAID] == [lines for _, lines in SAID]


def known(*given: Any, **more: Any) -> TimeLeft:
    found = time_left(*given, **more)
    assert found is not None
    return found


def test_steps_take_as_long_as_they_took() -> None:
    timed = [Timed("a", 100, 10.0), Timed("a", 100, 12.0), Timed("a", 100, 8.0)]
    found = known([("a", 50.0)], [Pending("a", 4, 400)], timed, 1.0)
    assert found.seconds == pytest.approx(45.0)
    assert found.low < 45.0 < found.high


def test_slots_share_the_work_and_the_last_one_decides() -> None:
    timed = [Timed("a", 100, 10.0)] * 3
    found = known([("a", 100.0), ("a", 10.0)], [Pending("a", 1, 100)], timed, 2.0)
    assert found.seconds == pytest.approx(11.0)  # 1 s, then the one that waits; not half of 21 s
    gaps = known([("a", 100.0), ("a", 100.0)], [], timed, 1.6)
    assert gaps.seconds == pytest.approx(12.5)  # four fifths of the time a slot trains


def test_kinds_keep_their_own_pace_and_an_unknown_one_widens_the_doubt() -> None:
    timed = [*[Timed("small", 100, 1.0)] * 3, *[Timed("large", 100, 100.0)] * 3]
    found = known([("large", 100.0)], [Pending("small", 10, 1_000)], timed, 1.0)
    assert found.seconds == pytest.approx(110.0)
    doubtful = known([("other", 100.0)], [], timed, 1.0)
    assert doubtful.high / doubtful.low > found.high / found.low


def test_what_runs_tells_the_pace_until_one_has_finished() -> None:
    running = Timed("a", 40, 4.0, whole=False)
    first = known([("a", 60.0)], [Pending("a", 1, 100)], [running], 1.0)
    assert first.seconds == pytest.approx(16.0)
    then = known([("a", 60.0)], [Pending("a", 1, 100)], [running, Timed("a", 100, 20.0)], 1.0)
    assert then.seconds == pytest.approx(32.0)


@pytest.mark.parametrize("spread", [0.1, 0.4])
def test_four_times_of_five_it_ends_between_the_two(spread: float) -> None:
    drawn = random.Random(3)
    inside = 0
    for _ in range(400):
        lengths = [drawn.gauss(10.0, 10.0 * spread) for _ in range(20)]
        found = known([], [Pending("a", 12, 1_200)], [Timed("a", 100, max(0.5, one)) for one in lengths[:8]], 1.0)
        inside += found.low <= sum(lengths[8:]) <= found.high
    assert inside / 400 >= 0.75
    assert spread == 0.1 or inside / 400 <= 0.95  # lengths alike: the drift of a machine is more than their spread


@pytest.mark.parametrize("share", [0.1, 0.6])
def test_how_early_others_end_is_learnt_within_its_bounds(share: float) -> None:
    """Candidates that end at a first look or come to their end, some of them judged and some that wait."""
    drawn, inside = random.Random(5), 0
    for _ in range(400):
        ends = [1.0 if drawn.random() < share else 0.1 for _ in range(16)]
        found = expected_share(ends[:6], 10)
        bound = 1.2816 * found.doubt
        inside += found.mean * math.exp(-bound) <= sum(ends[6:]) / 10 <= found.mean * math.exp(bound)
    assert 0.7 <= inside / 400 <= 0.85


def test_the_outlook_counts_what_is_not_trained_and_is_cached(service: Service, settings: Settings) -> None:
    now = 0.0
    queries = SweepQueries(service.store, load(), Links(""), lambda: now)
    sweep = service.submissions.submit(spec(repeat={"seed": [0]})).id
    wider = service.submissions.submit(spec()).id

    def left(**changes: object) -> int | None:
        cost = queries.left(service.sweeps.get(wider).model_copy(update={"state": SweepState.RUNNING} | changes))
        return cost.trainings if cost else None

    assert left() == 8
    conduct(settings)
    assert service.sweeps.get(sweep).state == "finished"
    assert left() == 8, "as it was counted"
    now = LEFT_SECONDS + 1
    assert left() == 0
    assert left(state=SweepState.FINISHED) is None
    assert left(total=MOST_TRIALS + 1) is None
