"""Answers operators: health, cluster, metrics, retention of weights, and slots as Slurm jobs."""

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
from orchestrator.run.files.slot import slots_folder
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

_BEHIND_SECONDS: Final = 900.0
"""How long a run may wait for MLflow before the check fails."""
READY_SECONDS: Final = 1.0
_GAUGES_SECONDS: Final = 5.0
_READY_SHARE: Final = 4


class Operations:
    """Answers about the installation; what Prometheus and watchdogs request is cached for some seconds."""

    def __init__(self, settings: Settings, store: Store) -> None:
        self._settings, self._store = settings, store
        self._storage = storage.opened(settings.storage)
        self._ready: Cache[str, Readiness] = Cache(1, READY_SECONDS, _READY_SHARE)
        self._gauges: Cache[str, Gauges] = Cache(1, _GAUGES_SECONDS)

    def ready(self) -> Readiness:
        """Whether the service can do its work, with a message for each missing thing."""
        return self._ready.get("", self._checked)

    def gauges(self) -> Cached[Gauges]:
        """The measurements of the database for Prometheus, with their age; raises UnavailableError."""
        return self._gauges.entry("", lambda: self._store.gauges.read(self._settings.owner_slots))

    def cluster(self) -> ClusterView:
        """Nodes, slots and the queue with the sweeps that the caller sees; raises UnavailableError."""
        return ClusterView(
            conducted=self._store.lease.conducted(),
            heartbeat_seconds=self._store.cluster.heartbeat(),
            nodes=self._store.cluster.nodes(),
            slots=self._store.cluster.slots(),
            queue=self._store.cluster.queue(self._settings.owner_slots),
        )

    def quotas(self) -> list[QuotaUse]:
        """The quotas of the caller and its projects, or all quotas for administrators, with their use.

        Raises UnavailableError.
        """
        who, uses = caller(), self._store.quotas.uses()
        if who.seen is None:
            return uses
        mine = {("user", who.name), *(("project", name) for name in self._store.accounts.names_of(who.seen))}
        return [use for use in uses if (use.kind, use.name) in mine]

    def places(self) -> list[Disk]:
        """The folders of this machine that grow, such as the home, with the free space of their disks."""
        disks = {name: disk.disk_of(folder) for name, folder in self._settings.places.items()}
        return [Disk(name=name, free_bytes=found.free, size_bytes=found.size) for name, found in disks.items()]

    def _checked(self) -> Readiness:
        checks = list(self._checks())
        return Readiness(ok=all(check.ok for check in checks), checks=checks)

    def _checks(self) -> Iterator[Check]:
        checks: list[tuple[str, Callable[[], tuple[bool, str]]]] = []
        try:
            self._store.ping()
        except UnavailableError as error:
            yield Check(name="database", ok=False, detail=str(error))
        else:
            damage = self._store.pages.damage()
            yield Check(name="database", ok=damage is None, detail=damage or "answers")
            checks += [
                ("migrations", self._migrations), ("conductor", self._conductor), ("engine", self._engine),
                ("mlflow", self._mlflow), ("webhook", self._webhook),
            ]  # fmt: skip
        for name, check in (*checks, ("disk", self._disk), ("storage", self._stored)):
            yield _result(name, check)

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
        known, present = self._store.capacity.nodes(), self._store.capacity.nodes(present=True)
        if self._settings.engine == "files":  # no slot is right as long as nothing is to be trained
            return True, f"{len(present)} slots have joined" if len(present) != 1 else "1 slot has joined"
        if self._settings.engine != "ray_tune" or not known:
            return True, "no node has been seen yet" if self._settings.engine == "ray_tune" else "is no cluster"
        if not present:
            return False, "no node of the cluster answers; nothing can train"
        return True, "1 node" if len(present) == 1 else f"{len(present)} nodes"

    def _mlflow(self) -> tuple[bool, str]:
        if not (self._settings.mlflow_url or self._settings.mlflow_socket):
            return True, "none is named"
        backlog = self._store.outbox.backlog()
        if backlog.failing:
            return False, f"did not take {backlog.failing} runs at the last try; the conductor's log says why"
        if backlog.seconds > _BEHIND_SECONDS:
            return False, f"is behind: the oldest of {backlog.runs} runs has waited for {backlog.seconds / 60:.0f} min"
        return True, "shows all runs" if not backlog.runs else f"still lacks {backlog.runs} runs"

    def _webhook(self) -> tuple[bool, str]:
        if self._settings.webhook_url is None:
            return True, "none is named"
        backlog = self._store.deliveries.backlog()
        if backlog.failing or backlog.given_up:
            given_up = f" and {backlog.given_up} were given up within a week" if backlog.given_up else ""
            failing = f"did not take {backlog.failing} of {backlog.waiting} events{given_up}"
            return False, f"{failing}; the last try: {backlog.error}"
        return True, "has taken all events" if not backlog.waiting else f"still lacks {backlog.waiting} events"

    def _disk(self) -> tuple[bool, str]:
        if troubles := disk.troubles(self._settings.places):
            return False, disk.wait_reason(troubles)
        return True, ", ".join(f"{place.name}: {place.free_bytes / disk.GIB:.1f} GiB free" for place in self.places())

    def _stored(self) -> tuple[bool, str]:
        wrong = self._storage.problem()
        return wrong is None, wrong or "can be written"


def _result(name: str, check: Callable[[], tuple[bool, str]]) -> Check:
    """The result of a check; an error in it makes it fail."""
    try:
        ok, detail = check()
    except Exception as error:
        log.warning("the check of %s failed: %s", name, error)
        # Other messages may hold a statement of the database with its values, which belongs into the log only.
        message = f": {error}" if isinstance(error, MetricsweepError | OSError) else ""
        ok, detail = False, f"cannot be checked: {type(error).__name__}{message}"
    return Check(name=name, ok=ok, detail=detail)


class Retention:
    """Measures the storage and removes weights. It lists files one by one, which takes long for a large storage."""

    def __init__(self, settings: Settings, store: Store, catalog: Catalog) -> None:
        self._store, self._catalog = store, catalog
        self._storage = storage.opened(settings.storage)
        self._files = WeightFiles(self._storage)

    def sizes(self, sweep: int | None = None) -> StorageView:
        """The sizes of stored files, by sweep and kind, of all sweeps or of one; raises NotFoundError."""
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
        kinds = ("weights", "figures", "spools", "logs")
        by_size = sorted(by_sweep.items(), key=lambda item: -sum(item[1][kind] for kind in kinds))
        return StorageView(
            database_bytes=self._store.sizes.database(), decoded_bytes=decoded_bytes(),
            **{f"{kind}_bytes": total[kind] for kind in kinds},
            sweeps=[
                SweepStorage(sweep=number, name=names[number], **{f"{kind}_bytes": sizes[kind] for kind in kinds})
                for number, sizes in by_size
            ],
        )  # fmt: skip

    def collect(
        self, policy: CollectionPolicy, sweep: int | None, actor: str | None, *, dry_run: bool
    ) -> CollectionView:
        """The weights that a policy removes of one sweep, or of all ended sweeps; requests it unless it is a dry run.

        Raises NotFoundError, and ConflictError for a sweep that has not ended.
        """
        if sweep is not None:
            self._store.collection.require_ended(sweep)
        ended = dict(self._store.collection.ended())
        chosen = list(ended) if sweep is None else [sweep]
        rows = [self._row(number, ended[number], policy) for number in timely(chosen)]
        going = [row for row in rows if row.trainings]
        arguments = {"policy": policy.model_dump(mode="json")}
        for row in () if dry_run else going:
            row.request = self._store.submissions.add_request("collect", row.sweep, None, actor, arguments)
        return CollectionView(dry_run=dry_run, sweeps=going, bytes=sum(row.bytes for row in going))

    def _row(self, sweep: int, name: str, policy: CollectionPolicy) -> CollectableSweep:
        spec = self._store.sweeps.get(sweep).spec
        better = direction(selection(spec).metric or "map@r", self._catalog)
        kept = best_trials(self._store.sweeps.grid(sweep), policy.keep, better)
        going = self._store.collection.of_sweep(sweep, policy, kept)
        files = [file for training in timely(going) for file in self._files.of(training.uid, training.attempts)]
        return CollectableSweep(
            sweep=sweep, name=name, trainings=len(going), files=len(files), bytes=sum(size for *_, size in files),
            kept=self._store.collection.trainings(sweep) - len(going), retrained=self._retrained(going),
        )  # fmt: skip

    def _retrained(self, going: Iterable[Collectable]) -> list[str]:
        """The metrics that the weights could still give, and that are not known of each of them."""
        names: set[str] = set()
        seen: set[tuple[str, str, tuple[str, ...]]] = set()
        for training in going:
            kind = (str(training.recipe.get("task")), str(training.recipe.get("dataset")), training.metrics)
            if training.evaluable and kind not in seen:
                seen.add(kind)
                names.update(self._further(training.recipe, training.metrics))
        return sorted(names)

    def _further(self, recipe: Mapping[str, Any], known: Iterable[str]) -> Iterable[str]:
        computed = set(known)
        for entry in self._catalog.of("metric"):
            for name, shown in _examples(entry):
                wider = {**recipe, "metrics": [*(recipe.get("metrics") or ()), name]}
                if name not in computed and not problems(wider, self._catalog):
                    yield shown


def _examples(entry: Entry) -> Iterator[tuple[str, str]]:
    """Names of a metric that a recipe may hold, each with its name for any k."""
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
    report: Callable[[str], None],
    ended: threading.Event,
    every: float | None,
) -> str:
    """Keep up to `most` slots alive as jobs of Slurm until `ended` is set; without `every`, check once.

    Returns the name of its jobs. Raises MetricsweepError if slots cannot join the storage.
    """
    variables = {"METRICSWEEP_STORAGE_URL": str(settings.storage), **MALLOC}  # no secrets
    if settings.data is not None:
        variables["METRICSWEEP_DATA"] = os.path.abspath(settings.data)
    if settings.parts is not None:
        variables["METRICSWEEP_PARTS"] = os.path.abspath(settings.parts)
    keeper = Keeper(slots_folder(settings.storage), job, most, variables, report)
    while not ended.is_set():
        keeper.turn()
        if every is None:
            break
        ended.wait(every)
    return keeper.name
