"""Resolutions under way: after each round the table is judged, and what is still open is given further seeds."""

import logging
from dataclasses import replace
from typing import Any

from orchestrator.host.logs import about
from orchestrator.plan.edit import with_seeds
from orchestrator.plan.validated import read
from orchestrator.publish import papers
from orchestrator.publish.tables.resolution import Added, ResolutionStep, resolution_step
from orchestrator.record.requests import PendingRequest
from orchestrator.record.resolutions import GoingResolution, NewResolution
from orchestrator.record.store import Store, Writer
from orchestrator.spec.spec import Spec
from orchestrator.views.errors import FOR_ALL, ConflictError, MetricsweepError
from orchestrator.views.evidence import ResolutionBudget, ResolutionRound, ResolutionView
from orchestrator.views.runs import QuerySource, SweepOutcomes
from orchestrator.views.states import TrialState
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
