"""What the store knows of the cluster: nodes, slots, data, and claims that pass over what has to wait."""

from dataclasses import replace
from datetime import UTC, datetime

from orchestrator.record.capacity import MOST_AWAY
from orchestrator.record.queue import Exclusions
from orchestrator.record.store import Store, Writer
from orchestrator.spec.axes import Slot
from orchestrator.views.operations import Inspected, Node
from tests.record.conftest import ON_BOTH
from tests.record.sample import SLOT, new_sweep, planned, started
from workers.catalog import Finding, Need
from workers.contract import Part

BIG = Slot(cpus=64, gpus=0)


def with_big(store: Store, fence: int, loss: str = "triplet") -> int:
    """A sweep whose trials of one loss have a slot of their own."""
    rules = [{"when": {"loss": [loss]}, "slot": {"cpus": 64}}]
    new = new_sweep()
    sweep = store.submissions.add_sweep(replace(new, spec={**new.spec, "slots": rules})).id
    plan = planned()
    cell = next(one.index for one in plan["cells"] if one.labels["loss"] == loss)
    plan["trials"] = [replace(one, slot=BIG) if one.cell == cell else one for one in plan["trials"]]
    store.writer(fence).sweeps.start(sweep, **plan, slot=SLOT, fresh=False)
    return sweep


def barred(store: Store, slot: Slot) -> set[str]:
    return {one.text for one in store.capacity.asked_slots() if one.slot == slot}


@ON_BOTH
def test_nodes_are_remembered_when_they_leave(store: Store, writer: Writer) -> None:
    one, two = Node("a", "ann", {"CPU": 4.0}), Node("b", "bob", {"CPU": 2.0, "GPU": 1.0})
    writer.capacity.note_nodes([one, two])
    writer.capacity.note_nodes([replace(one, resources={"CPU": 8.0})])
    assert store.capacity.nodes() == [Node("a", "ann", {"CPU": 8.0}), two]
    for number in range(MOST_AWAY + 10):
        writer.capacity.note_nodes([Node(f"n{number}", f"x{number}", {"CPU": 1.0})])
    assert len(store.capacity.nodes()) == MOST_AWAY + 1, "an autoscaling cluster does not fill the table"


@ON_BOTH
def test_what_has_not_begun_gives_way_to_a_higher_priority(store: Store, fence: int, writer: Writer) -> None:
    first = started(store, fence)
    held = writer.claims.next()
    assert held is not None
    assert not store.claims.outranked(held.attempt, Exclusions())
    other = started(store, fence, losses=("contrastive",))
    assert not store.claims.outranked(held.attempt, Exclusions()), "of the same priority"
    writer.sweeps.prioritize(other, 5)
    assert store.claims.outranked(held.attempt, Exclusions())
    assert not store.claims.outranked(held.attempt, Exclusions(barred=barred(store, SLOT))), (
        "by what cannot be given out"
    )
    writer.sweeps.pause(other)
    assert not store.claims.outranked(held.attempt, Exclusions())
    writer.sweeps.pause(first)
    assert store.claims.outranked(held.attempt, Exclusions())


@ON_BOTH
def test_which_slots_are_asked_for_and_by_which_trials(store: Store, fence: int, writer: Writer) -> None:
    plain, mixed = started(store, fence), with_big(store, fence)
    asked = store.capacity.asked_slots()
    assert [(one.sweep, one.slot, one.own) for one in asked] == [
        (plain, SLOT, False), (mixed, SLOT, False), (mixed, BIG, True),
    ]  # fmt: skip
    own = next(one for one in asked if one.own)
    assert store.capacity.waiting_labels(own) == {"loss": "triplet", "loss.margin": "0.2"}
    writer.trials.cancel(mixed, cell=0)
    assert store.capacity.waiting_labels(own) is None
    writer.trials.cancel(plain)
    assert [one.sweep for one in store.capacity.asked_slots()] == [mixed, mixed]


@ON_BOTH
def test_the_slots_that_are_waited_for_up_to_a_limit_and_the_quota(store: Store, fence: int, writer: Writer) -> None:
    with_big(store, fence)
    assert store.capacity.waiting_slots(256) == [BIG, BIG, SLOT, SLOT]
    assert store.capacity.waiting_slots(3) == [BIG, BIG, SLOT]
    writer.claims.next()
    assert store.capacity.waiting_slots(256, quota=2) == [BIG], "one runs, and the owner may have two"


CUB = Need(dataset=Part(name="cub200"))
SOP = Need(dataset=Part(name="sop"), weights="resnet50.pth")
NOW = datetime(2026, 11, 22, tzinfo=UTC)


def needing(store: Store, fence: int, *needs: Need | None, name: str = "sample") -> int:
    """A sweep whose cells have these needs, two trials each."""
    losses = ["triplet", "semihard", "npair"][: len(needs)]
    plan = planned(losses)
    plan["trials"] = [replace(one, need=needs[one.cell]) for one in plan["trials"]]
    sweep = store.submissions.add_sweep(new_sweep(name)).id
    store.writer(fence).sweeps.start(sweep, **plan, slot=SLOT, fresh=True)
    return sweep


def seen(node: str, need: Need, state: str, said: str = "") -> Inspected:
    return Inspected(node, f"host-{node}", need, Finding.model_validate({"state": state, "said": said}), NOW)


@ON_BOTH
def test_which_sweeps_need_what(store: Store, fence: int, writer: Writer) -> None:
    first, second = needing(store, fence, CUB, SOP), needing(store, fence, CUB, name="other")
    assert {(one.sweep, str(one.need)) for one in store.data.asked_needs()} == {
        (first, "cub200"), (first, "sop with weights resnet50.pth"), (second, "cub200"),
    }  # fmt: skip
    assert store.data.waiting_for(first, CUB.key)
    writer.trials.cancel(first, cell=0)
    assert not store.data.waiting_for(first, CUB.key)
    writer.trials.cancel(first)
    assert [one.sweep for one in store.data.asked_needs()] == [second]
    writer.sweeps.delete(first)
    assert [one.sweep for one in store.data.asked_needs()] == [second]


@ON_BOTH
def test_findings_are_renewed_and_go_with_their_machine(store: Store, writer: Writer) -> None:
    here, there = seen("a", CUB, "missing", "CUB_200_2011 is missing"), seen("b", CUB, "ok")
    writer.data.note_findings([here, there], ["a", "b"])
    assert store.data.findings() == [here, there]
    mended = seen("a", CUB, "ok")
    writer.data.note_findings([mended], ["a"])
    assert store.data.findings() == [mended]
