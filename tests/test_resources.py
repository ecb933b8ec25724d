"""Resources of nodes: shares of GPUs, memory, custom resources, and messages about a shortage."""

from orchestrator.spec.spec import Slot
from orchestrator.views.operations import Node, Shape, capacity, holds, possible, shape_of, shortage

HEAD = Node("head", "head", {"memory": 2.0**30})
SMALL = Node("small", "small", {"CPU": 4.0, "memory": 8.0 * 2**30})
GPUS = Node("gpus", "gpus", {"CPU": 16.0, "GPU": 2.0, "memory": 64.0 * 2**30, "a100": 2.0})


def shape(**slot: object) -> Shape:
    return shape_of(Slot.model_validate(slot), [GPUS])


def fill(node: Node, one: Shape) -> int:
    """How many of a shape an empty node holds."""
    held: list[Shape] = []
    while holds(node, held, one):
        held.append(one)
    return len(held)


def test_shares_fill_gpus_exactly() -> None:
    for gpus, count in ((1, 2), (2, 1), (0.5, 4), (1 / 3, 6), (1 / 6, 12), (1 / 7, 14), (0.33, 6)):
        one = shape(cpus=0.1, gpus=gpus)
        assert fill(GPUS, one) == count, gpus
        assert one.gpus * min(count / 2, 1 / gpus) <= 1, "what Ray is asked for never sums to more than a GPU"


def test_shares_of_one_size_lie_on_a_gpu_of_their_own() -> None:
    half, quarter, whole = (shape(cpus=0.1, gpus=gpus) for gpus in (0.5, 0.25, 1))
    assert holds(GPUS, [half, quarter], half)
    assert not holds(GPUS, [half, quarter], whole)
    assert holds(GPUS, [half, half], whole)
    assert not holds(GPUS, [half, half, whole], half)


def test_auto_is_a_gpu_where_there_is_one_now() -> None:
    assert shape_of(Slot(), [HEAD, SMALL]).gpus == 0
    assert shape_of(Slot(), [HEAD, SMALL, GPUS]).gpus == 1


def test_memory_and_custom_resources_count_too() -> None:
    assert fill(SMALL, shape(gpus=0, memory_gb=4)) == 2
    assert fill(GPUS, shape(gpus=0, resources={"a100": 0.5})) == 4
    assert not holds(SMALL, (), shape(gpus=0, resources={"a100": 0.5}))
    assert shape(gpus=0.5, memory_gb=1, resources={"a100": 1}).bundle == {
        "CPU": 1.0, "GPU": 0.5, "memory": 2**30, "a100": 1.0,
    }  # fmt: skip


def test_a_shortage_names_the_request_and_the_available_resources() -> None:
    asked = Slot(cpus=64, gpus=0.5, memory_gb=16, resources={"h100": 1})
    assert shortage(asked, [HEAD, SMALL, GPUS]) == (
        "no node of the cluster can hold a slot of 64 CPUs, 0.5 GPUs, 16 GB and 1 h100; "
        "the most that one has is 16 CPUs, 2 GPUs, 64 GB and 0 h100"
    )
    assert shortage(Slot(cpus=2), [SMALL]) is None


def test_without_a_worker_nothing_is_reported_or_possible() -> None:
    assert shortage(Slot(cpus=64), [HEAD]) is None
    assert shortage(Slot(cpus=64), []) is None
    assert not possible(Slot(), [HEAD])


def test_how_many_slots_the_nodes_hold_together() -> None:
    assert capacity(Slot(gpus=0, cpus=1), [HEAD, SMALL, GPUS]) == 4 + 16
    assert capacity(Slot(gpus=1, cpus=1), [SMALL, GPUS]) == 2
    assert capacity(Slot(gpus=0, cpus=1), []) == 0
