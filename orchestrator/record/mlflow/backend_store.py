"""MLflow's backend store where it is a SQLite file of our own: runs are written into it, each in one transaction.

What the server takes for a run, through its requests and its object-relational mapper, is many times what the rows
themselves take. So they are written here just as it writes them, where its tables are those that we know. What is not
plain (what is gone or in the trash, params that differ, files that lie elsewhere) the server still does.
"""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from time import time_ns
from typing import Final, Literal
from uuid import uuid4

from orchestrator.record.mlflow import entities, new_store
from orchestrator.record.mlflow.artifact_files import ARTIFACTS_FOLDER, ArtifactFiles
from orchestrator.record.mlflow.entities import KEY_TAG, SHAPE, SHAPE_TAG, RunContent
from orchestrator.record.mlflow.experiment_names import SWEEP_TAG, candidates
from orchestrator.record.mlflow.told import Memory, ToldRun
from orchestrator.record.tracker import DatasetMirror, RunMirror

REVISIONS: Final = frozenset({new_store.REVISION})
"""Of MLflow's schema: those under which runs are written here as MLflow writes them."""
_BUSY_SECONDS: Final = 5.0

_EXPERIMENT: Final = """
    SELECT e.artifact_location, t.value FROM experiments e
    LEFT JOIN experiment_tags t ON t.experiment_id = e.experiment_id AND t.key = ?
    WHERE e.experiment_id = ? AND e.lifecycle_stage = 'active'"""
_OF_SWEEP: Final = """
    SELECT e.experiment_id FROM experiments e JOIN experiment_tags t ON t.experiment_id = e.experiment_id
    WHERE t.key = ? AND t.value = ? AND e.lifecycle_stage = 'active' ORDER BY e.last_update_time DESC LIMIT 1"""
_TAKEN: Final = "SELECT 1 FROM experiments WHERE name = ?"
_NEW_EXPERIMENT: Final = """
    INSERT INTO experiments (name, lifecycle_stage, creation_time, last_update_time) VALUES (?, 'active', ?, ?)"""
_LOCATION: Final = "SELECT artifact_location FROM experiments WHERE experiment_id = ?"
_LOCATE: Final = "UPDATE experiments SET artifact_location = ? WHERE experiment_id = ?"
_EXPERIMENT_TAG: Final = """
    INSERT INTO experiment_tags (key, value, experiment_id) VALUES (?, ?, ?)
    ON CONFLICT (key, experiment_id) DO UPDATE SET value = excluded.value WHERE value IS NOT excluded.value"""
_ASSESSED: Final = "SELECT 1 FROM assessments LIMIT 1"
_TRASH: Final = """
    UPDATE experiments SET lifecycle_stage = 'deleted', last_update_time = ?
    WHERE experiment_id = ? AND lifecycle_stage = 'active'"""
_TRASH_RUNS: Final = "UPDATE runs SET lifecycle_stage = 'deleted', deleted_time = ? WHERE experiment_id = ?"
_FILES_OF: Final = "SELECT artifact_uri FROM runs WHERE run_uuid = ?"
_OF_KEY: Final = """
    SELECT r.run_uuid FROM tags t JOIN runs r ON r.run_uuid = t.run_uuid
    WHERE t.key = ? AND t.value = ? AND r.experiment_id = ? AND r.lifecycle_stage = 'active' LIMIT 1"""
_KEYS: Final = """
    SELECT r.run_uuid, t.value FROM runs r JOIN tags t ON t.run_uuid = r.run_uuid AND t.key = ?
    WHERE r.experiment_id = ? AND r.lifecycle_stage = 'active' ORDER BY r.start_time DESC, r.run_uuid"""
_OF_SHAPE: Final = "SELECT 1 FROM tags WHERE key = ? AND value = ? AND run_uuid = ?"
_NEW_RUN: Final = """
    INSERT INTO runs (run_uuid, name, source_type, source_name, entry_point_name, user_id, status, start_time,
                      source_version, lifecycle_stage, artifact_uri, experiment_id)
    VALUES (?, ?, 'UNKNOWN', '', '', 'unknown', 'RUNNING', ?, '', 'active', ?, ?)"""
_RUN: Final = "SELECT experiment_id FROM runs WHERE run_uuid = ? AND lifecycle_stage = 'active'"
_STATE: Final = "UPDATE runs SET status = ?, end_time = coalesce(?, end_time) WHERE run_uuid = ?"
_NAME: Final = "UPDATE runs SET name = ? WHERE run_uuid = ?"
_TAG: Final = """
    INSERT INTO tags (key, value, run_uuid) VALUES (?, ?, ?)
    ON CONFLICT (key, run_uuid) DO UPDATE SET value = excluded.value"""
_PARAM: Final = "INSERT INTO params (key, value, run_uuid) VALUES (?, ?, ?)"
_METRIC: Final = """
    INSERT INTO metrics (key, value, timestamp, step, run_uuid, is_nan) VALUES (?, ?, ?, ?, ?, 0)
    ON CONFLICT DO NOTHING"""
_LATEST: Final = """
    INSERT INTO latest_metrics (key, value, timestamp, step, run_uuid, is_nan) VALUES (?, ?, ?, ?, ?, 0)
    ON CONFLICT (key, run_uuid) DO UPDATE
    SET value = excluded.value, timestamp = excluded.timestamp, step = excluded.step, is_nan = 0
    WHERE (excluded.step, excluded.timestamp, excluded.value) > (step, timestamp, value)"""
_DATASET: Final = """
    INSERT INTO datasets (dataset_uuid, experiment_id, name, digest, dataset_source_type, dataset_source)
    VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"""
_DATASET_ID: Final = "SELECT dataset_uuid FROM datasets WHERE experiment_id = ? AND name = ? AND digest = ?"
_INPUT: Final = """
    INSERT INTO inputs (input_uuid, source_type, source_id, destination_type, destination_id)
    VALUES (?, 'DATASET', ?, 'RUN', ?) ON CONFLICT DO NOTHING"""
_INPUT_TAG: Final = "INSERT INTO input_tags (input_uuid, name, value) VALUES (?, ?, ?)"


class BackendStore:
    """The file of one MLflow server, beside which its artifacts are in `mlartifacts`."""

    def __init__(self, file: Path) -> None:
        self._address = f"{file.absolute().as_uri()}?mode=rw"  # which never makes one
        self._files = ArtifactFiles(file.with_name(ARTIFACTS_FOLDER))

    def experiment(self, name: str, uid: str, tags: Mapping[str, str]) -> tuple[str, bool] | None:
        """The id of a sweep's experiment with these tags, and whether it was made; None where the server has to."""
        try:
            with _transaction(self._address, "IMMEDIATE") as connection:
                found = connection.execute(_OF_SWEEP, (SWEEP_TAG, uid)).fetchone()
                ident = _new_experiment(connection, name, uid) if found is None else str(found[0])
                connection.executemany(_EXPERIMENT_TAG, [(key, value, ident) for key, value in tags.items()])
            return ident, found is None
        except (_ServersError, sqlite3.Error, UnicodeEncodeError):
            return None

    def remove(self, experiment: str) -> bool:
        """Move an experiment with its runs to the trash, if it is there; False, and nothing is done: the server has to.

        It has to where anybody assesses traces: what is said of a run then goes with it, and sums are made anew.
        """
        try:
            with _transaction(self._address, "IMMEDIATE") as connection:
                if connection.execute(_ASSESSED).fetchone():
                    raise _ServersError
                now = time_ns() // 1_000_000
                if connection.execute(_TRASH, (now, experiment)).rowcount:
                    connection.execute(_TRASH_RUNS, (now, experiment))
            return True
        except (_ServersError, sqlite3.Error):
            return False

    def mirror(self, experiment: str, run: RunMirror, memory: Memory, *, new: bool) -> str | None:
        """Bring a run up to date and return its id; None, and nothing is written, where the server has to.

        `new`: nobody can have made a run of this key, so none is looked for.
        """
        content = entities.content_of(run)
        try:
            with _transaction(self._address, "IMMEDIATE") as connection:
                known = run.run if run.run is not None or new else _of_key(connection, experiment, run.key)
                if known is None:
                    known = _made(connection, experiment, run)
                if run.run is None:  # what it shows is not known, or is nothing
                    memory.forget(known)
                told = memory.of(known)
                _update(connection, known, run, content, told)
                location = self._kept(connection, known) if run.files else ""
        except (_ServersError, sqlite3.Error, UnicodeEncodeError):  # busy, damaged, not there: as the server says of it
            return None
        told.note_tags(content.tags)
        told.note_params(content.params)
        told.status, told.ended = entities.end_of(run)
        told.data = told.data or run.dataset is not None
        if run.files:  # nobody has noted yet that this run was told: whoever dies here tells it again
            self._files.write(location, run.files)
        return known

    def _kept(self, connection: sqlite3.Connection, run: str) -> str:
        """Where the files of a run belong; raises _ServersError where that is not in our folder."""
        (location,) = connection.execute(_FILES_OF, (run,)).fetchone()
        if not self._files.keeps(location):
            raise _ServersError
        return str(location)

    def keys(self, experiment: str) -> dict[str, str] | None:
        """Our runs of an experiment: their keys by id; None where the server has to tell."""
        try:
            with _transaction(self._address, "DEFERRED") as connection:
                return dict(connection.execute(_KEYS, (KEY_TAG, experiment)))
        except (_ServersError, sqlite3.Error):
            return None


class _ServersError(Exception):
    """Something that is left to the server."""


@contextmanager
def _transaction(address: str, kind: Literal["DEFERRED", "IMMEDIATE"]) -> Iterator[sqlite3.Connection]:
    """What is read in it holds until its end, and one that fails leaves nothing; an immediate one may write.

    The file is opened for each: what lies at the address may be another one by now.
    """
    with closing(sqlite3.connect(address, _BUSY_SECONDS, isolation_level=None, uri=True)) as connection:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute(f"BEGIN {kind}")
        (revision,) = connection.execute("SELECT max(version_num) FROM alembic_version").fetchone()
        if revision not in REVISIONS:
            raise _ServersError
        yield connection
        connection.execute("COMMIT")


def _new_experiment(connection: sqlite3.Connection, name: str, uid: str) -> str:
    """The id of a new experiment under a name that is free; raises _ServersError where its files would not be here."""
    if connection.execute(_LOCATION, (0,)).fetchone() != (f"{new_store.ARTIFACTS}0",):
        raise _ServersError
    free = next((one for one in candidates(name, uid) if not connection.execute(_TAKEN, (one,)).fetchone()), None)
    if free is None:
        raise _ServersError
    now = time_ns() // 1_000_000
    ident = str(connection.execute(_NEW_EXPERIMENT, (free, now, now)).lastrowid)
    connection.execute(_LOCATE, (f"{new_store.ARTIFACTS}{ident}", ident))
    return ident


def _of_key(connection: sqlite3.Connection, experiment: str, key: str) -> str | None:
    """The run of a key, if somebody made it before; raises _ServersError for one of another shape."""
    found = connection.execute(_OF_KEY, (KEY_TAG, key, experiment)).fetchone()
    if found is None:
        return None
    if connection.execute(_OF_SHAPE, (SHAPE_TAG, SHAPE, found[0])).fetchone() is None:
        raise _ServersError
    return str(found[0])


def _made(connection: sqlite3.Connection, experiment: str, run: RunMirror) -> str:
    """The id of a new run; raises _ServersError where its experiment is gone or another sweep's."""
    found = connection.execute(_EXPERIMENT, (SWEEP_TAG, experiment)).fetchone()
    if found is None or run.sweep not in {None, found[1]}:
        raise _ServersError
    if not found[0].startswith(new_store.ARTIFACTS):  # where MLflow itself knows how paths are put together
        raise _ServersError
    ident = uuid4().hex
    artifacts, began = f"{found[0]}/{ident}/artifacts", entities.milliseconds(run.started)
    connection.execute(_NEW_RUN, (ident, run.name[: entities.MAX_NAME], began, artifacts, experiment))
    connection.execute(_TAG, (SHAPE_TAG, SHAPE, ident))
    return ident


def _update(connection: sqlite3.Connection, ident: str, run: RunMirror, content: RunContent, told: ToldRun) -> None:
    """Write what a run does not show; raises _ServersError where it is gone or has params of others."""
    of = connection.execute(_RUN, (ident,)).fetchone()
    if of is None:
        raise _ServersError
    if not told.knows(content.params):
        shown = dict(connection.execute("SELECT key, value FROM params WHERE run_uuid = ?", (ident,)))
        if any(shown.get(key, value) != value for key, value in content.params.items()):
            raise _ServersError
        unsaid = [(key, value, ident) for key, value in content.params.items() if key not in shown]
        connection.executemany(_PARAM, unsaid)
    tags = told.new_tags(content.tags)
    connection.executemany(_TAG, [(key, value, ident) for key, value in tags.items()])
    if entities.NAME_TAG in tags:
        connection.execute(_NAME, (tags[entities.NAME_TAG], ident))
    metrics = [(one.key, one.value, one.timestamp, one.step, ident) for one in content.metrics]
    connection.executemany(_METRIC, metrics)
    connection.executemany(_LATEST, metrics)
    if run.dataset is not None and not told.data:
        _use(connection, of[0], ident, run.dataset)
    state = entities.end_of(run)
    if (told.status, told.ended) != state:
        connection.execute(_STATE, (*state, ident))


def _use(connection: sqlite3.Connection, experiment: int, ident: str, data: DatasetMirror) -> None:
    """Note the data set of a run."""
    digest = data.digest[: entities.MAX_DIGEST]
    row = (uuid4().hex, experiment, data.name, digest, entities.DATASET_SOURCE, data.name)
    connection.execute(_DATASET, row)
    (dataset,) = connection.execute(_DATASET_ID, (experiment, data.name, digest)).fetchone()
    edge = uuid4().hex
    if connection.execute(_INPUT, (edge, dataset, ident)).rowcount:
        connection.execute(_INPUT_TAG, (edge, *entities.DATASET_TAG))
