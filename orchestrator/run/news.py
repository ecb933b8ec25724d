"""News of an attempt: hands its messages on to the desk, live or from the spool."""

from orchestrator.errors import UnavailableError
from orchestrator.run import spool
from orchestrator.run.attempt import Workplace
from orchestrator.run.engine import Desk
from orchestrator.run.spool import Message
from orchestrator.storage import opened
from orchestrator.trial import Failure, Order
from workers.contract import Progress, Result


def hand_on(desk: Desk, order: Order, message: Message) -> None:
    """Tell the desk what one message says."""
    match message.kind:
        case "progress":
            desk.progressed(order, message.seq, Progress.model_validate(message.body))
        case "finished":
            desk.finished(order, Result.model_validate(message.body))
        case "failed":
            desk.failed(order, Failure(**message.body))
        case "stopped":
            desk.stopped(order)


def settle_from_spool(desk: Desk, order: Order, workplace: Workplace, seen: int, failure: Failure) -> None:
    """End an order whose holder is gone: by the end that it spooled, else by the failure.

    Raises UnavailableError where the storage does not answer: the order is then nobody's, and is settled later.
    """
    try:
        messages = list(spool.read(opened(workplace.storage), spool.attempt_folder(order), seen))
    except OSError as error:
        raise UnavailableError(f"the storage does not answer: {error}") from error
    for message in messages:
        if message.kind == "stopped" and desk.wanted(order):
            break
        hand_on(desk, order, message)
        if message.final:
            return
    desk.failed(order, failure)
