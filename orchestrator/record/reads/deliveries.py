"""Deliveries that are due, and how many the webhook has not taken."""

from datetime import UTC, datetime
from typing import Final

import sqlalchemy as sa

from orchestrator.record.clock import DatabaseSeconds
from orchestrator.record.database import Access
from orchestrator.record.schema import delivery
from orchestrator.views.operations import Delivery, DeliveryBacklog, DeliveryEvent

FAR_SECONDS: Final = 7_200.0
"""Beyond any pause: what is due later than that is from before the database's clock was set back."""


class DeliveryReader(Access):
    """Reads deliveries."""

    def due(self, limit: int) -> list[Delivery]:
        """Those that are due, those first that wait longest."""
        now = DatabaseSeconds()
        due = sa.or_(delivery.c.next_try <= now, delivery.c.next_try > now + FAR_SECONDS)
        query = sa.select(delivery, (now - delivery.c.created).label("age"))
        query = query.where(delivery.c.state == "waiting", due).order_by(delivery.c.next_try, delivery.c.id)
        with self._database.reading() as connection:
            return [_of(row) for row in connection.execute(query.limit(limit))]

    def backlog(self) -> DeliveryBacklog:
        """What was not taken."""
        waits = delivery.c.state == "waiting"
        columns = (
            sa.func.count(sa.case((waits, 1))).label("waiting"),
            (DatabaseSeconds() - sa.func.min(sa.case((waits, delivery.c.created)))).label("age"),
            sa.func.count(sa.case((sa.and_(waits, delivery.c.tries > 0), 1))).label("failing"),
            sa.func.count(sa.case((delivery.c.state == "given_up", 1))).label("given_up"),
        )
        last = sa.select(delivery.c.error).where(delivery.c.error.is_not(None)).order_by(delivery.c.id.desc()).limit(1)
        with self._database.reading() as connection:
            row = connection.execute(sa.select(*columns)).one()
            error = connection.execute(last).scalar() if row.failing or row.given_up else None
        return DeliveryBacklog(row.waiting, max(0.0, float(row.age or 0.0)), row.failing, row.given_up, error)


def _of(row: sa.Row[tuple[object, ...]]) -> Delivery:
    at = datetime.fromtimestamp(row.created, UTC)
    event = DeliveryEvent(row.event)
    return Delivery(row.id, row.uid, event, row.sweep_id, row.said, at, row.tries, float(row.age))
