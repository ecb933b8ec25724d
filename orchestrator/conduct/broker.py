"""The broker between engines and the record: hands out attempts, records their events, keeps sweeps going."""

import logging
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Set
from contextlib import contextmanager
from dataclasses import replace
from json import JSONDecodeError
from typing import Final

from orchestrator.conduct.contents import DataContents
from orchestrator.conduct.expansion import Expansion
from orchestrator.conduct.lease import Heartbeat
from orchestrator.conduct.mlflow_files import Exhibits
from orchestrator.conduct.pruning import Pruning
from orchestrator.conduct.requests import Requests
from orchestrator.conduct.search import Searches
from orchestrator.conduct.upkeep import Finalization, Renewal, Retries, SlotWatch
from orchestrator.conduct.waiting import Availability, Hindrances
from orchestrator.host.logs import about
from orchestrator.host.tracing import span, span_of_attempt
from orchestrator.record.mlflow.mirror import Mirror
from orchestrator.record.mlflow.tracker import Tracker
from orchestrator.record.queue import Exclusions
from orchestrator.record.requests import PendingRequest
from orchestrator.record.store import Store, Writer
from orchestrator.record.transitions import EventWriter
from orchestrator.run.engine import Engine
from orchestrator.run.spool import Message, Said
from orchestrator.settings import Settings
from orchestrator.views import runs
from orchestrator.views.errors import FOR_ALL, FencedError
from orchestrator.views.runs import Failure, FailureKind, Order
from workers.catalog import Catalog, PartSourceError, usual_needs
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


PRUNE_SECONDS: Final = 60.0
"""How often the changes and deliveries that nobody needs any more are forgotten."""


class Chores:
    """Made by the holder of a lease: they begin with what the database says, not with what an earlier holder knew."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        writer: Writer,
        engine: Engine,
        catalog: Catalog,
        tracker: Callable[[], Tracker] | None,
    ) -> None:
        self._store, self._writer, self._catalog = store, writer, catalog
        self._unreadable = ""
        self._retries = Retries()
        self._expansion = Expansion(store, writer, catalog)
        self._searches = Searches(store, writer, catalog)
        self._finalization = Finalization(store, writer, catalog)
        self._renewal = Renewal(store, writer, catalog)
        self._pruning = Pruning(store, writer, catalog, self._renewal)
        exhibits = Exhibits(store, catalog, settings.storage)
        self.mirror = tracker and Mirror(store, writer, tracker, exhibits.of, settings.address)
        self._requests = Requests(store, writer, catalog, self.mirror, settings.storage, self._renewal)
        self._quota, self._pruned = settings.owner_slots, float("-inf")
        self._tells = settings.webhook_url is not None
        availability = Availability(store, writer, engine, usual_needs(catalog))
        self._contents = DataContents(store, writer, catalog, availability, inspects=settings.inspection is not None)
        self.hindrances = Hindrances(
            store, writer, engine, availability, settings.owner_slots, self._racing, settings.places
        )
        self._slots = SlotWatch(writer, engine)
        self.intake = Intake(writer.events, self._retries, self._pruning, self.hindrances)

    def do(self, *, finalize: bool) -> None:
        """Expand queued sweeps, apply requests and settle what ended; `finalize`: also if it was just looked for."""
        self._refresh()
        self._renewal.renew()  # before anything of an older release is given out, adopted or judged
        self.hindrances.look_at_disks()
        queued, requests = self._store.sweeps.queued(), self._store.requests.pending()
        if not self.hindrances.full:
            self._expansion.advance(self._contents.settled(queued))  # first, so that a request finds trials
        self._carry_out(requests)
        self._pruning.refresh()
        added = self.search()
        for ended in self._finalization.settle(force=finalize):
            self._settle(ended)
        if self._requests.resolutions.advance():  # at once: a conductor that is to end when idle would end before
            self._carry_out(self._store.requests.pending())
            self._carry_out(self._store.requests.pending())  # a pause that came between two rounds holds this one
            self._pruning.refresh()
            added = True
        self.hindrances.look(anew=bool(queued or requests or added))
        self._slots.look()
        if time.monotonic() > self._pruned + PRUNE_SECONDS:
            self._writer.changes.prune()
            self._writer.deliveries.prune(self._tells)
            self._pruned = time.monotonic()

    def _refresh(self) -> None:
        """Take up own parts that were added or edited; while one cannot be read all stay as they were."""
        try:
            self._catalog.refresh()
            self._unreadable = ""
        except (PartSourceError, OSError) as error:
            if str(error) != self._unreadable:
                log.warning("the folder of own parts cannot be read, and its parts stay as they were: %s", error)
            self._unreadable = str(error)

    def _carry_out(self, requests: Iterable[PendingRequest]) -> None:
        for request in requests:
            if request.kind == "extend" and self.hindrances.full:
                continue  # it adds trials
            if not self._requests.apply(request):
                continue
            if request.kind == "retry":
                self._retries.forget()
            self._pruning.forget()

    def search(self) -> bool:
        """Whether a search proposed anything to train."""
        added = not self.hindrances.full and self._searches.advance()
        if added:
            self._pruning.grown()
        return added

    def passed_over(self) -> Exclusions:
        """What may not be given out next: over a quota, at rest after a loss, without room, without data, racing."""
        return replace(self.hindrances.exclusions, quota=self._quota, resting=self._retries.resting())

    def _racing(self) -> dict[int, int]:
        return self._pruning.racing

    @property
    def expanding(self) -> bool:
        """Whether a sweep is expanded in part, so that the next turn goes on with it."""
        return self._expansion.under_way and not self.hindrances.full

    def _settle(self, ended: runs.CellSettled | runs.SweepSettled) -> None:
        with about(sweep=ended.sweep), span("settle", cell=getattr(ended, "cell", None)):
            try:
                self._writer.events.write(ended)
            except FOR_ALL:
                raise
            except Exception:  # the others are settled all the same, and this one is tried again
                log.exception("sweep %d cannot be settled", ended.sweep)


TICK_SECONDS: Final = 0.5


class LeasedBroker:
    """Gives out orders and takes what comes of them, in the thread that runs the engine; chores are done on the way."""

    def __init__(
        self, store: Store, writer: Writer, chores: Chores, lease: Heartbeat, asked: Callable[[], bool]
    ) -> None:
        self._store, self._writer, self._chores = store, writer, chores
        self._lease, self._asked = lease, asked
        self._ticked = 0.0
        self._orphans: list[Order] = []

    def installation(self) -> str:
        """The UUID of this database, which its next conductor finds too."""
        return self._writer.lease.installation()

    def fence(self) -> int:
        """The lease's."""
        return self._writer.lease.fence

    def closing(self) -> bool:
        """True once asked to end, or once another conductor holds the lease."""
        return self._asked() or self._lease.lost.is_set()

    def check_lease(self) -> None:
        """Raise FencedError once another conductor holds the lease."""
        if self._lease.lost.is_set():
            raise FencedError("another conductor holds the lease")

    def tick(self) -> None:
        """Apply requests, expand queued sweeps and settle what ended, at most twice a second."""
        if time.monotonic() - self._ticked < TICK_SECONDS:
            return
        self.check_lease()
        self._chores.do(finalize=not self._ticked)
        self._ticked = time.monotonic()

    def hurry(self) -> None:
        """Let the next tick come at once, and settle whatever has ended."""
        self._ticked = 0.0

    def adopt(self) -> int:
        """Take up the orders that an earlier conductor left running; how many there are."""
        self._orphans = self._store.claims.orphans()
        return len(self._orphans)

    def next_order(self) -> Order | None:
        """An order that an earlier conductor left running, else the next waiting training."""
        if self._orphans:
            return self._orphans.pop(0)
        order = self._claim()
        if order is None and self._chores.search():
            order = self._claim()
        return order

    def _claim(self) -> Order | None:
        order = self._writer.claims.next(self._chores.passed_over())
        return order and replace(order, lacking=self._chores.hindrances.lacking(order))

    def wanted(self, order: Order) -> bool:
        """Whether any trial still wants the order's training."""
        return self._store.claims.wanted(order.attempt)

    def wanted_of(self, orders: Collection[Order]) -> Set[str]:
        """The attempts of the orders whose training some trial still wants."""
        return self._store.claims.wanted_of([order.attempt for order in orders])

    def started(self, order: Order, holder: str, host: str) -> None:
        """Note the slot that trains the order."""
        with _recording("started", order):
            self._chores.intake.started(order, holder, host)

    def told(self, order: Order, message: Message) -> None:
        """Read a message, the first and only time, and record what it says."""
        with _recording(message.kind, order) if message.final else about(**order.ids):
            self._chores.intake.told(order, message)

    def failed(self, order: Order, failure: Failure) -> None:
        """Record a failure, and whether it is tried again."""
        with _recording("failed", order):
            self._chores.intake.failed(order, failure)

    def stopped(self, order: Order) -> None:
        """Record that an order stopped unwanted."""
        with _recording("stopped", order):
            self._chores.intake.stopped(order)

    def outranked(self, order: Order) -> bool:
        """Whether another of a higher priority waits, or only paused sweeps want the order."""
        return self._store.claims.outranked(order.attempt, self._chores.passed_over())

    def returned(self, order: Order, reason: str) -> None:
        """Record that an order was not begun, or was given back, and why."""
        self._chores.intake.returned(order, reason)
        self._chores.hindrances.look(anew=True)


@contextmanager
def _recording(what: str, order: Order) -> Iterator[None]:
    with about(**order.ids), span_of_attempt(f"record {what}", order.training, order.attempt):
        yield
