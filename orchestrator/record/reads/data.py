"""What the machines' data roots have of what trainings need: the needs of sweeps, and what inspections found."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from orchestrator.record.database import Access
from orchestrator.record.reads.wanting import evaluation_left
from orchestrator.record.schema import finding, need, sweep, sweep_need, training, trial
from orchestrator.views.operations import Inspected, PlannedContent
from orchestrator.views.states import SWEEP_GOING, TrialState
from workers.catalog import Finding, Need

_ASKED = (  # made once: the conductor asks it every second
    sa.select(sweep_need.c.sweep_id, need.c.reads)
    .join(need, need.c.key == sweep_need.c.need)
    .join(sweep, sweep.c.id == sweep_need.c.sweep_id)
    .where(sweep.c.state.in_(SWEEP_GOING))
    .order_by(sweep_need.c.sweep_id, need.c.key)
)


@dataclass(frozen=True, slots=True)
class AskedNeed:
    """What trials of a running or paused sweep need."""

    sweep: int
    need: Need


class DataReader(Access):
    """Reads needs and findings."""

    def findings(self) -> list[Inspected]:
        """What every machine that was there at last was found to have, by machine and data set."""
        query = sa.select(finding, need.c.reads).join(need, need.c.key == finding.c.need)
        with self._database.reading() as connection:
            rows = connection.execute(query.order_by(finding.c.host, finding.c.node, finding.c.need)).all()
        return [_read(row) for row in rows]

    def asked_looks(self, since: datetime) -> list[tuple[Need, datetime]]:
        """What clients have wanted looked for since then, and when."""
        query = sa.select(need.c.reads, need.c.asked).where(need.c.asked > since)
        with self._database.reading() as connection:
            return [(Need.model_validate(row.reads), row.asked) for row in connection.execute(query)]

    def planned_content(self, sweep_id: int) -> PlannedContent | None:
        """The content that a sweep is planned with; None where that is not decided, or none of its trainings reads."""
        query = sa.select(sweep.c.uid, sweep.c.content).where(sweep.c.id == sweep_id, sweep.c.content.is_not(None))
        with self._database.reading() as connection:
            row = connection.execute(query).one_or_none()
            return None if row is None else PlannedContent(str(row.uid), row.content)

    def asked_needs(self) -> list[AskedNeed]:
        """The needs of each running or paused sweep, whether a trial still waits for them or not."""
        with self._database.reading() as connection:
            return [AskedNeed(row.sweep_id, Need.model_validate(row.reads)) for row in connection.execute(_ASKED)]

    def waiting_for(self, sweep: int, key: str) -> bool:
        """Whether a trial of the sweep waits whose training has that need."""
        query = (
            sa.select(trial.c.id)
            .join(training, training.c.id == trial.c.training_id)
            .where(trial.c.sweep_id == sweep, training.c.need == key)
            .where(sa.or_(trial.c.state == TrialState.WAITING, evaluation_left()))
            .limit(1)
        )
        with self._database.reading() as connection:
            return connection.execute(query).first() is not None


def _read(row: sa.Row[Any]) -> Inspected:
    made = Finding(state=row.state, said=row.said, **(row.facts or {}))
    return Inspected(row.node, row.host, Need.model_validate(row.reads), made, row.looked)
