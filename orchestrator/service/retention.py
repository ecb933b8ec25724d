"""What is kept and for whom: sizes, and what a policy would let go of, which the conductor then does."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from orchestrator.host import storage
from orchestrator.publish.ranking import best_trials
from orchestrator.publish.select import direction, selection
from orchestrator.record.reads.collectable import Collectable
from orchestrator.record.store import Store
from orchestrator.record.weight_files import WeightFiles, kind_of
from orchestrator.run.usage import decoded_bytes
from orchestrator.settings import Settings
from orchestrator.views.collection import (
    CollectableSweep,
    CollectionPolicy,
    CollectionView,
    StorageView,
    SweepStorage,
)
from orchestrator.views.deadline import timely
from workers.catalog import Catalog, Entry, problems


class Retention:
    """Lists the storage, file by file: the larger it is the longer that takes."""

    def __init__(self, settings: Settings, store: Store, catalog: Catalog) -> None:
        self._store, self._catalog = store, catalog
        self._storage = storage.opened(settings.storage)
        self._files = WeightFiles(self._storage)

    def sizes(self, sweep: int | None = None) -> StorageView:
        """What lies where, of all sweeps or of one; raises NotFoundError."""
        names = self._store.sizes.sweeps()
        if sweep is not None:
            names = {sweep: self._store.sweeps.get(sweep).name}
        by_sweep: dict[int, Counter[str]] = {number: Counter() for number in names}
        total: Counter[str] = Counter()
        for folder, owners in timely(list(self._store.sizes.folders(sweep).items())):
            for name, size in self._storage.entries(folder):
                total[kind_of(name)] += size
                for owner in owners & by_sweep.keys():
                    by_sweep[owner][kind_of(name)] += size
        for owner, size in self._store.sizes.logs(sweep).items():
            if owner in by_sweep:
                by_sweep[owner]["logs"] = size
                total["logs"] += size
        sweeps = [_of_sweep(number, names[number], found) for number, found in by_sweep.items()]
        sweeps.sort(key=lambda one: -(one.weights_bytes + one.figures_bytes + one.spools_bytes + one.logs_bytes))
        return StorageView(
            database_bytes=self._store.sizes.database(), decoded_bytes=decoded_bytes(),
            weights_bytes=total["weights"], figures_bytes=total["figures"], spools_bytes=total["spools"],
            logs_bytes=total["logs"], sweeps=sweeps,
        )  # fmt: skip

    def collect(
        self, policy: CollectionPolicy, sweep: int | None, actor: str | None, *, dry_run: bool
    ) -> CollectionView:
        """What a policy takes of one sweep or of all that have ended; unless it is a dry run, the conductor is asked.

        Raises NotFoundError, and ConflictError for a sweep that goes on.
        """
        if sweep is not None:
            self._store.collection.require_ended(sweep)
        ended = dict(self._store.collection.ended())
        chosen = list(ended) if sweep is None else [sweep]
        rows = [self._row(number, ended[number], policy) for number in timely(chosen)]
        going = [row for row in rows if row.trainings]
        if not dry_run:
            going = [self._asked(row, policy, actor) for row in going]
        return CollectionView(dry_run=dry_run, sweeps=going, bytes=sum(row.bytes for row in going))

    def _asked(self, row: CollectableSweep, policy: CollectionPolicy, actor: str | None) -> CollectableSweep:
        arguments = {"policy": policy.model_dump(mode="json")}
        request = self._store.submissions.add_request("collect", row.sweep, None, actor, arguments)
        return row.model_copy(update={"request": request})

    def _row(self, sweep: int, name: str, policy: CollectionPolicy) -> CollectableSweep:
        spec = self._store.sweeps.get(sweep).spec
        better = direction(selection(spec).metric or "map@r", self._catalog)
        kept = best_trials(self._store.sweeps.grid(sweep), policy.keep, better)
        going = self._store.collection.of_sweep(sweep, policy, kept)
        files = [file for one in timely(going) for file in self._files.of(one.uid, one.attempts)]
        return CollectableSweep(
            sweep=sweep, name=name, trainings=len(going), files=len(files), bytes=sum(size for *_, size in files),
            kept=self._store.collection.trainings(sweep) - len(going), retrained=self._retrained(going),
        )  # fmt: skip

    def _retrained(self, going: Iterable[Collectable]) -> list[str]:
        """The metrics that the weights could still tell, and that are not known of each of them."""
        names: dict[str, None] = {}
        asked: set[tuple[str, str, tuple[str, ...]]] = set()
        for one in going:
            kind = (str(one.recipe.get("task")), str(one.recipe.get("dataset")), one.metrics)
            if one.evaluable and kind not in asked:
                asked.add(kind)
                names |= dict.fromkeys(self._further(one.recipe, one.metrics))
        return sorted(names)

    def _further(self, recipe: Mapping[str, Any], known: Iterable[str]) -> Iterable[str]:
        computed = set(known)
        for entry in self._catalog.of("metric"):
            for name, shown in _examples(entry):
                wider = {**recipe, "metrics": [*(recipe.get("metrics") or ()), name]}
                if name not in computed and not problems(wider, self._catalog):
                    yield shown


def _of_sweep(number: int, name: str, sizes: Mapping[str, int]) -> SweepStorage:
    given = {f"{kind}_bytes": sizes.get(kind, 0) for kind in ("weights", "figures", "spools", "logs")}
    return SweepStorage(sweep=number, name=name, **given)


def _examples(entry: Entry) -> Iterator[tuple[str, str]]:
    """Names of a metric that a recipe may hold, each with how it is called whatever its k."""
    parameter = entry.parameter("k")
    if parameter is None:
        yield entry.name, entry.name
    elif parameter.type == "literal":
        yield from ((name, name) for name in (f"{entry.name}@{choice}" for choice in parameter.choices or ()))
        if not parameter.required:
            yield entry.name, entry.name
    else:
        yield f"{entry.name}@3", f"{entry.name}@k"
