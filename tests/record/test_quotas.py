"""Quotas, by what attempts held; and what the store knows of the cluster: nodes, slots, data, and what has to wait."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

from orchestrator.record.capacity import MOST_AWAY
from orchestrator.record.queue import Exclusions
from orchestrator.record.schema import attempt
from orchestrator.record.store import Store, Writer
from orchestrator.record.sweeps import PlanRows
from orchestrator.spec.spec import Slot
from orchestrator.views.accounts import Caller, Quota, QuotaUse, Role, calling
from orchestrator.views.errors import ConflictError
from orchestrator.views.operations import Inspected, Node, WaitReason
from orchestrator.views.runs import Started, SweepSettled
from tests.record.conftest import ON_BOTH
from tests.record.sample import SLOT, claimed, new_sweep, planned, run, run_all, started
from workers.catalog import Finding, Need
from workers.contract import Part

GPU = Slot(cpus=4, gpus=0.5)


def user(store: Store, name: str) -> Caller:
    if not any(one.name == "faces" for one in store.directory.projects(None, 200).items):
        store.owner.add_project("faces", everyone=False)
    store.owner.add_user(name, Role.MEMBER)
    store.owner.join(name, "faces", steers=True)
    found = store.accounts.by_name(name)
    assert found is not None
    return found


def sweep_of(store: Store, fence: int, who: Caller, slot: Slot = SLOT, losses: tuple[str, ...] = ("triplet",)) -> int:
    """A running sweep of two trials a loss."""
    with calling(who):
        number = store.submissions.add_sweep(replace(new_sweep(), actor=who.name, project="faces")).id
    store.writer(fence).sweeps.start(number, PlanRows(**planned(losses)), slot=slot, fresh=True)
    return number


def next_within(store: Store, fence: int) -> str | None:
    order = store.writer(fence).claims.next(Exclusions(limits=store.quotas.state().limits))
    return order and order.attempt


def held_for(store: Store, hours: float, *, ago: float = 0.0, ended: bool = True) -> None:
    """Have every attempt so far have held its slot for so long, until some hours ago."""
    until = datetime.now(UTC) - timedelta(hours=ago)
    values = {"begun": until - timedelta(hours=hours), "ended": until if ended else None}
    with store.database.writing() as connection:
        connection.execute(sa.update(attempt).values(values))


def use(store: Store, name: str) -> QuotaUse:
    return next(one for one in store.quotas.uses() if one.name == name)


@ON_BOTH
def test_slots_at_once_of_a_user_and_of_a_project(store: Store, fence: int) -> None:
    ada, ben = user(store, "ada"), user(store, "ben")
    for who in (ada, ben):
        sweep_of(store, fence, who, losses=("triplet", "semihard"))
    store.owner.set_quota("user", "ada", Quota(slots=1))
    store.owner.set_quota("project", "faces", Quota(slots=3))
    limits = store.quotas.state().limits
    assert store.capacity.waiting_slots(256, limits=limits) == [SLOT] * 3, "nor are more nodes asked for"
    assert store.claims.waits()
    begun = [next_within(store, fence) for _ in range(4)]
    assert [one is None for one in begun] == [False, False, False, True]
    assert (use(store, "ada").used_slots, use(store, "ben").used_slots, use(store, "faces").used_slots) == (1, 2, 3)
    assert {one.actor: one.waiting for one in store.cluster.queue(None)} == {
        "ada": {WaitReason.QUOTA: 3}, "ben": {WaitReason.QUOTA: 2},
    }  # fmt: skip
    store.owner.set_quota("project", "faces", Quota())
    assert next_within(store, fence) is not None
    assert store.capacity.waiting_slots(256, limits=store.quotas.state().limits) == [SLOT], "of ben's"


def test_hours_of_gpus_are_what_attempts_held(store: Store, fence: int, writer: Writer) -> None:
    sweep = sweep_of(store, fence, user(store, "ada"), GPU)
    order = claimed(store, fence)
    held_for(store, 3)
    with store.database.writing() as connection:
        connection.execute(sa.update(attempt).values(begun=None))
    assert use(store, "ada").used_gpu_hours == 0, "it waits for its slot"
    writer.events.write(Started(order.attempt, "slot-0", "host-a"))
    store.owner.set_quota("user", "ada", Quota(gpu_hours=1, cpu_hours=1))
    assert next_within(store, fence) is not None
    held_for(store, 2, ended=False)
    found = use(store, "ada")
    assert (found.used_gpu_hours, found.used_cpu_hours) == (pytest.approx(2, abs=0.01), 0), "half of one, twice"
    state = store.quotas.state()
    assert state.reasons == {sweep: ["the user 'ada' has used its 1 GPU hours"]}
    assert store.claims.waits_of(sweep, state.limits.spent[sweep]) is False, "both of its trials run"


@ON_BOTH
def test_what_is_over_its_hours_waits_and_all_else_goes_on(store: Store, fence: int) -> None:
    ada, ben = user(store, "ada"), user(store, "ben")
    store.owner.set_quota("user", "ada", Quota(cpu_hours=10, days=30))
    mine, other = sweep_of(store, fence, ada), sweep_of(store, fence, ben, losses=("semihard",))
    run(store, fence, claimed(store, fence))
    held_for(store, 10.5)
    state = store.quotas.state()
    assert state.reasons == {mine: ["the user 'ada' has used its 10 CPU hours of 30 days"]}
    assert store.claims.waits_of(mine, state.limits.spent[mine])
    begun = [next_within(store, fence) for _ in range(3)]
    assert [one is None for one in begun] == [False, False, True], "ben's two"
    assert not store.claims.waits(Exclusions(limits=state.limits)), "there is nothing to give out"
    assert store.capacity.waiting_slots(256, limits=state.limits) == []
    assert {one.id: one.waiting for one in store.cluster.queue(None)} == {mine: {WaitReason.HOURS: 1}}
    assert other not in state.limits.spent
    held_for(store, 10.5, ago=24 * 29.9)
    store.owner.set_quota("user", "ada", Quota(cpu_hours=10))
    assert set(store.quotas.state().limits.spent) == {mine}
    store.owner.set_quota("user", "ada", Quota(cpu_hours=10, days=30))
    assert next_within(store, fence) is not None, "most of it is longer ago than thirty days"


def test_gpu_hours_hold_back_what_holds_a_gpu(store: Store, fence: int, writer: Writer) -> None:
    ada = user(store, "ada")
    store.owner.set_quota("project", "faces", Quota(gpu_hours=0))
    by_gpu, by_cpu = sweep_of(store, fence, ada, GPU), sweep_of(store, fence, ada, SLOT, losses=("semihard",))
    assert set(store.quotas.state().limits.spent) == {by_gpu}, "auto is none where no node has one"
    writer.capacity.note_nodes([Node("n", "lab", {"CPU": 8.0, "GPU": 1.0})])
    assert set(store.quotas.state().limits.spent) == {by_gpu, by_cpu}
    assert next_within(store, fence) is None
    assert store.claims.waits(), "but for the quota"
    store.owner.set_quota("project", "faces", Quota(cpu_hours=0))
    assert next_within(store, fence) is not None


def test_who_deletes_a_sweep_has_no_hours_anew(store: Store, fence: int, writer: Writer) -> None:
    sweep = sweep_of(store, fence, user(store, "ada"))
    run_all(store, fence)
    held_for(store, 2)
    writer.events.write(SweepSettled(sweep))
    before = use(store, "ada"), use(store, "faces")
    assert before[0].used_cpu_hours == pytest.approx(4)
    writer.sweeps.delete(sweep)
    assert (use(store, "ada"), use(store, "faces")) == before
    store.owner.set_quota("project", "faces", Quota(cpu_hours=4, days=1))
    assert use(store, "faces").used_cpu_hours == pytest.approx(4)


@ON_BOTH
def test_the_trials_of_an_owner_that_may_wait_are_bounded(store: Store, fence: int) -> None:
    """In running, queued and extended sweeps alike; those of other owners do not count, nor does what has ended."""
    ada, bob = user(store, "ada"), user(store, "bob")
    running = sweep_of(store, fence, ada)  # two trials wait
    new = replace(new_sweep(), project="faces", total=3, most_waiting=9)
    with calling(ada):
        store.submissions.add_sweep(new)
        store.submissions.add_request("extend", running, None, None, {"text": "", "spec": {}, "added": 4}, 9)
        message = (
            r"^9 trials of this owner wait already and the spec adds 3, but no more than 9 may wait at once "
            r"\(METRICSWEEP_OWNER_TRIALS\)"
        )
        with pytest.raises(ConflictError, match=message):
            store.submissions.add_sweep(new)
        with pytest.raises(ConflictError, match="the spec adds 1, but no more than 9"):
            store.submissions.add_request("extend", running, None, None, {"text": "", "spec": {}, "added": 1}, 9)
        assert store.submissions.add_request("cancel", running, None, None, None, 9)
    with calling(bob):
        assert store.submissions.add_sweep(replace(new, uid="of bob")).created
    run_all(store, fence)
    with calling(ada), pytest.raises(ConflictError, match=r"^7 trials"):
        store.submissions.add_sweep(new)


def test_the_audit_shows_that_a_quota_was_removed(store: Store, fence: int) -> None:
    user(store, "ada")
    for quota in (Quota(slots=2, gpu_hours=1.5), Quota()):
        store.owner.set_quota("user", "ada", quota)
    entries = [(entry.what, entry.target, entry.detail) for entry in store.audit.after(0)]
    assert entries[-2:] == [("quota set", "user ada", "slots 2, gpu_hours 1.5"), ("quota removed", "user ada", "")]


BIG = Slot(cpus=64, gpus=0)


def with_big(store: Store, fence: int, loss: str = "triplet") -> int:
    """A sweep whose trials of one loss have a slot of their own."""
    rules = [{"when": {"loss": [loss]}, "slot": {"cpus": 64}}]
    new = new_sweep()
    sweep = store.submissions.add_sweep(replace(new, spec={**new.spec, "slots": rules})).id
    plan = planned()
    cell = next(one.index for one in plan["cells"] if one.labels["loss"] == loss)
    plan["trials"] = [replace(one, slot=BIG) if one.cell == cell else one for one in plan["trials"]]
    store.writer(fence).sweeps.start(sweep, PlanRows(**plan), slot=SLOT, fresh=False)
    return sweep


def barred(store: Store, slot: Slot) -> set[str]:
    return {one.text for one in store.capacity.requested_slots() if one.slot == slot}


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
    assert not store.claims.outranked(held.attempt, Exclusions(impossible_slots=barred(store, SLOT))), (
        "by what cannot be given out"
    )
    writer.sweeps.pause(other)
    assert not store.claims.outranked(held.attempt, Exclusions())
    writer.sweeps.pause(first)
    assert store.claims.outranked(held.attempt, Exclusions())


@ON_BOTH
def test_requested_slots_are_listed_with_their_trials(store: Store, fence: int, writer: Writer) -> None:
    plain, mixed = started(store, fence), with_big(store, fence)
    asked = store.capacity.requested_slots()
    assert [(one.sweep, one.slot, one.own) for one in asked] == [
        (plain, SLOT, False), (mixed, SLOT, False), (mixed, BIG, True),
    ]  # fmt: skip
    own = next(one for one in asked if one.own)
    assert store.capacity.waiting_labels(own) == {"loss": "triplet", "loss.margin": "0.2"}
    writer.trials.cancel(mixed, cell=0)
    assert store.capacity.waiting_labels(own) is None
    writer.trials.cancel(plain)
    assert [one.sweep for one in store.capacity.requested_slots()] == [mixed, mixed]


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
    store.writer(fence).sweeps.start(sweep, PlanRows(**plan), slot=SLOT, fresh=True)
    return sweep


def seen(node: str, need: Need, state: str, said: str = "") -> Inspected:
    return Inspected(node, f"host-{node}", need, Finding.model_validate({"state": state, "message": said}), NOW)


@ON_BOTH
def test_which_sweeps_need_what(store: Store, fence: int, writer: Writer) -> None:
    first, second = needing(store, fence, CUB, SOP), needing(store, fence, CUB, name="other")
    assert {(sweep, str(need)) for sweep, need in store.data.requested_needs()} == {
        (first, "cub200"), (first, "sop with weights resnet50.pth"), (second, "cub200"),
    }  # fmt: skip
    assert store.data.waiting_for(first, CUB.key)
    writer.trials.cancel(first, cell=0)
    assert not store.data.waiting_for(first, CUB.key)
    writer.trials.cancel(first)
    assert [sweep for sweep, _ in store.data.requested_needs()] == [second]
    writer.sweeps.delete(first)
    assert [sweep for sweep, _ in store.data.requested_needs()] == [second]


@ON_BOTH
def test_findings_are_renewed_and_go_with_their_machine(store: Store, writer: Writer) -> None:
    here, there = seen("a", CUB, "missing", "CUB_200_2011 is missing"), seen("b", CUB, "ok")
    writer.data.note_findings([here, there], ["a", "b"])
    assert store.data.findings() == [here, there]
    mended = seen("a", CUB, "ok")
    writer.data.note_findings([mended], ["a"])
    assert store.data.findings() == [mended]
