"""Periodic work on the record: settle what has ended, renew plans, retry, collect weights, note slots."""

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from orchestrator.host.storage import Storage
from orchestrator.publish import aggregate
from orchestrator.publish.aggregate import best_trials, direction, selection
from orchestrator.record.renewal import Renewed, Tally
from orchestrator.record.requests import PendingRequest
from orchestrator.record.retention import WeightFiles
from orchestrator.record.store import Store, Writer
from orchestrator.record.trainings import Outdated
from orchestrator.run.engine import Engine
from orchestrator.views import runs
from orchestrator.views.errors import FOR_ALL, MetricsweepError
from orchestrator.views.operations import CollectionPolicy
from orchestrator.views.runs import Failure, Order, PlannedTrial
from workers.catalog import Catalog, Change, changes, complete, further_metrics, need_of, problems
from workers.contract import Recipe

log = logging.getLogger(__name__)

AT_ONCE: Final = 20
"""Trainings whose files go in one turn: nothing else is done meanwhile."""


class Collection:
    """The record comes first: a file that is gone and counted on would fail an evaluation; one too many costs room."""

    def __init__(self, store: Store, writer: Writer, catalog: Catalog, storage: Storage) -> None:
        self._store, self._writer, self._catalog = store, writer, catalog
        self._files = WeightFiles(storage)

    def carry_out(self, asked: PendingRequest) -> str | None:
        """Do a part of it; what became of it, none: it goes on at the next turn."""
        if not self._store.collection.begun(asked.id):
            policy = CollectionPolicy.model_validate(asked.arguments["policy"])
            self._store.collection.require_ended(asked.sweep)
            spec = self._store.sweeps.get(asked.sweep).spec
            better = direction(selection(spec).metric or "map@r", self._catalog)
            kept = best_trials(self._store.sweeps.grid(asked.sweep), policy.keep, better)
            if not self._writer.collection.begin(asked.sweep, policy, kept, asked.id):
                return "there was nothing to collect"
        try:
            more = self._remove()
        except OSError as error:
            log.warning("what was collected of sweep %d is not all removed: %s", asked.sweep, error)
            return f"recorded, but the storage keeps some of it: {error}; the next collection goes on with it"[:500]
        if more:
            return None
        trainings, files, size = self._store.collection.outcome(asked.id)
        return f"{files} files of {trainings} trainings collected, {size / 2**20:.1f} MiB"

    def _remove(self) -> bool:
        """Remove files whose going is recorded, also what an earlier conductor left; whether there are more."""
        left = self._store.collection.left(AT_ONCE + 1)
        for one in left[:AT_ONCE]:
            files = self._files.of(one.uid, one.attempts)
            if not one.counted:
                self._writer.collection.count(one.id, len(files), sum(size for _, _, size in files))
            self._files.remove(files)
        self._writer.collection.removed([one.id for one in left[:AT_ONCE]])
        return len(left) > AT_ONCE


MOST_CELLS: Final = 100
"""Cells whose outcomes are read at once, so that memory does not grow with what ended meanwhile."""
SHARE: Final = 0.05
"""Of the conductor's time that looking for ended cells may take: a look at ten thousand of them takes a while."""


class Finalization:
    """Looks for ended cells and sweeps, not at every turn where many cells are unsettled."""

    def __init__(
        self, store: Store, writer: Writer, catalog: Catalog, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._store, self._writer, self._catalog, self._now = store, writer, catalog, now
        self._rests_until = float("-inf")
        self._broken: dict[int, str] = {}  # why the cells of a sweep cannot be summed up

    def settle(self, *, force: bool = False) -> Iterable[runs.CellSettled | runs.SweepSettled]:
        """What has ended, each to be recorded before the next is asked for; nothing while it rests, unless forced.

        A sweep whose cells cannot be summed up fails once its trials have ended. Raises FencedError.
        """
        began = self._now()
        if began < self._rests_until and not force:
            return
        due = self._store.sweeps.cells_to_settle()
        self._rests_until = self._now() + (self._now() - began) / SHARE
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
                yield from self._cells(sweep, cells[first : first + MOST_CELLS])
            self._broken.pop(sweep, None)
        except FOR_ALL:
            raise
        except Exception as error:  # such as a metric that the catalog has no more: the trouble of this sweep alone
            said = f"{type(error).__name__}: {error}" if not isinstance(error, MetricsweepError) else str(error)
            if self._broken.get(sweep) != said:
                log.exception("sweep %d: its cells cannot be summed up", sweep)
            self._broken[sweep] = said

    def _cells(self, sweep: int, cells: list[int]) -> Iterable[runs.CellSettled]:
        outcomes = self._store.outcomes.of(sweep, cells)
        better = aggregate.direction(aggregate.selection(outcomes.spec).metric, self._catalog)
        for summary in aggregate.summaries(outcomes, better):
            yield runs.CellSettled(sweep, summary)


class Renewal:
    """Knows which stamps of the database are outdated; what is planned while it lives has today's versions."""

    def __init__(self, store: Store, writer: Writer, catalog: Catalog) -> None:
        self._store, self._writer, self._catalog = store, writer, catalog
        self._changed: dict[str, tuple[Change, ...]] | None = None
        self._seen = catalog.changes  # the state of the catalog that this is of

    @property
    def outdated(self) -> frozenset[str]:
        """The stamps of trainings that had other numbers than they would have today."""
        return frozenset(self._known())

    def renew(self) -> dict[int, str]:
        """Plan anew what waits or runs under older versions; gives by sweep what was done, in words.

        A training that runs is stopped: its slot holds the code of another release, of which a part that it imports
        late would be of this one. Where only own code was edited it trains on with the code that it began with.
        """
        said: dict[int, str] = {}
        while found := self._store.trainings.outdated(self.outdated, self._edited):
            renewed = [self._renewed(one) for one in found]
            for sweep, words in self._writer.trainings.plan_anew(renewed, self.outdated, self._words).items():
                log.warning("sweep %d: %s", sweep, words)
                said[sweep] = words
        return said

    @property
    def _edited(self) -> frozenset[str]:
        """The stamps of which nothing but own code changed."""
        return frozenset(stamp for stamp, its in self._known().items() if all(one.own_code for one in its))

    def _known(self) -> dict[str, tuple[Change, ...]]:
        if self._changed is None or self._seen != self._catalog.changes:
            self._seen = self._catalog.changes
            found = ((stamp, changes(stamp, self._catalog)) for stamp in self._store.trainings.stamps())
            self._changed = {stamp: changed for stamp, changed in found if changed}
        return self._changed

    def _renewed(self, old: Outdated) -> Renewed:
        if old.evaluated:
            changed = listed(self._known()[old.stamp])
            return Renewed(old, None, f"numbers changed in {changed} since this was asked for; ask for it once more")
        wrong = problems(old.recipe, self._catalog)
        if wrong:
            return Renewed(old, None, f"its recipe is refused since numbers changed: {wrong[0]}")
        recipe = complete(Recipe.model_validate(old.recipe), self._catalog)
        need = need_of(recipe.dataset, recipe.backbone, self._catalog, recipe.pins)
        further = further_metrics(recipe, recipe.fingerprint, self._catalog)
        return Renewed(old, PlannedTrial(0, 0, 0, {}, recipe, recipe.fingerprint, need=need, further=further))

    def _words(self, tally: Tally) -> str:
        changed = [change for stamp in sorted(tally.stamps) for change in self._known()[stamp]]
        words = [f"numbers changed in {listed(changed)}"]
        if tally.moved:
            begun = f", {tally.begun} of them from the start though they had begun" if tally.begun else ""
            words.append(f"{_trials(tally.moved)} planned anew{begun}")
        if tally.failed:
            words.append(f"{_trials(tally.failed)} failed, since today's version refuses their recipes")
        if tally.unevaluated:
            evaluations = "1 evaluation" if tally.unevaluated == 1 else f"{tally.unevaluated} evaluations"
            words.append(f"{evaluations} failed, to be asked for once more")
        if tally.kept:
            words.append(f"{_trials(tally.kept)} finished before keep their numbers")
        return "; ".join(words)


def listed(changed: Iterable[Change]) -> str:
    """Changes in words, each once."""
    return ", ".join(sorted({str(one) for one in changed}))


def _trials(count: int) -> str:
    return "1 trial" if count == 1 else f"{count} trials"


INFRASTRUCTURE_TRIES: Final = 3
"""Attempts in a row that one training may lose without getting any further: then its recipe is what kills them."""
MOST_LOSSES: Final = 100
"""Attempts that it may lose in all, however far each one got."""
FIRST_PAUSE, LONGEST_PAUSE = 2.0, 300.0
"""Seconds before the next attempt of a training that lost one; doubled with each loss in a row."""


@dataclass(slots=True)
class _Losses:
    """What one training has lost."""

    in_a_row: int = 0
    total: int = 0
    stalled: int = 0
    furthest: int = -1  # the step of the furthest checkpoint since the first loss
    not_before: float = 0.0


class Retries:
    """Losses are counted while a conductor lives: a new one begins anew, so that an outage does not use them up."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        # By the monotonic clock: when the wall clock is set back, nothing waits longer.
        self._now = now
        self._losses: dict[str, _Losses] = {}  # by training; of those that lost something and have not ended

    def after(self, order: Order, failure: Failure) -> bool:
        """Whether the order's training waits again: what a recipe raises is final, a stall has the user's limit.

        Data that were missing are waited for; where a look says that they are there, it is tried as after a loss.
        """
        if failure.kind in ("recipe", "damaged", "kept_weights"):
            self.ended(order)
            return False
        losses = self._losses.setdefault(order.training, _Losses())
        if failure.kind == "stalled":
            losses.stalled += 1
            again, count = losses.stalled <= order.slot.retries, losses.stalled
        else:
            losses.in_a_row += failure.begun  # one that never began says nothing of the recipe
            losses.total += 1
            again = losses.in_a_row < INFRASTRUCTURE_TRIES and losses.total < MOST_LOSSES
            count = max(1, losses.in_a_row)
        if again:
            losses.not_before = self._now() + min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (count - 1))
        else:
            self.ended(order)
        return again

    def advanced(self, order: Order, step: int) -> None:
        """A checkpoint of the training is complete: what it lost before was no fault of its recipe."""
        losses = self._losses.get(order.training)
        if losses is not None and step > losses.furthest:
            losses.furthest = step
            losses.in_a_row = 0

    def ended(self, order: Order) -> None:
        """The training is done; nothing of it is remembered."""
        self._losses.pop(order.training, None)

    def resting(self) -> frozenset[str]:
        """The trainings whose next attempt is still to wait."""
        now = self._now()
        return frozenset(training for training, losses in self._losses.items() if losses.not_before > now)

    def forget(self) -> None:
        """Count anew: somebody asked for a retry."""
        self._losses.clear()


LOOK_SECONDS: Final = 5.0


class SlotWatch:
    """Writes nothing while there is no slot."""

    def __init__(self, writer: Writer, engine: Engine, now: Callable[[], float] = time.monotonic) -> None:
        self._writer, self._engine, self._now = writer, engine, now
        self._looked = float("-inf")
        self._empty = False

    def look(self) -> None:
        """Note the slots, where that is due; the first look forgets those of an earlier conductor."""
        if self._now() - self._looked < LOOK_SECONDS:
            return
        self._looked = self._now()
        slots = self._engine.slots()
        if slots or not self._empty:
            self._writer.capacity.note_slots(slots)
        self._empty = not slots
