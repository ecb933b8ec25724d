"""Collection: weights that a policy lets go are recorded as gone, and then removed, a few at every turn."""

import logging
from typing import Final

from orchestrator.host.storage import Storage
from orchestrator.publish.ranking import best_trials
from orchestrator.publish.select import direction, selection
from orchestrator.record.requests import PendingRequest
from orchestrator.record.retention import WeightFiles
from orchestrator.record.store import Store, Writer
from orchestrator.views.operations import CollectionPolicy
from workers.catalog import Catalog

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
