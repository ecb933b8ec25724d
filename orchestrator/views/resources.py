"""Room: whether a node can hold a slot, beside those that it holds already."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor
from typing import Final

from orchestrator.spec.slot import Slot
from orchestrator.views.nodes import Node

_GRAIN: Final = 10_000
"""Ray counts resources in ten-thousandths; three slots of 0.3333 GPUs fit one GPU, of 0.33334 they do not."""
_SLACK: Final = 1e-6
LACK: Final = "no node of the cluster can hold a slot of"
"""How a shortage begins."""
MOST_SLOTS: Final = 1_000
"""Slots that are counted."""
MOST_TRAININGS: Final = 256
"""Trainings that run at once: on Ray each is followed by a trial of Tune, which has a process of its own."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What one slot takes of a node."""

    cpus: float
    gpus: float  # whole GPUs, or a share 1/k of one
    memory: int  # bytes
    resources: tuple[tuple[str, float], ...] = ()  # custom ones by name, in order

    @property
    def bundle(self) -> dict[str, float]:
        """The amounts by Ray's names."""
        amounts = {"CPU": self.cpus, "GPU": self.gpus, "memory": self.memory, **dict(self.resources)}
        return {name: amount for name, amount in amounts.items() if amount}


def shape_of(slot: Slot, nodes: Iterable[Node]) -> Shape:
    """What a slot takes; `auto` is one GPU where a node has any."""
    if slot.gpus == "auto":
        gpus = 1.0 if any(node.resources.get("GPU", 0.0) >= 1 for node in nodes) else 0.0
    else:
        gpus = slot.gpus if slot.gpus in (0, 1) or slot.gpus > 1 else floor(_GRAIN / round(1 / slot.gpus)) / _GRAIN
    memory = int((slot.memory_gb or 0) * 2**30)
    custom = sorted((name, _grained(amount)) for name, amount in slot.resources.items())
    return Shape(_grained(slot.cpus), float(gpus), memory, tuple(custom))


def holds(node: Node, held: Iterable[Shape], wanted: Shape) -> bool:
    """Whether a node that holds the shapes `held` has room for one more."""
    shapes = [*held, wanted]
    if wanted.gpus and _gpus(shapes) > node.resources.get("GPU", 0.0):
        return False
    return all(
        sum(shape.bundle.get(name, 0.0) for shape in shapes) <= node.resources.get(name, 0.0) + _SLACK
        for name in wanted.bundle
        if name != "GPU"
    )


def possible(slot: Slot, nodes: Sequence[Node]) -> bool:
    """Whether one of the nodes could hold such a slot, were it empty."""
    wanted = shape_of(slot, nodes)
    return any(holds(node, (), wanted) for node in nodes)


def slots(slot: Slot, nodes: Sequence[Node]) -> int:
    """How many such slots the nodes can hold at once, were they empty."""
    wanted, total = shape_of(slot, nodes), 0
    for node in nodes:
        held: list[Shape] = []
        while len(held) < MOST_SLOTS and holds(node, held, wanted):
            held.append(wanted)
        total += len(held)
    return min(total, MOST_SLOTS)


def capacity(slot: Slot, nodes: Sequence[Node]) -> int:
    """How many such slots the nodes could hold together, were they empty; counted up to a thousand a node."""
    wanted = shape_of(slot, nodes)
    return sum(_most(node, wanted) for node in nodes)


def shortage(slot: Slot, nodes: Sequence[Node]) -> str | None:
    """Why none of the nodes could hold such a slot, were it empty; none when one can, or none offers a CPU.

    A head and a conductor may offer no CPU: until a worker joins, that says nothing of the cluster.
    """
    if not any(node.resources.get("CPU") for node in nodes):
        return None
    if possible(slot, nodes):
        return None
    wanted = shape_of(slot, nodes)
    asked = {"CPU": wanted.cpus, "GPU": wanted.gpus, **wanted.bundle}
    most = {name: max(node.resources.get(name, 0.0) for node in nodes) for name in asked}
    return f"{LACK} {_said(asked)}; the most that one has is {_said(most)}"


def _most(node: Node, wanted: Shape) -> int:
    return bisect_right(range(1, 1_001), 0, key=lambda count: 0 if holds(node, [wanted] * (count - 1), wanted) else 1)


def _grained(amount: float) -> float:
    return max(1, round(amount * _GRAIN)) / _GRAIN


def _gpus(shapes: Iterable[Shape]) -> int:
    """The GPUs that the shapes need; shares of one size lie together, since Ray fills the fullest GPU that has room."""
    shares = Counter(shape.gpus for shape in shapes if shape.gpus)
    return sum(ceil(count / round(1 / gpus)) if gpus < 1 else ceil(count * gpus) for gpus, count in shares.items())


def _said(amounts: Mapping[str, float]) -> str:
    said = [_amount(name, amount) for name, amount in amounts.items()]
    return " and ".join(filter(None, [", ".join(said[:-1]), said[-1]]))


def _amount(name: str, amount: float) -> str:
    if name == "memory":
        size = amount / 2**30
        return (f"{size:.1f}".removesuffix(".0") if size >= 0.1 else f"{size:.1g}") + " GB"
    if name in ("CPU", "GPU"):
        return f"{amount:g} {name}" + ("" if amount == 1 else "s")
    return f"{amount:g} {name}"


def too_large(warnings: Sequence[str]) -> list[str]:
    """Those of the warnings that are about slots."""
    return [one for one in warnings if one.startswith(LACK)]
