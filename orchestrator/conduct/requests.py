"""Carries out what clients requested, in order, and keeps resolutions going."""

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

from orchestrator.conduct.upkeep import Collection, Renewal
from orchestrator.host.logs import about
from orchestrator.host.storage import opened
from orchestrator.host.tracing import span
from orchestrator.plan import grid
from orchestrator.plan.check import read_spec
from orchestrator.plan.edit import with_seeds
from orchestrator.plan.grid import Contents, extension
from orchestrator.publish import papers
from orchestrator.publish.tables.resolution import Added, ResolutionStep, resolution_step
from orchestrator.publish.verdicts import judge
from orchestrator.record.database import REFUSED
from orchestrator.record.figure_files import FigureFiles
from orchestrator.record.mlflow.mirror import Mirror
from orchestrator.record.requests import PendingRequest
from orchestrator.record.resolutions import GoingResolution
from orchestrator.record.store import Store, Writer
from orchestrator.record.transitions import Touched
from orchestrator.spec.spec import Spec
from orchestrator.views.errors import FATAL, ConflictError, MetricsweepError, NotFoundError, reason
from orchestrator.views.evidence import ResolutionBudget, ResolutionRound, ResolutionView
from orchestrator.views.runs import QuerySource, SweepResults
from orchestrator.views.states import SweepState, TrialState
from workers.catalog import Catalog, counted

log = logging.getLogger(__name__)


class Requests:
    """Applies requests. Idempotent: a request that is applied again after a crash changes nothing."""

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
        self.resolutions = Resolutions(store, writer, catalog, judge.source(FigureFiles(store, storage).arrays_of))

    def apply(self, request: PendingRequest) -> bool:
        """Carry out a request and record its outcome; False if it has to wait and must be applied again."""
        subject = about(sweep=request.sweep, trial=request.trial, sweep_request=request.id)
        with subject, span("request", kind=request.kind):
            return self._carried_out(request)

    def _carried_out(self, request: PendingRequest) -> bool:
        try:
            state = self._store.requests.require_valid(request)
            if _needs_trials(request) and request.kind != "mirror":  # it may have waited; a cancellation does not wait
                self._store.requests.require_not_overtaken(request)
            outcome = None if state is SweepState.QUEUED and _needs_trials(request) else self._apply(request)
        except FATAL:
            raise
        except MetricsweepError as error:
            outcome = f"{REFUSED}{error}"
            log.warning("request %d (%s of sweep %d) %s", request.id, request.kind, request.sweep, outcome)
        except Exception as error:  # a fault of one request does not stop those after it
            outcome = f"{REFUSED}{reason(error)}"
            log.exception("request %d (%s of sweep %d) cannot be carried out", request.id, request.kind, request.sweep)
        if outcome is None:
            return False
        self._writer.requests.applied(request.id, outcome)
        return True

    def _apply(self, request: PendingRequest) -> str | None:
        act = {
            "cancel": self._cancel, "retry": self._retry, "pause": self._pause, "resume": self._resume,
            "priority": self._prioritize, "extend": self._extend, "delete": self._delete,
            "collect": self._collection.carry_out, "mirror": self._mirror,
            "resolve": self.resolutions.begin, "halt": self.resolutions.halt,
        }.get(request.kind)  # fmt: skip
        if act is None:
            raise ConflictError(f"this release does not know requests of the kind {request.kind!r}")
        return act(request)

    def _cancel(self, request: PendingRequest) -> str:
        cancelled = self._writer.trials.cancel(request.sweep, request.trial, request.arguments.get("cell"))
        return f"{_touched(cancelled)} cancelled"

    def _retry(self, request: PendingRequest) -> str:
        cell, what = request.arguments.get("cell"), request.arguments.get("what", "")
        outcome = f"{_touched(self._writer.trials.retry(request.sweep, request.trial, cell, what))} waiting again"
        renewed = self._renewal.renew().get(request.sweep)  # failed trials may be of an older release
        return f"{outcome}; {renewed}" if renewed else outcome

    def _pause(self, request: PendingRequest) -> str | None:
        if self._writer.sweeps.pause(request.sweep):
            return "paused"
        return None if self._store.resolutions.between_rounds(request.sweep) else "was not running"

    def _resume(self, request: PendingRequest) -> str | None:
        if self._writer.sweeps.resume(request.sweep):
            return "resumed"
        return None if self._store.resolutions.between_rounds(request.sweep) else "was not paused"

    def _prioritize(self, request: PendingRequest) -> str:
        priority = int(request.arguments["priority"])
        self._writer.sweeps.prioritize(request.sweep, priority)
        return f"priority {priority}"

    def _extend(self, request: PendingRequest) -> str:
        spec = Spec.model_validate(request.arguments["spec"])
        contents = Contents.of(self._store.data.planned_content(request.sweep), self._store.data.findings())
        plan = grid.expand(spec, self._catalog, contents)
        places = self._store.trials.keys(request.sweep)
        # Checked at the request already, but another extension or a collection may have come first.
        wider = extension(places, plan, request.arguments["text"], request.arguments["spec"], self._catalog)
        self._store.collection.require_kept(wider.measured, spec.fresh)
        if contents.otherwise is not None:
            self._writer.data.note_content(request.sweep, contents.of_spec(spec, self._catalog))
        self._writer.sweeps.extend(request.sweep, wider, request.id)
        added = f"{counted(len(wider.trials), 'trial')} added"
        if not wider.measured:
            return added
        measured = counted(len(wider.measured), "trial")
        return f"{added}, {measured} to have further metrics or figures of the weights that they keep"

    def _mirror(self, request: PendingRequest) -> str:
        """Mark the sweep's runs in the outbox: only the mirror's thread writes to MLflow."""
        if self._mirrored_by is None:
            raise ConflictError("sweeps are not mirrored to MLflow here: METRICSWEEP_MLFLOW_URL is not set")
        count = self._writer.outbox.mirror_again(request.sweep)
        return f"{counted(count, 'run')} to be mirrored to MLflow again"

    def _delete(self, request: PendingRequest) -> str | None:
        sweep = request.sweep
        doomed = self._store.sweeps.deletion(sweep)
        if doomed is None:
            raise NotFoundError(f"no sweep {sweep}")
        if doomed.busy:
            return None  # a training that is being stopped would write a checkpoint into a folder that stays
        left = self._clear(doomed.trainings)
        outcome = f"deleted{left}"
        self._writer.sweeps.delete(sweep, request.id, outcome)
        if self._mirrored_by is not None:
            self._mirrored_by.note_deletion()
        log.info("sweep %d deleted, with %d trainings", sweep, len(doomed.trainings))
        return outcome

    def _clear(self, trainings: tuple[str, ...]) -> str:
        """Remove the trainings' folders from the storage; returns what to add to the outcome if the storage is away."""
        for done, training in enumerate(trainings):
            try:
                self._storage.remove(training)
            except OSError as error:
                left = trainings[done:]
                log.warning("the storage keeps the folders %s: %s", ", ".join(left), error)
                return f", but the storage keeps the folders of {len(left)} trainings: {error}"[:500]
        return ""


class Resolutions:
    """Advances resolutions, which add seeds in rounds. All state is in the database."""

    def __init__(self, store: Store, writer: Writer, catalog: Catalog, queries: QuerySource) -> None:
        self._store, self._writer, self._catalog, self._queries = store, writer, catalog, queries

    def begin(self, request: PendingRequest) -> str:
        """Begin the resolution that a request asks for; raises ConflictError."""
        budget = ResolutionBudget.model_validate(request.arguments.get("budget") or {})
        table = str(request.arguments.get("table", ""))
        self._writer.resolutions.begin(request.sweep, request.id, table, budget, request.actor)
        return f"table {table} is resolved: {budget.summary}"

    def halt(self, request: PendingRequest) -> str:
        """End a sweep's resolution; the trials of its last round continue. Raises ConflictError."""
        going = self._store.resolutions.going(request.sweep)
        why = f"ended by request {request.id}"
        latest = self._store.resolutions.latest(request.sweep)
        if not going and (latest is None or latest.summary != why):  # otherwise it was ended before a crash
            raise ConflictError(f"sweep {request.sweep} has no active resolution")
        for one in going:
            self._writer.resolutions.end(one, why, self._closed(one))
        return "no further round"

    def advance(self) -> bool:
        """Plan the next round of each resolution whose round has ended; true if trials were requested."""
        grown = False
        for going in self._store.resolutions.going():
            with about(sweep=going.sweep):
                try:
                    if self._store.resolutions.at_rest(going.sweep):
                        grown |= self._advance(going)
                except FATAL:
                    raise
                except Exception as error:  # a fault of one resolution does not stop the others
                    log.exception("the resolution of sweep %d cannot go on", going.sweep)
                    self._writer.resolutions.end(going, f"cannot go on: {reason(error)}")
        return grown

    def _advance(self, going: GoingResolution) -> bool:
        results = self._store.trial_results.of(going.sweep)
        step = self._step(going, results)
        report = _reported(going, step)
        why = self._stopped(going, results)
        coming = step.next(len(report.rounds) + 1, going.budget)
        if why or not coming.cells:
            # An open comparison that gets no seeds is left out of the round.
            why = why or (f"{step.summary()}: {coming.left_out[0].why}" if coming.open else step.summary())
            self._writer.resolutions.end(going, why, _final(report, step))
            log.info("the resolution of sweep %d ends: %s", going.sweep, why)
            return False
        arguments = self._wider(going.sweep, step, coming)
        report = report.model_copy(update={
            "before": report.before or step.comparisons(),
            "rounds": [*report.rounds, coming], "trials": report.trials + coming.trials,
        })  # fmt: skip
        request = self._writer.resolutions.grow(going, report, arguments)
        log.info("round %d of sweep %d: %d trials, by request %d", coming.number, going.sweep, coming.trials, request)
        return True

    def _closed(self, going: GoingResolution) -> ResolutionView | None:
        """The report of a resolution that is ended by request; `None` if its table can no longer be built."""
        try:
            step = self._step(going, self._store.trial_results.of(going.sweep))
        except MetricsweepError:
            return None
        return _final(_reported(going, step), step)

    def _step(self, going: GoingResolution, results: SweepResults) -> ResolutionStep:
        looks = self._store.requests.looks(going.sweep)
        at = going.position
        added = None if at is None else Added(at, self._store.resolutions.lost_hours(going.sweep, at))
        results = replace(results, queries=self._queries)
        return resolution_step(results, going.table, looks, self._catalog, going.budget, added)

    def _stopped(self, going: GoingResolution, results: SweepResults) -> str:
        """Why there is no further round even if comparisons are open; empty if nothing prevents it."""
        if going.report.rounds and (why := self._broken(going, going.report.rounds[-1], results)):
            return why
        cancelled = self._store.requests.cancellation(going.sweep, after=going.report.request or 0)
        return "" if cancelled is None else f"the sweep was cancelled by request {cancelled}"

    def _broken(self, going: GoingResolution, last: ResolutionRound, results: SweepResults) -> str:
        """Why the last round prevents another one; empty if it does not."""
        request = self._store.requests.get(last.request or 0)
        if request.state == "refused":
            return f"round {last.number} was refused: {request.outcome}"
        first = self._store.requests.looks(going.sweep)[-1].position
        states = {trial.state for trial in results.trials if trial.position >= first}
        if TrialState.CANCELLED in states:
            return f"trials of round {last.number} were cancelled"
        return "" if TrialState.FINISHED in states else f"no trial of round {last.number} finished"

    def _wider(self, sweep: int, step: ResolutionStep, coming: ResolutionRound) -> dict[str, Any]:
        view = self._store.sweeps.get(sweep)
        seeds = {cell.cell: cell.seeds for cell in coming.cells}
        text = with_seeds(view.text.encode(), Spec.model_validate(view.spec), step.labels, seeds)
        checked = read_spec(text, self._catalog, papers.printed_lines(self._catalog.published))
        return {"text": text.decode("utf-8-sig"), "spec": checked.spec.model_dump(mode="json")}


def _reported(going: GoingResolution, step: ResolutionStep) -> ResolutionView:
    return going.report.model_copy(update={"hours_spent": step.spent, "saved": step.saved()})


def _final(report: ResolutionView, step: ResolutionStep) -> ResolutionView:
    found = step.comparisons()
    return report.model_copy(update={"before": report.before or found, "after": found})


def _needs_trials(request: PendingRequest) -> bool:
    """Whether a request waits until its sweep is expanded."""
    part = request.trial is not None or request.arguments.get("cell") is not None
    return part or request.kind not in ("cancel", "delete", "priority", "collect")


def _touched(found: Touched) -> str:
    evaluations = f" and {counted(found.evaluations, 'evaluation')}" if found.evaluations else ""
    return f"{counted(found.trials, 'trial')}{evaluations}"
