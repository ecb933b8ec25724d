"""News of an attempt: hands its messages on to the desk, live or from the spool."""

from orchestrator.run import spool
from orchestrator.run.attempt import Workplace
from orchestrator.run.engine import Desk
from orchestrator.run.spool import Message
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
    """End an order whose holder is gone: by the end that it spooled, else by the failure."""
    for message in spool.read(spool.attempt_folder(workplace.storage, order), seen):
        if message.kind == "stopped" and desk.wanted(order):
            break
        hand_on(desk, order, message)
        if message.final:
            return
    desk.failed(order, failure)
