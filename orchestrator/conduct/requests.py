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
from orchestrator.plan.edit import with_seeds
from orchestrator.plan.grid import Contents, extension
from orchestrator.plan.validated import read
from orchestrator.publish import papers
from orchestrator.publish.tables.resolution import Added, ResolutionStep, resolution_step
from orchestrator.publish.verdicts import judge
from orchestrator.record.database import REFUSED
from orchestrator.record.figure_files import FigureFiles
from orchestrator.record.mlflow.mirror import Mirror
from orchestrator.record.requests import PendingRequest
from orchestrator.record.resolutions import GoingResolution, NewResolution
from orchestrator.record.store import Store, Writer
from orchestrator.record.transitions import Touched
from orchestrator.spec.spec import Spec
from orchestrator.views.errors import FOR_ALL, ConflictError, MetricsweepError, NotFoundError
from orchestrator.views.evidence import ResolutionBudget, ResolutionRound, ResolutionView
from orchestrator.views.runs import QuerySource, SweepOutcomes
from orchestrator.views.states import SweepState, TrialState
from workers.catalog import Catalog

log = logging.getLogger(__name__)


class Resolutions:
    """Follows them by what the database says: a conductor that comes after goes on where the last one was."""

    def __init__(self, store: Store, writer: Writer, catalog: Catalog, queries: QuerySource) -> None:
        self._store, self._writer, self._catalog, self._queries = store, writer, catalog, queries

    def begin(self, asked: PendingRequest) -> str:
        """Carry out the request for one; raises ConflictError."""
        budget = ResolutionBudget.model_validate(asked.arguments.get("budget") or {})
        table = str(asked.arguments.get("table", ""))
        self._writer.resolutions.begin(NewResolution(asked.sweep, asked.id, table, budget, asked.actor))
        return f"table {table} is resolved: {budget.said}"

    def halt(self, asked: PendingRequest) -> str:
        """End what goes on, as somebody asked; what its last round trains goes on."""
        going = self._store.resolutions.going(asked.sweep)
        why = f"ended by request {asked.id}"
        latest = self._store.resolutions.latest(asked.sweep)
        if not going and (latest is None or latest.said != why):  # else it was ended before a crash
            raise ConflictError(f"no resolution of sweep {asked.sweep} goes on")
        for one in going:
            self._writer.resolutions.end(one, why, self._closed(one))
        return "no further round"

    def advance(self) -> bool:
        """Give each whose round has ended the next one; whether anything was asked to be trained."""
        grown = False
        for going in self._store.resolutions.going():
            with about(sweep=going.sweep):
                try:
                    if self._store.resolutions.at_rest(going.sweep):
                        grown |= self._advance(going)
                except FOR_ALL:
                    raise
                except Exception as error:  # whatever one fails in, others go on
                    said = str(error) if isinstance(error, MetricsweepError) else f"{type(error).__name__}: {error}"
                    log.exception("the resolution of sweep %d cannot go on", going.sweep)
                    self._writer.resolutions.end(going, f"cannot go on: {said}")
        return grown

    def _advance(self, one: GoingResolution) -> bool:
        outcomes = self._store.outcomes.of(one.sweep)
        step = self._step(one, outcomes)
        report = _reported(one, step)
        stopped = self._stopped(one, outcomes)
        coming = step.next(len(report.rounds) + 1, one.budget)
        if stopped or not coming.cells:
            why = stopped or _end(step, coming)
            self._writer.resolutions.end(one, why, _final(report, step))
            log.info("the resolution of sweep %d ends: %s", one.sweep, why)
            return False
        arguments = self._wider(one.sweep, step, coming)
        report = report.model_copy(update={
            "before": report.before or step.comparisons(),
            "rounds": [*report.rounds, coming], "trials": report.trials + coming.trials,
        })  # fmt: skip
        asked = self._writer.resolutions.grow(one, report, arguments)
        log.info("round %d of sweep %d: %d trials, by request %d", coming.number, one.sweep, coming.trials, asked)
        return True

    def _closed(self, one: GoingResolution) -> ResolutionView | None:
        """The report of one that is ended on request; none where nothing can be said any more."""
        try:
            step = self._step(one, self._store.outcomes.of(one.sweep))
        except MetricsweepError:
            return None
        return _final(_reported(one, step), step)

    def _step(self, one: GoingResolution, outcomes: SweepOutcomes) -> ResolutionStep:
        looks = self._store.requests.looks(one.sweep)
        at = one.position
        added = None if at is None else Added(at, self._store.resolutions.lost_hours(one.sweep, at))
        outcomes = replace(outcomes, queries=self._queries)
        return resolution_step(outcomes, one.table, looks, self._catalog, one.budget, added)

    def _stopped(self, one: GoingResolution, outcomes: SweepOutcomes) -> str:
        """Why there is to be no further round, whatever is open."""
        if one.report.rounds and (why := self._broken(one, one.report.rounds[-1], outcomes)):
            return why
        cancelled = self._store.requests.cancellation(one.sweep, after=one.report.request or 0)
        return "" if cancelled is None else f"the sweep was cancelled by request {cancelled}"

    def _broken(self, one: GoingResolution, last: ResolutionRound, outcomes: SweepOutcomes) -> str:
        """Why the last round forbids another one."""
        asked = self._store.requests.get(last.request or 0)
        if asked.state == "refused":
            return f"round {last.number} was refused: {asked.outcome}"
        first = self._store.requests.looks(one.sweep)[-1].position
        states = {trial.state for trial in outcomes.trials if trial.position >= first}
        if TrialState.CANCELLED in states:
            return f"trials of round {last.number} were cancelled"
        return "" if TrialState.FINISHED in states else f"no trial of round {last.number} finished"

    def _wider(self, sweep: int, step: ResolutionStep, coming: ResolutionRound) -> dict[str, Any]:
        view = self._store.sweeps.get(sweep)
        seeds = {one.cell: one.seeds for one in coming.cells}
        text = with_seeds(view.text.encode(), Spec.model_validate(view.spec), step.labels, seeds)
        checked = read(text, self._catalog, papers.PrintedLines())
        return {"text": text.decode("utf-8-sig"), "spec": checked.spec.model_dump(mode="json")}


def _reported(one: GoingResolution, step: ResolutionStep) -> ResolutionView:
    return one.report.model_copy(update={"hours_spent": step.spent, "saved": step.saved()})


def _final(report: ResolutionView, step: ResolutionStep) -> ResolutionView:
    found = step.comparisons()
    return report.model_copy(update={"before": report.before or found, "after": found})


def _end(step: ResolutionStep, coming: ResolutionRound) -> str:
    if not coming.open:
        return step.said()
    return f"{step.said()}: {coming.left_out[0].why}"  # what is open and given nothing is left out


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
        self.resolutions = Resolutions(store, writer, catalog, judge.source(FigureFiles(store, storage).arrays_of))
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
