"""The tracker that speaks to MLflow: an HTTP server, or its SQLite store without a server.

Only `MlflowClient` is used, never the fluent functions: those keep an active run per thread and print. A short trial
costs three requests (create, one batch, end). Sending a run again changes nothing, because ids, times and steps are the
caller's.
"""

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

# MLflow starts its usage telemetry while it is imported, so this cannot wait for the constructor.
os.environ.setdefault("DO_NOT_TRACK", "true")

import mlflow.entities as theirs
from mlflow.entities import Dataset, DatasetInput, InputTag, Run
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

from orchestrator.record.mlflow import entities
from orchestrator.record.mlflow.answers import is_deleted, translated
from orchestrator.record.mlflow.artifact_files import inner_path
from orchestrator.record.mlflow.entities import (
    KEY_TAG,
    MAX_DIGEST,
    MAX_NAME,
    MAX_TAG,
    SHAPE,
    SHAPE_TAG,
    Metric,
    Param,
    Tag,
)
from orchestrator.record.mlflow.experiment_names import tags_of
from orchestrator.record.mlflow.experiments import Experiments, quoted
from orchestrator.record.mlflow.login import OwnServer
from orchestrator.record.mlflow.told import Memory, ToldRun
from orchestrator.record.tracker import DatasetMirror, ExperimentGoneError, RunGoneError, RunMirror, Tracker

CLIENT_ENVIRONMENT: Mapping[str, str] = {
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "5",  # seconds; the default of 120 would hold up the caller's thread
    # A retried POST makes a second run when only the answer was lost. The outbox retries, by the run's key.
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_DISABLE_TELEMETRY": "true",
}
"""What the client is told through the process's environment; a variable that is already set is left alone."""

PARAMS_DIFFER_TAG: Final = "metricsweep.params_differ"
_PAGE: Final = 1_000  # runs


class MlflowTracker(Tracker):
    """Mirrors runs into MLflow. Methods raise UnavailableError when it does not answer within about 5 s.

    `url` is an `http(s)://` address or `sqlite:///<absolute path>`. Who we are to a server that was named is what
    `mlflow` reads itself at each request, from MLFLOW_TRACKING_USERNAME and the like; `login` says what these are to be
    now, and `own` says it for the server of this home. `memory` is shared with who else tells that server.
    """

    def __init__(
        self,
        url: str,
        own: OwnServer | None = None,
        login: Callable[[], Mapping[str, str]] = dict,
        memory: Memory | None = None,
    ) -> None:
        for name, value in CLIENT_ENVIRONMENT.items():
            os.environ.setdefault(name, value)
        if own is not None:
            own.log_in()
        self._own, self._login = own, login
        self._url = url.rstrip("/")
        self._client = MlflowClient(tracking_uri=self._url, registry_uri=self._url)
        self._memory = memory or Memory()
        self._experiments = Experiments(self._client, self._url)

    def experiment(self, name: str, uid: str, tags: Mapping[str, str]) -> str:
        """The id of the sweep's experiment, found by its uid tag or made, with these tags.

        A name taken by another sweep's or a deleted experiment gets a suffix from the uid.
        """
        with self._reached():
            return self._experiments.of_sweep(name, uid, tags_of(uid, tags))

    def remove(self, experiment: str) -> None:
        """Move an experiment to MLflow's trash; one that is not there is no error."""
        with self._reached():
            self._experiments.remove(experiment)

    def mirror(self, experiment: str, run: RunMirror) -> str:
        """Bring one run up to date and return its id.

        Raises RunGoneError where it is not there any more or cannot show what it should; it is then in the trash.
        """
        with self._reached():
            run_id = run.run or self._find(experiment, run) or self._create(experiment, run)
            try:
                self._update(run_id, run)
            except MlflowException as error:
                if error.error_code == "RESOURCE_DOES_NOT_EXIST" or is_deleted(error):
                    self._forget(run_id)
                    raise RunGoneError(f"run {run_id} of {run.name} is gone from MLflow at {self._url}") from error
                raise
            return run_id

    def unite(self, experiment: str, known: Callable[[Iterable[str]], Mapping[str, str]]) -> int:
        """Move to the trash what two processes made of one key: of several runs the one that we know stays."""
        stays: dict[str, str] = {}
        doubles: list[str] = []
        with self._reached():
            for keys in self._keyed(experiment):
                ours = known(keys.values())
                doubles += [one for one, key in keys.items() if one != stays.setdefault(key, ours.get(key, one))]
            for run_id in doubles:  # after the last page: the pages are counted
                self._client.delete_run(run_id)
        return len(doubles)

    def _keyed(self, experiment: str) -> Iterator[dict[str, str]]:
        """Our runs of an experiment, page by page: their keys by id."""
        token: str | None = ""
        while token is not None:
            page = self._client.search_runs([experiment], "", max_results=_PAGE, page_token=token or None)
            found = {str(run.info.run_id): run.data.tags.get(KEY_TAG) for run in page}
            yield {run_id: str(key) for run_id, key in found.items() if key is not None}
            token = page.token or None

    @contextmanager
    def _reached(self) -> Iterator[None]:
        if self._own is not None:
            self._own.prove()
        os.environ.update(self._login())
        with translated(self._url):
            yield

    def _find(self, experiment: str, run: RunMirror) -> str | None:
        """The run of a key, if somebody made it before and it is of today's shape; one of another shape goes."""
        self._require(experiment, run)
        if self._is_new(experiment, run):
            return None
        runs = self._client.search_runs([experiment], f"tags.`{KEY_TAG}` = {quoted(run.key)}", max_results=1)
        if not runs:
            return None
        if runs[0].data.tags.get(SHAPE_TAG) != SHAPE or _others(runs[0], run):
            self._client.delete_run(runs[0].info.run_id)
            return self._find(experiment, run)
        run_id = str(runs[0].info.run_id)
        self._memory.forget(run_id)  # whoever asks by its key does not know what it shows: the server may be restored
        return run_id

    def _is_new(self, experiment: str, run: RunMirror) -> bool:
        """Whether nobody can have made a run of this key."""
        return self._experiments.is_ours_alone(experiment) and not self._memory.has_tried(run.key)

    def _require(self, experiment: str, run: RunMirror) -> None:
        """Raise ExperimentGoneError where the experiment is missing."""
        if run.sweep is None or self._experiments.is_of(experiment, run.sweep):
            return
        self._forget()
        raise ExperimentGoneError(f"experiment {experiment} is not that of {run.name} in MLflow at {self._url}")

    def _forget(self, run_id: str = "") -> None:
        """Where one thing is missing all may be: experiments are looked at again before runs are made in them."""
        self._experiments.forget()
        self._memory.forget(run_id)

    def _create(self, experiment: str, run: RunMirror) -> str:
        tags = entities.tags_of(run) | {SHAPE_TAG: SHAPE}
        self._memory.note_try(run.key)
        try:
            made: Run = self._client.create_run(
                experiment, start_time=entities.milliseconds(run.started), tags=tags, run_name=run.name[:MAX_NAME]
            )
        except MlflowException as error:
            if error.error_code == "RESOURCE_DOES_NOT_EXIST":
                self._forget()
                raise ExperimentGoneError(f"experiment {experiment} is gone from MLflow at {self._url}") from error
            raise
        told = self._memory.of(str(made.info.run_id))
        told.status = "RUNNING"
        told.note_tags(tags)
        return str(made.info.run_id)

    def _update(self, run_id: str, run: RunMirror) -> None:
        told = self._memory.of(run_id)
        self._log(run_id, run, told)
        if run.dataset is not None and not told.data:
            self._client.log_inputs(run_id, datasets=[_input(run.dataset)])
            told.data = True
        if run.files:
            self._upload(run_id, run.files)
        status, ended = entities.end_of(run)
        if ended is not None:
            if (told.status, told.ended) != (status, ended):
                self._client.set_terminated(run_id, status=status, end_time=ended)
                told.status, told.ended = status, ended
        elif told.status != "RUNNING":  # a retried trial: the server may still call it FAILED
            self._client.update_run(run_id, status="RUNNING")
            told.status, told.ended = "RUNNING", None

    def _log(self, run_id: str, run: RunMirror, told: ToldRun) -> None:
        content = entities.content_of(run)
        params, metrics = content.params, content.metrics
        new, unsaid = told.new_tags(content.tags), {} if told.knows(params) else params
        try:
            self._send(run_id, metrics, unsaid, new)
        except MlflowException as error:
            if error.error_code != "INVALID_PARAMETER_VALUE" or not unsaid or is_deleted(error):
                raise
            # Params are write-once: what differs from the first telling stays as it was told first.
            there = self._client.get_run(run_id).data.params
            differ = sorted(key for key, value in params.items() if there.get(key, value) != value)
            if not differ:
                raise
            if run.kind == "cell":  # whose params are what was chosen; that of a trial is fixed
                self._client.delete_run(run_id)
                self._memory.forget(run_id)
                raise RunGoneError(f"the run of {run.name} was for other choices: {', '.join(differ)}") from error
            new[PARAMS_DIFFER_TAG] = ", ".join(f"{key}={params[key]}" for key in differ)[:MAX_TAG]
            self._send(run_id, metrics, {key: value for key, value in params.items() if key not in there}, new)
        told.note_tags(new)
        told.note_params(params)

    def _send(self, run_id: str, metrics: list[Metric], params: Mapping[str, str], tags: Mapping[str, str]) -> None:
        every: list[entities.Entity] = [Param(key, value) for key, value in params.items()]
        every += [Tag(key, value) for key, value in tags.items()]
        every += metrics
        for batch in entities.batches(every):
            self._client.log_batch(
                run_id,
                metrics=[theirs.Metric(*entity) for entity in batch if isinstance(entity, Metric)],
                params=[theirs.Param(*entity) for entity in batch if isinstance(entity, Param)],
                tags=[theirs.RunTag(*entity) for entity in batch if isinstance(entity, Tag)],
                synchronous=True,
            )

    def _upload(self, run_id: str, files: Mapping[str, bytes]) -> None:
        with tempfile.TemporaryDirectory(prefix="metricsweep-") as folder:
            for name, content in files.items():
                target = Path(folder, *inner_path(name).parts)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)
            self._client.log_artifacts(run_id, folder)


def _others(there: Run, run: RunMirror) -> bool:
    """Whether a run has params of what was chosen before: they are write-once."""
    params = entities.params_of(run)
    return run.kind == "cell" and any(params.get(key, value) != value for key, value in there.data.params.items())


def _input(data: DatasetMirror) -> DatasetInput:
    dataset = Dataset(data.name, data.digest[:MAX_DIGEST], entities.DATASET_SOURCE, data.name)
    return DatasetInput(dataset, [InputTag(*entities.DATASET_TAG)])
