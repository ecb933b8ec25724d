"""What the machines' data roots have of what trainings need: the needs of sweeps, and what inspections found."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from orchestrator.record.database import Access
from orchestrator.record.schema import finding, need, sweep, sweep_need, training, trial
from orchestrator.record.writes.starting import write_needs
from orchestrator.views.lifecycle import SWEEP_GOING, TrialState
from orchestrator.views.nodes import Inspected
from workers.catalog import Finding, Need


@dataclass(frozen=True, slots=True)
class AskedNeed:
    """What trials of a running or paused sweep need."""

    sweep: int
    need: Need


class DataFindings(Access):
    """What clients read of it."""

    def findings(self) -> list[Inspected]:
        """What every machine that was there at last was found to have, by machine and data set."""
        query = sa.select(finding, need.c.reads).join(need, need.c.key == finding.c.need)
        with self._database.reading() as connection:
            rows = connection.execute(query.order_by(finding.c.host, finding.c.node, finding.c.need)).all()
        return [_read(row) for row in rows]


class Availability(Access):
    """What the conductor notes of it, and what it asks of those that wait."""

    def asked_needs(self) -> list[AskedNeed]:
        """The needs of each running or paused sweep, whether a trial still waits for them or not."""
        query = (
            sa.select(sweep_need.c.sweep_id, need.c.reads)
            .join(need, need.c.key == sweep_need.c.need)
            .join(sweep, sweep.c.id == sweep_need.c.sweep_id)
            .where(sweep.c.state.in_(SWEEP_GOING))
            .order_by(sweep_need.c.sweep_id, need.c.key)
        )
        with self._database.reading() as connection:
            return [AskedNeed(row.sweep_id, Need.model_validate(row.reads)) for row in connection.execute(query)]

    def waiting_for(self, sweep: int, key: str) -> bool:
        """Whether a trial of the sweep waits whose training has that need."""
        query = (
            sa.select(trial.c.id)
            .join(training, training.c.id == trial.c.training_id)
            .where(trial.c.sweep_id == sweep, trial.c.state == TrialState.WAITING, training.c.need == key)
            .limit(1)
        )
        with self._database.reading() as connection:
            return connection.execute(query).first() is not None

    def note_findings(self, fence: int, found: Sequence[Inspected], there: Collection[str]) -> None:
        """Write down what was found, and forget the machines that are not there."""
        with self._database.writing(fence) as connection:
            write_needs(self._database, connection, [one.need for one in found])
            connection.execute(sa.delete(finding).where(finding.c.node.not_in(there)))
            for one in found:
                values = {"host": one.host, "said": one.finding.said, "state": one.finding.state, "looked": one.looked}
                write = self._database.insert(finding).values(node=one.node, need=one.need.key, **values)
                connection.execute(write.on_conflict_do_update(index_elements=["node", "need"], set_=values))


def _read(row: sa.Row[Any]) -> Inspected:
    made = Finding(state=row.state, said=row.said)
    return Inspected(row.node, row.host, Need.model_validate(row.reads), made, row.looked)
