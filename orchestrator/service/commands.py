"""What a client can ask to be done with a sweep, and what became of it; the conductor does it."""

from collections.abc import Mapping
from typing import Any, Literal

from orchestrator.plan.extension import extension
from orchestrator.plan.needs import Contents
from orchestrator.plan.validated import read, refresh
from orchestrator.publish import papers
from orchestrator.record.store import Store
from orchestrator.record.writes.backlog import ADDED
from orchestrator.record.writes.submissions import RequestKind
from orchestrator.service.submissions import require_disk_room
from orchestrator.settings import Settings
from orchestrator.views.errors import ConflictError, NotFoundError
from orchestrator.views.lifecycle import SweepState
from orchestrator.views.pages import Page
from orchestrator.views.requests import RequestView
from workers.catalog import Catalog


class SweepCommands:
    """Appends requests."""

    def __init__(self, settings: Settings, store: Store, catalog: Catalog) -> None:
        self._settings, self._store, self._catalog = settings, store, catalog

    def cancel(
        self, sweep: int, actor: str | None = None, trial: int | None = None, cell: int | None = None
    ) -> RequestView:
        """Ask for a sweep's trials, those of a cell, or one of them to be cancelled; ConflictError where all ended."""
        arguments = self._of_cell(sweep, cell)
        self._store.requests.require_going(sweep, "cancelled", trial, cell)
        return self._ask("cancel", sweep, trial, actor, arguments)

    def retry(
        self, sweep: int, actor: str | None = None, trial: int | None = None, cell: int | None = None, what: str = ""
    ) -> RequestView:
        """Ask for trials without a result to be tried again; `what`: failed, all, or empty: failed and cancelled."""
        arguments = self._of_cell(sweep, cell) | ({"what": what} if what else {})
        return self._ask("retry", sweep, trial, actor, arguments)

    def pause(self, sweep: int, actor: str | None = None) -> RequestView:
        """Ask that no more of a sweep be started; ConflictError when it has ended."""
        return self._queue("pause", sweep, actor)

    def resume(self, sweep: int, actor: str | None = None) -> RequestView:
        """Ask that a paused sweep go on; ConflictError when it has ended."""
        return self._queue("resume", sweep, actor)

    def prioritize(self, sweep: int, priority: int, actor: str | None = None) -> RequestView:
        """Ask that a sweep be drawn before those of lower priority."""
        return self._ask("priority", sweep, None, actor, {"priority": priority})

    def extend(self, sweep: int, body: bytes, actor: str | None = None) -> RequestView:
        """Ask that a sweep grow to a wider spec; InvalidSpecError when that lacks or changes what there is.

        NumbersChangedError where the sweep was trained under older versions, ConflictError where too many trials of the
        owner would wait, UnavailableError while a disk has too little room.
        """
        refresh(self._catalog)
        contents = Contents.of(self._store.data.planned_content(sweep), self._store.data.findings())
        checked = read(body, self._catalog, papers.PrintedLines(), contents)
        spec, text = checked.spec.model_dump(mode="json"), body.decode("utf-8-sig")
        former = self._store.sweeps.get(sweep)
        if former.state is SweepState.QUEUED:
            raise ConflictError(f"sweep {sweep} is not expanded yet; try again in a moment")
        wider = extension(self._store.trials.keys(sweep), checked.plan, text, spec, self._catalog, former.spec)
        self._store.collection.require_kept(wider.measured, checked.spec.fresh)
        require_disk_room(self._settings)
        return self._ask("extend", sweep, None, actor, {"text": text, "spec": spec, ADDED: len(wider.trials)})

    def delete(self, sweep: int, confirm: str, actor: str | None = None) -> RequestView:
        """Ask that an ended sweep be deleted with what only it uses; `confirm` is its name, else ConflictError."""
        found = self._store.sweeps.get(sweep)
        if confirm != found.name:
            raise ConflictError(f"confirm the deletion of sweep {sweep} by its name, {found.name!r}")
        self._store.sweeps.deletion(sweep)
        return self._ask("delete", sweep, None, actor)

    def mirror(self, sweep: int, actor: str | None = None) -> RequestView:
        """Ask that MLflow be told of a whole sweep anew."""
        return self._ask("mirror", sweep, None, actor)

    def request(self, number: int) -> RequestView:
        """What became of one request."""
        return self._store.requests.get(number)

    def requests(self, sweep: int, cursor: str | None, limit: int) -> Page[RequestView]:
        """What was asked of a sweep, newest first, also of one that was deleted."""
        return self._store.requests.page(sweep, cursor, limit)

    def _ask(
        self,
        kind: RequestKind,
        sweep: int,
        trial: int | None,
        actor: str | None,
        arguments: Mapping[str, Any] | None = None,
    ) -> RequestView:
        most = self._settings.owner_trials
        return self._store.requests.get(self._store.submissions.add_request(kind, sweep, trial, actor, arguments, most))

    def _queue(self, kind: Literal["pause", "resume"], sweep: int, actor: str | None) -> RequestView:
        self._store.requests.require_going(sweep, f"{kind}d")
        return self._ask(kind, sweep, None, actor)

    def _of_cell(self, sweep: int, cell: int | None) -> dict[str, Any]:
        if cell is None:
            return {}
        if not 0 <= cell < self._store.sweeps.cell_count(sweep):
            raise NotFoundError(f"no cell {cell} in sweep {sweep}")
        return {"cell": cell}
