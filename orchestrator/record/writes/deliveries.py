"""Deliveries: what a webhook is to be told, noted in the transaction that changed it, and what became of that."""

import uuid
from collections.abc import Iterable
from typing import Any, Final

import sqlalchemy as sa

from orchestrator.record.clock import DatabaseSeconds
from orchestrator.record.database import FencedAccess
from orchestrator.record.schema import delivery, sweep, trial
from orchestrator.record.writes.text import MAX_MESSAGE, storable
from orchestrator.views.operations import DeliveryEvent
from orchestrator.views.states import SWEEP_ENDED, SweepState, TrialState

QUIET_SECONDS: Final = 3_600.0
"""Of one sweep that trainings stall, or that it is hindered, is told once in so long."""
KEPT_SECONDS: Final = 7 * 86_400.0
"""How long one sees what was delivered or given up."""
MOST_DETAIL: Final = 500


def tell_state(connection: sa.Connection, number: int, state: str) -> None:
    """Have told that a sweep has entered a state, if that ends it."""
    if state in SWEEP_ENDED:
        _tell(connection, DeliveryEvent(f"sweep.{SweepState(state)}"), number, {})


def tell_stalled(connection: sa.Connection, trials: Iterable[tuple[int, int]], message: str) -> None:
    """Have told that trials, given as (sweep, trial), were silent for too long; of each sweep the first."""
    for number, stalled in dict(sorted(trials, reverse=True)).items():
        _tell_at_times(connection, DeliveryEvent.STALLED, number, {"trial": stalled, "detail": message[:MOST_DETAIL]})


def tell_hindered(connection: sa.Connection, number: int, notice: str) -> None:
    """Have told why trials of a sweep wait."""
    _tell_at_times(connection, DeliveryEvent.HINDERED, number, {"detail": notice[:MOST_DETAIL]})


def _tell_at_times(connection: sa.Connection, event: DeliveryEvent, number: int, more: dict[str, Any]) -> None:
    its = (delivery.c.sweep_id == number, delivery.c.event == event)
    lately = sa.select(delivery.c.id).where(*its, delivery.c.created > DatabaseSeconds() - QUIET_SECONDS)
    if connection.execute(lately.limit(1)).first() is None:
        _tell(connection, event, number, more)


def _tell(connection: sa.Connection, event: DeliveryEvent, number: int, more: dict[str, Any]) -> None:
    columns = (sweep.c.name, sweep.c.state, sweep.c.total)
    row = connection.execute(sa.select(*columns).where(sweep.c.id == number)).one()
    by_state = sa.select(trial.c.state, sa.func.count().label("n")).where(trial.c.sweep_id == number)
    counted = {one.state: one.n for one in connection.execute(by_state.group_by(trial.c.state))}
    counts = {state.value: counted.get(state, 0) for state in TrialState}
    said = {"sweep": number, "name": row.name, "state": row.state, "trials": row.total, "counts": counts, **more}
    values = {"uid": str(uuid.uuid4()), "event": event, "sweep_id": number, "said": said, "state": "waiting"}
    connection.execute(sa.insert(delivery), [values])


class DeliveryWriter(FencedAccess):
    """Writes what became of deliveries."""

    def delivered(self, number: int) -> None:
        """The webhook has taken it."""
        self._settle(number, {"state": "delivered", "error": None})

    def give_up(self, number: int, error: str) -> None:
        """It is not tried again."""
        self._settle(number, {"state": "given_up", "tries": delivery.c.tries + 1, "error": _kept(error)})

    def postpone(self, number: int, error: str, seconds: float) -> None:
        """Try it again in `seconds`, and keep why."""
        later = {"next_try": DatabaseSeconds() + seconds, "tries": delivery.c.tries + 1, "error": _kept(error)}
        self._settle(number, later)

    def prune(self, wanted: bool) -> None:
        """Forget what was settled long ago; where no webhook is named (not `wanted`), also what waits."""
        old = sa.and_(delivery.c.state != "waiting", delivery.c.created < DatabaseSeconds() - KEPT_SECONDS)
        gone = old if wanted else sa.or_(old, delivery.c.state == "waiting")
        with self._database.reading() as connection:
            if connection.execute(sa.select(delivery.c.id).where(gone).limit(1)).first() is None:
                return
        with self._database.writing() as connection:
            connection.execute(sa.delete(delivery).where(gone))

    def _settle(self, number: int, values: dict[str, Any]) -> None:
        with self._database.writing() as connection:
            connection.execute(sa.update(delivery).where(delivery.c.id == number).values(values))


def _kept(error: str) -> str:
    return storable(error)[:MAX_MESSAGE]
