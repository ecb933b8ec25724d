"""Regular work of the conductor: settle ended sweeps, renew plans, retry, remove weights, record slots."""

import logging
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from orchestrator.host.storage import Storage
from orchestrator.publish import aggregate
from orchestrator.record.renewal import Renewed, Tally
from orchestrator.record.requests import PendingRequest
from orchestrator.record.retention import WeightFiles
from orchestrator.record.store import Store, Writer
from orchestrator.record.trainings import Outdated
from orchestrator.views import runs
from orchestrator.views.errors import FATAL, reason
from orchestrator.views.operations import CollectionPolicy
from orchestrator.views.runs import Failure, Order, PlannedTrial
from workers.catalog import Catalog, Change, changes, complete, counted, further_metrics, need_of, problems
from workers.contract import Recipe

log = logging.getLogger(__name__)

AT_ONCE: Final = 20
"""Trainings whose files are removed in one tick, which delays all other work."""


class Collection:
    """Removes kept weights. A removal is recorded before the files go, so that no evaluation relies on them."""

    def __init__(self, store: Store, writer: Writer, catalog: Catalog, storage: Storage) -> None:
        self._store, self._writer, self._catalog = store, writer, catalog
        self._files = WeightFiles(storage)

    def carry_out(self, request: PendingRequest) -> str | None:
        """Remove a part of the weights of a request; returns the outcome, or `None` if the next tick continues."""
        if not self._store.collection.begun(request.id):
            policy = CollectionPolicy.model_validate(request.arguments["policy"])
            self._store.collection.require_ended(request.sweep)
            spec = self._store.sweeps.get(request.sweep).spec
            better = aggregate.direction(aggregate.selection(spec).metric or "map@r", self._catalog)
            kept = aggregate.best_trials(self._store.sweeps.grid(request.sweep), policy.keep, better)
            if not self._writer.collection.begin(request.sweep, policy, kept, request.id):
                return "there was nothing to collect"
        try:
            more = self._remove()
        except OSError as error:
            log.warning("not all files that were collected of sweep %d are removed: %s", request.sweep, error)
            return f"recorded, but some files are still in the storage: {error}; the next collection removes them"[:500]
        if more:
            return None
        trainings, files, size = self._store.collection.outcome(request.id)
        return f"{files} files of {trainings} trainings collected, {size / 2**20:.1f} MiB"

    def _remove(self) -> bool:
        """Remove files whose removal is recorded, also by an earlier conductor; true if there are more."""
        left = self._store.collection.left(AT_ONCE + 1)
        for training in left[:AT_ONCE]:
            files = self._files.of(training.uid, training.attempts)
            if not training.counted:
                self._writer.collection.count(training.id, len(files), sum(size for _, _, size in files))
            self._files.remove(files)
        self._writer.collection.removed([training.id for training in left[:AT_ONCE]])
        return len(left) > AT_ONCE


MOST_CELLS: Final = 100
"""Cells whose results are in memory at once."""
SHARE: Final = 0.05
"""The part of the conductor's time that the query for ended cells may take."""


class Finalization:
    """Finds cells and sweeps that have ended; less often if the query takes long."""

    def __init__(self, store: Store, writer: Writer, catalog: Catalog) -> None:
        self._store, self._writer, self._catalog = store, writer, catalog
        self._rests_until = float("-inf")
        self._broken: dict[int, str] = {}  # by sweep, why its cells cannot be summarized

    def settle(self, *, force: bool = False) -> Iterable[runs.CellSettled | runs.SweepSettled]:
        """Yield the cells and sweeps that have ended; the caller records each before it takes the next.

        Yields nothing during a rest, unless forced. A sweep whose cells cannot be summarized fails once its trials
        have ended. Raises FencedError.
        """
        began = time.monotonic()
        if began < self._rests_until and not force:
            return
        due = self._store.sweeps.cells_to_settle()
        self._rests_until = time.monotonic() + (time.monotonic() - began) / SHARE
        ended: dict[int, list[int]] = {}
        for sweep, cell in due:
            ended.setdefault(sweep, []).append(cell)
        for sweep, cells in ended.items():
            yield from self._summed(sweep, cells)
        for sweep in self._writer.sweeps.unsettled():
            if sweep in self._broken:
                self._writer.sweeps.fail(sweep, f"its cells cannot be summed up: {self._broken[sweep]}")
            else:
                yield runs.SweepSettled(sweep)

    def _summed(self, sweep: int, cells: list[int]) -> Iterable[runs.CellSettled]:
        try:
            for first in range(0, len(cells), MOST_CELLS):
                results = self._store.trial_results.of(sweep, cells[first : first + MOST_CELLS])
                better = aggregate.direction(aggregate.selection(results.spec).metric, self._catalog)
                for summary in aggregate.summaries(results, better):
                    yield runs.CellSettled(sweep, summary)
            self._broken.pop(sweep, None)
        except FATAL:
            raise
        except Exception as error:  # such as a metric that the catalog no longer has: other sweeps are not affected
            why = reason(error)
            if self._broken.get(sweep) != why:
                log.exception("sweep %d: its cells cannot be summed up", sweep)
            self._broken[sweep] = why


class Renewal:
    """Replans trainings that were planned with older versions of parts."""

    def __init__(self, store: Store, writer: Writer, catalog: Catalog) -> None:
        self._store, self._writer, self._catalog = store, writer, catalog
        self._changed: dict[str, tuple[Change, ...]] | None = None
        self._seen = catalog.changes  # the state of the catalog to which `_changed` belongs

    @property
    def outdated(self) -> frozenset[str]:
        """The version stamps of trainings whose numbers would be different today."""
        return frozenset(self._known())

    def renew(self) -> dict[int, str]:
        """Replan the trainings that wait or run under older versions; returns a summary by sweep.

        A running training is stopped, since its slot could import a part of this release late. If only own code was
        edited, it continues with the code that it started with.
        """
        summaries: dict[int, str] = {}
        while True:
            edited = {stamp for stamp, its in self._known().items() if all(change.own_code for change in its)}
            found = self._store.trainings.outdated(self.outdated, edited)
            if not found:
                return summaries
            renewed = [self._renewed(training) for training in found]
            for sweep, summary in self._writer.trainings.renew(renewed, self.outdated, self._summary).items():
                log.warning("sweep %d: %s", sweep, summary)
                summaries[sweep] = summary

    def _known(self) -> dict[str, tuple[Change, ...]]:
        if self._changed is None or self._seen != self._catalog.changes:
            self._seen = self._catalog.changes
            found = ((stamp, changes(stamp, self._catalog)) for stamp in self._store.trainings.stamps())
            self._changed = {stamp: changed for stamp, changed in found if changed}
        return self._changed

    def _renewed(self, old: Outdated) -> Renewed:
        if old.evaluated:
            changed = _listed(self._known()[old.stamp])
            return Renewed(old, None, f"numbers changed in {changed} since this was asked for; ask for it once more")
        if wrong := problems(old.recipe, self._catalog):
            return Renewed(old, None, f"its recipe is refused since numbers changed: {wrong[0]}")
        recipe = complete(Recipe.model_validate(old.recipe), self._catalog)
        need = need_of(recipe.dataset, recipe.backbone, self._catalog, recipe.pins)
        further = further_metrics(recipe, recipe.fingerprint, self._catalog)
        return Renewed(old, PlannedTrial(0, 0, 0, {}, recipe, recipe.fingerprint, need=need, further=further))

    def _summary(self, tally: Tally) -> str:
        changed = [change for stamp in sorted(tally.stamps) for change in self._known()[stamp]]
        words = [f"numbers changed in {_listed(changed)}"]
        if tally.moved:
            begun = f", {tally.begun} of them from the start though they had begun" if tally.begun else ""
            words.append(f"{counted(tally.moved, 'trial')} planned anew{begun}")
        if tally.failed:
            words.append(f"{counted(tally.failed, 'trial')} failed, since today's version refuses their recipes")
        if tally.unevaluated:
            words.append(f"{counted(tally.unevaluated, 'evaluation')} failed, to be asked for once more")
        if tally.kept:
            words.append(f"{counted(tally.kept, 'trial')} finished before keep their numbers")
        return "; ".join(words)


def _listed(changed: Iterable[Change]) -> str:
    return ", ".join(sorted({str(change) for change in changed}))


INFRASTRUCTURE_TRIES: Final = 3
"""Attempts in a row that a training may lose without progress; after that its recipe is held responsible."""
MOST_LOSSES: Final = 100
"""Attempts that a training may lose altogether."""
FIRST_PAUSE, LONGEST_PAUSE = 2.0, 300.0
"""Seconds before the next attempt after a loss; doubled with each loss in a row."""


@dataclass(slots=True)
class _Losses:
    in_a_row: int = 0
    total: int = 0
    stalled: int = 0
    furthest: int = -1  # the step of the furthest checkpoint since the first loss
    not_before: float = 0.0


class Retries:
    """Counts the lost attempts of trainings. A new conductor starts from zero, so that an outage exhausts no tries."""

    def __init__(self) -> None:
        self._losses: dict[str, _Losses] = {}  # by training, until it ends

    def after(self, order: Order, failure: Failure) -> bool:
        """Whether the training is tried again: an error of its recipe is final, and `slot.retries` limits stalls.

        Missing data count as a loss; the training waits until they are found.
        """
        if failure.kind in ("recipe", "damaged", "kept_weights"):
            self.ended(order)
            return False
        losses = self._losses.setdefault(order.training, _Losses())
        if failure.kind == "stalled":
            losses.stalled += 1
            again, count = losses.stalled <= order.slot.retries, losses.stalled
        else:
            losses.in_a_row += failure.begun  # an attempt that never began says nothing about the recipe
            losses.total += 1
            again = losses.in_a_row < INFRASTRUCTURE_TRIES and losses.total < MOST_LOSSES
            count = max(1, losses.in_a_row)
        if again:
            losses.not_before = time.monotonic() + min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (count - 1))
        else:
            self.ended(order)
        return again

    def advanced(self, order: Order, step: int) -> None:
        """Reset the losses of a training that stored a new checkpoint: they were not the recipe's fault."""
        losses = self._losses.get(order.training)
        if losses is not None and step > losses.furthest:
            losses.furthest = step
            losses.in_a_row = 0

    def ended(self, order: Order) -> None:
        """Forget a training that has ended."""
        self._losses.pop(order.training, None)

    def resting(self) -> frozenset[str]:
        """The trainings whose next attempt has to wait after a loss."""
        now = time.monotonic()
        return frozenset(training for training, losses in self._losses.items() if losses.not_before > now)

    def forget(self) -> None:
        """Reset the counts of lost attempts, after a request to retry."""
        self._losses.clear()
