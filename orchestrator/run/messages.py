"""News of an attempt: hands its messages on to the broker, live or from the spool."""

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

from pydantic import TypeAdapter

from orchestrator.host.storage import opened
from orchestrator.run import spool
from orchestrator.run.attempt import Workplace
from orchestrator.run.engine import Broker
from orchestrator.run.spool import Message
from orchestrator.views.errors import UnavailableError
from orchestrator.views.orders import Failure, Order
from workers.contract import Progress, Result

log = logging.getLogger(__name__)


def hand_on(broker: Broker, order: Order, message: Message) -> None:
    """Tell the broker what one message says.

    A progress that cannot be read is left out; a last message that cannot is a failure of the training, which would say
    the same again.
    """
    try:
        said = _READERS[message.kind](message.body)
    except Exception as error:  # of another version, say, or damaged
        log.warning("attempt %s: message %d (%s) cannot be read: %s", order.attempt, message.seq, message.kind, error)
        if message.final:
            short = (str(error).splitlines() or [""])[0]
            broker.failed(order, Failure("recipe", f"its last message cannot be read: {type(error).__name__}: {short}"))
        return
    match said:
        case Progress():
            broker.progressed(order, message.seq, said)
        case Result():
            broker.finished(order, said)
        case Failure():
            broker.failed(order, said)
        case None:
            broker.stopped(order)


_READERS: Final[Mapping[str, Callable[[Any], Progress | Result | Failure | None]]] = {
    "progress": Progress.model_validate,
    "finished": Result.model_validate,
    "failed": TypeAdapter(Failure).validate_python,
    "stopped": lambda body: None,
}


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
            break
        hand_on(broker, order, message)
        if message.final:
            return
    broker.failed(order, failure)
