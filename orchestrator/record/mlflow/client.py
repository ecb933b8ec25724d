"""The tracker that speaks to MLflow: an HTTP server, or its SQLite store without a server.

Only `MlflowClient` is used, never the fluent functions: those keep an active run per thread and print. A short trial
costs four requests (look for its key, create, one batch, end). Sending a run again changes nothing, because ids, times
and steps are the caller's.
"""

import json
import math
import os
import posixpath
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import TypeAlias

# MLflow starts its usage telemetry while it is imported, so this cannot wait for the constructor.
os.environ.setdefault("DO_NOT_TRACK", "true")

from mlflow.entities import Metric, Param, Run, RunTag
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

from orchestrator.record.mlflow.login import OwnServer
from orchestrator.record.tracker import RunMirror, Tracker
from orchestrator.views.errors import UnavailableError

CLIENT_ENVIRONMENT: Mapping[str, str] = {
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "5",  # seconds; the default of 120 would hold up the caller's thread
    # A retried POST makes a second run when only the answer was lost. The outbox retries, by the run's key.
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_DISABLE_TELEMETRY": "true",
}
"""What the client is told through the process's environment; a variable that is already set is left alone."""

SWEEP_TAG = "metricsweep.sweep"
KEY_TAG = "metricsweep.key"
KIND_TAG = "mlflow.experimentKind"  # else MLflow 3 opens an experiment as if it held traces of language models
NOT_FINITE_TAG = "metricsweep.not_finite"
PARAMS_DIFFER_TAG = "metricsweep.params_differ"

_MAX_METRICS, _MAX_PARAMS, _MAX_TAGS, _MAX_ENTITIES = 1_000, 100, 100, 1_000  # per log_batch, of all MLflow servers
_MAX_BYTES = 800_000  # of a batch's JSON; the server refuses 1,000,000
_MAX_KEY, _MAX_PARAM, _MAX_TAG, _MAX_NAME = 250, 6_000, 5_000, 480  # characters

Entity: TypeAlias = Metric | Param | RunTag


class TrackerRefusedError(UnavailableError):
    """MLflow answered and refused; waiting alone will not help, but the row may be tried again."""


class _MissingRunError(Exception):
    """The run is not on the server, or was deleted there."""


class MlflowTracker(Tracker):
    """Mirrors runs into MLflow. Methods raise UnavailableError when it does not answer within about 5 s.

    `url` is an `http(s)://` address or `sqlite:///<absolute path>`. Who we are to a server that was named is what
    `mlflow` reads itself, from MLFLOW_TRACKING_USERNAME and the like; `own` says it for the server of this home.
    """

    def __init__(self, url: str, own: OwnServer | None = None) -> None:
        for name, value in CLIENT_ENVIRONMENT.items():
            os.environ.setdefault(name, value)
        if own is not None:
            own.log_in()
        self._own = own
        self._url = url.rstrip("/")
        self._client = MlflowClient(tracking_uri=self._url, registry_uri=self._url)
        self._running: set[str] = set()  # runs that this process has shown as RUNNING

    def experiment(self, name: str, uid: str, tags: Mapping[str, str]) -> str:
        """The id of the sweep's experiment, found by its uid tag or made.

        A name taken by another sweep's or a deleted experiment gets a suffix from the uid.
        """
        with self._reached():
            ours = self._client.search_experiments(filter_string=f"tags.`{SWEEP_TAG}` = {_quoted(uid)}", max_results=1)
            if ours:
                return str(ours[0].experiment_id)
            every = {_key(key): value[:_MAX_TAG] for key, value in tags.items()}
            every |= {SWEEP_TAG: uid, KIND_TAG: "custom_model_development"}
            for candidate in _names(name, uid):
                try:
                    return str(self._client.create_experiment(candidate, self._artifact_location(uid), every))
                except MlflowException as error:
                    if error.error_code != "RESOURCE_ALREADY_EXISTS":
                        raise
        raise TrackerRefusedError(f"every name like {name!r} is taken in MLflow at {self._url}")

    def remove(self, experiment: str) -> None:
        """Move an experiment to MLflow's trash; one that is not there is no error."""
        with self._reached():
            try:
                self._client.delete_experiment(experiment)
            except MlflowException as error:
                if error.error_code not in {"RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE"}:
                    raise

    def mirror(self, experiment: str, run: RunMirror) -> str:
        """Bring one run up to date and return its id; a run that was deleted on the server is made anew."""
        with self._reached():
            if run.run is not None:
                try:
                    self._update(run.run, run, made=False)
                    return run.run
                except _MissingRunError:
                    pass
            found = self._find(experiment, run.key)
            run_id = found or self._create(experiment, run)
            self._update(run_id, run, made=found is None)
            return run_id

    @contextmanager
    def _reached(self) -> Iterator[None]:
        if self._own is not None:
            self._own.prove()
        with _translated(self._url):
            yield

    def _artifact_location(self, uid: str) -> str | None:
        """A server chooses; a bare store would take `./mlruns` of the current folder."""
        if not self._url.startswith("sqlite:///"):
            return None
        folder = Path(self._url.removeprefix("sqlite:///")).absolute().parent / "mlartifacts"
        return (folder / uid).as_uri()

    def _find(self, experiment: str, key: str) -> str | None:
        found = self._client.search_runs([experiment], f"tags.`{KEY_TAG}` = {_quoted(key)}", max_results=1)
        return str(found[0].info.run_id) if found else None

    def _create(self, experiment: str, run: RunMirror) -> str:
        made: Run = self._client.create_run(
            experiment, start_time=_milliseconds(run.started), tags=_tags(run), run_name=run.name[:_MAX_NAME]
        )
        run_id = str(made.info.run_id)
        self._running.add(run_id)
        return run_id

    def _update(self, run_id: str, run: RunMirror, *, made: bool) -> None:
        try:
            self._log(run_id, run, made=made)
            if run.files:
                self._upload(run_id, run.files)
            if run.ended is not None and run.status != "RUNNING":
                self._client.set_terminated(run_id, status=run.status, end_time=_milliseconds(run.ended))
                self._running.discard(run_id)
            elif run_id not in self._running:  # a retried trial: the server may still call it FAILED
                self._client.update_run(run_id, status="RUNNING")
                self._running.add(run_id)
        except MlflowException as error:
            if error.error_code == "RESOURCE_DOES_NOT_EXIST" or _is_deleted(error):
                self._running.discard(run_id)
                raise _MissingRunError from error
            raise

    def _log(self, run_id: str, run: RunMirror, *, made: bool) -> None:
        metrics, bad = _metrics(run)
        tags = {} if made else _tags(run)
        if bad:
            tags[NOT_FINITE_TAG] = ", ".join(bad)[:_MAX_TAG]
        params = {_key(key): value[:_MAX_PARAM] for key, value in run.params.items()}
        try:
            self._send(run_id, metrics, params, tags)
        except MlflowException as error:
            if error.error_code != "INVALID_PARAMETER_VALUE" or not params or _is_deleted(error):
                raise
            # Params are write-once: what differs from the first telling stays as it was told first.
            there = self._client.get_run(run_id).data.params
            differ = sorted(key for key, value in params.items() if there.get(key, value) != value)
            if not differ:
                raise
            tags[PARAMS_DIFFER_TAG] = ", ".join(f"{key}={params[key]}" for key in differ)[:_MAX_TAG]
            self._send(run_id, metrics, {key: value for key, value in params.items() if key not in there}, tags)

    def _send(self, run_id: str, metrics: list[Metric], params: Mapping[str, str], tags: Mapping[str, str]) -> None:
        entities: list[Entity] = [Param(key, value) for key, value in params.items()]
        entities += [RunTag(key, value) for key, value in tags.items()]
        entities += metrics
        for batch in _batches(entities):
            self._client.log_batch(
                run_id,
                metrics=[entity for entity in batch if isinstance(entity, Metric)],
                params=[entity for entity in batch if isinstance(entity, Param)],
                tags=[entity for entity in batch if isinstance(entity, RunTag)],
                synchronous=True,
            )

    def _upload(self, run_id: str, files: Mapping[str, bytes]) -> None:
        with tempfile.TemporaryDirectory(prefix="metricsweep-") as folder:
            for name, content in files.items():
                path = PurePosixPath(name)
                if path.is_absolute() or ".." in path.parts:
                    raise ValueError(f"an artifact's path stays within its run: {name!r}")
                target = Path(folder, *path.parts)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)
            self._client.log_artifacts(run_id, folder)


@contextmanager
def _translated(url: str) -> Iterator[None]:
    """Turn MLflow's and the network's errors into ours; programming errors pass."""
    try:
        yield
    except MlflowException as error:
        first = str(error).strip().splitlines()[0][:500] if str(error).strip() else type(error).__name__
        if error.get_http_status_code() < 500:
            raise TrackerRefusedError(f"MLflow at {url} refused: {first}") from error
        raise UnavailableError(f"MLflow at {url} does not answer: {first}") from error
    except OSError as error:  # requests' errors are OSErrors; artifacts raise them as they are
        raise UnavailableError(f"MLflow at {url} does not answer: {error}") from error


def _is_deleted(error: MlflowException) -> bool:
    """Whether the run (not its experiment) is in MLflow's trash, which has no error code of its own."""
    return re.search(r"\bThe run \S+ must be in the 'active' state", str(error.message)) is not None


def _names(name: str, uid: str) -> Iterator[str]:
    short = name[:_MAX_NAME]
    yield short
    yield f"{short} ({uid[:8]})"
    for number in range(2, 100):
        yield f"{short} ({uid[:8]}-{number})"


def _tags(run: RunMirror) -> dict[str, str]:
    """Every tag of a run; ours win over the caller's."""
    tags = {_key(key): value[:_MAX_TAG] for key, value in run.tags.items()}
    tags |= {
        KEY_TAG: run.key,
        "metricsweep.kind": run.kind,
        "mlflow.runName": run.name[:_MAX_NAME],
        "mlflow.source.name": "metricsweep",
        "mlflow.source.type": "LOCAL",
    }
    if run.parent is not None:
        tags["mlflow.parentRunId"] = run.parent
    return tags


def _metrics(run: RunMirror) -> tuple[list[Metric], list[str]]:
    """The finite values, and what was left out as `key@step=nan`.

    MLflow would show +inf as 1.8e308, and its charts break on it.
    """
    final_at = _milliseconds(run.ended or run.started)  # fixed: a second sending is the same entry
    told = [(point.key, point.value, _milliseconds(point.at), point.step) for point in run.points]
    told += [(key, value, final_at, 0) for key, value in run.metrics.items()]
    metrics = [Metric(_key(key), float(value), at, step) for key, value, at, step in told if math.isfinite(value)]
    bad = [f"{key}@{step}={value}" for key, value, _, step in told if not math.isfinite(value)]
    return metrics, bad


def _batches(entities: Iterable[Entity]) -> Iterator[list[Entity]]:
    """Pack entities, in order, into as few batches as the server's limits allow; none when there is nothing."""
    limits: dict[type, int] = {Metric: _MAX_METRICS, Param: _MAX_PARAMS, RunTag: _MAX_TAGS}
    batch: list[Entity] = []
    counts: dict[type, int] = dict.fromkeys(limits, 0)
    size = 0
    for entity in entities:
        cost = 100 + len(json.dumps([entity.key, entity.value]))
        full = counts[type(entity)] == limits[type(entity)] or len(batch) == _MAX_ENTITIES or size + cost > _MAX_BYTES
        if batch and full:
            yield batch
            batch, counts, size = [], dict.fromkeys(limits, 0), 0
        batch.append(entity)
        counts[type(entity)] += 1
        size += cost
    if batch:
        yield batch


def _key(name: str) -> str:
    """`name` as MLflow accepts keys: `test/recall@1` becomes `test/recall_at_1`."""
    clean = re.sub(r"[^/\w.\- :]", "_", name.replace("@", "_at_"))
    clean = posixpath.normpath(clean).lstrip("/")
    while clean.startswith("../"):
        clean = clean[3:]
    return (clean if clean not in {"", ".", ".."} else "_")[:_MAX_KEY]


def _quoted(text: str) -> str:
    """`text` as a literal of MLflow's filter language, which knows no escapes."""
    if "'" in text:
        raise ValueError(f"a key must not hold a quote: {text!r}")
    return f"'{text}'"


def _milliseconds(at: datetime) -> int:
    """Since the epoch, as MLflow counts; a time without a zone is UTC here."""
    return round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)
