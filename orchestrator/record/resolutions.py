"""Stores resolutions, which add seeds to a sweep until the comparisons of its table are decided."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa

from orchestrator.record import schema
from orchestrator.record.changes import note
from orchestrator.record.columns import shortened
from orchestrator.record.database import Access, FencedAccess, next_position, require_sweep
from orchestrator.record.schema import attempt, request, resolution, trial
from orchestrator.views.errors import ConflictError
from orchestrator.views.evidence import ResolutionBudget, ResolutionView
from orchestrator.views.runs import ChangeKind
from orchestrator.views.states import SWEEP_ENDED, TRIAL_ACTIVE, TRIAL_ENDED, TrialState

_AWAITED = ("extend", "retry", "delete", "cancel", "halt")
"""Requests that change or prevent the next round."""


@dataclass(frozen=True, slots=True)
class GoingResolution:
    """A resolution of a sweep that has not ended."""

    id: int
    sweep: int
    table: str
    budget: ResolutionBudget
    actor: str | None
    begun: datetime
    position: int | None  # of the first trial that it added
    report: ResolutionView  # as of its last planned round


class ResolutionReader(Access):
    """Reads resolutions, which add seeds to sweeps in rounds."""

    def latest(self, sweep: int) -> ResolutionView | None:
        """The latest resolution of a sweep, or `None`; raises NotFoundError if there is no such sweep."""
        query = sa.select(resolution).where(resolution.c.sweep_id == sweep).order_by(resolution.c.id.desc()).limit(1)
        with self._database.reading() as connection:
            row = connection.execute(query).first()
            if row is None:
                require_sweep(connection, sweep)
        return None if row is None else _view(row)

    def going(self, sweep: int | None = None) -> list[GoingResolution]:
        """The resolutions that have not ended, of all sweeps or of one sweep, oldest first."""
        query = sa.select(resolution).where(resolution.c.ended.is_(None)).order_by(resolution.c.id)
        if sweep is not None:
            query = query.where(resolution.c.sweep_id == sweep)
        return [
            GoingResolution(
                id=row.id, sweep=row.sweep_id, table=row.name, budget=ResolutionBudget.model_validate(row.budget),
                actor=row.actor, begun=row.begun, position=row.position, report=_view(row),
            )
            for row in self._rows(query)
        ]  # fmt: skip

    def between_rounds(self, sweep: int) -> bool:
        """Whether a sweep waits for the next round of its resolution; requests then apply to that round."""
        return self._exists(_ended(sweep).join(resolution).where(resolution.c.ended.is_(None)))

    def lost_hours(self, sweep: int, position: int) -> float:
        """The hours that a resolution's trials used without result: failed, cancelled or pruned.

        `position`: of the first trial that the resolution added.
        """
        query = (
            sa.select(attempt.c.started, attempt.c.ended)
            .join(trial, trial.c.training_id == attempt.c.training_id)
            .where(trial.c.sweep_id == sweep, trial.c.position >= position, trial.c.reused.is_(False))
            .where(trial.c.state.in_(TRIAL_ENDED - {TrialState.FINISHED}), attempt.c.ended.is_not(None))
        )
        took = [max(timedelta(), row.ended - row.started) for row in self._rows(query)]
        return sum(took, timedelta()) / timedelta(hours=1)

    def at_rest(self, sweep: int) -> bool:
        """Whether the next round of a sweep's resolution may begin: the sweep and all requests for it have ended."""
        active = sa.select(trial.c.id).where(trial.c.sweep_id == sweep, trial.c.state.in_(TRIAL_ACTIVE))
        waiting = sa.select(request.c.id).where(
            request.c.sweep_id == sweep, request.c.applied.is_(None), request.c.kind.in_(_AWAITED)
        )
        with self._database.reading() as connection:
            if connection.execute(_ended(sweep)).first() is None:
                return False
            return all(connection.execute(query.limit(1)).first() is None for query in (active, waiting))


def _ended(sweep: int) -> sa.Select[tuple[int]]:
    return sa.select(schema.sweep.c.id).where(schema.sweep.c.id == sweep, schema.sweep.c.state.in_(SWEEP_ENDED))


def _view(row: Any) -> ResolutionView:
    going = row.ended is None
    return ResolutionView(
        sweep=row.sweep_id, table=row.name, budget=row.budget, state="going" if going else "ended",
        summary=row.outcome or "", actor=row.actor, request=row.request, begun=row.begun, ended=row.ended, **row.report,
    )  # fmt: skip


_REPORTED = {"before", "rounds", "after", "trials", "hours_spent", "saved"}


class ResolutionWriter(FencedAccess):
    """Writes resolutions. Each method is one idempotent transaction."""

    def begin(self, sweep: int, request_id: int, table: str, budget: ResolutionBudget, actor: str | None) -> None:
        """Begin a requested resolution of a sweep; raises ConflictError if the sweep has another."""
        going = sa.select(resolution.c.request).where(
            resolution.c.sweep_id == sweep, resolution.c.ended.is_(None), resolution.c.request != request_id
        )
        known = sa.select(resolution.c.id).where(resolution.c.request == request_id)
        with self._database.writing() as connection:
            require_sweep(connection, sweep)
            if (other := connection.scalar(going)) is not None:
                raise ConflictError(
                    f"the resolution of request {other} is still active; end it first with `resolution SWEEP --halt`"
                )
            if connection.execute(known).first() is None:
                values = {
                    "sweep_id": sweep, "request": request_id, "name": table, "actor": actor,
                    "budget": budget.model_dump(mode="json"), "begun": datetime.now(UTC), "report": {},
                }  # fmt: skip
                connection.execute(sa.insert(resolution).values(values))
            note(connection, ChangeKind.SWEEP, sweep, sweep)

    def grow(self, going: GoingResolution, report: ResolutionView, arguments: Mapping[str, Any]) -> int:
        """Request the extension that trains the next round, and store the report; returns the request's id.

        The next round is the last of `report`. In one transaction, so that after a crash no round is trained twice or
        lost.
        """
        now = datetime.now(UTC)
        with self._database.writing() as connection:
            values = {
                "kind": "extend", "sweep_id": going.sweep, "actor": going.actor, "created": now,
                "arguments": dict(arguments),
            }  # fmt: skip
            request_id = int(connection.execute(sa.insert(request).values(values).returning(request.c.id)).scalar_one())
            first = next_position(connection, going.sweep) if going.position is None else going.position
            last = report.rounds[-1].model_copy(update={"request": request_id, "begun": now})
            kept = report.model_copy(update={"rounds": [*report.rounds[:-1], last]})
            if not self._update(connection, going, {"position": first, "report": _kept(kept)}):
                raise ConflictError(f"the resolution of sweep {going.sweep} has ended")
            note(connection, ChangeKind.REQUEST, going.sweep, request_id)
            note(connection, ChangeKind.SWEEP, going.sweep, going.sweep)
            return request_id

    def end(self, going: GoingResolution, outcome: str, report: ResolutionView | None = None) -> None:
        """End a resolution of a sweep, with its outcome and final report."""
        values: dict[str, Any] = {"ended": datetime.now(UTC), "outcome": shortened(outcome)}
        if report is not None:
            values["report"] = _kept(report)
        with self._database.writing() as connection:
            self._update(connection, going, values)
            note(connection, ChangeKind.SWEEP, going.sweep, going.sweep)

    def _update(self, connection: sa.Connection, going: GoingResolution, values: dict[str, Any]) -> bool:
        its = sa.update(resolution).where(resolution.c.id == going.id, resolution.c.ended.is_(None))
        return connection.execute(its.values(values)).rowcount == 1


def _kept(report: ResolutionView) -> dict[str, Any]:
    return report.model_dump(mode="json", include=_REPORTED)
