"""Expanding queued sweeps as a conductor does, where a test has the store and no conductor."""

from orchestrator.plan import grid
from orchestrator.record.store import Store, Writer
from orchestrator.record.sweeps import PlanRows
from orchestrator.spec.spec import Spec
from workers import catalog


def expand_queued(store: Store, writer: Writer) -> None:
    """The trials of every queued sweep."""
    for queued in store.sweeps.queued():
        spec = Spec.model_validate(queued.spec)
        plan = grid.expand(spec, catalog.load())
        rows = PlanRows(plan.cells, plan.candidates, list(plan.trials()))
        writer.sweeps.start(queued.id, rows, spec.slot, spec.fresh)
