"""The values that operators measure, each counted over an index."""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

import sqlalchemy as sa

from orchestrator.record.clock import DatabaseSeconds
from orchestrator.record.database import Access
from orchestrator.record.reads.cluster import FORGOTTEN, ClusterReader
from orchestrator.record.reads.deliveries import DeliveryReader
from orchestrator.record.reads.expansion import of_whole
from orchestrator.record.reads.quotas import QuotaReader
from orchestrator.record.schema import attempt, outbox, slot, sweep, trial
from orchestrator.views.operations import Backlog, Gauges


class GaugeReader(Access):
    """Reads them all; on a database of a million trials that takes a good part of a second."""

    def read(self, quota: int | None) -> Gauges:
        """The values of now; `quota` is the most slots of one owner."""
        cluster = ClusterReader(self._database)
        slots, waiting = cluster.slots(), Counter[str]()
        for queued in cluster.queue(quota):
            waiting.update({str(reason): count for reason, count in queued.waiting.items()})
        return Gauges(
            sweeps=self._by(sweep.c.state),
            trials=self._by(trial.c.state),
            attempts=self._attempts(),
            waiting=waiting,
            slots=slots,
            offered=_summed(node.resources for node in cluster.nodes() if node.alive),
            held=_summed(slot.resources for slot in slots if slot.trains is not None),
            backlog=self.backlog(),
            deliveries=DeliveryReader(self._database).backlog(),
            report_lag=self._report_lag(),
            heartbeat=cluster.heartbeat(),
            quotas=[one for one in QuotaReader(self._database).of_projects() if one.limited],
        )

    def backlog(self) -> Backlog:
        """What the tracker does not show yet."""
        first = sa.func.min(sa.case((outbox.c.marked > 0, outbox.c.marked), else_=None))
        age = (DatabaseSeconds() - first).label("age")
        failing = sa.func.count(sa.case((outbox.c.failures > 0, 1), else_=None)).label("failing")
        error = sa.select(outbox.c.error).where(outbox.c.failures > 0).order_by(outbox.c.id).limit(1)
        with self._database.reading() as connection:
            row = connection.execute(sa.select(sa.func.count().label("n"), age, failing)).one()
            said = connection.execute(error).scalar() if row.failing else None
        return Backlog(row.n, max(0.0, float(row.age or 0.0)), row.failing, said)

    def _by(self, column: sa.Column[str]) -> dict[str, int]:
        query = sa.select(column.label("state"), sa.func.count().label("n")).group_by(column)
        with self._database.reading() as connection:
            if column.table is trial:
                query = query.where(*of_whole(connection))
            return {row.state: row.n for row in connection.execute(query)}

    def _attempts(self) -> dict[tuple[str, str], int]:
        columns = (attempt.c.state, attempt.c.cause)
        query = sa.select(*columns, sa.func.count().label("n")).group_by(*columns)
        with self._database.reading() as connection:
            return {(row.state, row.cause or ""): row.n for row in connection.execute(query)}

    def _report_lag(self) -> float:
        """Seconds that the oldest message which is not recorded has waited, over all slots."""
        fresh = slot.c.seen > datetime.now(UTC) - FORGOTTEN
        query = sa.select(sa.func.max(slot.c.lag)).where(fresh)
        with self._database.reading() as connection:
            return float(connection.execute(query).scalar() or 0.0)


def _summed(amounts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    total: Counter[str] = Counter()
    for one in amounts:
        total.update(one)  # fractions too
    return dict(total)
