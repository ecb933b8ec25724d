"""The shortages of a spec: which of its slots no node of the cluster can hold, before anything is submitted."""

from collections.abc import Sequence

from orchestrator.plan.reading.slots import slots
from orchestrator.spec.spec import Spec
from orchestrator.views.nodes import Node
from orchestrator.views.resources import MOST_TRAININGS, capacity, shortage


def shortages(spec: Spec, nodes: Sequence[Node]) -> list[str]:
    """Which slots of a spec none of the nodes can hold, a line for each."""
    return [f"{reason}; {waiting(of_it)}" for slot, of_it in slots(spec) if (reason := shortage(slot, nodes))]


def crowded(spec: Spec, trials: int, nodes: Sequence[Node]) -> list[str]:
    """That fewer trainings run at once than the nodes could hold, where a sweep has so many."""
    room = min((capacity(slot, nodes) for slot, _ in slots(spec)), default=0)
    if min(room, trials) <= MOST_TRAININGS:
        return []
    return [f"at most {MOST_TRAININGS} trainings run at once, though the nodes could hold {room} such slots"]


def waiting(of_it: str) -> str:
    """What becomes of the trials of a slot that no node can hold; `of_it` says which they are (empty: the others)."""
    return f"trials of {of_it} wait until such a node joins" if of_it else "its trials wait until such a node joins"
