"""The mirror: tells the tracker what the outbox holds, each run as it stands when it is sent."""

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import cached_property, partial
from typing import Final

from orchestrator.record.mirror_runs import CellRun, SweepRun
from orchestrator.record.mlflow.content import (
    cell_mirror,
    experiment_name,
    experiment_tags,
    left_mirror,
    summary_mirror,
    trial_mirror,
)
from orchestrator.record.mlflow.tracker import Exhibit, ExperimentGoneError, RunGoneError, Tracker, TrackerRefusedError
from orchestrator.record.outbox import Dirty
from orchestrator.record.store import Store, Writer
from orchestrator.views.errors import ConflictError, FencedError, NotFoundError, UnavailableError
from orchestrator.views.states import SWEEP_ENDED

Exhibits = Callable[[int, bool], Exhibit]
"""What a sweep shows beside its runs; with its files and captions where it has ended."""

LONGEST_PAUSE: Final = 60.0
"""Seconds at most between two tries."""

_log = logging.getLogger(__name__)


def nothing(sweep: int, ended: bool) -> Exhibit:
    """No exhibit."""
    return Exhibit()


class Mirror:
    """Sends what is due; nothing is ever lost, and nothing shown twice.

    `forward` belongs in a thread of its own: it waits for the tracker, which `connect` makes when it is first needed.
    `note_deletion` may be called from another thread and waits for nothing.
    """

    def __init__(
        self,
        store: Store,
        writer: Writer,
        connect: Callable[[], Tracker],
        exhibits: Exhibits = nothing,
        url: str = "",
    ) -> None:
        self._store, self._writer, self._connect, self._exhibits = store, writer, connect, exhibits
        self._deletions, self._looked = 1, 0  # the first may be an earlier conductor's
        self._url = url.rstrip("/")
        self._away = 0  # passes in a row that ended because the tracker did not answer
        self._resume_at = 0.0
        self._outlived: set[int] = set()
        """Sweeps of which we may have told what is old by now: the lease passed on meanwhile."""

    @cached_property
    def _tracker(self) -> Tracker:
        return self._connect()

    def note_deletion(self) -> None:
        """Have the next `forward` take the experiments of deleted sweeps out of sight."""
        self._deletions += 1

    def forward(self, limit: int = 100) -> int:
        """Send at most `limit` due runs and return how many were sent; raises UnavailableError for the database only.

        While the tracker is away nothing is tried before a pause of 1 s, doubled up to 60 s, has passed. Once the lease
        has passed on whoever holds it is asked to tell anew what we were telling, and FencedError is raised.
        """
        if self._outlived:
            self._leave_to_successor()
            return 0
        if time.monotonic() < self._resume_at:
            return 0
        sent = unanswered = 0
        for dirty in self._store.outbox.due(limit):
            try:
                trouble = self._told(dirty)
            except FencedError:
                self._outlived.add(dirty.sweep)
                self._leave_to_successor()
                raise
            if trouble is None:
                sent, unanswered = sent + 1, 0
            else:
                unanswered += isinstance(trouble, UnavailableError)
            if unanswered == 2:  # one refusal may be the run's own fault; two in a row are not
                break
        if unanswered < 2 and not self._remove_deleted():
            unanswered = 2
        self._away = 0 if sent or unanswered < 2 else self._away + 1
        self._resume_at = time.monotonic() + (pause(self._away) if self._away else 0.0)
        return sent

    def left(self) -> int:
        """How many runs the tracker does not show as they are."""
        return self._store.outbox.lag()

    def _remove_deleted(self) -> bool:
        """Take experiments of deleted sweeps out of sight; False where the tracker does not answer.

        Where it refuses, the next deletion or the next conductor tries again.
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

    def _told(self, dirty: Dirty) -> Exception | None:
        """Send a run and note that; gives why it could not be sent, which shall not keep the others from being sent."""
        try:
            run, last_point = self._sent(dirty)
        except FencedError:
            raise
        except Exception as error:
            self._postpone(dirty, error)
            return error
        self._writer.outbox.sent(dirty, run, last_point)
        return None

    def _leave_to_successor(self) -> None:
        """The tracker knows no fence: what we sent may have come after what the holder of the lease has sent since."""
        for sweep in sorted(self._outlived):
            with suppress(NotFoundError, ConflictError):  # it is deleted, or about to be
                self._store.submissions.add_request("mirror", sweep, None, None)
            self._outlived.discard(sweep)

    def _postpone(self, dirty: Dirty, error: Exception) -> None:
        self._warn(f"the run of {dirty.kind} {dirty.entity} was not mirrored", error)
        said = f"{type(error).__name__}: {error}"
        self._writer.outbox.postpone(dirty, said, pause(dirty.failures + 1))

    def _warn(self, what: str, error: Exception) -> None:
        """Log it; of a tracker that stays away only the first pass."""
        if not (self._away and _is_away(error)):
            _log.warning("%s: %s", what, error)

    def _sent(self, dirty: Dirty) -> tuple[str | None, int]:
        """Send a run; what turns out to be gone is forgotten, and then made anew with all that it has to show."""
        try:
            return self._send(dirty)
        except ExperimentGoneError as error:
            _log.warning("everything of sweep %d is told anew: %s", dirty.sweep, error)
            self._writer.outbox.tell_anew(dirty.sweep)
        except RunGoneError as error:
            _log.warning("%s; it is made anew", error)
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
        exhibit = self._exhibits(sweep.id, ended)
        experiment = self._showing(sweep, exhibit) if ended else self._experiment(sweep)
        run = self._tracker.mirror(experiment, summary_mirror(sweep, exhibit, self._url))
        if ended:
            self._writer.outbox.keep_run("summary", sweep.id, sweep.id, run)
            twice = self._tracker.unite(experiment, partial(self._known, sweep.id))
            if twice:
                _log.warning("%d runs of sweep %d were there twice; they are in MLflow's trash", twice, sweep.id)
        return run

    def _known(self, sweep: int, keys: Iterable[str]) -> Mapping[str, str]:
        return self._store.runs.by_key(sweep, keys)

    def _send_cell(self, sweep: int, index: int) -> str:
        cell = self._store.mirror_states.cell(sweep, index)
        run = self._tracker.mirror(self._experiment(cell.sweep), cell_mirror(cell, self._url))
        if run != cell.run:  # its trials name it as their parent, which may have been another
            self._writer.outbox.keep_parent(sweep, index, run)
        return run

    def _send_trial(self, trial_id: int) -> tuple[str | None, int]:
        trial = self._store.mirror_states.trial(trial_id)
        if trial.left is not None:
            self._leave(trial_id, trial.cell, trial.left)
        if trial.run is None and trial.started is None:
            return None, 0  # it never ran
        experiment = self._experiment(trial.cell.sweep)
        if trial.cell.run is None:
            self._send_cell(trial.cell.sweep.id, trial.cell.index)
            trial = self._store.mirror_states.trial(trial_id)
        return self._tracker.mirror(experiment, trial_mirror(trial, self._url)), trial.last_point

    def _leave(self, trial_id: int, cell: CellRun, left: str) -> None:
        trial = self._store.mirror_states.trial(trial_id)
        try:
            self._tracker.mirror(self._experiment(cell.sweep), left_mirror(trial, left))
        except RunGoneError:
            _log.info("run %s, which trial %d has left, is gone", left, trial_id)
        self._writer.outbox.forget_left(trial_id, left)

    def _experiment(self, sweep: SweepRun) -> str:
        known = sweep.experiment or self._store.runs.experiment(sweep.id)
        return self._showing(sweep, self._exhibits(sweep.id, False)) if known is None else known

    def _showing(self, sweep: SweepRun, exhibit: Exhibit) -> str:
        """The sweep's experiment, with what it says of it."""
        tags = experiment_tags(sweep, exhibit, self._url)
        made = self._tracker.experiment(experiment_name(sweep), sweep.uid, tags)
        if not self._writer.outbox.keep_experiment(sweep.id, made):
            self._tracker.remove(sweep.uid)  # else nobody would: the sweep was deleted while its experiment was made
            raise NotFoundError(f"sweep {sweep.id} was deleted")
        return made


def _is_away(error: Exception) -> bool:
    return isinstance(error, UnavailableError) and not isinstance(error, TrackerRefusedError)


def pause(failures: int) -> float:
    """Seconds before the next try after so many failures in a row: 1, 2, 4, ... 60."""
    return float(min(LONGEST_PAUSE, 2.0 ** min(failures - 1, 10)))
