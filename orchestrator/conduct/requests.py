"""What clients asked for, carried out by the conductor, in order."""

import logging
from pathlib import Path

from orchestrator.conduct.collection import Collection
from orchestrator.conduct.renewal import Renewal
from orchestrator.conduct.resolutions import Resolutions
from orchestrator.host.logs import about
from orchestrator.host.storage import opened
from orchestrator.host.tracing import span
from orchestrator.plan import grid
from orchestrator.plan.grid import Contents, extension
from orchestrator.publish.verdicts import judgement
from orchestrator.record.database import REFUSED
from orchestrator.record.figure_files import FigureFiles
from orchestrator.record.mlflow.mirror import Mirror
from orchestrator.record.requests import PendingRequest
from orchestrator.record.store import Store, Writer
from orchestrator.record.transitions import Touched
from orchestrator.spec.spec import Spec
from orchestrator.views.errors import FOR_ALL, ConflictError, MetricsweepError, NotFoundError
from orchestrator.views.states import SweepState
from workers.catalog import Catalog

log = logging.getLogger(__name__)


class Requests:
    """Applies requests; each may be applied a second time after a crash, and then changes nothing more."""

    def __init__(
        self,
        store: Store,
        writer: Writer,
        catalog: Catalog,
        mirror: Mirror | None,
        storage: Path | str,
        renewal: Renewal,
    ) -> None:
        self._store, self._writer, self._catalog, self._renewal = store, writer, catalog, renewal
        self._mirrored_by, self._storage = mirror, opened(storage)
        self._collection = Collection(store, writer, catalog, self._storage)
        self.resolutions = Resolutions(store, writer, catalog, judgement.source(FigureFiles(store, storage).arrays_of))
        """Those that go on."""

    def apply(self, asked: PendingRequest) -> bool:
        """Carry out a request and note what became of it; False where it has to wait, and is to be applied later."""
        with about(sweep=asked.sweep, trial=asked.trial, asked=asked.id), span("request", kind=asked.kind):
            return self._carried_out(asked)

    def _carried_out(self, asked: PendingRequest) -> bool:
        try:
            state = self._store.requests.require_standing(asked)
            if _needs_trials(asked) and asked.kind != "mirror":  # it may have waited, which a cancellation does not
                self._store.requests.require_not_overtaken(asked)
            outcome = None if state is SweepState.QUEUED and _needs_trials(asked) else self._apply(asked)
        except FOR_ALL:
            raise
        except MetricsweepError as error:
            outcome = f"{REFUSED}{error}"
            log.warning("request %d (%s of sweep %d) %s", asked.id, asked.kind, asked.sweep, outcome)
        except Exception as error:  # whatever one request is wrong in, those behind it are served
            outcome = f"{REFUSED}{type(error).__name__}: {error}"
            log.exception("request %d (%s of sweep %d) cannot be carried out", asked.id, asked.kind, asked.sweep)
        if outcome is None:
            return False
        self._writer.requests.applied(asked.id, outcome)
        return True

    def _apply(self, asked: PendingRequest) -> str | None:
        act = {
            "cancel": self._cancel, "retry": self._retry, "pause": self._pause, "resume": self._resume,
            "priority": self._prioritize, "extend": self._extend, "delete": self._delete,
            "collect": self._collection.carry_out, "mirror": self._mirror,
            "resolve": self.resolutions.begin, "halt": self.resolutions.halt,
        }.get(asked.kind)  # fmt: skip
        if act is None:
            raise ConflictError(f"this version knows no request of the kind {asked.kind!r}")
        return act(asked)

    def _cancel(self, asked: PendingRequest) -> str:
        cancelled = self._writer.trials.cancel(asked.sweep, asked.trial, asked.arguments.get("cell"))
        return f"{_touched(cancelled)} cancelled"

    def _retry(self, asked: PendingRequest) -> str:
        cell, what = asked.arguments.get("cell"), asked.arguments.get("what", "")
        outcome = f"{_touched(self._writer.trials.retry(asked.sweep, asked.trial, cell, what))} waiting again"
        renewed = self._renewal.renew().get(asked.sweep)  # what failed may be of an older release
        return f"{outcome}; {renewed}" if renewed else outcome

    def _pause(self, asked: PendingRequest) -> str | None:
        if self._writer.sweeps.pause(asked.sweep):
            return "paused"
        return None if self._store.resolutions.between_rounds(asked.sweep) else "was not running"

    def _resume(self, asked: PendingRequest) -> str | None:
        if self._writer.sweeps.resume(asked.sweep):
            return "resumed"
        return None if self._store.resolutions.between_rounds(asked.sweep) else "was not paused"

    def _prioritize(self, asked: PendingRequest) -> str:
        priority = int(asked.arguments["priority"])
        self._writer.sweeps.prioritize(asked.sweep, priority)
        return f"priority {priority}"

    def _extend(self, asked: PendingRequest) -> str:
        spec = Spec.model_validate(asked.arguments["spec"])
        contents = Contents.of(self._store.data.planned_content(asked.sweep), self._store.data.findings())
        plan = grid.expand(spec, self._catalog, contents)
        places = self._store.trials.keys(asked.sweep)
        # It was checked when it came, but another extension or a collection may have been quicker: then it is refused.
        wider = extension(places, plan, asked.arguments["text"], asked.arguments["spec"], self._catalog)
        self._store.collection.require_kept(wider.measured, spec.fresh)
        if contents.otherwise is not None:
            self._writer.data.note_content(asked.sweep, contents.of_spec(spec, self._catalog))
        self._writer.sweeps.extend(asked.sweep, wider, asked.id)
        added = f"{_trials(len(wider.trials))} added"
        if not wider.measured:
            return added
        return f"{added}, {_trials(len(wider.measured))} to have further metrics of the weights that they keep"

    def _mirror(self, asked: PendingRequest) -> str:
        """Only marks: whoever mirrors tells it, so that nobody else writes to MLflow meanwhile."""
        if self._mirrored_by is None:
            raise ConflictError("no MLflow is told of sweeps here, since METRICSWEEP_MLFLOW_URL names none")
        told = self._writer.outbox.tell_anew(asked.sweep)
        return f"MLflow is told of {told} runs anew"

    def _delete(self, asked: PendingRequest) -> str | None:
        sweep = asked.sweep
        doomed = self._store.sweeps.deletion(sweep)
        if doomed is None:
            raise NotFoundError(f"no sweep {sweep}")
        if doomed.busy:
            return None  # what is being stopped would write its last checkpoint into a folder that nobody removes
        left = self._clear(doomed.trainings)
        outcome = f"deleted{left}"
        self._writer.sweeps.delete(sweep, asked.id, outcome)
        if self._mirrored_by is not None:
            self._mirrored_by.note_deletion()
        log.info("sweep %d deleted, with %d trainings", sweep, len(doomed.trainings))
        return outcome

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


def _needs_trials(asked: PendingRequest) -> bool:
    """Whether a request is for a sweep all of whose trials are written: it waits until it is so expanded."""
    part = asked.trial is not None or asked.arguments.get("cell") is not None
    return part or asked.kind not in ("cancel", "delete", "priority", "collect")


def _trials(count: int) -> str:
    return "1 trial" if count == 1 else f"{count} trials"


def _evaluations(count: int) -> str:
    return "1 evaluation" if count == 1 else f"{count} evaluations"


def _touched(found: Touched) -> str:
    said = [_evaluations(found.evaluations)] if found.evaluations else []
    return " and ".join([_trials(found.trials), *said])
