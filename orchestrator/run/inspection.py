"""An inspection of this machine's data root: calls the inspecting function by its name."""

import importlib
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import cast

from orchestrator.run.attempt import Workplace
from orchestrator.views.operations import Inspected, Node
from workers.catalog import Finding, Inspect, Need
from workers.data.scratch import claim_code_caches, scratch


def inspect(workplace: Workplace, needs: Sequence[Need]) -> list[Finding]:
    """What this machine's data root has of each need."""
    claim_code_caches()
    module, _, function = (workplace.inspect or "").partition(":")
    inspecting = cast("Inspect", getattr(importlib.import_module(module), function))
    return inspecting(needs, workplace.data_root, scratch(), workplace.parts)


def seen(machine: Node, needs: Sequence[Need], found_by: Callable[[], Iterable[Finding]]) -> list[Inspected]:
    """What `found_by` gives on a machine; `unknown` where it fails, so that trainings say themselves what is wrong."""
    try:
        found = list(found_by())
    except Exception as error:  # whatever keeps it from looking is no reason to hold a training
        said = f"it could not be looked at: {type(error).__name__}: {error}"[:1000]
        found = [Finding(state="unknown", said=said)] * len(needs)
    now = datetime.now(UTC)
    return [Inspected(machine.uid, machine.host, need, one, now) for need, one in zip(needs, found, strict=True)]
