"""Writes of resolutions: begun, grown by a round with the extension that trains it, and ended."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from orchestrator.record.database import FencedAccess
from orchestrator.record.existence import require_sweep
from orchestrator.record.reads.resolutions import GoingResolution
from orchestrator.record.schema import request, resolution, trial
from orchestrator.record.writes.changes import note
from orchestrator.record.writes.text import MAX_MESSAGE, storable
from orchestrator.views.errors import ConflictError
from orchestrator.views.evidence import ResolutionBudget, ResolutionView
from orchestrator.views.runs import ChangeKind

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
