"""Which kept weights may be removed and which were; and the sizes of databases, logs and folders."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any, Final

import sqlalchemy as sa

from orchestrator.host.storage import Folder, Storage
from orchestrator.record.database import Access, FencedAccess, chunked, require_sweep
from orchestrator.record.requests import revival_waits
from orchestrator.record.schema import attempt, collected, training, trial
from orchestrator.record.schema import sweep as sweeps
from orchestrator.views.errors import ConflictError, InvalidSpecError
from orchestrator.views.operations import CollectedView, CollectionPolicy
from orchestrator.views.runs import MeasuredTrial
from orchestrator.views.states import SWEEP_ENDED, TRIAL_ACTIVE, TrialState
from workers.catalog import Problem
from workers.contract import KEPT_FILES

_CHUNK: Final = 500
_HOLDER: Final = sa.func.coalesce(training.c.source, training.c.id)
"""The training that keeps the weights: an evaluation uses those of its source."""


@dataclass(frozen=True, slots=True)
class Collectable:
    """A training whose kept weights may be removed, or are being removed."""

    id: int
    uid: str
    attempts: tuple[int, ...]
    evaluable: bool = False  # whether its weights could be evaluated for further metrics
    recipe: Mapping[str, Any] = field(default_factory=dict)
    metrics: tuple[str, ...] = ()  # the names of its metrics
    counted: bool = False  # whether the number and size of its files are recorded


class CollectionReader(Access):
    """Reads which trainings' kept weights may be removed from the storage, and which were."""

    def ended(self) -> list[tuple[int, str]]:
        """The numbers and names of the sweeps that have ended."""
        query = sa.select(sweeps.c.id, sweeps.c.name).where(sweeps.c.state.in_(SWEEP_ENDED)).order_by(sweeps.c.id)
        return [(row.id, row.name) for row in self._rows(query)]

    def require_ended(self, sweep: int) -> None:
        """Raise ConflictError unless the sweep has ended, NotFoundError if it does not exist."""
        with self._database.reading() as connection:
            state = require_sweep(connection, sweep)
        if state not in SWEEP_ENDED:
            raise ConflictError(f"sweep {sweep} is {state}; weights are removed only after a sweep has ended")

    def of_sweep(self, sweep: int, policy: CollectionPolicy, kept: Collection[int]) -> list[Collectable]:
        """The trainings of an ended sweep whose weights a retention policy removes.

        `kept`: the trials that keep their weights.
        """
        with self._database.reading() as connection:
            return _collectable(connection, sweep, policy, kept)

    def trainings(self, sweep: int) -> int:
        """The number of trainings of a sweep whose kept weights were not removed."""
        with self._database.reading() as connection:
            holders = _pointed(connection, trial.c.sweep_id == sweep)
            gone = sa.select(collected.c.training_id)
            return len(holders - set(connection.scalars(gone)))

    def begun(self, request_id: int) -> bool:
        """Whether the removal of weights that a request asked for has begun."""
        return self._exists(sa.select(collected.c.training_id).where(collected.c.request == request_id))

    def left(self, most: int) -> list[Collectable]:
        """Trainings whose removal of weights is recorded and whose files may still exist."""
        query = (
            sa.select(training.c.id, training.c.uid, collected.c.files)
            .join(collected, collected.c.training_id == training.c.id)
            .where(collected.c.removed.is_(None))
            .order_by(collected.c.training_id)  # for `training.id`, SQLite would scan all trainings
            .limit(most)
        )
        with self._database.reading() as connection:
            rows = connection.execute(query).all()
            numbers = _numbers(connection, [row.id for row in rows])
        return [
            Collectable(row.id, row.uid, tuple(numbers.get(row.id, ())), counted=row.files is not None) for row in rows
        ]

    def require_kept(self, measured: Iterable[MeasuredTrial], fresh: bool) -> None:
        """Raise InvalidSpecError if further metrics need weights that were removed."""
        lost = 0
        with self._database.reading() as connection:
            for chunk in chunked(measured, _CHUNK):
                coming = set() if fresh else _coming(connection, [one.plan.fingerprint for one in chunk])
                lost += _lost(connection, [one.trial for one in chunk if one.plan.fingerprint not in coming])
        if lost:
            raise InvalidSpecError([Problem(
                "recipe.metrics",
                f"the weights of {lost} of the sweep's trials were collected, so that nothing tells them the further "
                "metrics; submit the wider spec as a new sweep (`metricsweep submit`), which trains these anew",
            )])  # fmt: skip

    def outcome(self, request_id: int) -> tuple[int, int, int]:
        """The numbers of trainings, files and bytes that a request to remove weights has removed."""
        query = sa.select(collected.c.files, collected.c.bytes).where(collected.c.request == request_id)
        rows = self._rows(query)
        return len(rows), sum(row.files or 0 for row in rows), sum(row.bytes or 0 for row in rows)

    def of_trial(self, trial_id: int) -> CollectedView | None:
        """The removal of the weights that a trial trained or that its training evaluates, or `None`."""
        query = (
            sa.select(collected)
            .select_from(trial)
            .join(training, training.c.id == trial.c.training_id)
            .join(collected, collected.c.training_id == _HOLDER)
            .where(trial.c.id == trial_id)
        )
        row = self._row(query)
        if row is None:
            return None
        return CollectedView(
            at=row.at, reason=row.reason, request=row.request, files=row.files or 0, bytes=row.bytes or 0,
            removed=row.removed is not None,
        )  # fmt: skip


def _collectable(
    connection: sa.Connection, sweep: int, policy: CollectionPolicy, kept: Collection[int]
) -> list[Collectable]:
    """Without weights that another sweep shows or for which an evaluation waits."""
    holders = _pointed(connection, trial.c.sweep_id == sweep)
    safe = _elsewhere(connection, sweep)
    for chunk in chunked(sorted(kept), _CHUNK):
        safe |= _pointed(connection, trial.c.id.in_(chunk))
    source = training.alias()
    waits = sa.exists().where(source.c.source == training.c.id, source.c.state.in_(TRIAL_ACTIVE))
    trains = sa.exists().where(attempt.c.training_id == training.c.id, attempt.c.state == "running")
    gone = sa.exists().where(collected.c.training_id == training.c.id)
    columns = (training.c.id, training.c.uid, training.c.state, training.c.diverged, training.c.recipe)
    rows: list[Any] = []
    for chunk in chunked(sorted(holders - safe), _CHUNK):
        query = sa.select(*columns, training.c.metrics).where(training.c.id.in_(chunk), ~waits, ~trains, ~gone)
        ended = (training.c.state.in_(list(policy.states)), training.c.ended < policy.before.astimezone(UTC))
        rows += connection.execute(query.where(*ended).order_by(training.c.id)).all()
    numbers = _numbers(connection, [row.id for row in rows])
    return [
        Collectable(
            row.id, row.uid, tuple(numbers.get(row.id, ())), row.state == TrialState.FINISHED and not row.diverged,
            row.recipe, tuple({key.rpartition("/")[2]: None for key in row.metrics or ()}),
        )
        for row in rows
    ]  # fmt: skip


def _coming(connection: sa.Connection, fingerprints: Collection[str]) -> set[str]:
    """Which fingerprints a training has or will have."""
    query = sa.select(training.c.fingerprint, training.c.state).where(training.c.fingerprint.in_(fingerprints))
    # Not in the query: SQLite would use the index on the state, with a year of finished trainings.
    return {row.fingerprint for row in connection.execute(query) if row.state in {TrialState.FINISHED, *TRIAL_ACTIVE}}


def _lost(connection: sa.Connection, trials: Collection[int]) -> int:
    """How many of the trials have results whose weights were collected."""
    query = sa.select(sa.func.count()).select_from(trial).join(training, training.c.id == trial.c.training_id)
    query = query.join(collected, collected.c.training_id == _HOLDER)
    shows = (trial.c.id.in_(trials), trial.c.state == TrialState.FINISHED, ~trial.c.diverged)
    return int(connection.execute(query.where(*shows)).scalar_one())


def _elsewhere(connection: sa.Connection, sweep: int) -> set[int]:
    """The trainings of this sweep's trials that trials of other sweeps show or evaluate."""
    shared = trial.alias("shared")
    mine = sa.select(shared.c.training_id).where(shared.c.sweep_id == sweep)
    sources = sa.select(training.c.source).where(training.c.id.in_(mine), training.c.source.is_not(None))
    kin = sa.select(training.c.id).where(training.c.source.in_(mine.union(sources)))
    known = sa.or_(trial.c.training_id.in_(mine), trial.c.training_id.in_(kin), trial.c.evaluation_id.in_(kin))
    return _pointed(connection, sa.and_(trial.c.sweep_id != sweep, known))


def _pointed(connection: sa.Connection, which: sa.ColumnElement[bool]) -> set[int]:
    """The trainings with the weights behind trials' numbers and coming evaluations; an evaluation has its source's."""
    found: set[int] = set()
    for column in (trial.c.training_id, trial.c.evaluation_id):
        query = sa.select(_HOLDER).join(trial, column == training.c.id).where(which).distinct()
        found |= set(connection.scalars(query))
    return found


def _numbers(connection: sa.Connection, trainings: Iterable[int]) -> dict[int, list[int]]:
    numbers: dict[int, list[int]] = {}
    for chunk in chunked(trainings, _CHUNK):
        query = sa.select(attempt.c.training_id, attempt.c.number).where(attempt.c.training_id.in_(chunk))
        for row in connection.execute(query.order_by(attempt.c.id)):
            numbers.setdefault(row.training_id, []).append(row.number)
    return numbers


class SizeReader(Access):
    """Reads the sizes of the database and logs, and which sweeps the storage's folders belong to."""

    def database(self) -> int | None:
        """The size of the database in bytes."""
        engine = self._database.engine
        if self._database.sqlite:
            path = Path(engine.url.database or "")
            files = [path, path.with_name(f"{path.name}-wal")]
            return sum(file.stat().st_size for file in files if file.is_file())
        return int(self._scalar(sa.select(sa.func.pg_database_size(sa.func.current_database()))))

    def sweeps(self) -> dict[int, str]:
        """The names of all sweeps, by number."""
        return {row.id: row.name for row in self._rows(sa.select(sweeps.c.id, sweeps.c.name))}

    def folders(self, sweep: int | None = None) -> Mapping[str, set[int]]:
        """The sweeps that show the files of each attempt, by the attempt's folder in the storage."""
        source = training.alias("source")
        query = (
            sa.select(trial.c.sweep_id, sa.func.coalesce(source.c.uid, training.c.uid).label("uid"), attempt.c.number)
            .select_from(trial)
            .join(training, training.c.id == trial.c.training_id)
            .outerjoin(source, source.c.id == training.c.source)
            .join(attempt, attempt.c.training_id == sa.func.coalesce(source.c.id, training.c.id))
        )
        if sweep is not None:
            query = query.where(trial.c.sweep_id == sweep)
        folders: dict[str, set[int]] = {}
        with self._database.reading() as connection:
            for row in connection.execute(query):
                folders.setdefault(f"{row.uid}/{row.number}", set()).add(row.sweep_id)
        return folders

    def logs(self, sweep: int | None = None) -> dict[int, int]:
        """The bytes of training logs by sweep. Logs of shared trainings count for each sweep."""
        query = (
            sa.select(trial.c.sweep_id, sa.func.sum(attempt.c.log_bytes).label("size"))
            .join(attempt, attempt.c.training_id == trial.c.training_id)
            .group_by(trial.c.sweep_id)
        )
        if sweep is not None:
            query = query.where(trial.c.sweep_id == sweep)
        return {row.sweep_id: int(row.size or 0) for row in self._rows(query)}


WEIGHTS: Final = frozenset({".pt", ".pth", ".ckpt", ".safetensors"})
"""The suffixes of weights."""
ALWAYS: Final = frozenset({*KEPT_FILES, "last.pt"})
"""The names that our own trainings give their weights, which are found without a listing."""


def kind_of(name: str) -> str:
    """The kind of a file in an attempt's folder: `weights`, `spools` or `figures`."""
    if PurePosixPath(name).suffix.lower() in WEIGHTS:
        return "weights"
    return "spools" if name.startswith("spool") and name.endswith(".jsonl") else "figures"


class WeightFiles:
    """Finds and removes weight files in the storage, without following links; raises OSError."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def of(self, uid: str, numbers: Iterable[int]) -> list[tuple[str, str, int]]:
        """The weight files of a training's attempts, as folder, name and bytes.

        `uid`: of the training; `numbers`: of its attempts.
        """
        return [
            (folder, name, size)
            for folder in (f"{uid}/{number}" for number in numbers)
            for name, size in sorted(self._there(folder).items())
        ]

    def _there(self, folder: str) -> dict[str, int]:
        """The weights in a folder with their bytes. The sizes are asked for, since a bucket's listing may be late."""
        listed = {name: size for name, size in self._storage.entries(folder) if kind_of(name) == "weights"}
        if isinstance(self._storage, Folder):
            return listed
        there = {}
        for name in listed.keys() | ALWAYS:
            with suppress(FileNotFoundError):
                there[name] = self._storage.size(folder, name)
        return there

    def remove(self, files: Sequence[tuple[str, str, int]]) -> None:
        """Remove weight files, if they exist."""
        for folder, name, _ in files:
            self._storage.discard(folder, name)


class CollectionWriter(FencedAccess):
    """Records the removal of kept weights. Each method may be repeated after a crash."""

    def begin(self, sweep: int, policy: CollectionPolicy, kept: Collection[int], request: int) -> int:
        """Record that a policy removes weights of an ended sweep; returns how many trainings. Raises ConflictError."""
        with self._database.writing() as connection:
            if revival_waits(connection, sweep):
                raise ConflictError(f"an extension or a retry of sweep {sweep} waits, which may need its weights")
            going = _collectable(connection, sweep, policy, kept)
            if going:
                now = datetime.now(UTC)
                values = {"request": request, "at": now, "reason": policy.reason}
                connection.execute(sa.insert(collected), [{"training_id": one.id, **values} for one in going])
            return len(going)

    def count(self, training: int, files: int, size: int) -> None:
        """Record the number and total bytes of a training's weight files before they are removed."""
        with self._database.writing() as connection:
            row = sa.update(collected).where(collected.c.training_id == training, collected.c.files.is_(None))
            connection.execute(row.values(files=files, bytes=size))

    def removed(self, trainings: Collection[int]) -> None:
        """Record that the weight files of trainings are removed."""
        with self._database.writing() as connection:
            rows = sa.update(collected).where(collected.c.training_id.in_(trainings), collected.c.removed.is_(None))
            connection.execute(rows.values(removed=datetime.now(UTC)))
