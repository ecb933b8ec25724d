"""What a client can ask to be done with a sweep; the conductor does it."""

from abc import ABC, abstractmethod
from typing import Any, Literal

from orchestrator.checked import read
from orchestrator.errors import ConflictError, NotFoundError
from orchestrator.extension import extension
from orchestrator.lifecycle import SWEEP_ENDED, SweepState
from orchestrator.record.store import Store
from orchestrator.views import SweepView
from workers.catalog import Catalog


class Requesting(ABC):
    """The part of the service that appends requests."""

    _store: Store
    _catalog: Catalog

    @abstractmethod
    def sweep(self, sweep: int) -> SweepView:
        """One sweep whole."""

    def cancel(
        self, sweep: int, actor: str | None = None, trial: int | None = None, cell: int | None = None
    ) -> SweepView:
        """Ask for a sweep's trials, those of a cell, or one of them to be cancelled; the conductor does it."""
        self._store.add_request("cancel", sweep, trial, actor, self._of_cell(sweep, cell))
        return self.sweep(sweep)

    def retry(
        self, sweep: int, actor: str | None = None, trial: int | None = None, cell: int | None = None, what: str = ""
    ) -> SweepView:
        """Ask for trials without a result to be tried again; `what`: failed, all, or empty: failed and cancelled."""
        arguments = self._of_cell(sweep, cell) | ({"what": what} if what else {})
        self._store.add_request("retry", sweep, trial, actor, arguments)
        return self.sweep(sweep)

    def pause(self, sweep: int, actor: str | None = None) -> SweepView:
        """Ask that no more of a sweep be started; ConflictError when it has ended."""
        return self._queue("pause", sweep, actor)

    def resume(self, sweep: int, actor: str | None = None) -> SweepView:
        """Ask that a paused sweep go on; ConflictError when it has ended."""
        return self._queue("resume", sweep, actor)

    def prioritize(self, sweep: int, priority: int, actor: str | None = None) -> SweepView:
        """Ask that a sweep be drawn before those of lower priority."""
        self._store.add_request("priority", sweep, None, actor, {"priority": priority})
        return self.sweep(sweep)

    def extend(self, sweep: int, body: bytes, actor: str | None = None) -> SweepView:
        """Ask that a sweep grow to a wider spec; InvalidSpecError when that lacks or changes what there is."""
        checked = read(body, self._catalog)
        spec, text = checked.spec.model_dump(mode="json"), body.decode("utf-8-sig")
        if self.sweep(sweep).state is SweepState.QUEUED:
            raise ConflictError(f"sweep {sweep} is not expanded yet; try again in a moment")
        extension(self._store.places(sweep), checked.plan, text, spec)
        self._store.add_request("extend", sweep, None, actor, {"text": text, "spec": spec})
        return self.sweep(sweep)

    def delete(self, sweep: int, confirm: str, actor: str | None = None) -> None:
        """Ask that an ended sweep be deleted with what only it uses; `confirm` is its name, else ConflictError."""
        found = self._store.sweep(sweep)
        if confirm != found.name:
            raise ConflictError(f"confirm the deletion of sweep {sweep} by its name, {found.name!r}")
        self._store.deletion(sweep)
        self._store.add_request("delete", sweep, None, actor)

    def _queue(self, kind: Literal["pause", "resume"], sweep: int, actor: str | None) -> SweepView:
        state = self._store.sweep(sweep).state
        if state in SWEEP_ENDED:
            raise ConflictError(f"sweep {sweep} is {state}; only one that goes on can be paused or resumed")
        self._store.add_request(kind, sweep, None, actor)
        return self.sweep(sweep)

    def _of_cell(self, sweep: int, cell: int | None) -> dict[str, Any]:
        if cell is None:
            return {}
        if not 0 <= cell < self._store.cell_count(sweep):
            raise NotFoundError(f"no cell {cell} in sweep {sweep}")
        return {"cell": cell}
