"""The tracker that speaks to an MLflow server, by MLflow's public client alone.

Only `MlflowClient` is used, never the fluent functions: those keep an active run per thread and print. A short trial
costs four requests (create, one batch, its data set, end). Sending a run again changes nothing, because ids, times and
steps are the caller's.
"""

import json
import math
import os
import re
import tempfile
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Final, TypeAlias

# MLflow starts its usage telemetry while it is imported, so this cannot wait for the constructor.
os.environ.setdefault("DO_NOT_TRACK", "true")

from mlflow.entities import Dataset, DatasetInput, Experiment, InputTag, Metric, Param, Run, RunTag
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

from orchestrator.record.mlflow.tracker import (
    DatasetMirror,
    ExperimentGoneError,
    RunGoneError,
    RunMirror,
    Tracker,
    TrackerRefusedError,
    accepted,
)
from orchestrator.views.errors import UnavailableError

_CLIENT_ENVIRONMENT: Mapping[str, str] = {
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "5",  # seconds; with the default of 120 the conductor could not end in time
    # A retried POST makes a second run when only the answer was lost. The outbox retries, by the run's key.
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_DISABLE_TELEMETRY": "true",
}
"""Settings of MLflow's client, which it reads from the process's environment; a variable that is set already stays."""

KEY_TAG: Final = "metricsweep.key"
_KIND_TAG: Final = "metricsweep.kind"
NOT_FINITE_TAG: Final = "metricsweep.not_finite"
_PARAMS_DIFFER_TAG: Final = "metricsweep.params_differ"
SWEEP_TAG: Final = "metricsweep.sweep"

_MAX_NAME: Final = 480  # characters
_MAX_PARAM: Final = 6_000
_MAX_TAG: Final = 5_000
_MAX_DIGEST: Final = 36
_MAX_METRICS, _MAX_PARAMS, _MAX_TAGS, _MAX_ENTITIES = 1_000, 100, 100, 1_000  # per log_batch, of all MLflow servers
_MAX_BYTES: Final = 800_000  # of a batch's JSON; the server refuses 1,000,000
_MAX_REMEMBERED: Final = 5_000  # runs
_PAGE: Final = 1_000  # runs

# Ways of logging in at some other server, which the client would use at our own.
_OTHER_LOGINS: Final = (
    "MLFLOW_TRACKING_TOKEN", "MLFLOW_TRACKING_AUTH", "MLFLOW_TRACKING_AWS_SIGV4", "MLFLOW_TRACKING_CLIENT_CERT_PATH",
)  # fmt: skip

_Entity: TypeAlias = Metric | Param | RunTag


@dataclass(frozen=True, slots=True)
class OwnServer:
    """The MLflow server behind the API of this installation."""

    password: str = field(repr=False)
    """Opens MLflow, and nothing else of the API."""
    prove: Callable[[], None]
    """Has the server prove its identity; raises UnavailableError if another server answers at the address."""

    def log_in(self) -> None:
        """Set the environment variables from which MLflow's client takes the login of this installation."""
        for name in _OTHER_LOGINS:
            os.environ.pop(name, None)
        # A name and a password, since a file in the user's home folder would override a token.
        os.environ |= {"MLFLOW_TRACKING_USERNAME": "metricsweep", "MLFLOW_TRACKING_PASSWORD": self.password}


@dataclass(slots=True)
class _Shown:
    """What this process has sent of a run, as hashes: it is not sent again."""

    status: str = ""
    ended: int | None = None
    params: int | None = None
    tags: dict[str, int] = field(default_factory=dict)
    dataset: bool = False


class MlflowTracker(Tracker):
    """Writes runs to the MLflow server at an `http(s)://` address; raises UnavailableError within about 5 s.

    `login` gives the environment variables (such as MLFLOW_TRACKING_USERNAME) for a configured server; `own` logs in at
    the server of this installation.
    """

    def __init__(self, url: str, own: OwnServer | None = None, login: Callable[[], Mapping[str, str]] = dict) -> None:
        for name, value in _CLIENT_ENVIRONMENT.items():
            os.environ.setdefault(name, value)
        if own is not None:
            own.log_in()
        self._own, self._login = own, login
        self._url = url.rstrip("/")
        self._client = MlflowClient(tracking_uri=self._url, registry_uri=self._url)
        self._shown: OrderedDict[str, _Shown] = OrderedDict()  # by run
        self._tried: set[str] = set()  # keys for which this process may have made a run
        self._sweeps: dict[str, str] = {}  # the sweep's uid by experiment, as seen since something was missing
        self._ours: set[str] = set()  # experiments in which only this process has made runs

    def experiment(self, name: str, uid: str, tags: Mapping[str, str]) -> str:
        """The id of a sweep's MLflow experiment, found by its uid tag or created, with these tags.

        If another or a deleted experiment has the name, the uid is appended.
        """
        tags = {accepted(key): value[:_MAX_TAG] for key, value in tags.items()} | {SWEEP_TAG: uid}
        tags["mlflow.experimentKind"] = "custom_model_development"  # else MLflow 3 takes it for language models
        with self._reached():
            if found := self._experiments(uid):
                experiment = str(found[0].experiment_id)
                for key, value in tags.items():
                    if found[0].tags.get(key) != value:
                        self._client.set_experiment_tag(experiment, key, value)
            else:
                experiment = self._new_experiment(name[:_MAX_NAME], uid, tags)
                self._ours.add(experiment)
        self._sweeps[experiment] = uid
        return experiment

    def remove(self, uid: str) -> None:
        """Move a sweep's MLflow experiment to the trash.

        It is found by its uid tag, since a wiped MLflow gives ids again.
        """
        with self._reached():
            for experiment in self._experiments(uid):
                self._client.delete_experiment(experiment.experiment_id)

    def mirror(self, experiment: str, run: RunMirror) -> str:
        """Create or update an MLflow run and return its id; raises RunGoneError.

        RunGoneError: the run was deleted, or had other params and was moved to the trash.
        """
        with self._reached():
            run_id = run.run or self._find(experiment, run) or self._create(experiment, run)
            try:
                self._update(run_id, run)
            except MlflowException as error:
                if error.error_code == "RESOURCE_DOES_NOT_EXIST" or _is_deleted(error):
                    self._forget(run_id)
                    raise RunGoneError(f"run {run_id} of {run.name} is gone from MLflow at {self._url}") from error
                raise
            return run_id

    def unite(self, experiment: str, known: Callable[[Iterable[str]], Mapping[str, str]]) -> int:
        """Move duplicate MLflow runs, which two processes made for one key, to the trash.

        Of several runs with a key, the run of `known` stays.
        """
        stays: dict[str, str] = {}
        doubles: list[str] = []
        with self._reached():
            for keys in self._keys(experiment):
                ours = known(keys.values())
                doubles += [run for run, key in keys.items() if run != stays.setdefault(key, ours.get(key, run))]
            for run_id in doubles:  # after the last page: the pages are counted
                self._client.delete_run(run_id)
        return len(doubles)

    def _keys(self, experiment: str) -> Iterator[dict[str, str]]:
        """Our runs of an experiment, page by page: their keys by id."""
        token: str | None = ""
        while token is not None:
            page = self._client.search_runs([experiment], "", max_results=_PAGE, page_token=token or None)
            found = {str(run.info.run_id): run.data.tags.get(KEY_TAG) for run in page}
            yield {run_id: str(key) for run_id, key in found.items() if key is not None}
            token = page.token or None

    def _experiments(self, uid: str) -> list[Experiment]:
        """The experiment of a sweep, unless it is missing or in the trash."""
        return list(self._client.search_experiments(filter_string=f"tags.`{SWEEP_TAG}` = {_quoted(uid)}"))

    @contextmanager
    def _reached(self) -> Iterator[None]:
        """Log in, and convert errors of MLflow and the network."""
        if self._own is not None:
            self._own.prove()
        os.environ.update(self._login())
        try:
            yield
        except MlflowException as error:
            first = str(error).strip().splitlines()[0][:500] if str(error).strip() else type(error).__name__
            if error.get_http_status_code() < 500:
                raise TrackerRefusedError(f"MLflow at {self._url} refused: {first}") from error
            raise UnavailableError(f"MLflow at {self._url} does not answer: {first}") from error
        except OSError as error:  # errors of requests, which artifacts raise directly
            raise UnavailableError(f"MLflow at {self._url} does not answer: {error}") from error

    def _new_experiment(self, name: str, uid: str, tags: Mapping[str, str]) -> str:
        """Make an experiment under the first free name."""
        suffixes = ["", f" ({uid[:8]})", *(f" ({uid[:8]}-{number})" for number in range(2, 100))]
        for suffix in suffixes:
            try:
                return str(self._client.create_experiment(name + suffix, tags=dict(tags)))
            except MlflowException as error:
                if error.error_code != "RESOURCE_ALREADY_EXISTS":
                    raise
        raise TrackerRefusedError(
            f"the experiment name {name!r} and its variants are taken in MLflow at {self._url}; rename those"
        )

    def _find(self, experiment: str, run: RunMirror) -> str | None:
        """The existing run of a key; a cell's run with other choices is deleted."""
        if run.sweep is not None and not self._is_of(experiment, run.sweep):
            self._forget()
            raise ExperimentGoneError(
                f"experiment {experiment} in MLflow at {self._url} belongs to another sweep than {run.name}"
            )
        if experiment in self._ours and run.key not in self._tried:
            return None
        runs = self._client.search_runs([experiment], f"tags.`{KEY_TAG}` = {_quoted(run.key)}", max_results=1)
        if not runs:
            return None
        if _has_other_choices(runs[0], run):
            self._client.delete_run(runs[0].info.run_id)
            return self._find(experiment, run)
        run_id = str(runs[0].info.run_id)
        self._shown.pop(run_id, None)  # the server may have been restored since we sent it anything
        return run_id

    def _is_of(self, experiment: str, sweep: str) -> bool:
        """Whether the experiment exists and belongs to the sweep: a wiped MLflow gives ids again."""
        if self._sweeps.get(experiment) == sweep:
            return True
        try:
            tags = self._client.get_experiment(experiment).tags
        except MlflowException as error:
            if error.error_code != "RESOURCE_DOES_NOT_EXIST":
                raise
            return False
        if tags.get(SWEEP_TAG) != sweep:
            return False
        self._sweeps[experiment] = sweep
        return True

    def _forget(self, run_id: str = "") -> None:
        """Forget all experiments, since all may be missing: they are checked before the next run is made."""
        self._sweeps.clear()
        self._ours.clear()
        self._shown.pop(run_id, None)

    def _create(self, experiment: str, run: RunMirror) -> str:
        tags = _tags(run)
        self._tried.add(run.key)
        try:
            made: Run = self._client.create_run(
                experiment, start_time=_milliseconds(run.started), tags=tags, run_name=run.name[:_MAX_NAME]
            )
        except MlflowException as error:
            if error.error_code == "RESOURCE_DOES_NOT_EXIST":
                self._forget()
                raise ExperimentGoneError(f"experiment {experiment} is gone from MLflow at {self._url}") from error
            raise
        shown = self._known(str(made.info.run_id))
        shown.status = "RUNNING"
        shown.tags |= _hashes(tags)
        return str(made.info.run_id)

    def _known(self, run_id: str) -> _Shown:
        shown = self._shown.setdefault(run_id, _Shown())
        self._shown.move_to_end(run_id)
        while len(self._shown) > _MAX_REMEMBERED:
            self._shown.popitem(last=False)
        return shown

    def _update(self, run_id: str, run: RunMirror) -> None:
        shown = self._known(run_id)
        self._log(run_id, run, shown)
        if run.dataset is not None and not shown.dataset:
            self._client.log_inputs(run_id, datasets=[_input(run.dataset)])
            shown.dataset = True
        if run.files:
            self._upload(run_id, run.files)
        if run.ended is not None and run.status != "RUNNING":
            ended = _milliseconds(run.ended)
            if (shown.status, shown.ended) != (run.status, ended):
                self._client.set_terminated(run_id, status=run.status, end_time=ended)
                shown.status, shown.ended = run.status, ended
        elif shown.status != "RUNNING":  # a retried trial may be FAILED on the server
            self._client.update_run(run_id, status="RUNNING")
            shown.status, shown.ended = "RUNNING", None

    def _log(self, run_id: str, run: RunMirror, shown: _Shown) -> None:
        metrics, not_finite = _metrics(run)
        tags, params = _tags(run), _params(run)
        if not_finite:
            tags[NOT_FINITE_TAG] = ", ".join(not_finite)[:_MAX_TAG]
        tags = {name: value for name, value in tags.items() if shown.tags.get(name) != hash(value)}
        unsent = {} if shown.params == hash(frozenset(params.items())) else params
        try:
            self._send(run_id, metrics, unsent, tags)
        except MlflowException as error:
            if error.error_code != "INVALID_PARAMETER_VALUE" or not unsent or _is_deleted(error):
                raise
            # Params are write-once: those that differ keep their first value.
            there = self._client.get_run(run_id).data.params
            differ = sorted(key for key, value in params.items() if there.get(key, value) != value)
            if not differ:
                raise
            if run.kind == "cell":  # its params are the chosen labels; those of a trial are fixed
                self._client.delete_run(run_id)
                self._shown.pop(run_id, None)
                raise RunGoneError(
                    f"the MLflow run of {run.name} has other params and is replaced: {', '.join(differ)}"
                ) from error
            tags[_PARAMS_DIFFER_TAG] = ", ".join(f"{key}={params[key]}" for key in differ)[:_MAX_TAG]
            self._send(run_id, metrics, {key: value for key, value in params.items() if key not in there}, tags)
        shown.tags |= _hashes(tags)
        shown.params = hash(frozenset(params.items()))

    def _send(self, run_id: str, metrics: list[Metric], params: Mapping[str, str], tags: Mapping[str, str]) -> None:
        every: list[_Entity] = [Param(key, value) for key, value in params.items()]
        every += [RunTag(key, value) for key, value in tags.items()]
        for batch in _batches([*every, *metrics]):
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
                    raise ValueError(f"the artifact path {name!r} leads out of its MLflow run")
                target = Path(folder, *path.parts)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)
            self._client.log_artifacts(run_id, folder)


def _is_deleted(error: MlflowException) -> bool:
    """Whether the run (not its experiment) is in MLflow's trash, which has no error code of its own."""
    return re.search(r"\bThe run \S+ must be in the 'active' state", str(error.message)) is not None


def _has_other_choices(there: Run, run: RunMirror) -> bool:
    """Whether a cell's run has params of what was chosen before: they are write-once."""
    params = _params(run)
    return run.kind == "cell" and any(params.get(key, value) != value for key, value in there.data.params.items())


def _quoted(text: str) -> str:
    """A literal of MLflow's filter language, which has no escapes."""
    if "'" in text:
        raise ValueError(f"the key {text!r} of an MLflow run contains a quote, which its search cannot take")
    return f"'{text}'"


def _tags(run: RunMirror) -> dict[str, str]:
    """All tags of a run; ours override the caller's."""
    tags = {accepted(key): value[:_MAX_TAG] for key, value in run.tags.items()}
    tags |= {
        KEY_TAG: run.key,
        _KIND_TAG: run.kind,
        "mlflow.runName": run.name[:_MAX_NAME],
        "mlflow.source.name": "metricsweep",
        "mlflow.source.type": "LOCAL",
    }
    if run.parent is not None:
        tags["mlflow.parentRunId"] = run.parent
    return tags


def _params(run: RunMirror) -> dict[str, str]:
    return {accepted(key): value[:_MAX_PARAM] for key, value in run.params.items()}


def _metrics(run: RunMirror) -> tuple[list[Metric], list[str]]:
    """The finite values, and what was left out as `key@step=nan`.

    MLflow would show +inf as 1.8e308, and its charts break on it.
    """
    final_at = _milliseconds(run.ended or run.started)  # fixed: a second sending is the same entry
    points = [(point.key, point.value, _milliseconds(point.at), point.step) for point in run.points]
    points += [(key, value, final_at, 0) for key, value in run.metrics.items()]
    metrics = [Metric(accepted(key), float(value), at, step) for key, value, at, step in points if math.isfinite(value)]
    return metrics, [f"{key}@{step}={value}" for key, value, _, step in points if not math.isfinite(value)]


def _batches(entities: Iterable[_Entity]) -> Iterator[list[_Entity]]:
    """Pack entities, in order, into as few batches as the server's limits allow."""
    limits: dict[type, int] = {Metric: _MAX_METRICS, Param: _MAX_PARAMS, RunTag: _MAX_TAGS}
    batch: list[_Entity] = []
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


def _input(data: DatasetMirror) -> DatasetInput:
    dataset = Dataset(data.name, data.digest[:_MAX_DIGEST], "metricsweep", data.name)
    return DatasetInput(dataset, [InputTag("mlflow.data.context", "training")])


def _hashes(values: Mapping[str, str]) -> dict[str, int]:
    return {name: hash(value) for name, value in values.items()}


def _milliseconds(at: datetime) -> int:
    """Milliseconds since the epoch; a time without a zone is UTC."""
    return round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)
