"""Ray Tune's view of trainings: a trial follows each attempt, for Tune's files, TensorBoard and Ray's tools.

Nothing waits for the trials, and an error of Tune affects only these views.
"""

import json
import logging
import re
import shutil
import threading
import time
import uuid
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import ray
from ray import tune
from ray.exceptions import RayError
from ray.tune.logger import CSVLoggerCallback, JsonLoggerCallback, TBXLoggerCallback
from ray.tune.search import Searcher

from orchestrator.run.dispatch import Execution
from orchestrator.run.spool import Message
from orchestrator.views.operations import SYSTEM
from orchestrator.views.runs import Order

log = logging.getLogger(__name__)

Config = dict[str, str | int | float | bool | None]

POLL_SECONDS: Final = (1.0, 5.0)  # how often a trial asks its slot for messages: at first, and after 40 seconds
_LOST_SECONDS: Final = 1.0  # the pause after an error; the conductor notices a lost slot and ends the trial
PROCESS_WAIT_SECONDS: Final = 30.0
"""How long an attempt waits for the process of an ended trial before Tune starts a new one, which takes CPU seconds.

So short trainings share a few processes. Tune itself would start a process for nearly every trial, as soon as the trial
is suggested.
"""
_TRIALS_PER_TUNER: Final = 1_000  # Tune keeps every trial in memory, so a Tuner is replaced after this many
WAITING: Final = 1_000
"""Most attempts that wait for a trial while Tune is slow or does not work; the oldest are dropped."""
AGAIN_SECONDS: Final = 60.0  # the pause after an error of Tune
_CATCH_UP_SECONDS: Final = 30.0  # how long trials have to see the ends of their attempts once nothing trains
_CLOSING_SECONDS: Final = 5.0  # the same when the conductor is to end
_END_SECONDS: Final = 30.0  # how long Tune has to end the processes of its trials
KEPT: Final = 3  # folders of Tuners that are kept
PREFIX: Final = "tune-"
LONGEST: Final = 200  # most characters of a value or a name that are shown

_WRITERS: Final = (JsonLoggerCallback, CSVLoggerCallback, TBXLoggerCallback)  # of the files of each trial of Tune

_TUNING = threading.Lock()  # two Tuners in one process would run each other's trials


class TuneTrials:
    """Makes Ray Tune follow each attempt of a run, in its own thread."""

    def __init__(self, scratch: Path, namespace: str, training: Collection[str]) -> None:
        """`training` has the attempts that train now, at any time."""
        self._scratch, self._namespace, self.training = scratch, namespace, training
        self.waiting: deque[tuple[float, Config]] = deque(maxlen=WAITING)  # each with the time when it began to wait
        self.ending, self.stopping = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None

    def follow(self, execution: Execution[Any]) -> None:
        """Make a trial of Tune follow an attempt on its slot, from the message after the last that is recorded."""
        order, slot = execution.order, execution.slot.name
        follows: Config = {
            "attempt": order.attempt, "slot": slot, "namespace": self._namespace, "seen": execution.seen
        }  # fmt: skip
        self.waiting.append((time.monotonic(), shown(order) | follows))
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="tune", daemon=True)
            self._thread.start()

    def end(self, *, closing: bool) -> None:
        """End all trials of Tune: at once while attempts train, else after the end of their attempts."""
        self.ending.set()
        if self._thread is not None:
            if not self.training:
                self._thread.join(_CLOSING_SECONDS if closing else _CATCH_UP_SECONDS)
            self.stopping.set()
            self._thread.join(_END_SECONDS)

    def _run(self) -> None:
        with _TUNING:
            while not self.stopping.is_set() and (self.waiting or not self.ending.is_set()):
                suggestions = Suggestions(self)
                try:
                    self._tuner(suggestions).fit()
                except Exception:
                    log.warning("Ray Tune does not show what trains", exc_info=True)
                    if self.ending.wait(AGAIN_SECONDS):
                        return
                    suggestions.open.clear()
                self.waiting.extendleft((0.0, config) for config in reversed(suggestions.open.values()))

    def _tuner(self, suggestions: "Suggestions") -> tune.Tuner:
        for folder in sorted(self._scratch.glob(f"{PREFIX}*"))[: 1 - KEPT]:
            shutil.rmtree(folder, ignore_errors=True)
        return tune.Tuner(
            Follower,
            tune_config=tune.TuneConfig(
                search_alg=suggestions,
                num_samples=-1,
                reuse_actors=True,
                trial_name_creator=lambda trial: str(trial.config["trial"]),
                trial_dirname_creator=lambda trial: _folder_of(str(trial.config["trial"]), trial.trial_id),
            ),
            run_config=tune.RunConfig(
                name=f"{PREFIX}{datetime.now(UTC):%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:8]}",
                storage_path=str(self._scratch),
                stop=suggestions,
                failure_config=tune.FailureConfig(max_failures=3),
                callbacks=[type(writes.__name__, (_WithNews, writes), {})() for writes in _WRITERS],
                checkpoint_config=tune.CheckpointConfig(checkpoint_frequency=0, checkpoint_at_end=False),
                verbose=0,
            ),
        )


def shown(order: Order) -> Config:
    """The name and the recipe of an attempt for Tune, flat, since Tune evaluates every `{"eval": ...}` in a config."""
    called = order.label or order.training
    name = (called if order.number == 1 else f"{called} (attempt {order.number})")[:LONGEST]
    recipe = {path: value for path, value in _flat("recipe", order.recipe) if not path.startswith("recipe.pins.")}
    return {**recipe, "trial": name}


def _flat(path: str, value: Any) -> Iterator[tuple[str, str | int | float | bool | None]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flat(f"{path}.{key}", inner)
    elif value is None or isinstance(value, bool | int | float):
        yield path, value
    else:
        yield path, (value if isinstance(value, str) else json.dumps(value))[:LONGEST]


class Suggestions(Searcher, tune.Stopper):  # type: ignore[misc]
    """Suggests the attempts to follow to one Tuner, and decides when its trials and the Tuner end."""

    def __init__(self, trials: TuneTrials) -> None:
        super().__init__()
        self._trials, self._count = trials, 0
        self.open: dict[str, Config] = {}  # by trial
        self._starting: set[str] = set()  # trials that have no process yet
        self._free = 0  # processes of ended trials that no other trial has taken
        self._over: set[str] = set()  # trials whose attempt was seen to have ended

    def suggest(self, trial_id: str) -> dict[str, Any] | str | None:
        """The next attempt to follow; None while there is no attempt or no process for it; FINISHED ends this Tuner."""
        waiting = self._trials.waiting
        if self.stop_all() or (not waiting and self._trials.ending.is_set()):
            return Searcher.FINISHED  # type: ignore[no-any-return]
        if not waiting:
            self._free = min(self._free, 1)  # Tune keeps one
            return None
        if self.open and not self._free and time.monotonic() - waiting[0][0] < PROCESS_WAIT_SECONDS:
            return None
        _, found = waiting.popleft()
        self._free = max(0, self._free - 1)
        self._count += 1
        self._starting.add(trial_id)
        self.open[trial_id] = found
        return dict(found)

    def on_trial_result(self, trial_id: str, result: dict[str, Any]) -> None:
        """Record that a trial of Tune has its process."""
        self._starting.discard(trial_id)

    def on_trial_complete(self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False) -> None:
        """Forget a trial of Tune that has ended."""
        self.open.pop(trial_id, None)
        self._starting.discard(trial_id)
        self._over.discard(trial_id)
        self._free += not (error or self._starting)

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        """Whether to end a trial: after its attempt has ended, and one more request for its last message."""
        config = self.open.get(trial_id)
        if config is not None and config["attempt"] in self._trials.training:
            return False
        late = trial_id in self._over
        self._over.add(trial_id)
        return late

    def stop_all(self) -> bool:
        """Whether to end this Tuner; the attempts continue to train."""
        return self._trials.stopping.is_set() or self._count >= _TRIALS_PER_TUNER

    def save(self, checkpoint_path: str) -> None:
        """Do nothing: a Tuner is never restored."""

    def restore(self, checkpoint_path: str) -> None:
        """Do nothing: a Tuner is never restored."""

    def __getstate__(self) -> None:
        """Pickle nothing: a Tuner is never restored."""


class Follower(tune.Trainable):  # type: ignore[misc]
    """A trial of Tune that reports the messages of an attempt, and trains nothing itself."""

    @classmethod
    def default_resource_request(cls, config: Config) -> tune.PlacementGroupFactory:
        """The resources of a trial of Tune: 1 MB, since slots use the CPUs and Tune refuses an empty bundle."""
        return tune.PlacementGroupFactory([{"memory": 2**20}])

    def setup(self, config: Config) -> None:
        """Follow the attempt that `config` names."""
        self._attempt, self._slot = str(config["attempt"]), str(config["slot"])
        self._namespace, self._seen = str(config["namespace"]), int(config["seen"] or 0)
        self._began: float | None = None  # the first request
        self._shown: dict[str, Any] = {"evaluations": 0}

    def reset_config(self, new_config: Config) -> bool:
        """Follow another attempt in the same process."""
        self.setup(new_config)
        return True

    def step(self) -> dict[str, Any]:
        """The latest step and metrics of the attempt."""
        if self._began is None:
            self._began, wait = time.monotonic(), 0.0
        else:
            shortest, longest = POLL_SECONDS
            wait = min(longest, shortest + (time.monotonic() - self._began) / 10)
        try:
            actor = ray.get_actor(self._slot, namespace=self._namespace)
            messages = [Message.of(line) for line in ray.get(actor.follow.remote(self._attempt, self._seen, wait))]
        except (ValueError, RayError):
            messages = []
            time.sleep(_LOST_SECONDS)
        before = self._shown["evaluations"]
        for message in messages:
            self._seen = message.seq
            self._show(message)
        ended = bool(messages) and messages[-1].final
        return {**self._shown, "news": ended or self._shown["evaluations"] > before, "done": ended}

    def _show(self, message: Message) -> None:
        try:
            body: Mapping[str, Any] = message.body or {}
            metrics = {key: value for key, value in (body.get("metrics") or {}).items() if "/" in key}
        except (ValueError, TypeError, AttributeError):  # a damaged message
            return
        self._shown |= {key: body[key] for key in ("step", "total", "outcome") if key in body} | metrics
        self._shown["timesteps_total"] = self._shown.get("step", 0)  # TensorBoard's axis
        evaluated = any(not key.startswith(("train/", SYSTEM)) for key in metrics)
        self._shown["evaluations"] += message.kind == "finished" or evaluated
        if message.final:
            self._shown["outcome"] = body.get("outcome") or message.kind


def _folder_of(name: str, trial: str) -> str:
    return f"{re.sub(r'[^A-Za-z0-9=.@-]+', '_', name).strip('_.')[:100]}-{trial}"


class _WithNews:
    """Makes a writer of Tune write a line for each evaluation and for the end, not for each request."""

    def log_trial_result(self, iteration: int, trial: Any, result: dict[str, Any]) -> None:
        """Write a result that has news."""
        if result["news"]:
            super().log_trial_result(iteration, trial, result)  # type: ignore[misc]
