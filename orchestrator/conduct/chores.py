"""The chores: what is done with sweeps at every turn, whatever the engine trains; it only sequences."""

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from orchestrator.conduct.availability import Availability
from orchestrator.conduct.contents import DataContents
from orchestrator.conduct.exhibits import Exhibits
from orchestrator.conduct.expansion import Expansion
from orchestrator.conduct.finalization import Finalization
from orchestrator.conduct.hindrances import Hindrances
from orchestrator.conduct.intake import Intake
from orchestrator.conduct.pruning import Pruning
from orchestrator.conduct.renewal import Renewal
from orchestrator.conduct.requests import Requests
from orchestrator.conduct.retries import Retries
from orchestrator.conduct.searches import Searches
from orchestrator.conduct.slot_watch import SlotWatch
from orchestrator.host.logs import about
from orchestrator.host.tracing import span
from orchestrator.record.mlflow.mirror import Mirror
from orchestrator.record.mlflow.tracker import Tracker
from orchestrator.record.queue import Exclusions
from orchestrator.record.requests import PendingRequest
from orchestrator.record.store import Store, Writer
from orchestrator.run.engine import Engine
from orchestrator.settings import Settings
from orchestrator.views import runs
from orchestrator.views.errors import FOR_ALL
from workers.catalog import Catalog, PartSourceError, usual_needs

log = logging.getLogger(__name__)

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
