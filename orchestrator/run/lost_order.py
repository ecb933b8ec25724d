"""A lost order, whose holder is gone: it ends, or waits again, as the spool says; else it is a failure."""

from dataclasses import replace

from orchestrator.host.storage import opened
from orchestrator.run import spool
from orchestrator.run.attempt import Workplace
from orchestrator.run.engine import Broker
from orchestrator.views.errors import UnavailableError
from orchestrator.views.orders import Failure, Order


def settle_from_spool(broker: Broker, order: Order, workplace: Workplace, seen: int, failure: Failure) -> None:
    """End an order whose holder is gone: by the end that it spooled, else by the failure.

    Raises UnavailableError where the storage does not answer: the order is then nobody's, and is settled later.
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
    broker.failed(order, replace(failure, begun=True) if messages else failure)  # who has spooled had begun
