"""Resolutions: adding seeds until a table's comparisons are decided."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa

from orchestrator.record import schema
from orchestrator.record.changes import note
from orchestrator.record.columns import MAX_MESSAGE, storable
from orchestrator.record.database import Access, FencedAccess, require_sweep
from orchestrator.record.schema import request, resolution, trial
from orchestrator.views.errors import ConflictError
from orchestrator.views.evidence import ResolutionBudget, ResolutionView
from orchestrator.views.runs import ChangeKind
from orchestrator.views.states import SWEEP_ENDED, TRIAL_ACTIVE, TRIAL_ENDED, TrialState

_AWAITED = ("extend", "retry", "delete", "cancel", "halt")
"""Requests by which a next round would be another one, or none."""


@dataclass(frozen=True, slots=True)
class GoingResolution:
    """What the conductor follows."""

    id: int
    sweep: int
    table: str
    budget: ResolutionBudget
    actor: str | None
    begun: datetime
    position: int | None  # of the first trial that it added
    report: ResolutionView  # as it stood after its last round was planned


class ResolutionReader(Access):
    """Reads resolutions."""

    def latest(self, sweep: int) -> ResolutionView | None:
        """The last one that was asked of a sweep; none where nobody did. NotFoundError where there is no sweep."""
        query = sa.select(resolution).where(resolution.c.sweep_id == sweep).order_by(resolution.c.id.desc()).limit(1)
        with self._database.reading() as connection:
            row = connection.execute(query).first()
            if row is None:
                require_sweep(connection, sweep)
        return None if row is None else _view(row)

    def going(self, sweep: int | None = None) -> list[GoingResolution]:
        """Those that have not ended, of all sweeps or of one, the oldest first."""
        query = sa.select(resolution).where(resolution.c.ended.is_(None)).order_by(resolution.c.id)
        if sweep is not None:
            query = query.where(resolution.c.sweep_id == sweep)
        with self._database.reading() as connection:
            return [_going(row) for row in connection.execute(query)]

    def between_rounds(self, sweep: int) -> bool:
        """Whether a sweep has ended, and a resolution of it goes on: what is asked of it now is of its next round."""
        ended = sa.select(schema.sweep.c.id).where(schema.sweep.c.id == sweep, schema.sweep.c.state.in_(SWEEP_ENDED))
        with self._database.reading() as connection:
            return connection.execute(ended.join(resolution).where(resolution.c.ended.is_(None))).first() is not None

    def lost_hours(self, sweep: int, position: int) -> float:
        """What attempts took, by the clock, whose trials (from a position on) failed or were cancelled or pruned."""
        trial, attempt = schema.trial, schema.attempt
        its = sa.select(attempt.c.started, attempt.c.ended).join(
            trial, trial.c.training_id == attempt.c.training_id
        ).where(
            trial.c.sweep_id == sweep, trial.c.position >= position, trial.c.reused.is_(False),
            trial.c.state.in_(TRIAL_ENDED - {TrialState.FINISHED}), attempt.c.ended.is_not(None),
        )  # fmt: skip
        with self._database.reading() as connection:
            took = [max(timedelta(), row.ended - row.started) for row in connection.execute(its)]
        return sum(took, timedelta()) / timedelta(hours=1)

    def at_rest(self, sweep: int) -> bool:
        """Whether a sweep has ended, and nothing is asked that has to be carried out before a next round."""
        ended = sa.select(schema.sweep.c.id).where(schema.sweep.c.id == sweep, schema.sweep.c.state.in_(SWEEP_ENDED))
        active = sa.select(schema.trial.c.id).where(
            schema.trial.c.sweep_id == sweep, schema.trial.c.state.in_(TRIAL_ACTIVE)
        )
        asked = sa.select(schema.request.c.id).where(
            schema.request.c.sweep_id == sweep,
            schema.request.c.applied.is_(None),
            schema.request.c.kind.in_(_AWAITED),
        )
        with self._database.reading() as connection:
            if connection.execute(ended).first() is None:
                return False
            return all(connection.execute(one.limit(1)).first() is None for one in (active, asked))


def _going(row: Any) -> GoingResolution:
    return GoingResolution(
        id=row.id, sweep=row.sweep_id, table=row.name, budget=ResolutionBudget.model_validate(row.budget),
        actor=row.actor, begun=row.begun, position=row.position, report=_view(row),
    )  # fmt: skip


def _view(row: Any) -> ResolutionView:
    going = row.ended is None
    return ResolutionView(
        sweep=row.sweep_id, table=row.name, budget=row.budget, state="going" if going else "ended",
        said=row.outcome or "", actor=row.actor, request=row.request, begun=row.begun, ended=row.ended, **row.report,
    )  # fmt: skip


_REPORTED = {"before", "rounds", "after", "trials", "hours_spent", "saved"}


@dataclass(frozen=True, slots=True)
class NewResolution:
    """What a client asked for."""

    sweep: int
    request: int
    table: str
    budget: ResolutionBudget
    actor: str | None


class ResolutionWriter(FencedAccess):
    """Each step is one transaction, and may be done a second time after a crash."""

    def begin(self, new: NewResolution) -> None:
        """Begin one; raises ConflictError while another of the sweep goes on."""
        going = sa.select(resolution.c.request).where(
            resolution.c.sweep_id == new.sweep, resolution.c.ended.is_(None), resolution.c.request != new.request
        )
        known = sa.select(resolution.c.id).where(resolution.c.request == new.request)
        with self._database.writing() as connection:
            require_sweep(connection, new.sweep)
            if (other := connection.execute(going).scalar()) is not None:
                raise ConflictError(f"the resolution of request {other} goes on; end it first")
            if connection.execute(known).first() is None:
                values = {
                    "sweep_id": new.sweep, "request": new.request, "name": new.table, "actor": new.actor,
                    "budget": new.budget.model_dump(mode="json"), "begun": datetime.now(UTC), "report": {},
                }  # fmt: skip
                connection.execute(sa.insert(resolution).values(values))
            note(connection, ChangeKind.SWEEP, new.sweep, new.sweep)

    def grow(self, going: GoingResolution, report: ResolutionView, arguments: Mapping[str, Any]) -> int:
        """Ask for the extension that trains the last round of a report, and keep both; the request's id.

        Together, so that after a crash neither a round is trained twice nor one is counted that nobody trains.
        """
        now = datetime.now(UTC)
        position = sa.select(sa.func.coalesce(sa.func.max(trial.c.position), -1) + 1)
        with self._database.writing() as connection:
            values = {
                "kind": "extend", "sweep_id": going.sweep, "actor": going.actor, "created": now,
                "arguments": dict(arguments),
            }  # fmt: skip
            asked = int(connection.execute(sa.insert(request).values(values).returning(request.c.id)).scalar_one())
            first = going.position
            if first is None:
                first = connection.execute(position.where(trial.c.sweep_id == going.sweep)).scalar_one()
            last = report.rounds[-1].model_copy(update={"request": asked, "begun": now})
            kept = report.model_copy(update={"rounds": [*report.rounds[:-1], last]})
            its = sa.update(resolution).where(resolution.c.id == going.id, resolution.c.ended.is_(None))
            if connection.execute(its.values(position=first, report=_kept(kept))).rowcount != 1:
                raise ConflictError(f"the resolution of sweep {going.sweep} has ended")
            note(connection, ChangeKind.REQUEST, going.sweep, asked)
            note(connection, ChangeKind.SWEEP, going.sweep, going.sweep)
            return asked

    def end(self, going: GoingResolution, outcome: str, report: ResolutionView | None = None) -> None:
        """End one, with what came of it."""
        values: dict[str, Any] = {"ended": datetime.now(UTC), "outcome": storable(outcome)[:MAX_MESSAGE]}
        if report is not None:
            values["report"] = _kept(report)
        with self._database.writing() as connection:
            its = sa.update(resolution).where(resolution.c.id == going.id, resolution.c.ended.is_(None))
            connection.execute(its.values(values))
            note(connection, ChangeKind.SWEEP, going.sweep, going.sweep)


def _kept(report: ResolutionView) -> dict[str, Any]:
    return report.model_dump(mode="json", include=_REPORTED)
