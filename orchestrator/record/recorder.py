"""The recorder: writes every event to the database, and from there, when it can, to the tracker."""

import logging
import time
from collections.abc import Callable, Mapping
from typing import Final

from orchestrator.record.mlflow.mirror_states import CellRun, SweepRun
from orchestrator.record.mlflow.mirrors import (
    cell_mirror,
    experiment_name,
    experiment_tags,
    left_mirror,
    summary_mirror,
    trial_mirror,
)
from orchestrator.record.mlflow.outbox import Dirty
from orchestrator.record.store import Store, Writer
from orchestrator.record.tracker import Tracker
from orchestrator.views.errors import FencedError, NotFoundError, UnavailableError
from orchestrator.views.events import Event
from orchestrator.views.lifecycle import SWEEP_ENDED

Tables = Callable[[int], Mapping[str, bytes]]
"""A sweep's tables as files by name, for its summary run."""

LONGEST_PAUSE: Final = 60.0
"""Seconds at most between two tries."""

_log = logging.getLogger(__name__)


def _no_tables(sweep: int) -> Mapping[str, bytes]:
    return {}


class Mirror:
    """Tells the tracker what the outbox holds, each run as it stands when it is sent; nothing is ever lost."""

    def __init__(
        self, store: Store, writer: Writer, tracker: Tracker, tables: Tables = _no_tables, url: str = ""
    ) -> None:
        self._store, self._writer, self._tracker, self._tables = store, writer, tracker, tables
        self._url = url.rstrip("/")
        self._away = 0  # passes in a row that ended because the tracker did not answer
        self._resume_at = 0.0

    def forward(self, limit: int = 100) -> int:
        """Send at most `limit` due runs and return how many were sent; raises UnavailableError for the database only.

        While the tracker is away nothing is tried before a pause of 1 s, doubled up to 60 s, has passed.
        """
        if time.monotonic() < self._resume_at:
            return 0
        sent = unanswered = 0
        for dirty in self._store.outbox.due(limit):
            try:
                run, last_point = self._send(dirty)
            except FencedError:
                raise
            except Exception as error:  # whatever one run's trouble is, the others are still to be told
                self._postpone(dirty, error)
                unanswered += isinstance(error, UnavailableError)
            else:
                self._writer.outbox.sent(dirty, run, last_point)
                sent, unanswered = sent + 1, 0
            if unanswered == 2:  # one refusal may be the run's own fault; two in a row are not
                break
        self._away = 0 if sent or unanswered < 2 else self._away + 1
        self._resume_at = time.monotonic() + (_pause(self._away) if self._away else 0.0)
        return sent

    def _postpone(self, dirty: Dirty, error: Exception) -> None:
        _log.warning("the run of %s %s was not mirrored: %s", dirty.kind, dirty.entity, error)
        said = f"{type(error).__name__}: {error}"
        self._writer.outbox.postpone(dirty, said, _pause(dirty.failures + 1))

    def _send(self, dirty: Dirty) -> tuple[str | None, int]:
        if dirty.kind == "trial":
            return self._send_trial(dirty.entity)
        if dirty.kind == "cell":
            return self._send_cell(self._store.mirror_states.cell(dirty.sweep, dirty.entity)), 0
        return self._send_sweep(self._store.mirror_states.sweep(dirty.sweep)), 0

    def _send_sweep(self, sweep: SweepRun) -> str | None:
        if sweep.started is None and sweep.run is None:
            return None  # it ended before it had a trial
        files = self._tables(sweep.id) if sweep.state in SWEEP_ENDED else {}
        return self._tracker.mirror(self._experiment(sweep), summary_mirror(sweep, files, self._url))

    def _send_cell(self, cell: CellRun) -> str:
        return self._tracker.mirror(self._experiment(cell.sweep), cell_mirror(cell, self._url))

    def _send_trial(self, trial_id: int) -> tuple[str | None, int]:
        trial = self._store.mirror_states.trial(trial_id)
        if trial.left is not None:
            self._tracker.mirror(self._experiment(trial.cell.sweep), left_mirror(trial, trial.left))
            self._writer.outbox.forget_left(trial_id, trial.left)
        if trial.run is None and trial.started is None:
            return None, 0  # it never ran
        experiment = self._experiment(trial.cell.sweep)
        if trial.cell.run is None:
            parent = self._send_cell(trial.cell)
            self._writer.outbox.keep_run("cell", trial.cell.sweep.id, trial.cell.index, parent)
            trial = self._store.mirror_states.trial(trial_id)
        return self._tracker.mirror(experiment, trial_mirror(trial, self._url)), trial.last_point

    def _experiment(self, sweep: SweepRun) -> str:
        known = sweep.experiment or self._store.runs.experiment(sweep.id)
        if known is not None:
            return known
        made = self._tracker.experiment(experiment_name(sweep), sweep.uid, experiment_tags(sweep))
        if not self._writer.outbox.keep_experiment(sweep.id, made):
            self._tracker.remove(made)  # else nobody would: the sweep was deleted while its experiment was made
            raise NotFoundError(f"sweep {sweep.id} was deleted")
        return made


class Recorder:
    """One conductor's pen."""

    def __init__(
        self, store: Store, writer: Writer, tracker: Tracker | None, tables: Tables = _no_tables, url: str = ""
    ) -> None:
        self._writer = writer
        self._mirror = None if tracker is None else Mirror(store, writer, tracker, tables, url)

    def record(self, event: Event) -> None:
        """Write an event to the database, and a mark for the tracker with it; raises FencedError."""
        self._writer.events.write(event)

    def forward(self, limit: int = 100) -> int:
        """Tell the tracker of at most `limit` changed runs; 0 when there is no tracker. May run in its own thread."""
        return 0 if self._mirror is None else self._mirror.forward(limit)


def _pause(failures: int) -> float:
    """Seconds before the next try after so many failures in a row: 1, 2, 4, ... 60."""
    return float(min(LONGEST_PAUSE, 2.0 ** min(failures - 1, 10)))
