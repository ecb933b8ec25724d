"""Plain data that crosses rooms: plans, orders, events, results and provenance."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, Literal, NamedTuple, Protocol

from pydantic import Field

from orchestrator.spec.axes import Slot
from orchestrator.views.pages import View
from orchestrator.views.states import SweepState, TrialState
from workers.catalog import FurtherMetrics, Need
from workers.contract import Progress, Recipe, Result


class ChangeKind(StrEnum):
    """The types of events."""

    SWEEP = "sweep"
    """A sweep was submitted, entered a state, was given another priority, grew, or was noted or tagged."""
    NOTICE = "notice"
    """What its trials wait for is another: `notice` says it, and is absent where they wait for nothing more."""
    CELL = "cell"
    """A cell was summed up, will be anew, or was noted or tagged."""
    TRIAL = "trial"
    """A trial entered a state, or was noted or tagged."""
    TRIALS = "trials"
    """More than a hundred trials of a sweep did at once: look at all of it."""
    PROGRESS = "progress"
    """A trial came further; of several reports within a second the last is told."""
    STALLED = "stalled"
    """A trial was silent for so long that it was stopped (`slot.stall_minutes`)."""
    REQUEST = "request"
    """Something was asked of a sweep, or the conductor has answered."""


class ChangeView(View):
    """One event. It says how things are when it is sent, not what they were when it was noted."""

    type: ChangeKind
    sweep: int
    url: str
    """Where the API shows it whole."""
    name: str | None = None
    """The sweep's."""
    state: SweepState | TrialState | None = None
    """Of the sweep or of the trial, as `type` says; none: it is deleted."""
    cell: int | None = None
    trial: int | None = None
    request: int | None = None
    step: int | None = None
    total_steps: int | None = None
    score: float | None = None
    """The metric that its recipe selects by, once it has finished."""
    diverged: bool | None = None
    settled: bool | None = Field(default=None, description="Whether the cell is summed up.")
    notice: str | None = None
    error: str | None = None


class Told(NamedTuple):
    """A change with the id that it is told under."""

    id: int
    view: ChangeView


class ChangeSpan(NamedTuple):
    """Changes in the order of their ids, and between which ids nothing is missing."""

    since: int
    """No change after this id, and up to `newest`, is unknown; what was before may have been pruned."""
    newest: int
    changes: list[Told]


@dataclass(frozen=True, slots=True)
class AskedEvaluation:
    """What takes the place of a training: further metrics of the weights that another one has kept."""

    weights: str  # the file, relative to the storage: <training>/<number>/best.pt
    metrics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Order:
    """One attempt at one training, handed to an engine."""

    attempt: str  # UUID
    training: str  # UUID
    number: int  # of the attempt, from 1
    recipe: Mapping[str, Any]  # JSON of the completed recipe
    slot: Slot
    resume: str | None = None  # checkpoint to continue from, relative to the storage: <training>/<number>/last.pt
    holder: str | None = None  # of one that an earlier conductor left: the slot that trains it; empty: none was noted
    seen: int = 0  # progress messages already recorded; an adopted slot replays what follows
    need: str | None = None  # the key of what it reads of a data root
    label: str = ""  # what a person calls it: its sweep, and the labels of its first trial
    lacking: tuple[str, ...] = ()  # the nodes that were seen not to have it
    evaluation: AskedEvaluation | None = None  # what is done in place of training
    sweep: int | None = None  # of its first trial, and that trial's id: what a log says of it
    trial: int | None = None

    @property
    def ids(self) -> dict[str, int | str | None]:
        """What stands beside a line of a log about it."""
        return {"sweep": self.sweep, "trial": self.trial, "attempt": self.attempt}


FailureKind = Literal["recipe", "infrastructure", "stalled", "missing", "damaged", "kept_weights"]
"""`missing`, `damaged`: of the data set or the weights; the machine's data root is to be looked at.

`kept_weights`: those that an evaluation reads are missing, damaged or of another recipe."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an attempt ended without a result."""

    kind: FailureKind
    message: str  # one line: the exception's type and text
    trace: str = ""  # the traceback, or the last lines of the log
    begun: bool = True  # False: its slot was lost before it was there, so that the training had no part in it


Labels = Mapping[str, str]
"""The label of the chosen alternative by axis name, in the order of the axes."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One point of the compare axes."""

    index: int
    labels: Labels


@dataclass(frozen=True, slots=True)
class Candidate:
    """One point of the tune axes within a cell; `index` counts within the cell, from 0."""

    cell: int
    index: int
    labels: Labels


@dataclass(frozen=True, slots=True)
class Dimension:
    """What a search may vary in a cell: the labels of alternatives, or a range of numbers where there are none."""

    axis: str
    name: str  # unique among the dimensions of a cell; an axis has several where `when` tells them apart
    when: Mapping[str, tuple[str, ...]]  # labels of earlier axes of the search under which it applies
    labels: tuple[str, ...] = ()
    low: float = 0.0
    high: float = 0.0
    log: bool = False
    step: float | None = None
    whole: bool = False


@dataclass(frozen=True, slots=True)
class PlannedTrial:
    """One place (cell, candidate, repeat) and the completed recipe of the training it points to."""

    cell: int
    candidate: int
    repeat: int
    repeat_labels: Labels
    recipe: Recipe
    fingerprint: str
    slot: Slot | None = None  # none: that of its sweep
    document: Mapping[str, Any] | None = None  # the recipe as JSON, where somebody has made it already
    need: Need | None = None  # what its training reads of a data root
    further: FurtherMetrics | None = None  # of its recipe; none: the weights that others kept do not stand for it


@dataclass(frozen=True, slots=True)
class TrialKey:
    """A trial that exists, by numbers and by labels."""

    cell: int
    cell_labels: Labels
    candidate: int
    candidate_labels: Labels
    repeat: int
    repeat_labels: Labels
    fingerprint: str
    stamp: str = ""  # of the versions that its training was planned with
    trial: int = 0
    base: str = ""  # the fingerprint of its recipe without further metrics
    metrics: tuple[str, ...] = ()  # the further metrics of its recipe, and of the one that it is evaluated for


@dataclass(frozen=True, slots=True)
class MeasuredTrial:
    """A trial that exists, and the training whose further metrics it is to have."""

    trial: int
    plan: PlannedTrial


@dataclass(frozen=True, slots=True)
class SweepLook:
    """When a sweep was extended, so that its numbers may have been looked at before."""

    at: datetime
    position: int  # of the first trial that was added
    finished: int  # trials that had finished by then


@dataclass(frozen=True, slots=True)
class Extension:
    """A wider spec, and what it has beyond the places that exist."""

    text: str
    spec: Mapping[str, Any]
    total: int
    cells: Sequence[Cell]
    candidates: Sequence[Candidate]
    trials: Sequence[PlannedTrial]
    measured: Sequence[MeasuredTrial] = ()


@dataclass(frozen=True, slots=True)
class QuerySums:
    """Of one training and one split; the arrays are numpy's, [classes], in the order of the classes' numbers."""

    identity: str  # of the queries, their classes and the data: only equal ones are paired
    checkpoint: str  # `best` or `last`: which weights answered
    counts: Any  # queries of each class, int64
    sums: Mapping[str, Any]  # by metric, such as `recall@1`, the sum of their scores, float64


class QuerySource(Protocol):
    """Where they come from; asked only for what a table compares."""

    def __call__(self, trials: Sequence[int], split: str) -> tuple[Mapping[int, QuerySums], Mapping[int, str]]:
        """By trial its sums on a split, and for each trial without them why that is."""
        ...


def nowhere(trials: Sequence[int], split: str) -> tuple[Mapping[int, QuerySums], Mapping[int, str]]:
    """The source of who has only metrics."""
    return {}, dict.fromkeys(trials, "scores per query are not at hand here")


@dataclass(frozen=True, slots=True)
class TrialOutcome:
    """What is known of one trial when a table is computed."""

    trial: int  # the trial's id
    cell: int
    candidate: int
    repeat: int
    repeat_labels: Labels
    state: TrialState
    diverged: bool = False
    reused: bool = False
    values: Mapping[str, float] = field(default_factory=dict)
    """The result's metrics, keyed checkpoint/split/metric; empty unless finished."""
    stamp: str = ""  # of the versions that a finished one was planned with
    origin: str = ""  # of the data and code that a finished one was trained with (views.provenance.origin_of)
    coming: tuple[str, ...] = ()  # metrics that are being evaluated of its kept weights
    position: int = 0  # in the order in which the sweep came to hold it
    seconds: float | None = None  # that a finished one was trained


NO_SWEEP: Final = 0
"""The number of what only a spec says: no sweep has it."""


@dataclass(frozen=True, slots=True)
class SweepOutcomes:
    """Everything that a table is computed from."""

    sweep: int
    name: str
    state: str
    spec: Mapping[str, Any]  # the normalized spec, as `spec.Spec` dumps it
    cells: tuple[Cell, ...]
    candidates: tuple[Candidate, ...]
    trials: tuple[TrialOutcome, ...]
    queries: QuerySource = field(default=nowhere, compare=False, repr=False)
    """What the test queries of its trials scored, for tables that cover them."""

    def trials_of(self, cell: int) -> Iterable[TrialOutcome]:
        """The trials of one cell, in order."""
        return (trial for trial in self.trials if trial.cell == cell)


@dataclass(frozen=True, slots=True)
class Statistic:
    """A mean over repeats; `std` is the sample's, none for n = 1."""

    mean: float
    std: float | None
    n: int


@dataclass(frozen=True, slots=True)
class CellSummary:
    """A cell's selected candidate with its statistics, as MLflow's cell run and the pages show it."""

    cell: int
    status: Literal["complete", "partial", "failed", "diverged", "missing"]
    candidate: int | None  # index within the cell
    labels: Labels  # of the selected candidate
    selection_key: str
    score: Statistic | None
    metrics: Mapping[str, Statistic]  # keyed checkpoint/split/metric
    candidates: int  # how many competed: the cell's selection budget
    coming: tuple[str, ...] = ()  # metrics that are still being evaluated of some repeat
    undefined: tuple[str, ...] = ()  # keys that were computed and have no value, such as a recall of no query


@dataclass(frozen=True, slots=True)
class Started:
    """An attempt runs on a slot."""

    attempt: str
    holder: str  # the slot's name
    host: str


@dataclass(frozen=True, slots=True)
class Progressed:
    """An attempt reported; `seq` counts its messages from 1, so that a replay changes nothing."""

    attempt: str
    seq: int
    progress: Progress


@dataclass(frozen=True, slots=True)
class Finished:
    """An attempt gave its result, `ok` or `diverged`."""

    attempt: str
    result: Result


@dataclass(frozen=True, slots=True)
class Failed:
    """An attempt ended without a result; with `requeue` its training waits for another attempt."""

    attempt: str
    failure: Failure
    requeue: bool


@dataclass(frozen=True, slots=True)
class AttemptStopped:
    """An attempt was stopped because nobody wants its training any more, or was not begun for a `reason`."""

    attempt: str
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class CellSettled:
    """All trials of a cell ended and its candidate is selected."""

    sweep: int
    summary: CellSummary


@dataclass(frozen=True, slots=True)
class SweepSettled:
    """All trials of a sweep ended; its tables are final until it is retried."""

    sweep: int


Event = Started | Progressed | Finished | Failed | AttemptStopped | CellSettled | SweepSettled


_ORIGINS: Final = {
    "manifest": "data", "content": "files", "weights": "weights", "code": "own code", "git_commit": "commits",
    "metricsweep": "versions of metricsweep",
}  # fmt: skip
"""What the runs behind one number should share, by its key in a result's provenance."""
_FEW: Final = 3


def origin_of(provenance: Mapping[str, Any]) -> str:
    """What a training was made of, as JSON: its data, weights and code as far as the provenance has them."""
    versions = provenance.get("versions")
    known = {**provenance, **({"metricsweep": versions.get("metricsweep")} if isinstance(versions, Mapping) else {})}
    held = {key: known[key] for key in _ORIGINS if known.get(key)}
    return json.dumps(held, sort_keys=True, separators=(",", ":")) if held else ""


def mixture(runs: Iterable[TrialOutcome]) -> tuple[str, ...]:
    """In which data, code and versions of parts the trainings behind one number differ, in words; empty: in none."""
    values: defaultdict[tuple[str, str], dict[str, None]] = defaultdict(dict)
    made = dict.fromkeys((one.origin, one.stamp) for one in runs)
    for origin, stamp in made if len(made) > 1 else ():
        for key, held in (json.loads(origin) if origin else {}).items():
            for path, value in _leaves(held):
                values[_ORIGINS.get(key, key), path][value] = None
        for part, version in (json.loads(stamp).get("versions", {}) if stamp else {}).items():
            values["version", part][str(version)] = None
    return tuple(
        f"{what}{f' of {path}' if path else ''}: {', '.join([*found][:_FEW])}{' ...' if len(found) > _FEW else ''}"
        for (what, path), found in values.items()
        if len(found) > 1
    )


def _leaves(held: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(held, Mapping):
        for name, inner in held.items():
            yield from _leaves(inner, f"{path}.{name}" if path else str(name))
    else:
        yield path, _brief(str(held))


def _brief(value: str) -> str:
    """A hash by its beginning, a commit with what says that it was changed."""
    kind, colon, digest = value.partition(":")
    if colon:
        return f"{kind}:{digest[:12]}"
    commit, dash, word = value.partition("-")
    return commit[:12] + dash + word if len(commit) == 40 else value


@dataclass(frozen=True, slots=True)
class TrialProvenance:
    """One trial of a sweep and everything that is known of the training that it points to."""

    outcome: TrialOutcome
    uid: str
    training: str  # UUID; several trials may share it
    fingerprint: str
    recipe: Mapping[str, Any]  # JSON of the completed recipe
    provenance: Mapping[str, Any]  # of the result: versions, device, host, git commit, manifest; empty without one
    best_step: int | None
    seconds: float | None
    score: float | None
    error: str | None
    run: str | None  # the tracker's id of its run
    reason: str | None = None  # why it was pruned

    @property
    def commit(self) -> str | None:
        """The commit of the code that trained it, `-dirty` where that was changed."""
        return _text(self.provenance.get("git_commit"))

    @property
    def data_hash(self) -> str | None:
        """The hash of the data set that was read, else the one that its recipe asks for."""
        pins = self.recipe.get("pins") or {}
        return _text(self.provenance.get("manifest")) or _text(pins.get("manifest"))

    @property
    def dataset(self) -> str:
        """The name of its data set."""
        part = self.recipe.get("dataset")
        return str(part.get("name", "") if isinstance(part, Mapping) else part or "")

    @property
    def versions(self) -> dict[str, str]:
        """The versions of the packages that may change a number."""
        found = self.provenance.get("versions")
        return {str(name): str(one) for name, one in found.items() if one} if isinstance(found, Mapping) else {}

    @property
    def device(self) -> str | None:
        """Where it ran: `cpu (AMD EPYC)`."""
        kind, name = _text(self.provenance.get("device")), _text(self.provenance.get("device_name"))
        return f"{kind} ({name})" if kind and name else kind or name


def _text(value: object) -> str | None:
    return None if value is None or value == "" else str(value)
