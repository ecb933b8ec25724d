"""The files that Tune keeps of trials, for whoever opens them: parameters, and results by evaluation."""

import logging
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from orchestrator.run.ray import lean_tune as tune

log = logging.getLogger(__name__)

KEPT: Final = 3
"""Folders of Tuners, of which each holds a thousand trials at most; older ones are removed."""
MOST_LINES: Final = 100
"""Results of a trial; the database has all of them."""


class TrialFiles:
    """`params.json`, `result.json` and `progress.csv` in the folder of each trial, a line for each evaluation."""

    def __init__(self) -> None:
        self._loggers: list[tune.LoggerCallback] = [tune.JsonLoggerCallback(), tune.CSVLoggerCallback()]
        self._written: dict[str, int] = {}  # evaluations by trial

    def begin(self, trial: Any) -> None:
        """Write what a trial is."""
        self._written[trial.trial_id] = 0
        for logger in self._loggers:
            with _spared():
                logger.log_trial_start(trial)

    def take(self, iteration: int, trial: Any, result: dict[str, Any]) -> None:
        """Write a result that has an evaluation more than the last."""
        evaluations, before = result.get("evaluations", 0), self._written.get(trial.trial_id, 0)
        if evaluations == before or (before >= MOST_LINES and not result.get("done")):
            return
        self._written[trial.trial_id] = evaluations
        shown = {key: value for key, value in result.items() if key != "config"}  # params.json has it, once
        for logger in self._loggers:
            with _spared():
                logger.log_trial_result(iteration, trial, shown)

    def end(self, trial: Any) -> None:
        """Close the files of a trial."""
        self._written.pop(trial.trial_id, None)
        for logger in self._loggers:
            with _spared():
                logger.log_trial_end(trial)


@contextmanager
def _spared() -> Iterator[None]:
    """A full disk costs people these files: an error here would end Tune's loop, and with it the conductor."""
    try:
        yield
    except OSError as error:
        log.warning("Tune's files of a trial are incomplete: %s", error)


def remove_old(scratch: Path, prefix: str) -> None:
    """Remove all but the latest folders of Tuners; their names sort by age."""
    for folder in sorted(scratch.glob(f"{prefix}*"))[:-KEPT]:
        shutil.rmtree(folder, ignore_errors=True)
