"""The tracker of a home whose MLflow is our own: writes into that server's store, and asks the server for the rest."""

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property

from orchestrator.record.mlflow.backend_store import BackendStore
from orchestrator.record.mlflow.experiment_names import tags_of
from orchestrator.record.mlflow.told import Memory
from orchestrator.record.tracker import LostError, RunMirror, Tracker


class StoreTracker(Tracker):
    """`served` makes the tracker that speaks to the server, over the same memory: only once something is left to it.

    Until then neither the server nor MLflow's client has to be there.
    """

    def __init__(self, store: BackendStore, served: Callable[[Memory], Tracker]) -> None:
        self._store, self._make = store, served
        self._memory = Memory()
        self._made: set[str] = set()  # the experiments in which only this process has made runs

    @cached_property
    def _served(self) -> Tracker:
        return self._make(self._memory)

    def experiment(self, name: str, uid: str, tags: Mapping[str, str]) -> str:
        """The id of the sweep's experiment, found by its uid tag or made, with these tags."""
        written = self._store.experiment(name, uid, tags_of(uid, tags))
        if written is None:
            return self._served.experiment(name, uid, tags)
        ident, new = written
        if new:
            self._made.add(ident)
        return ident

    def remove(self, experiment: str) -> None:
        """Move an experiment to MLflow's trash; one that is not there is no error."""
        self._made.discard(experiment)
        if not self._store.remove(experiment):
            self._served.remove(experiment)

    def mirror(self, experiment: str, run: RunMirror) -> str:
        """Bring one run up to date and return its id; raises as the server's tracker does."""
        new = run.run is None and experiment in self._made and not self._memory.has_tried(run.key)
        self._memory.note_try(run.key)
        if written := self._store.mirror(experiment, run, self._memory, new=new):
            return written
        try:
            return self._served.mirror(experiment, run)
        except LostError:
            self._made.clear()  # what lost one thing may have lost all, and been filled by others since
            raise

    def unite(self, experiment: str, known: Callable[[Iterable[str]], Mapping[str, str]]) -> int:
        """Move to the trash what two processes made of one key: of several runs the one that we know stays."""
        keys = self._store.keys(experiment)
        if keys is not None and len(set(keys.values())) == len(keys):
            return 0
        return self._served.unite(experiment, known)
