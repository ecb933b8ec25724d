"""The conductor and a cluster that lacks room: what waits blocks nothing, says why, and goes on when a node joins."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import yaml

from orchestrator.conduct.conductor import Conductor
from orchestrator.conduct.waiting import WAIT
from orchestrator.plan.check import read_spec
from orchestrator.plan.data import crowded
from orchestrator.record.store import Store
from orchestrator.run.attempt import Workplace
from orchestrator.run.engine import Broker
from orchestrator.run.inline import Inline
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from orchestrator.spec.spec import Slot
from orchestrator.views.accounts import Quota
from orchestrator.views.operations import Node
from tests.inline_conductor import workplace
from tests.test_conductor import SPEC, trained
from workers import catalog as catalogs

SMALL = Node("small", "lab", {"CPU": 4.0, "memory": 2.0**33})
LARGE = Node("large", "hall", {"CPU": 128.0, "memory": 2.0**33})
LACK = "no node of the cluster can hold a slot of 64 CPUs and 0 GPUs; the most that one has is 4 CPUs and 0 GPUs"


class Clustered(Inline):
    """The inline engine, saying that it is a cluster of some nodes."""

    def __init__(self, place: Workplace, nodes: list[Node]) -> None:
        super().__init__(place)
        self.there = nodes
        self.demands: list[list[Slot]] = []
        self.runs = 0

    def nodes(self) -> Sequence[Node]:  # type: ignore[override]
        return list(self.there)

    def demand(self, waiting: Sequence[Slot]) -> None:
        self.demands.append(list(waiting))

    def run(self, broker: Broker) -> None:
        self.runs += 1
        super().run(broker)


class Cluster:
    """A conductor over such an engine, one turn at a time."""

    def __init__(self, settings: Settings, nodes: list[Node]) -> None:
        self.store = Store.open(settings.database)
        self.engine = Clustered(workplace(settings), nodes)
        self.conductor = Conductor(settings, self.store, self.engine, catalogs.load(), None)

    def conduct(self, turns: int = 3) -> None:
        """Serve so many looks at an idle queue, then close."""
        left = iter(range(turns))
        active = self.store.sweeps.active

        def counted() -> bool:
            if next(left, None) is None:
                self.conductor.close()
            return active()

        self.store.sweeps.active = counted  # type: ignore[method-assign]
        self.conductor._closing = False
        try:
            self.conductor.conduct()
        finally:
            self.store.sweeps.active = active  # type: ignore[method-assign]


@pytest.fixture
def cluster(settings: Settings) -> Iterator[Cluster]:
    made = Cluster(settings.model_copy(update={"engine": "ray_tune"}), [SMALL])
    yield made
    made.store.close()


@pytest.fixture
def clustered_service(settings: Settings) -> Iterator[Service]:
    opened = Service.open(settings.model_copy(update={"engine": "ray_tune"}))
    yield opened
    opened.close()


def spec(**changes: Any) -> bytes:
    return yaml.safe_dump({**SPEC, "slot": {"gpus": 0}, **changes}, sort_keys=False).encode()


BIG = [{"when": {"loss": "triplet"}, "cpus": 64}]


def test_what_no_node_can_hold_waits_with_a_notice_and_the_rest_is_trained(
    clustered_service: Service, cluster: Cluster, settings: Settings
) -> None:
    sweep = clustered_service.submissions.submit(spec(slots=BIG)).id
    cluster.conduct()
    found = clustered_service.sweeps.get(sweep)
    assert (found.state, found.counts.finished, found.counts.waiting) == ("running", 4, 4)
    assert found.notice == f"{LACK}; trials of loss=triplet wait until such a node joins"
    assert len(trained(settings)) == 4
    assert [slot.cpus for slot in cluster.engine.demands[-1]][:4] == [64] * 4, "which an autoscaler may still bring"
    assert cluster.engine.runs == 1, "an engine is not started for what cannot be given out"
    cluster.engine.there.append(LARGE)
    cluster.conduct()
    found = clustered_service.sweeps.get(sweep)
    assert (found.state, found.counts.finished, found.notice) == ("finished", 8, None)
    assert clustered_service.trials.get(1).attempts[0].requested["cpus"] == 64


def test_a_sweep_that_waits_alone_does_not_end(clustered_service: Service, cluster: Cluster) -> None:
    sweep = clustered_service.submissions.submit(spec(slot={"cpus": 64, "gpus": 0})).id
    cluster.conduct()
    found = clustered_service.sweeps.get(sweep)
    assert (found.state, found.counts.waiting) == ("running", 8)
    assert found.notice == f"{LACK}; its trials wait until such a node joins"
    assert cluster.engine.runs == 0
    clustered_service.commands.cancel(sweep)
    cluster.conduct()
    assert (clustered_service.sweeps.get(sweep).state, clustered_service.sweeps.get(sweep).notice) == (
        "cancelled",
        None,
    )


def test_a_submit_warns_of_what_no_node_could_ever_hold(clustered_service: Service, cluster: Cluster) -> None:
    assert clustered_service.submissions.submit(spec(slots=BIG)).warnings == [], "the cluster was never seen"
    cluster.conduct()
    warning = f"{LACK}; trials of loss=triplet wait until such a node joins"
    assert clustered_service.submissions.submit(spec(slots=BIG, name="again")).warnings == [warning]
    assert clustered_service.submissions.preview(spec(slots=BIG)).warnings == [warning]
    assert clustered_service.submissions.preview(spec()).warnings == []
    cluster.engine.there[:] = [LARGE]
    cluster.conduct()
    cluster.engine.there[:] = [SMALL]
    cluster.conduct()
    assert clustered_service.submissions.preview(spec(slots=BIG)).warnings == [], "one that was here can come again"


def test_what_has_no_hours_left_waits_with_a_notice_until_it_has(clustered_service: Service, cluster: Cluster) -> None:
    sweep = clustered_service.submissions.submit(spec()).id
    cluster.store.owner.set_quota("project", "main", Quota(cpu_hours=0))
    cluster.conduct()
    found = clustered_service.sweeps.get(sweep)
    assert (found.state, found.counts.waiting) == ("running", 8)
    assert found.notice == f"the project 'main' has used its 0 CPU hours; {WAIT}"
    assert cluster.engine.runs == 0, "an engine is not started for what cannot be given out"
    assert cluster.engine.demands[-1] == [], "nor are nodes asked for"
    cluster.store.owner.set_quota("project", "main", Quota(slots=1))
    cluster.conduct()
    found = clustered_service.sweeps.get(sweep)
    assert (found.state, found.notice, found.counts.finished) == ("finished", None, 8)


def test_a_lease_is_given_back_though_the_engine_does_not_close(cluster: Cluster) -> None:
    def broken() -> None:
        raise RuntimeError("Ray is gone")

    cluster.engine.close = broken  # type: ignore[method-assign]
    cluster.conduct()
    assert not cluster.store.lease.conducted()


def test_an_order_that_is_given_back_waits_again(clustered_service: Service, cluster: Cluster) -> None:
    sweep = clustered_service.submissions.submit(spec(slots=BIG)).id
    cluster.engine.there[:] = [SMALL, LARGE]
    given_back: list[str] = []

    def returning(broker: Broker) -> None:
        order = broker.next_order()
        while order is not None:
            cluster.engine.there[:] = [SMALL]  # it left between claim and slot
            if order.slot.cpus == 64:
                given_back.append(order.training)
                broker.returned(order, "it left")
            else:
                cluster.engine._execute(broker, order)
            order = broker.next_order()

    cluster.engine.run = returning  # type: ignore[method-assign]
    cluster.conduct()
    assert len(given_back) == 1
    found = clustered_service.sweeps.get(sweep)
    assert (found.state, found.counts.finished, found.counts.waiting) == ("running", 4, 4)
    attempt = clustered_service.trials.get(1).attempts[0]
    assert (attempt.state, attempt.reason) == ("stopped", "it left")


def test_more_slots_than_simultaneous_trainings_are_reported() -> None:
    great = read_spec(spec(slot={"cpus": 1, "gpus": 0}), catalogs.load(), ()).spec
    nodes = [Node(f"n{number}", "n", {"CPU": 100.0}) for number in range(3)]
    (said,) = crowded(great, 300, nodes)
    assert said == "at most 256 trainings run at once, though the nodes could hold 300 such slots"
    assert crowded(great, 256, nodes) == []
    assert crowded(great, 300, nodes[:2]) == []


def test_an_inline_engine_knows_no_shortage(service: Service) -> None:
    fence = service.store.lease.acquire("earlier", 60)
    assert fence is not None
    service.store.writer(fence).capacity.note_nodes([SMALL])
    service.store.writer(fence).lease.release()
    assert service.submissions.submit(spec(slot={"cpus": 64})).warnings == []
