"""What engines tell of attempts, taken into the record; what cannot be kept of one attempt ends that one alone."""

import logging
from json import JSONDecodeError

from orchestrator.conduct.hindrances import Hindrances
from orchestrator.conduct.pruning import Pruning
from orchestrator.conduct.retries import Retries
from orchestrator.record.transitions import EventWriter
from orchestrator.run.spool import Message, Said
from orchestrator.views import runs
from orchestrator.views.errors import FOR_ALL
from orchestrator.views.runs import Failure, FailureKind, Order
from workers.contract import Progress, Result

log = logging.getLogger(__name__)


class Intake:
    """The conductor's ear. A training says what its author wrote: no message of one may end the work on all others."""

    def __init__(self, record: EventWriter, retries: Retries, pruning: Pruning, hindrances: Hindrances) -> None:
        self._record, self._retries, self._pruning = record, retries, pruning
        self._hindrances = hindrances

    def started(self, order: Order, holder: str, host: str) -> None:
        """Note the slot that trains the order."""
        log.info("attempt %s of %s begins on %s", order.attempt, order.label or order.training, host or holder)
        self._record.write(runs.Started(order.attempt, holder, host))

    def told(self, order: Order, message: Message) -> None:
        """Read a message and record what it says.

        A progress that cannot be read is left out; a last message that cannot ends the training: as a failure of its
        own where it would say the same again, of the machine where the line is damaged.
        """
        said: Said
        try:
            said = message.said()
        except Exception as error:  # of another version, say, or damaged
            log.warning(
                "attempt %s: message %d (%s) is unreadable: %s", order.attempt, message.seq, message.kind, error
            )
            if message.final:
                self.failed(order, _unreadable(error))
            return
        match said:
            case Progress():
                self._progressed(order, message.seq, said)
            case Result():
                self._finished(order, said)
            case Failure():
                self.failed(order, said)
            case None:
                self.stopped(order)

    def _progressed(self, order: Order, seq: int, progress: Progress) -> None:
        if not self._kept(order, runs.Progressed(order.attempt, seq, progress)):
            return
        self._pruning.progressed(order, progress)
        if progress.checkpoint is not None:
            self._retries.advanced(order, progress.step)

    def _finished(self, order: Order, result: Result) -> None:
        if self._kept(order, runs.Finished(order.attempt, result)):
            self._pruning.finished(order)
            self._retries.ended(order)

    def failed(self, order: Order, failure: Failure) -> None:
        """Record a failure, and whether it is tried again."""
        self._hindrances.learn(order, failure)
        self._record.write(runs.Failed(order.attempt, failure, self._retries.after(order, failure)))
        self._pruning.failed(order)

    def stopped(self, order: Order) -> None:
        """Record that an order stopped unwanted."""
        self._record.write(runs.AttemptStopped(order.attempt))
        self._retries.ended(order)

    def returned(self, order: Order, reason: str) -> None:
        """Record that an order was not begun, or was given back, and why."""
        self._record.write(runs.AttemptStopped(order.attempt, reason))

    def _kept(self, order: Order, event: runs.Progressed | runs.Finished) -> bool:
        """Record an event; where the database refuses it (a step beyond its integers, say) the training has failed."""
        try:
            self._record.write(event)
        except FOR_ALL:
            raise
        except Exception as error:
            log.exception("attempt %s: what it reported cannot be kept", order.attempt)
            said = f"what it reported cannot be kept: {type(error).__name__}: {error}"
            self.failed(order, Failure("recipe", said.splitlines()[0]))  # it would report the same again
            return False
        return True


def _unreadable(error: Exception) -> Failure:
    short = (str(error).splitlines() or [""])[0]
    kind: FailureKind = "infrastructure" if isinstance(error, JSONDecodeError) else "recipe"
    return Failure(kind, f"its last message cannot be read: {type(error).__name__}: {short}")
