"""A tracker in memory, with the interface of MLflow's client: it may fail before or after it has applied a request."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from orchestrator.record.mlflow.tracker import ExperimentGoneError, RunGoneError, RunMirror
from orchestrator.views.errors import UnavailableError
from tests.simulation.world import World


@dataclass
class Shown:
    """A run that it shows."""

    experiment: str
    key: str
    status: str = "RUNNING"
    params: dict[str, str] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)
    points: list[tuple[str, int]] = field(default_factory=list)


class Tracking:
    """Stores what it receives as MLflow would: a point that is sent twice exists once, and so does a run of a key."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.away = self.outlived = 0.0  # chances: that a call fails; that who calls outlives its lease meanwhile
        self.experiments: dict[str, str] = {}  # the uid of its sweep, by id
        self.runs: dict[str, Shown] = {}
        self._count = 0

    def experiment(self, name: str, uid: str, tags: Mapping[str, str]) -> str:
        """The experiment of a sweep."""
        self._fail()
        known = [one for one, its in self.experiments.items() if its == uid]
        if not known:
            known = [self._new()]
            self.experiments[known[0]] = uid
        self._fail()
        return known[0]

    def remove(self, uid: str) -> None:
        """To the trash, with its runs."""
        self._fail()
        for experiment in [one for one, its in self.experiments.items() if its == uid]:
            del self.experiments[experiment]
            self.runs = {run: one for run, one in self.runs.items() if one.experiment != experiment}
        self._fail()

    def mirror(self, experiment: str, run: RunMirror) -> str:
        """Bring one run up to date."""
        self._fail()
        steady = self._world.process().name.endswith("second")  # somebody has to tell what is true meanwhile
        if run.status == "RUNNING" and not steady and self._world.chance(self.outlived):
            self._world.stand_still(30.0, "while it tells the tracker", "stops while the tracker is told")
        if run.sweep is not None and self.experiments.get(experiment) != run.sweep:
            raise ExperimentGoneError("no such experiment")
        found = run.run or self._of(experiment, run.key)
        if found is None:
            found = self._new()
            self.runs[found] = Shown(experiment, run.key)
        elif found not in self.runs:
            raise RunGoneError("no such run")
        shown = self.runs[found]
        shown.status, shown.params = run.status, dict(run.params)
        shown.metrics |= run.metrics
        shown.points += [(one.key, one.step) for one in run.points if (one.key, one.step) not in shown.points]
        self._fail()
        return found

    def unite(self, experiment: str, known: Callable[[Iterable[str]], Mapping[str, str]]) -> int:
        """Nothing is ever there twice."""
        keys = [one.key for one in self.runs.values() if one.experiment == experiment]
        assert len(keys) == len(set(keys))
        return 0

    def _of(self, experiment: str, key: str) -> str | None:
        return next((run for run, its in self.runs.items() if (its.experiment, its.key) == (experiment, key)), None)

    def _new(self) -> str:
        self._count += 1
        return str(self._count)

    def _fail(self) -> None:
        self._world.sleep(self._world.drawn.choice([0.0, 0.0, 0.5]))
        if self._world.chance(self.away):
            self._world.faults["calls to the tracker"] += 1
            raise UnavailableError("MLflow does not answer: a test")
