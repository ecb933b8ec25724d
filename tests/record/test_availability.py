"""What the store knows of data roots: the needs of sweeps, findings, and claims that pass over what is held."""

from dataclasses import replace
from datetime import UTC, datetime

from orchestrator.record.reads.claims import Exclusions
from orchestrator.record.store import Store
from orchestrator.views.nodes import Inspected
from tests.record.sample import SLOT, lease, new_sweep, planned, run_all
from workers.catalog import Finding, Need
from workers.contract import Part

CUB = Need(dataset=Part(name="cub200"))
SOP = Need(dataset=Part(name="sop"), weights="resnet50.pth")
NOW = datetime(2026, 11, 22, tzinfo=UTC)


def started(store: Store, fence: int, *needs: Need | None, name: str = "sample") -> int:
    """A sweep whose cells have these needs, two trials each."""
    losses = ["triplet", "semihard", "npair"][: len(needs)]
    plan = planned(losses)
    plan["trials"] = [replace(one, need=needs[one.cell]) for one in plan["trials"]]
    sweep = store.submissions.add_sweep(new_sweep(name)).id
    store.writer(fence).sweeps.start(sweep, **plan, slot=SLOT, fresh=True)
    return sweep


def found(node: str, need: Need, state: str, said: str = "") -> Inspected:
    return Inspected(node, f"host-{node}", need, Finding.model_validate({"state": state, "said": said}), NOW)


def test_an_order_says_what_it_needs(store: Store) -> None:
    fence = lease(store)
    started(store, fence, CUB, None)
    orders = [store.writer(fence).claims.next() for _ in range(4)]
    assert [one.need for one in orders if one] == [CUB.key, CUB.key, None, None]
    assert [one.need for one in store.claims.orphans()] == [CUB.key, CUB.key, None, None]


def test_what_is_held_blocks_nothing(store: Store) -> None:
    fence = lease(store)
    sweep = started(store, fence, CUB, None, SOP)
    held = {CUB.key, SOP.key}
    assert store.claims.waits(Exclusions(held=held))
    orders = [store.writer(fence).claims.next(Exclusions(held=held)) for _ in range(3)]
    assert [one.need if one else "none" for one in orders] == [None, None, "none"]
    assert not store.claims.waits(Exclusions(held=held))
    assert store.claims.waits(Exclusions(held={CUB.key}))
    assert store.writer(fence).sweeps.unsettled() == []
    assert store.sweeps.get(sweep).counts.waiting == 4
    assert run_all(store, fence) == 4


def test_a_held_training_of_a_higher_priority_outranks_nothing(store: Store) -> None:
    fence = lease(store)
    started(store, fence, None)
    order = store.writer(fence).claims.next()
    assert order is not None
    store.writer(fence).sweeps.prioritize(started(store, fence, CUB), 5)
    assert store.claims.outranked(order.attempt, Exclusions())
    assert not store.claims.outranked(order.attempt, Exclusions(held={CUB.key}))


def test_nothing_is_demanded_for_what_is_held(store: Store) -> None:
    fence = lease(store)
    started(store, fence, CUB, None)
    assert len(store.capacity.waiting_slots(100)) == 4
    assert len(store.capacity.waiting_slots(100, held={CUB.key})) == 2


def test_which_sweeps_need_what(store: Store) -> None:
    fence = lease(store)
    first, second = started(store, fence, CUB, SOP), started(store, fence, CUB, name="other")
    assert {(one.sweep, str(one.need)) for one in store.data.asked_needs()} == {
        (first, "cub200"), (first, "sop with weights resnet50.pth"), (second, "cub200"),
    }  # fmt: skip
    assert store.data.waiting_for(first, CUB.key)
    store.writer(fence).trials.cancel(first, cell=0)
    assert not store.data.waiting_for(first, CUB.key)
    store.writer(fence).trials.cancel(first)
    assert [one.sweep for one in store.data.asked_needs()] == [second]
    store.writer(fence).sweeps.delete(first)
    assert [one.sweep for one in store.data.asked_needs()] == [second]


def test_findings_are_renewed_and_go_with_their_machine(store: Store) -> None:
    fence = lease(store)
    here, there = found("a", CUB, "missing", "CUB_200_2011 is missing"), found("b", CUB, "ok")
    store.writer(fence).data.note_findings([here, there], ["a", "b"])
    assert store.data.findings() == [here, there]
    mended = found("a", CUB, "ok")
    store.writer(fence).data.note_findings([mended], ["a"])
    assert store.data.findings() == [mended]
