"""The trials that a trial is compared with: one of its cell's selected candidate, and another repeat of its own."""

import sqlalchemy as sa

from orchestrator.record.database import Access
from orchestrator.record.schema import cell, training, trial
from orchestrator.views.trials import Neighbour, differences


class NeighbourReader(Access):
    """Reads what stands beside a trial."""

    def of(self, number: int) -> list[Neighbour]:
        """Those that there are, each with how its recipe differs; none of a trial that is not there."""
        columns = (trial.c.id, trial.c.candidate, trial.c.repeat, training.c.recipe)
        joined = sa.select(*columns).join(training, training.c.id == trial.c.training_id)
        place = sa.select(trial.c.sweep_id, trial.c.cell).where(trial.c.id == number)
        with self._database.reading() as connection:
            own = connection.execute(joined.where(trial.c.id == number)).one_or_none()
            if own is None:
                return []
            where = connection.execute(place).one()
            here = joined.where(trial.c.sweep_id == where.sweep_id, trial.c.cell == where.cell, trial.c.id != number)
            summary = sa.select(cell.c.summary).where(cell.c.sweep_id == where.sweep_id, cell.c.cell == where.cell)
            best = (connection.execute(summary).scalar() or {}).get("candidate")
            other = here.where(trial.c.candidate == own.candidate).order_by(trial.c.repeat).limit(1)
            wanted = [("the same candidate's other repeat", other)]
            if best is not None and best != own.candidate:
                rank = sa.case((trial.c.repeat == own.repeat, 0), else_=1)
                chosen = here.where(trial.c.candidate == best).order_by(rank, trial.c.repeat).limit(1)
                wanted.insert(0, ("the cell's selected candidate", chosen))
            rows = [(why, connection.execute(query).one_or_none()) for why, query in wanted]
        return [
            Neighbour(trial=row.id, why=why, differences=differences(own.recipe, row.recipe))
            for why, row in rows
            if row is not None
        ]
