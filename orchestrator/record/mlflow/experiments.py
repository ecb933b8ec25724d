"""The experiments of sweeps in MLflow: found by the sweep, made under a name that is free, known again."""

from collections.abc import Mapping
from pathlib import Path

import sqlalchemy as sa
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

from orchestrator.record.mlflow.answers import TrackerRefusedError
from orchestrator.record.mlflow.experiment_names import SWEEP_TAG, candidates


class Experiments:
    """Those of one MLflow. Methods raise what its client does."""

    def __init__(self, client: MlflowClient, url: str) -> None:
        self._client, self._url = client, url
        self._known: dict[str, str] = {}  # the sweep's uid by experiment, as seen since the last one was missing
        self._made: set[str] = set()  # those in which only this process has made runs

    def of_sweep(self, name: str, uid: str, tags: Mapping[str, str]) -> str:
        """The id of the sweep's experiment, found by its uid tag or made, with these tags.

        A name taken by another sweep's or a deleted experiment gets a suffix from the uid.
        """
        ours = self._client.search_experiments(filter_string=f"tags.`{SWEEP_TAG}` = {quoted(uid)}", max_results=1)
        if ours:
            ident = str(ours[0].experiment_id)
            for key, value in tags.items():
                if ours[0].tags.get(key) != value:
                    self._client.set_experiment_tag(ident, key, value)
        else:
            ident = self._new_experiment(name, uid, tags)
            self._made.add(ident)
        self._known[ident] = uid
        return ident

    def _new_experiment(self, name: str, uid: str, tags: Mapping[str, str]) -> str:
        for candidate in candidates(name, uid):
            try:
                return str(self._client.create_experiment(candidate, self._artifact_location(uid), dict(tags)))
            except MlflowException as error:
                if error.error_code != "RESOURCE_ALREADY_EXISTS":
                    raise
        raise TrackerRefusedError(f"every name like {name!r} is taken in MLflow at {self._url}")

    def remove(self, experiment: str) -> None:
        """Move an experiment to MLflow's trash; one that is not there is no error."""
        try:
            self._client.delete_experiment(experiment)
        except MlflowException as error:
            if error.error_code not in {"RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE"}:
                raise

    def is_ours_alone(self, experiment: str) -> bool:
        """Whether only this process has made runs in it."""
        return experiment in self._made

    def is_of(self, experiment: str, sweep: str) -> bool:
        """Whether the experiment is there and that of the sweep: what was wiped gives its numbers out again."""
        if self._known.get(experiment) == sweep:
            return True
        try:
            tags = self._client.get_experiment(experiment).tags
        except MlflowException as error:
            if error.error_code != "RESOURCE_DOES_NOT_EXIST":
                raise
            return False
        if tags.get(SWEEP_TAG) != sweep:
            return False
        self._known[experiment] = sweep
        return True

    def forget(self) -> None:
        """They are looked at again before runs are made in them."""
        self._known.clear()
        self._made.clear()

    def _artifact_location(self, uid: str) -> str | None:
        """A server chooses; a bare store would take `./mlruns` of the current folder."""
        if not self._url.startswith("sqlite:///"):
            return None
        folder = Path(sa.make_url(self._url).database or "").absolute().parent / "mlartifacts"
        return (folder / uid).as_uri()


def quoted(text: str) -> str:
    """`text` as a literal of MLflow's filter language, which knows no escapes."""
    if "'" in text:
        raise ValueError(f"a key must not hold a quote: {text!r}")
    return f"'{text}'"
