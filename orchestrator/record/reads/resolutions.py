"""Resolutions: the one of a sweep as clients see it, and those that go on."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from orchestrator.record import schema
from orchestrator.record.database import Access
from orchestrator.record.existence import require_sweep
from orchestrator.record.schema import resolution
from orchestrator.views.evidence import ResolutionBudget, ResolutionView
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
