"""Kept weights and sizes: what may be collected, and what was."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any, Final

import sqlalchemy as sa

from orchestrator.host.storage import Folder, Storage
from orchestrator.record import schema
from orchestrator.record.database import Access, FencedAccess, chunked, require_sweep
from orchestrator.record.schema import attempt, collected, request, training, trial
from orchestrator.views.errors import ConflictError, InvalidSpecError
from orchestrator.views.operations import CollectedView, CollectionPolicy
from orchestrator.views.runs import MeasuredTrial
from orchestrator.views.states import SWEEP_ENDED, TRIAL_ACTIVE, TrialState
from workers.catalog import Problem
from workers.contract import KEPT_FILES

_CHUNK: Final = 500


@dataclass(frozen=True, slots=True)
class Collectable:
    """A training whose weights may go, or whose going is recorded."""

    id: int
    uid: str
    attempts: tuple[int, ...]
    evaluable: bool = False  # it finished ok: further metrics could be told of what it kept
    recipe: Mapping[str, Any] = field(default_factory=dict)
    metrics: tuple[str, ...] = ()  # that it has, by their names
    counted: bool = False  # what it had is recorded already


class CollectionReader(Access):
    """Reads both."""

    def ended(self) -> list[tuple[int, str]]:
        """The sweeps that have ended, with their names."""
        table = schema.sweep
        query = sa.select(table.c.id, table.c.name).where(table.c.state.in_(SWEEP_ENDED)).order_by(table.c.id)
        with self._database.reading() as connection:
            return [(row.id, row.name) for row in connection.execute(query)]

    def require_ended(self, sweep: int) -> None:
        """Raise NotFoundError, or ConflictError for a sweep that goes on."""
        with self._database.reading() as connection:
            require_sweep(connection, sweep)
            state = connection.execute(sa.select(schema.sweep.c.state).where(schema.sweep.c.id == sweep)).scalar_one()
        if state not in SWEEP_ENDED:
            raise ConflictError(f"sweep {sweep} is {state}; only what has ended is collected")

    def of_sweep(self, sweep: int, policy: CollectionPolicy, kept: Collection[int]) -> list[Collectable]:
        """The trainings of an ended sweep that a policy takes; `kept` are trials that keep theirs."""
        with self._database.reading() as connection:
            return collectable(connection, sweep, policy, kept)

    def trainings(self, sweep: int) -> int:
        """How many trainings with weights of their own the trials of a sweep show, that nobody collected."""
        with self._database.reading() as connection:
            holders = _holders(connection, sweep)
            gone = sa.select(collected.c.training_id)
            return len(holders - set(connection.execute(gone).scalars()))

    def begun(self, request_id: int) -> bool:
        """Whether anything of a request was recorded."""
        query = sa.select(collected.c.training_id).where(collected.c.request == request_id).limit(1)
        with self._database.reading() as connection:
            return connection.execute(query).first() is not None

    def left(self, most: int) -> list[Collectable]:
        """Trainings whose going is recorded and whose files may still be there."""
        query = (
            sa.select(training.c.id, training.c.uid, collected.c.files)
            .join(collected, collected.c.training_id == training.c.id)
            .where(collected.c.removed.is_(None))
            .order_by(collected.c.training_id)  # by `training.id` SQLite would go through all trainings
            .limit(most)
        )
        with self._database.reading() as connection:
            rows = connection.execute(query).all()
            numbers = _numbers(connection, [row.id for row in rows])
        return [
            Collectable(row.id, row.uid, tuple(numbers.get(row.id, ())), counted=row.files is not None) for row in rows
        ]

    def require_kept(self, measured: Iterable[MeasuredTrial], fresh: bool) -> None:
        """Raise InvalidSpecError where trials are to have further metrics of weights that were collected."""
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
        """The trainings, files and bytes of a request."""
        sums = (sa.func.count(), sa.func.sum(collected.c.files), sa.func.sum(collected.c.bytes))
        with self._database.reading() as connection:
            row = connection.execute(sa.select(*sums).where(collected.c.request == request_id)).one()
        return int(row[0]), int(row[1] or 0), int(row[2] or 0)

    def of_trial(self, trial_id: int) -> CollectedView | None:
        """What was collected of the training that a trial shows, or of the one whose weights that evaluated."""
        holder = sa.func.coalesce(training.c.source, training.c.id)
        query = (
            sa.select(collected)
            .select_from(trial)
            .join(training, training.c.id == trial.c.training_id)
            .join(collected, collected.c.training_id == holder)
            .where(trial.c.id == trial_id)
        )
        with self._database.reading() as connection:
            row = connection.execute(query).one_or_none()
        if row is None:
            return None
        return CollectedView(
            at=row.at, reason=row.reason, request=row.request, files=row.files or 0, bytes=row.bytes or 0,
            removed=row.removed is not None,
        )  # fmt: skip


def collectable(
    connection: sa.Connection, sweep: int, policy: CollectionPolicy, kept: Collection[int]
) -> list[Collectable]:
    """The same within a transaction. Kept is what another sweep shows too, and what an evaluation waits for."""
    holders = _holders(connection, sweep)
    safe = _shown_by(connection, kept) | _elsewhere(connection, sweep)
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
    """Of these the ones that a training has or will have, whatever became of the weights of another."""
    query = sa.select(training.c.fingerprint, training.c.state).where(training.c.fingerprint.in_(fingerprints))
    # Not asked of the database: SQLite would begin by the states, with a year of finished trainings.
    return {row.fingerprint for row in connection.execute(query) if row.state in {TrialState.FINISHED, *TRIAL_ACTIVE}}


def _lost(connection: sa.Connection, trials: Collection[int]) -> int:
    """How many of some trials show results of weights that were collected."""
    holder = sa.func.coalesce(training.c.source, training.c.id)
    query = sa.select(sa.func.count()).select_from(trial).join(training, training.c.id == trial.c.training_id)
    query = query.join(collected, collected.c.training_id == holder)
    shows = (trial.c.id.in_(trials), trial.c.state == TrialState.FINISHED, ~trial.c.diverged)
    return int(connection.execute(query.where(*shows)).scalar_one())


def revivals(connection: sa.Connection, sweep: int) -> bool:
    """Whether something waits that may need what the sweep's trainings kept: an extension, or a retry."""
    waiting = (request.c.sweep_id == sweep, request.c.applied.is_(None), request.c.kind.in_(["extend", "retry"]))
    return connection.execute(sa.select(request.c.id).where(*waiting).limit(1)).first() is not None


def _holders(connection: sa.Connection, sweep: int) -> set[int]:
    """The trainings whose files stand behind a sweep's trials: an evaluation has those of its source."""
    return _pointed(connection, trial.c.sweep_id == sweep)


def _shown_by(connection: sa.Connection, trials: Iterable[int]) -> set[int]:
    found: set[int] = set()
    for chunk in chunked(sorted(trials), _CHUNK):
        found |= _pointed(connection, trial.c.id.in_(chunk))
    return found


def _elsewhere(connection: sa.Connection, sweep: int) -> set[int]:
    """The trainings of this sweep's trials that trials of others show too, or that they evaluate."""
    shared = trial.alias("shared")
    mine = sa.select(shared.c.training_id).where(shared.c.sweep_id == sweep)
    sources = sa.select(training.c.source).where(training.c.id.in_(mine), training.c.source.is_not(None))
    kin = sa.select(training.c.id).where(training.c.source.in_(mine.union(sources)))
    known = sa.or_(trial.c.training_id.in_(mine), trial.c.training_id.in_(kin), trial.c.evaluation_id.in_(kin))
    return _pointed(connection, sa.and_(trial.c.sweep_id != sweep, known))


def _pointed(connection: sa.Connection, which: sa.ColumnElement[bool]) -> set[int]:
    """The trainings that hold the files of some trials' numbers, those that they have and those that they wait for."""
    found: set[int] = set()
    for column in (trial.c.training_id, trial.c.evaluation_id):
        holder = sa.func.coalesce(training.c.source, training.c.id)
        query = sa.select(holder).join(trial, column == training.c.id).where(which).distinct()
        found |= set(connection.execute(query).scalars())
    return found


def _numbers(connection: sa.Connection, trainings: Iterable[int]) -> dict[int, list[int]]:
    numbers: dict[int, list[int]] = {}
    for chunk in chunked(trainings, _CHUNK):
        query = sa.select(attempt.c.training_id, attempt.c.number).where(attempt.c.training_id.in_(chunk))
        for row in connection.execute(query.order_by(attempt.c.id)):
            numbers.setdefault(row.training_id, []).append(row.number)
    return numbers


class SizeReader(Access):
    """Reads sizes; those of the storage are the storage's to tell."""

    def database(self) -> int | None:
        """The bytes of the database; none where it does not tell."""
        engine = self._database.engine
        if self._database.sqlite:
            path = Path(engine.url.database or "")
            files = [path, path.with_name(f"{path.name}-wal")]
            return sum(file.stat().st_size for file in files if file.is_file())
        query = sa.select(sa.func.pg_database_size(sa.func.current_database()))
        with self._database.reading() as connection:
            return int(connection.execute(query).scalar_one())

    def sweeps(self) -> dict[int, str]:
        """The names of all sweeps."""
        query = sa.select(schema.sweep.c.id, schema.sweep.c.name)
        with self._database.reading() as connection:
            return {row.id: row.name for row in connection.execute(query)}

    def folders(self, sweep: int | None = None) -> Mapping[str, set[int]]:
        """By the folder of each attempt, the sweeps whose trials its training stands behind."""
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
        """By sweep, the bytes of its trainings' logs; what several share counts for each. With `sweep`, of it alone."""
        query = (
            sa.select(trial.c.sweep_id, sa.func.sum(attempt.c.log_bytes).label("size"))
            .join(attempt, attempt.c.training_id == trial.c.training_id)
            .group_by(trial.c.sweep_id)
        )
        if sweep is not None:
            query = query.where(trial.c.sweep_id == sweep)
        with self._database.reading() as connection:
            return {row.sweep_id: int(row.size or 0) for row in connection.execute(query)}


WEIGHTS: Final = frozenset({".pt", ".pth", ".ckpt"})
"""What a training keeps beside figures and its spool."""
ALWAYS: Final = frozenset({*KEPT_FILES, "last.pt"})
"""What our own trainings call their weights, so that they are found without a listing."""


def kind_of(name: str) -> str:
    """Whether a file of an attempt is weights, the spool or a figure's."""
    if PurePosixPath(name).suffix.lower() in WEIGHTS:
        return "weights"
    return "spools" if name.startswith("spool") and name.endswith(".jsonl") else "figures"


class WeightFiles:
    """Never follows a link: what one leads to is somebody else's. Raises OSError where the storage is away."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def of(self, uid: str, numbers: Iterable[int]) -> list[tuple[str, str, int]]:
        """The files of a training's attempts, as folder, name and bytes."""
        return [
            (folder, name, size)
            for folder in (f"{uid}/{number}" for number in numbers)
            for name, size in sorted(self._there(folder).items())
        ]

    def _there(self, folder: str) -> dict[str, int]:
        """The weights in a folder with their bytes. A bucket's listing may be late, so that it is not believed."""
        listed = {name: size for name, size in self._storage.entries(folder) if kind_of(name) == "weights"}
        if isinstance(self._storage, Folder):
            return listed
        there = {}
        for name in listed.keys() | ALWAYS:
            with suppress(FileNotFoundError):
                there[name] = self._storage.size(folder, name)
        return there

    def remove(self, files: Sequence[tuple[str, str, int]]) -> None:
        """Remove these; one that is gone already changes nothing."""
        for folder, name, _ in files:
            self._storage.discard(folder, name)


class CollectionWriter(FencedAccess):
    """Each step may be done a second time after a crash."""

    def begin(self, sweep: int, policy: CollectionPolicy, kept: Collection[int], request: int) -> int:
        """Record that the weights of what the policy takes go; how many trainings. Raises ConflictError."""
        with self._database.writing() as connection:
            if revivals(connection, sweep):
                raise ConflictError(f"an extension or a retry of sweep {sweep} waits, which may need its weights")
            going = collectable(connection, sweep, policy, kept)
            if going:
                now = datetime.now(UTC)
                rows = [
                    {"training_id": one.id, "request": request, "at": now, "reason": policy.reason} for one in going
                ]
                connection.execute(sa.insert(collected), rows)
            return len(going)

    def count(self, training: int, files: int, size: int) -> None:
        """Record what a training had, before any of it goes."""
        with self._database.writing() as connection:
            row = sa.update(collected).where(collected.c.training_id == training, collected.c.files.is_(None))
            connection.execute(row.values(files=files, bytes=size))

    def removed(self, trainings: Collection[int]) -> None:
        """Record that the files of some trainings are gone."""
        with self._database.writing() as connection:
            rows = sa.update(collected).where(collected.c.training_id.in_(trainings), collected.c.removed.is_(None))
            connection.execute(rows.values(removed=datetime.now(UTC)))
