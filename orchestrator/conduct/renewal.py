"""What an older release planned and nobody has trained yet, planned anew under today's versions."""

import logging
from collections.abc import Iterable

from orchestrator.record.renewal import Renewed, Tally
from orchestrator.record.store import Store, Writer
from orchestrator.record.trainings import Outdated
from orchestrator.views.runs import PlannedTrial
from workers.catalog import Catalog, Change, changes, complete, further_metrics, need_of, problems
from workers.contract import Recipe

log = logging.getLogger(__name__)


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
