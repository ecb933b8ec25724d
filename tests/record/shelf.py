"""A tracker that keeps its runs on a shelf in memory, and can be away."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from orchestrator.record.mlflow.tracker import RunMirror
from orchestrator.views.errors import UnavailableError


@dataclass
class Shelf:
    """Follows the tracker's protocol; params are write-once and points must not come twice, as in MLflow."""

    experiments: dict[str, str] = field(default_factory=dict)  # name by id
    sweeps: dict[str, str] = field(default_factory=dict)  # experiment by the sweep's uid
    runs: dict[str, RunMirror] = field(default_factory=dict)  # the last mirror by key
    ids: dict[str, str] = field(default_factory=dict)  # id by key
    points: dict[str, list[tuple[str, int, float]]] = field(default_factory=dict)  # by key
    sent: list[str] = field(default_factory=list)  # keys in the order of sending
    away: bool = False
    poison: set[str] = field(default_factory=set)  # names of runs that cannot be sent
    refused: set[str] = field(default_factory=set)  # names of runs that are answered by a refusal
    calls: int = 0

    def _answer(self) -> None:
        self.calls += 1
        if self.away:
            raise UnavailableError("the shelf is away")

    def experiment(self, name: str, uid: str, tags: Mapping[str, str]) -> str:
        """The experiment's id, made if it is missing."""
        self._answer()
        found = next((one for one, known in self.experiments.items() if known == name), None)
        made = found or f"experiment-{len(self.experiments)}"
        self.experiments[made] = name
        self.sweeps[uid] = made
        return made

    def remove(self, uid: str) -> None:
        """Forget a sweep's experiment."""
        self._answer()
        self.experiments.pop(self.sweeps.pop(uid, ""), None)

    def unite(self, experiment: str, known: Callable[[Iterable[str]], Mapping[str, str]]) -> int:
        """It has each key once; the run that was sent last, the summary, must be known by now."""
        assert experiment in self.experiments
        assert known(self.sent[-1:]).get(self.sent[-1]) == self.ids[self.sent[-1]]
        return 0

    def mirror(self, experiment: str, run: RunMirror) -> str:
        """Keep the run."""
        self._answer()
        if run.name in self.refused:
            raise UnavailableError("the shelf refused it")
        if run.name in self.poison:
            raise ValueError("too long")
        assert experiment in self.experiments
        assert run.parent is None or run.parent in self.ids.values()
        earlier = self.runs.get(run.key)
        assert earlier is None or earlier.params.items() <= run.params.items()
        assert run.run is None or run.run == self.ids[run.key]
        self.ids.setdefault(run.key, f"run-{len(self.ids)}")
        told = self.points.setdefault(run.key, [])
        for point in run.points:
            told.append((point.key, point.step, point.value))
        self.runs[run.key] = run
        self.sent.append(run.key)
        return self.ids[run.key]
