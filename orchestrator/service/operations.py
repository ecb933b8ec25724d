"""What operators ask: health, cluster, metrics, retention of weights, and slots of an installation."""

import logging
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from orchestrator.host import disk, storage
from orchestrator.host.cache import Cache, Cached
from orchestrator.host.slot_environment import MALLOC
from orchestrator.publish.aggregate import best_trials, direction, selection
from orchestrator.record.retention import Collectable, WeightFiles, kind_of
from orchestrator.record.store import Store
from orchestrator.run.files.slot import room
from orchestrator.run.slot import decoded_bytes
from orchestrator.run.slurm import Keeper, SlotJob
from orchestrator.settings import Settings
from orchestrator.views.accounts import QuotaUse, caller
from orchestrator.views.errors import MetricsweepError, UnavailableError, timely
from orchestrator.views.operations import (
    Check,
    ClusterView,
    CollectableSweep,
    CollectionPolicy,
    CollectionView,
    Disk,
    Gauges,
    Readiness,
    StorageView,
    SweepStorage,
)
from workers.catalog import Catalog, Entry, problems

log = logging.getLogger(__name__)

BEHIND_SECONDS: Final = 900.0
"""How long a run may wait until MLflow shows it before something is wrong."""
READY_SECONDS: Final = 1.0
GAUGES_SECONDS: Final = 5.0
CLUSTER_SECONDS: Final = 1.0
QUOTA_SECONDS: Final = 5.0
READY_SHARE: Final = 4


class Operations:
    """Answers about the installation; each is some seconds old at most, however often it is asked for."""

    def __init__(self, settings: Settings, store: Store) -> None:
        self._settings, self._store = settings, store
        self._storage = storage.opened(settings.storage)
        self._ready: Cache[str, Readiness] = Cache(1, READY_SECONDS, READY_SHARE)
        self._cluster: Cache[str, ClusterView] = Cache(1, CLUSTER_SECONDS)
        self._gauges: Cache[str, Gauges] = Cache(1, GAUGES_SECONDS)
        self._uses: Cache[str, list[QuotaUse]] = Cache(1, QUOTA_SECONDS)

    def ready(self) -> Readiness:
        """Whether the service can do its work, and what is missing."""
        return self._ready.get("", self._checked)

    def gauges(self) -> Cached[Gauges]:
        """What is measured of the database, with its age; raises UnavailableError."""
        return self._gauges.entry("", lambda: self._store.gauges.read(self._settings.owner_slots))

    def cluster(self) -> ClusterView:
        """Nodes, slots and the queue, with the sweeps that the caller sees; raises UnavailableError."""
        return self._cluster.get("", self._look) if caller().seen is None else self._look()

    def quotas(self, *, anew: bool = False) -> list[QuotaUse]:
        """What users and projects may have, and have used: the caller and its projects, or all for administrators.

        `anew`: a quota was set just now. Raises UnavailableError.
        """
        who, read = caller(), self._store.quotas.uses
        uses = self._uses.renew("", read) if anew else self._uses.get("", read)
        if who.seen is None:
            return uses
        mine = {("user", who.name), *(("project", name) for name in self._store.accounts.names_of(who.seen))}
        return [one for one in uses if (one.kind, one.name) in mine]

    def places(self) -> list[Disk]:
        """The folders of this machine that fill up, with the room on their disks."""
        found = {name: disk.disk_of(folder) for name, folder in self._settings.places.items()}
        return [Disk(name=name, free_bytes=one.free, size_bytes=one.size) for name, one in found.items()]

    def _look(self) -> ClusterView:
        heartbeat = self._store.cluster.heartbeat()
        return ClusterView(
            conducted=self._store.lease.conducted(),
            heartbeat_seconds=heartbeat,
            nodes=self._store.cluster.nodes(),
            slots=self._store.cluster.slots(),
            queue=self._store.cluster.queue(self._settings.owner_slots),
        )

    def _checked(self) -> Readiness:
        checks = list(self._checks())
        return Readiness(ok=all(check.ok for check in checks), checks=checks)

    def _checks(self) -> Iterator[Check]:
        try:
            self._store.ping()
        except UnavailableError as error:
            yield Check(name="database", ok=False, detail=str(error))
            yield from self._beside()
            return
        damage = self._store.pages.damage()
        yield Check(name="database", ok=damage is None, detail=damage or "answers")
        for name, check in (
            ("migrations", self._migrations), ("conductor", self._conductor), ("engine", self._engine),
            ("mlflow", self._mlflow), ("webhook", self._webhook),
        ):  # fmt: skip
            yield _asked(name, check)
        yield from self._beside()

    def _beside(self) -> Iterator[Check]:
        """What is asked of no database."""
        yield _asked("disk", self._disk)
        yield _asked("storage", self._stored)

    def _migrations(self) -> tuple[bool, str]:
        behind = self._store.behind()
        return behind is None, behind or "the schema is this release's"

    def _conductor(self) -> tuple[bool, str]:
        if self._store.lease.conducted():
            return True, "holds the lease"
        age = self._store.cluster.heartbeat()
        silent = "" if age is None else f", the last one was heard {age:.0f} s ago"
        return False, f"none holds the lease{silent}; start one with `metricsweep serve`"

    def _engine(self) -> tuple[bool, str]:
        known, there = self._store.capacity.nodes(), self._store.capacity.nodes(present=True)
        if self._settings.engine == "files":  # without anything to train there is none, and that is as it should be
            return True, f"{len(there)} slots have joined" if len(there) != 1 else "1 slot has joined"
        if self._settings.engine != "ray_tune" or not known:
            return True, "no node has been seen yet" if self._settings.engine == "ray_tune" else "is no cluster"
        if not there:
            return False, "no node of the cluster answers; nothing can train"
        return True, "1 node" if len(there) == 1 else f"{len(there)} nodes"

    def _mlflow(self) -> tuple[bool, str]:
        if not (self._settings.mlflow_url or self._settings.mlflow_socket):
            return True, "none is named"
        backlog = self._store.gauges.backlog()
        if backlog.failing:
            return False, f"did not take {backlog.failing} runs at the last try; the conductor's log says why"
        if backlog.seconds > BEHIND_SECONDS:
            return False, f"is behind: the oldest of {backlog.runs} runs has waited for {backlog.seconds / 60:.0f} min"
        return True, "shows all runs" if not backlog.runs else f"still lacks {backlog.runs} runs"

    def _webhook(self) -> tuple[bool, str]:
        if self._settings.webhook_url is None:
            return True, "none is named"
        told = self._store.deliveries.backlog()
        if told.failing or told.given_up:
            given_up = f" and {told.given_up} were given up within a week" if told.given_up else ""
            return False, f"did not take {told.failing} of {told.waiting} events{given_up}; the last try: {told.error}"
        return True, "has taken all events" if not told.waiting else f"still lacks {told.waiting} events"

    def _disk(self) -> tuple[bool, str]:
        if troubles := disk.troubles(self._settings.places):
            return False, disk.held(troubles)
        return True, ", ".join(f"{place.name}: {place.free_bytes / disk.GIB:.1f} GiB free" for place in self.places())

    def _stored(self) -> tuple[bool, str]:
        wrong = self._storage.problem()
        return wrong is None, wrong or "can be written"


def _asked(name: str, check: Callable[[], tuple[bool, str]]) -> Check:
    """What one check says; whatever goes wrong in it is what is wrong."""
    try:
        ok, detail = check()
    except Exception as error:
        log.warning("the check of %s failed: %s", name, error)
        # What is no sentence of ours may hold a statement of the database with its values: that is for the log.
        said = f": {error}" if isinstance(error, MetricsweepError | OSError) else ""
        return Check(name=name, ok=False, detail=f"cannot be asked: {type(error).__name__}{said}")
    return Check(name=name, ok=ok, detail=detail)


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


__all__ = ["SlotJob", "keep_by_slurm"]


def keep_by_slurm(
    settings: Settings,
    job: SlotJob,
    most: int,
    tell: Callable[[str], None],
    ended: threading.Event,
    every: float | None,
) -> str:
    """Keep up to `most` slots alive as jobs of Slurm until `ended` is set; with no `every`, look once.

    Gives the name of its jobs. Raises MetricsweepError where the storage is none that slots can join.
    """
    there = room(settings.storage)
    keeper = Keeper(there, job, most, _variables(settings), tell)
    while not ended.is_set():
        keeper.turn()
        if every is None:
            break
        ended.wait(every)
    return keeper.name


def _variables(settings: Settings) -> dict[str, str]:
    """What a slot is told: where things are, and no secret."""
    told = {"METRICSWEEP_STORAGE_URL": str(settings.storage), **MALLOC}
    if settings.data is not None:
        told["METRICSWEEP_DATA"] = os.path.abspath(settings.data)
    if settings.parts is not None:
        told["METRICSWEEP_PARTS"] = os.path.abspath(settings.parts)
    return told
