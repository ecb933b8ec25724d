"""Sends the outdated runs of the outbox to MLflow, each in its present state."""

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property, partial
from typing import Final

from orchestrator.record.mlflow.content import (
    cell_mirror,
    experiment_name,
    experiment_tags,
    left_mirror,
    summary_mirror,
    trial_mirror,
)
from orchestrator.record.mlflow.tracker import (
    Artifacts,
    ExperimentGoneError,
    RunGoneError,
    Tracker,
    TrackerRefusedError,
)
from orchestrator.record.outbox import Dirty, SweepRun, TrialRun
from orchestrator.record.store import Store, Writer
from orchestrator.views.errors import ConflictError, FencedError, NotFoundError, UnavailableError
from orchestrator.views.states import SWEEP_ENDED

LONGEST_PAUSE: Final = 60.0
"""Most seconds between two tries."""

_log = logging.getLogger(__name__)


class Mirror:
    """Sends outdated runs to MLflow, so that each change arrives once.

    `artifacts` makes what a sweep shows in addition to its runs; files and captions only if it has ended. `forward`
    needs its own thread: it waits for the tracker, which `connect` makes at the first use. `note_deletion` may be
    called from another thread and does not wait.
    """

    def __init__(
        self,
        store: Store,
        writer: Writer,
        connect: Callable[[], Tracker],
        artifacts: Callable[[int, bool], Artifacts] = lambda sweep, ended: Artifacts(),
        url: str = "",
    ) -> None:
        self._store, self._writer, self._connect, self._artifacts = store, writer, connect, artifacts
        self._deletions, self._looked = 1, 0  # 1, since an earlier conductor may have left a deletion
        self._url = url.rstrip("/")
        self._away = 0  # passes in a row that ended because the tracker did not answer
        self._resume_at = 0.0
        self._outlived: set[int] = set()
        """Sweeps of which we may have sent old data, since the lease passed on meanwhile."""

    @cached_property
    def _tracker(self) -> Tracker:
        return self._connect()

    def note_deletion(self) -> None:
        """Make the next `forward` remove the MLflow experiments of deleted sweeps."""
        self._deletions += 1

    def forward(self, limit: int = 100) -> int:
        """Send at most `limit` outdated runs to MLflow and return how many were sent; raises UnavailableError.

        UnavailableError is raised for the database only; while MLflow does not answer, tries are 1 s to 60 s apart.
        FencedError is raised if another conductor has the lease; that conductor is asked to send the present sweep
        again.
        """
        if self._outlived:
            self._leave_to_successor()
            return 0
        if time.monotonic() < self._resume_at:
            return 0
        sent = unanswered = 0
        for dirty in self._store.outbox.due(limit):
            try:
                error = self._forwarded(dirty)
            except FencedError:
                self._outlived.add(dirty.sweep)
                self._leave_to_successor()
                raise
            if error is None:
                sent, unanswered = sent + 1, 0
            else:
                unanswered += isinstance(error, UnavailableError)
            if unanswered == 2:  # a single refusal may be caused by the run
                break
        if unanswered < 2 and not self._remove_deleted():
            unanswered = 2
        self._away = 0 if sent or unanswered < 2 else self._away + 1
        self._resume_at = time.monotonic() + (pause(self._away) if self._away else 0.0)
        return sent

    def _remove_deleted(self) -> bool:
        """Remove the experiments of deleted sweeps; False if the tracker does not answer.

        If it refuses, the next deletion or the next conductor tries again.
        """
        deletions = self._deletions
        if deletions == self._looked:
            return True
        for gone in self._store.outbox.deleted():
            try:
                self._tracker.remove(gone.uid)
            except Exception as error:
                self._warn(f"the experiment of the deleted sweep {gone.id} is still in MLflow", error)
                if _is_away(error):
                    return False
            else:
                self._writer.outbox.removed(gone)
        self._looked = deletions
        return True

    def _forwarded(self, dirty: Dirty) -> Exception | None:
        """Send a run and record that, or return the error, so that the other runs are sent."""
        try:
            run, last_point = self._sent(dirty)
        except FencedError:
            raise
        except Exception as error:
            self._warn(f"the run of {dirty.kind} {dirty.entity} was not mirrored", error)
            self._writer.outbox.postpone(dirty, f"{type(error).__name__}: {error}", pause(dirty.failures + 1))
            return error
        self._writer.outbox.sent(dirty, run, last_point)
        return None

    def _leave_to_successor(self) -> None:
        """Ask the holder of the lease to send again: the tracker has no fence, and our data may have replaced newer."""
        for sweep in sorted(self._outlived):
            with suppress(NotFoundError, ConflictError):  # it is deleted, or about to be
                self._store.submissions.add_request("mirror", sweep, None, None)
            self._outlived.discard(sweep)

    def _warn(self, what: str, error: Exception) -> None:
        """Log an error; if the tracker stays away, in the first pass only."""
        if not (self._away and _is_away(error)):
            _log.warning("%s: %s", what, error)

    def _sent(self, dirty: Dirty) -> tuple[str | None, int]:
        """Send a run; if it is gone from the tracker, make it again with all its data."""
        try:
            return self._send(dirty)
        except ExperimentGoneError as error:
            _log.warning("all runs of sweep %d are mirrored again: %s", dirty.sweep, error)
            self._writer.outbox.mirror_again(dirty.sweep)
        except RunGoneError as error:
            _log.warning("%s; it is made again", error)
            self._writer.outbox.forget_run(dirty)
        return self._send(dirty)

    def _send(self, dirty: Dirty) -> tuple[str | None, int]:
        if dirty.kind == "trial":
            return self._send_trial(dirty.entity)
        if dirty.kind == "cell":
            return self._send_cell(dirty.sweep, dirty.entity), 0
        return self._send_sweep(self._store.mirror_states.sweep(dirty.sweep)), 0

    def _send_sweep(self, sweep: SweepRun) -> str | None:
        if sweep.started is None and sweep.run is None:
            return None  # it ended before it had a trial
        ended = sweep.state in SWEEP_ENDED
        artifacts = self._artifacts(sweep.id, ended)
        experiment = self._showing(sweep, artifacts) if ended else self._experiment(sweep)
        run = self._tracker.mirror(experiment, summary_mirror(sweep, artifacts, self._url))
        if ended:
            self._writer.outbox.keep_run("summary", sweep.id, sweep.id, run)
            duplicates = self._tracker.unite(experiment, partial(self._store.runs.by_key, sweep.id))
            if duplicates:
                _log.warning("%d duplicate runs of sweep %d were moved to MLflow's trash", duplicates, sweep.id)
        return run

    def _send_cell(self, sweep: int, index: int) -> str:
        cell = self._store.mirror_states.cell(sweep, index)
        run = self._tracker.mirror(self._experiment(cell.sweep), cell_mirror(cell, self._url))
        if run != cell.run:  # its trials may name another run as their parent
            self._writer.outbox.keep_parent(sweep, index, run)
        return run

    def _send_trial(self, trial_id: int) -> tuple[str | None, int]:
        trial = self._store.mirror_states.trial(trial_id)
        if trial.left is not None:
            self._leave(trial, trial.left)
        if trial.run is None and trial.started is None:
            return None, 0  # it never ran
        experiment = self._experiment(trial.cell.sweep)
        if trial.cell.run is None:
            self._send_cell(trial.cell.sweep.id, trial.cell.index)
            trial = self._store.mirror_states.trial(trial_id)
        return self._tracker.mirror(experiment, trial_mirror(trial, self._url)), trial.last_point

    def _leave(self, trial: TrialRun, left: str) -> None:
        """End the run that a trial has left."""
        try:
            self._tracker.mirror(self._experiment(trial.cell.sweep), left_mirror(trial, left))
        except RunGoneError:
            _log.info("run %s, which trial %d has left, is gone", left, trial.id)
        self._writer.outbox.forget_left(trial.id, left)

    def _experiment(self, sweep: SweepRun) -> str:
        known = sweep.experiment or self._store.runs.experiment(sweep.id)
        return self._showing(sweep, self._artifacts(sweep.id, False)) if known is None else known

    def _showing(self, sweep: SweepRun, artifacts: Artifacts) -> str:
        """Make or update the sweep's experiment; returns its id."""
        tags = experiment_tags(sweep, artifacts, self._url)
        made = self._tracker.experiment(experiment_name(sweep), sweep.uid, tags)
        if not self._writer.outbox.keep_experiment(sweep.id, made):
            self._tracker.remove(sweep.uid)  # the sweep was deleted while its experiment was made
            raise NotFoundError(f"sweep {sweep.id} was deleted")
        return made


def _is_away(error: Exception) -> bool:
    return isinstance(error, UnavailableError) and not isinstance(error, TrackerRefusedError)


def pause(failures: int) -> float:
    """Seconds until MLflow is tried again, after so many failures in a row: 1, 2, 4, ... 60."""
    return float(min(LONGEST_PAUSE, 2.0 ** min(failures - 1, 10)))
