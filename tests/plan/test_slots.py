"""Slots: shares of a GPU, custom resources, and what some axis values need."""

from typing import Any

from orchestrator.plan import grid
from orchestrator.plan.points import slot_of, slots
from orchestrator.spec.spec import Slot, Spec
from orchestrator.views.runs import PlannedTrial
from tests.plan.conftest import Cases, Checked, Missed, Small
from workers import catalog as catalogs

AXES: dict[str, Any] = {
    "compare": {"dataset": ["digits", "cub200"], "loss": ["triplet", "semihard"]},
    "tune": {"optimizer.lr": [0.001, 0.01]},
}
RULES: list[dict[str, Any]] = [
    {"when": {"dataset": "cub200"}, "memory_gb": 16},
    {"when": {"dataset": "cub200", "loss": ["semihard"]}, "gpus": 1, "cpus": 4},
    {"when": {"optimizer.lr": 0.01}, "resources": {"a100": 1}},
]


def planned(spec: Spec) -> dict[tuple[str, ...], Slot | None]:
    plan = grid.expand(spec, catalogs.load())
    labels = {(one.cell, one.index): one.labels for one in plan.candidates}
    found: dict[tuple[str, ...], Slot | None] = {}
    trials: list[PlannedTrial] = list(plan.trials())
    for one in trials:
        cell = plan.cells[one.cell].labels
        found[*cell.values(), *labels[one.cell, one.candidate].values()] = one.slot
    return found


def test_a_slot_of_every_kind(small: Small, checked: Checked) -> None:
    slot = checked(small(slot={"cpus": 2, "gpus": 0.5, "memory_gb": 8, "resources": {"a100": 1, "TPU-v4:x": 0.5}})).slot
    assert slot == Slot(cpus=2, gpus=0.5, memory_gb=8, resources={"a100": 1, "TPU-v4:x": 0.5})


def test_errors_of_other_shares_name_the_nearest_valid_shares(small: Small, missed: Missed) -> None:
    cases = [
        (0.3, "a share that fills a GPU (1/k), such as 0.3333 or 0.25; found 0.3"),
        (0.7, "a share that fills a GPU (1/k), such as 1 or 0.5; found 0.7"),
        (1.5, "a whole number such as 1 or 2, or a share that fills a GPU, such as 0.5; found 1.5"),
        (-1, "0, a whole number up to 1,024, or a share that fills a GPU, such as 0.5 or 0.25; found -1.0"),
    ]
    assert missed((small(slot={"gpus": gpus}), "slot.gpus", f"expected {right}") for gpus, right in cases) == []


def test_custom_resources_that_cannot_be(small: Small, missed: Missed) -> None:
    cases: list[tuple[Any, str]] = [
        ({"GPU": 1}, "'GPU' is no custom resource; write it as the slot field `gpus`"),
        ({"memory": 1}, "'memory' is no custom resource; write it as the slot field `memory_gb`"),
        ({"node:10.0.0.1": 1}, "'node:10.0.0.1' cannot name a custom resource"),
        ({"a b": 1}, "'a b' cannot name a custom resource"),
        ({"a100": 0}, "expected 0.0001 to 1,000,000 of 'a100', found 0"),
        ([], "expected a mapping, found []"),
    ]
    assert missed((small(slot={"resources": it}), "slot.resources", said) for it, said in cases) == []
    wrong = small(slot={"resources": {"a100": "one"}})
    assert missed([(wrong, "slot.resources.a100", "expected a number, found 'one'")]) == []


def test_later_entries_override_earlier_entries(small: Small, checked: Checked) -> None:
    spec = checked(small(**AXES, slot={"gpus": 0, "memory_gb": 4}, slots=RULES))
    found = planned(spec)
    assert found["digits", "triplet", "0.001"] is None
    assert found["cub200", "triplet", "0.001"] == Slot(gpus=0, memory_gb=16)
    assert found["cub200", "semihard", "0.001"] == Slot(gpus=1, cpus=4, memory_gb=16)
    assert found["cub200", "semihard", "0.01"] == Slot(gpus=1, cpus=4, memory_gb=16, resources={"a100": 1})
    assert found["digits", "triplet", "0.01"] == Slot(gpus=0, memory_gb=4, resources={"a100": 1})
    assert Spec.model_validate(spec.model_dump(mode="json")) == spec


def test_an_entry_may_undo_an_earlier_entry(small: Small, checked: Checked) -> None:
    rules = [{"when": {"loss": "semihard"}, "memory_gb": None, "resources": {}}]
    spec = checked(small(**AXES, slot={"gpus": 0, "memory_gb": 4, "resources": {"a100": 1}}, slots=rules))
    assert planned(spec)["digits", "semihard", "0.01"] == Slot(gpus=0)


def test_slots_change_no_recipe(small: Small, checked: Checked) -> None:
    def fingerprints(spec: Spec) -> list[str]:
        return [one.fingerprint for one in grid.expand(spec, catalogs.load()).trials()]

    assert fingerprints(checked(small(**AXES))) == fingerprints(checked(small(**AXES, slots=RULES)))


def test_every_different_slot_and_whose_it_is(small: Small, checked: Checked) -> None:
    found = list(slots(checked(small(**AXES, slot={"gpus": 0}, slots=RULES[:2]))))
    assert [of_it for _, of_it in found] == ["", "dataset=cub200", "dataset=cub200, loss=semihard"]
    assert [of_it for _, of_it in slots(checked(small(slot={"gpus": 0})))] == [""]


def test_what_a_search_suggests_has_its_slot(small: Small, checked: Checked) -> None:
    search = {"name": "tpe", "trials": 4, "reproduce": 1}
    spec = checked(small(**AXES, slot={"gpus": 0}, slots=RULES, search=search))
    one = grid.candidate(spec, 3, 0, {"optimizer.lr": "0.01"})
    trials = list(grid.trials(spec, catalogs.load(), one))
    wanted = Slot(gpus=1, cpus=4, memory_gb=16, resources={"a100": 1})
    assert [trial.slot for trial in trials] == [wanted] * len(trials)
    assert [again.slot for again in grid.reproductions(spec, catalogs.load(), trials)] == [wanted]
    assert slot_of(spec, {"dataset": "digits", "loss": "triplet", "optimizer.lr": "0.001"}) is None


def test_entries_that_cannot_be(small: Small, missed: Missed) -> None:
    cases: Cases = [
        ({}, "slots", "expected a list, found {}"),
        ([3], "slots[0]", "expected a mapping with `when`, found 3"),
        ([{"cpus": 2}], "slots[0].when", "expected a mapping from an axis"),
        ([{"when": {"loss": "triplet"}}], "slots[0]", "the rule sets no field of the slot"),
        ([{"when": {"los": "triplet"}, "cpus": 2}], "slots[0].when", "no axis 'los' is applied before this; did you"),
        ([{"when": {"seed": 0}, "cpus": 2}], "slots[0].when", "no axis 'seed' is applied before this"),
        ([{"when": {"loss": "tripplet"}, "cpus": 2}], "slots[0].when.loss", "axis 'loss' has no alternative"),
        ([{"when": {"loss": "triplet"}, "cpu": 2}], "slots[0].cpu", "there is no key 'cpu' here; did you mean 'cpus'?"),
        ([{"when": {"loss": "triplet"}, "gpus": 0.3}], "slots[0].gpus", "expected a share that fills a GPU"),
    ]
    whole = small(**AXES, repeat={"seed": [0, 1]})
    assert missed((whole | {"slots": posted}, path, said) for posted, path, said in cases) == []
