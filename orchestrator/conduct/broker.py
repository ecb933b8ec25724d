"""The broker between engines and the record: hands out attempts, records their events, keeps sweeps going."""

import logging
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Set
from contextlib import contextmanager
from dataclasses import replace
from json import JSONDecodeError
from pathlib import Path
from typing import Any, Final

from orchestrator.conduct.contents import DataContents
from orchestrator.conduct.expansion import Expansion
from orchestrator.conduct.lease import Heartbeat
from orchestrator.conduct.pruning import Pruning
from orchestrator.conduct.requests import Requests
from orchestrator.conduct.search import Searches
from orchestrator.conduct.upkeep import Finalization, Renewal, Retries
from orchestrator.conduct.waiting import Availability, WaitReasons
from orchestrator.host.logs import about
from orchestrator.host.tracing import span, span_of_attempt
from orchestrator.publish import formats
from orchestrator.publish.aggregate import direction, selection
from orchestrator.publish.figures import drawing, rendering
from orchestrator.publish.figures.sketch import Sources
from orchestrator.publish.tables import build
from orchestrator.publish.tables.select import layout_of
from orchestrator.publish.verdicts import judge
from orchestrator.record.figure_files import FigureFiles
from orchestrator.record.mlflow.mirror import Mirror
from orchestrator.record.mlflow.tracker import Artifacts, Tracker
from orchestrator.record.queue import Exclusions
from orchestrator.record.requests import PendingRequest
from orchestrator.record.store import Store, Writer
from orchestrator.run.engine import Broker, Engine
from orchestrator.run.spool import Message
from orchestrator.settings import Settings
from orchestrator.views import runs
from orchestrator.views.errors import FATAL, ConflictError, FencedError, MetricsweepError
from orchestrator.views.runs import Failure, FailureKind, Order, SweepResults
from workers.catalog import Catalog, PartSourceError, usual_needs
from workers.contract import Progress, Result

log = logging.getLogger(__name__)


_PRUNE_SECONDS: Final = 60.0
"""How often old changes and deliveries are deleted."""
_SLOTS_SECONDS: Final = 5.0
TICK_SECONDS: Final = 0.5


class Tick:
    """The conductor's regular work. A new holder of the lease starts from the database alone."""

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
        self.retries = Retries()
        self._expansion = Expansion(store, writer, catalog)
        self._searches = Searches(store, writer, catalog)
        self._finalization = Finalization(store, writer, catalog)
        self._renewal = Renewal(store, writer, catalog)
        self.pruning = Pruning(store, writer, catalog, self._renewal)
        artifacts = MlflowArtifacts(store, catalog, settings.storage)
        self.mirror = tracker and Mirror(store, writer, tracker, artifacts.of, settings.address)
        self._requests = Requests(store, writer, catalog, self.mirror, settings.storage, self._renewal)
        self._quota, self._pruned = settings.owner_slots, float("-inf")
        self._has_webhook = settings.webhook_url is not None
        availability = self.availability = Availability(store, writer, engine, usual_needs(catalog))
        self._contents = DataContents(
            store, writer, catalog, self.availability, inspects=settings.inspection is not None
        )
        self.wait_reasons = WaitReasons(
            store, writer, engine, availability, settings.owner_slots, lambda: self.pruning.racing, settings.places
        )
        self._engine, self._slots_at, self._had_slots = engine, float("-inf"), True

    def do(self, *, finalize: bool) -> None:
        """Expand queued sweeps, apply requests and settle what ended.

        `finalize`: settle even if that was done just now.
        """
        self._refresh_parts()
        self._renewal.renew()  # before anything of an older release is given out, adopted or judged
        self.wait_reasons.check_disks()
        queued, requests = self._store.sweeps.queued(), self._store.requests.pending()
        if not self.wait_reasons.full:
            self._expansion.advance(self._contents.settled(queued))  # first, so that requests find the trials
        self._carry_out(requests)
        self.pruning.refresh()
        added = self.search()
        for ended in self._finalization.settle(force=finalize):
            self._settle(ended)
        if self._requests.resolutions.advance():  # now: a conductor that ends when idle would end otherwise
            self._carry_out(self._store.requests.pending())
            self._carry_out(self._store.requests.pending())  # a pause between two rounds applies to the new round
            self.pruning.refresh()
            added = True
        self.wait_reasons.update(trials_changed=bool(queued or requests or added))
        self._record_slots()
        if time.monotonic() > self._pruned + _PRUNE_SECONDS:
            self._writer.changes.prune()
            self._writer.deliveries.prune(self._has_webhook)
            self._pruned = time.monotonic()

    def _record_slots(self) -> None:
        """Record the engine's slots every few seconds, for the cluster page."""
        if time.monotonic() - self._slots_at >= _SLOTS_SECONDS:
            self._slots_at = time.monotonic()
            slots = self._engine.slots()
            if slots or self._had_slots:
                self._writer.capacity.note_slots(slots)
            self._had_slots = bool(slots)

    def _refresh_parts(self) -> None:
        """Load own parts that were added or edited; if one cannot be read, the catalog stays as it was."""
        try:
            self._catalog.refresh()
            self._unreadable = ""
        except (PartSourceError, OSError) as error:
            if str(error) != self._unreadable:
                log.warning("the folder of own parts cannot be read, and its parts stay as they were: %s", error)
            self._unreadable = str(error)

    def _carry_out(self, requests: Iterable[PendingRequest]) -> None:
        for request in requests:
            if request.kind == "extend" and self.wait_reasons.full:
                continue  # it adds trials
            if not self._requests.apply(request):
                continue
            if request.kind == "retry":
                self.retries.forget()
            self.pruning.forget()

    def search(self) -> bool:
        """Advance the adaptive searches; true if a search suggested a candidate to train."""
        added = not self.wait_reasons.full and self._searches.advance()
        if added:
            self.pruning.grown()
        return added

    def exclusions(self) -> Exclusions:
        """The trainings that must not be claimed now: over a quota, pausing after a loss, or without room or data."""
        return replace(self.wait_reasons.exclusions, quota=self._quota, resting=self.retries.resting())

    @property
    def expanding(self) -> bool:
        """Whether a sweep's trials are partly written, so that the next tick continues."""
        return self._expansion.under_way and not self.wait_reasons.full

    def _settle(self, ended: runs.CellSettled | runs.SweepSettled) -> None:
        with about(sweep=ended.sweep), span("settle", cell=getattr(ended, "cell", None)):
            try:
                self._writer.events.write(ended)
            except FATAL:
                raise
            except Exception:  # the others are settled, and this one is tried again
                log.exception("sweep %d cannot be settled", ended.sweep)


@contextmanager
def _recording(what: str, order: Order) -> Iterator[None]:
    with about(**order.ids), span_of_attempt(f"record {what}", order.training, order.attempt):
        yield


class LeasedBroker(Broker):
    """Gives out orders and records their events, in the engine's thread; ticks run in between.

    Messages of trainings are untrusted: a bad one fails only its own training.
    """

    def __init__(
        self, store: Store, writer: Writer, tick: Tick, lease: Heartbeat, end_requested: Callable[[], bool]
    ) -> None:
        self._store, self._writer, self._tick = store, writer, tick
        self._lease, self._end_requested = lease, end_requested
        self._ticked = 0.0
        self._orphans: list[Order] = []

    def installation(self) -> str:
        return self._writer.lease.installation()

    def fence(self) -> int:
        return self._writer.lease.fence

    def closing(self) -> bool:
        return self._end_requested() or self._lease.lost.is_set()

    def check_lease(self) -> None:
        """Raise FencedError once another conductor holds the lease."""
        if self._lease.lost.is_set():
            raise FencedError("another conductor holds the lease")

    def tick(self) -> None:
        """Apply requests, expand queued sweeps and settle what ended, at most twice a second."""
        if time.monotonic() - self._ticked < TICK_SECONDS:
            return
        self.check_lease()
        self._tick.do(finalize=not self._ticked)
        self._ticked = time.monotonic()

    def hurry(self) -> None:
        """Make the next tick due now, and have it settle what has ended."""
        self._ticked = 0.0

    def adopt(self) -> int:
        """Take over the orders that an earlier conductor left running; returns their number."""
        self._orphans = self._store.claims.orphans()
        return len(self._orphans)

    def next_order(self) -> Order | None:
        if self._orphans:
            return self._orphans.pop(0)
        order = self._claim()
        if order is None and self._tick.search():
            order = self._claim()
        return order

    def _claim(self) -> Order | None:
        order = self._writer.claims.next(self._tick.exclusions())
        return order and replace(order, lacking=self._tick.availability.lacking(order.need))

    def needed(self, order: Order) -> bool:
        return bool(self.needed_of([order]))

    def needed_of(self, orders: Collection[Order]) -> Set[str]:
        return self._store.claims.needed_of([order.attempt for order in orders])

    def outranked(self, order: Order) -> bool:
        return self._store.claims.outranked(order.attempt, self._tick.exclusions())

    def returned(self, order: Order, reason: str) -> None:
        self._writer.events.write(runs.AttemptStopped(order.attempt, reason))
        self._tick.wait_reasons.update(trials_changed=True)

    def started(self, order: Order, holder: str, host: str) -> None:
        with _recording("started", order):
            log.info("attempt %s of %s begins on %s", order.attempt, order.label or order.training, host or holder)
            self._writer.events.write(runs.Started(order.attempt, holder, host))

    def record(self, order: Order, message: Message) -> None:
        """Decode a message of an attempt and record it.

        Unreadable progress is ignored. An unreadable last message fails the training: a damaged line counts as a
        failure of the machine, anything else as one of the recipe, which would send the same again.
        """
        with about(**order.ids):
            self._take(order, message)

    def _take(self, order: Order, message: Message) -> None:
        try:
            content = message.content()
        except Exception as error:  # such as a message of another version, or a damaged line
            log.warning(
                "attempt %s: message %d (%s) is unreadable: %s", order.attempt, message.seq, message.kind, error
            )
            if message.final:
                first = (str(error).splitlines() or [""])[0]
                kind: FailureKind = "infrastructure" if isinstance(error, JSONDecodeError) else "recipe"
                reason = f"its last message cannot be read: {type(error).__name__}: {first}"
                self.failed(order, Failure(kind, reason))
            return
        match content:
            case Progress():
                self._progressed(order, message.seq, content)
            case Result():
                with _recording("finished", order):
                    if self._kept(order, runs.Finished(order.attempt, content)):
                        self._tick.pruning.ended(order)
                        self._tick.retries.ended(order)
            case Failure():
                self.failed(order, content)
            case None:
                self.stopped(order)

    def _progressed(self, order: Order, seq: int, progress: Progress) -> None:
        if not self._kept(order, runs.Progressed(order.attempt, seq, progress)):
            return
        self._tick.pruning.progressed(order, progress)
        if progress.checkpoint is not None:
            self._tick.retries.advanced(order, progress.step)

    def failed(self, order: Order, failure: Failure) -> None:
        with _recording("failed", order):
            if failure.kind in ("missing", "damaged"):
                self._tick.availability.doubt(order.need)
            self._writer.events.write(runs.Failed(order.attempt, failure, self._tick.retries.after(order, failure)))
            self._tick.pruning.ended(order)

    def stopped(self, order: Order) -> None:
        with _recording("stopped", order):
            self._writer.events.write(runs.AttemptStopped(order.attempt))
            self._tick.retries.ended(order)

    def _kept(self, order: Order, event: runs.Progressed | runs.Finished) -> bool:
        """Record an event. If the database refuses its values (such as a step above 2^31), the training fails."""
        try:
            self._writer.events.write(event)
        except FATAL:
            raise
        except Exception as error:
            log.exception("attempt %s: what it reported cannot be kept", order.attempt)
            reason = f"what it reported cannot be kept: {type(error).__name__}: {error}"
            self.failed(order, Failure("recipe", reason.splitlines()[0]))  # it would report the same again
            return False
        return True


_TABLE_FORMATS: Final = ("latex", "markdown", "html", "csv", "json")
FIGURE_FORMATS: Final = ("svg", "png", "csv")


class MlflowArtifacts:
    """Makes the tables, figures and captions of a sweep for MLflow, from its present state."""

    def __init__(self, store: Store, catalog: Catalog, storage: Path | str) -> None:
        self._store, self._catalog, self._storage = store, catalog, storage

    def of(self, sweep: int, ended: bool) -> Artifacts:
        """The files and captions of a sweep for MLflow, which are made once it has ended."""
        view = self._store.sweeps.get(sweep)
        spec: Mapping[str, Any] = view.spec
        chosen = selection(view.spec)
        files, captions = dict[str, bytes](), list[str]()
        if ended:
            files["spec.yaml"] = view.text.encode()
            kept = FigureFiles(self._store, self._storage)
            results = replace(self._store.trial_results.of(sweep), queries=judge.source(kept.arrays_of))
            for name in results.spec["tables"]:
                built = build.build(results, name, self._catalog)
                captions.append(built.words.text)
                rendered = [formats.render(built, file_format) for file_format in _TABLE_FORMATS]
                files |= {f"tables/{name}/{one.filename}": one.content for one in rendered}
            self._figures(results, kept, files)
        return Artifacts(
            axes=(*(spec.get("compare") or {}), *(spec.get("tune") or {})),
            columns=list(_printed(spec, chosen.checkpoint)),
            selected_by=chosen.key,
            better=self._better(chosen.metric),
            captions=captions,
            files=files,
        )

    def _better(self, metric: str) -> str:
        try:
            return direction(metric, self._catalog)
        except ConflictError:  # a metric that the catalog no longer has
            return "higher"

    def _figures(self, results: SweepResults, kept: FigureFiles, files: dict[str, bytes]) -> None:
        sources = Sources(self._store.curves.of_trials, kept.arrays_of, kept.pictures_of)
        for name in results.spec.get("figures") or {}:
            try:
                figure = drawing.draw(results, name, self._catalog, sources)
                rendered = [rendering.render(figure, file_format) for file_format in FIGURE_FORMATS]
                files |= {f"figures/{name}/{one.filename}": one.content for one in rendered}
            except MetricsweepError as error:  # as in the bundle, a figure that cannot be drawn is left out
                log.warning("figure %s of sweep %d is not shown in MLflow: %s", name, results.sweep, error)


def _printed(spec: Mapping[str, Any], checkpoint: str) -> Iterator[str]:
    """The distinct result keys that the tables print."""
    layouts = (layout_of(spec, name) for name in spec.get("tables") or {})
    every = (column for layout in layouts for column in layout.metric_columns if column.delta is None)
    yield from dict.fromkeys(column.key(checkpoint) for column in every)
