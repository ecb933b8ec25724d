"""Tune's Tuner in a thread of its own, which is told what to follow and tells what its relays are told."""

import threading
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Final

from orchestrator.run.ray import lean_tune as tune
from orchestrator.run.ray.assignment import Assignment, folder_of
from orchestrator.run.ray.relay import Relay
from orchestrator.run.ray.relay_scheduler import RelayScheduler
from orchestrator.run.ray.trial_files import TrialFiles, remove_old
from orchestrator.run.report import Report
from orchestrator.views.errors import UnavailableError
from orchestrator.views.resources import MOST_TRAININGS

TRIALS_PER_TUNER: Final = 1_000
"""Tune keeps every trial in memory; a Tuner is replaced after this many, and its slots train on meanwhile."""
END_SECONDS: Final = 120.0
"""Ending a Tuner takes Tune several seconds."""
REST_SECONDS: Final = 5.0
"""How long Tune's loop rests at most while it has no trial."""
PREFIX: Final = "relays-"


class Unkept:
    """Tune pickles what it is given, to restore it later. Nothing is ever restored here, so nothing is kept."""

    def __getstate__(self) -> None:
        return None


class Suggestions(Unkept, tune.Searcher):  # type: ignore[misc]
    """What Tune calls its search algorithm: the assignments in their order, and None once there are to be no more."""

    def __init__(self, assignments: "SimpleQueue[Assignment | None]", ending: threading.Event) -> None:
        super().__init__()
        self._assignments, self._ending = assignments, ending
        self._live = 0

    def suggest(self, trial_id: str) -> dict[str, Any] | str | None:
        """The next trial's config; None: nothing now; FINISHED ends this Tuner.

        While no trial lives it waits here for one, since Tune would sleep for a second after each None.
        """
        try:
            found = None if self._ending.is_set() else self._assignments.get(timeout=0 if self._live else REST_SECONDS)
        except Empty:
            return None
        if found is None:
            return tune.Searcher.FINISHED  # type: ignore[no-any-return]
        self._live += 1
        return dict(found.config)

    def on_trial_complete(self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False) -> None:
        """One lives no more."""
        self._live -= 1

    def save(self, checkpoint_path: str) -> None:
        """Nothing: the database is the record."""

    def restore(self, checkpoint_path: str) -> None:
        """Nothing: a Tuner is never restored."""


class Ending(Unkept, tune.Stopper):  # type: ignore[misc]
    """What Tune asks whether to go on."""

    def __init__(self, ending: threading.Event) -> None:
        self._ending = ending

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        """Never for one relay: it ends with its attempt."""
        return False

    def stop_all(self) -> bool:
        """True ends this Tuner, never what trains."""
        return self._ending.is_set()


class Reporting(Unkept, tune.Callback):  # type: ignore[misc]
    """Takes the messages out of Tune's results; what is left is for people."""

    def __init__(self, reports: "SimpleQueue[Report]") -> None:
        self._reports, self._files = reports, TrialFiles()

    def on_trial_start(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        """A relay begins."""
        self._files.begin(trial)

    def on_trial_result(
        self, iteration: int, trials: list[Any], trial: Any, result: dict[str, Any], **info: Any
    ) -> None:
        """A relay reports."""
        said = {key: result.pop(key, None) for key in ("host", "worn", "lost")}
        self._reports.put(Report(trial.config["attempt"], tuple(result.pop("said", ())), **said))
        self._files.take(iteration, trial, result)

    def on_trial_complete(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        """A relay ended."""
        self._files.end(trial)
        self._reports.put(Report(trial.config["attempt"], ended=True))

    def on_trial_error(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        """A relay's process was lost."""
        self.on_trial_complete(iteration, trials, trial)


class TunerThread:
    """Follows attempts. One at a time in a process: two Tuners would run one another's trials."""

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch
        self._assignments: SimpleQueue[Assignment | None] = SimpleQueue()
        self._reports: SimpleQueue[Report] = SimpleQueue()
        self._ending = threading.Event()
        self._error: BaseException | None = None
        self._followed = 0
        self._thread = threading.Thread(target=self._fit, name="tune", daemon=True)

    @property
    def spent(self) -> bool:
        """Whether another Tuner is to take its place."""
        return self._followed >= TRIALS_PER_TUNER or (self._followed > 0 and not self._thread.is_alive())

    def follow(self, assignment: Assignment) -> None:
        """Have a relay follow an attempt."""
        if not self._followed:
            self._thread.start()
        self._followed += 1
        self._assignments.put(assignment)

    def reports(self, wait: float) -> Iterator[Report]:
        """What has come since, at least one where one comes within so many seconds; raises what has ended the Tuner."""
        try:
            yield self._reports.get(timeout=wait)
            while True:
                yield self._reports.get_nowait()
        except Empty:
            if self._error is not None:
                raise self._error from None

    def end(self) -> None:
        """End the relays; what they follow trains on. Raises UnavailableError where Tune does not end."""
        self._ending.set()
        self._assignments.put(None)
        if self._followed:
            self._thread.join(END_SECONDS)
            if self._thread.is_alive():
                raise UnavailableError("Ray Tune does not end, and beside it no other Tuner may run in this process")

    def _fit(self) -> None:
        try:
            self._tuner().fit()
        except BaseException as error:
            self._error = error

    def _tuner(self) -> tune.Tuner:
        remove_old(self._scratch, PREFIX)
        return tune.Tuner(
            Relay,
            tune_config=tune.TuneConfig(
                search_alg=tune.ConcurrencyLimiter(
                    Suggestions(self._assignments, self._ending), max_concurrent=MOST_TRAININGS
                ),
                scheduler=RelayScheduler(),
                num_samples=-1,
                reuse_actors=True,
                trial_name_creator=lambda trial: str(trial.config["trial"]),
                trial_dirname_creator=lambda trial: folder_of(str(trial.config["trial"]), trial.trial_id),
            ),
            run_config=tune.RunConfig(
                name=f"{PREFIX}{datetime.now(UTC):%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:8]}",
                storage_path=str(self._scratch),
                stop=Ending(self._ending),
                callbacks=[Reporting(self._reports)],
                checkpoint_config=tune.CheckpointConfig(checkpoint_frequency=0, checkpoint_at_end=False),
                verbose=0,
            ),
        )
