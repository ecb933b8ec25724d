"""What clients asked for, carried out by the conductor, in order."""

import logging
from pathlib import Path

from orchestrator.errors import FencedError, MetricsweepError, UnavailableError
from orchestrator.extension import extension
from orchestrator.plan import grid
from orchestrator.plan.spec import Spec
from orchestrator.record.store import PendingRequest, Store
from orchestrator.record.tracker import Tracker
from orchestrator.storage import opened
from workers.catalog import Catalog

log = logging.getLogger(__name__)


class Requests:
    """Applies requests; each may be applied a second time after a crash, and then changes nothing more."""

    def __init__(self, store: Store, catalog: Catalog, tracker: Tracker | None, storage: Path | str) -> None:
        self._store, self._catalog, self._tracker, self._storage = store, catalog, tracker, opened(storage)

    def apply(self, fence: int, asked: PendingRequest) -> bool:
        """Carry out a request and note what became of it; False where it has to wait, and is to be applied later."""
        try:
            outcome = self._apply(fence, asked)
        except (FencedError, UnavailableError):
            raise
        except (MetricsweepError, ValueError, LookupError) as error:
            # Whatever one request is wrong in, those behind it are served.
            outcome = f"refused: {error}"
            log.warning("request %d (%s of sweep %d) %s", asked.id, asked.kind, asked.sweep, outcome)
        if outcome is None:
            return False
        self._store.applied(fence, asked.id, outcome)
        return True

    def _apply(self, fence: int, asked: PendingRequest) -> str | None:
        act = {
            "cancel": self._cancel, "retry": self._retry, "pause": self._pause, "resume": self._resume,
            "priority": self._prioritize, "extend": self._extend, "delete": self._delete,
        }.get(asked.kind)  # fmt: skip
        return act(fence, asked) if act else f"unknown to this version: {asked.kind}"

    def _cancel(self, fence: int, asked: PendingRequest) -> str:
        return f"{self._store.cancel(fence, asked.sweep, asked.trial, asked.arguments.get('cell'))} trials"

    def _retry(self, fence: int, asked: PendingRequest) -> str:
        cell, what = asked.arguments.get("cell"), asked.arguments.get("what", "")
        return f"{self._store.retry(fence, asked.sweep, asked.trial, cell, what)} trials"

    def _pause(self, fence: int, asked: PendingRequest) -> str:
        return "paused" if self._store.pause(fence, asked.sweep) else "was not running"

    def _resume(self, fence: int, asked: PendingRequest) -> str:
        return "resumed" if self._store.resume(fence, asked.sweep) else "was not paused"

    def _prioritize(self, fence: int, asked: PendingRequest) -> str:
        self._store.prioritize(fence, asked.sweep, int(asked.arguments["priority"]))
        return "set"

    def _extend(self, fence: int, asked: PendingRequest) -> str:
        spec = Spec.model_validate(asked.arguments["spec"])
        plan = grid.expand(spec, self._catalog)
        places = self._store.places(asked.sweep)
        # It was checked when it came, but another extension may have been quicker: then it is refused.
        wider = extension(places, plan, asked.arguments["text"], asked.arguments["spec"])
        self._store.extend_sweep(fence, asked.sweep, wider)
        return f"{len(wider.trials)} trials added"

    def _delete(self, fence: int, asked: PendingRequest) -> str | None:
        sweep = asked.sweep
        doomed = self._store.deletion(sweep)
        if doomed is None:
            return "was gone"
        if doomed.busy:
            return None  # what is being stopped would write its last checkpoint into a folder that nobody removes
        if self._tracker is not None and doomed.experiment is not None:
            try:
                self._tracker.remove(doomed.experiment)
            except MetricsweepError as error:  # what MLflow still shows is no reason to keep the rest
                log.warning("the experiment %s of sweep %d stays: %s", doomed.experiment, sweep, error)
        left = self._clear(doomed.trainings)
        self._store.delete_sweep(fence, sweep)
        log.info("sweep %d deleted, with %d trainings", sweep, len(doomed.trainings))
        return f"deleted{left}"

    def _clear(self, trainings: tuple[str, ...]) -> str:
        """Remove what trainings keep in the storage; gives what to say where that is away, which delays nobody."""
        for done, training in enumerate(trainings):
            try:
                self._storage.remove(training)
            except OSError as error:
                left = trainings[done:]
                log.warning("the storage keeps the folders %s: %s", ", ".join(left), error)
                return f", but the storage keeps the folders of {len(left)} trainings: {error}"[:500]
        return ""
