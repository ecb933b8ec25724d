"""The shortages of a spec: which of its slots no node of the cluster can hold, before anything is submitted."""

from collections.abc import Sequence

from orchestrator.plan.slots import slots
from orchestrator.plan.spec import Spec
from orchestrator.room import LACK, shortage
from orchestrator.trial import Node


def shortages(spec: Spec, nodes: Sequence[Node]) -> list[str]:
    """Which slots of a spec none of the nodes can hold, a line for each."""
    return [f"{reason}; {waiting(of_it)}" for slot, of_it in slots(spec) if (reason := shortage(slot, nodes))]


def too_large(warnings: Sequence[str]) -> list[str]:
    """Those of the warnings that are about slots."""
    return [one for one in warnings if one.startswith(LACK)]


def waiting(of_it: str) -> str:
    """What becomes of the trials of a slot that no node can hold; `of_it` says which they are (empty: the others)."""
    return f"trials of {of_it} wait until such a node joins" if of_it else "its trials wait until such a node joins"
