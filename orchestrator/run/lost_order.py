"""A lost order, whose holder is gone: it ends, or waits again, as the spool says; else it is a failure."""

from dataclasses import replace
from typing import Final

from orchestrator.host.storage import opened
from orchestrator.run import spool
from orchestrator.run.attempt import Workplace
from orchestrator.run.engine import Broker
from orchestrator.views.errors import UnavailableError
from orchestrator.views.runs import Failure, Order

UNBEGUN: Final = "claimed by a conductor that ended before it had begun"


def settle_from_spool(broker: Broker, order: Order, workplace: Workplace, seen: int, failure: Failure | None) -> None:
    """End an order whose holder is gone: by the end that it spooled, else by the failure, or as stopped if unwanted.

    Without a failure it is not known to have begun: if nothing is spooled its training waits again, as another attempt,
    since two slots that train the same one would write one spool. Raises UnavailableError where the storage does not
    answer: the order is then nobody's, and is settled later.
    """
    try:
        messages = list(spool.read(opened(workplace.storage), spool.attempt_folder(order), seen))
    except OSError as error:
        raise UnavailableError(f"the storage does not answer: {error}") from error
    for message in messages:
        if message.kind == "stopped" and broker.wanted(order):
            broker.returned(order, "given back by its slot while nobody conducted")
            return
        broker.told(order, message)
        if message.final:
            return
    if failure is None and not messages and seen == 0:
        broker.returned(order, UNBEGUN)
        return
    if not broker.wanted(order):
        broker.stopped(order)
        return
    failure = failure or Failure("infrastructure", "its slot is gone")
    broker.failed(order, replace(failure, begun=True) if messages else failure)  # who has spooled had begun
