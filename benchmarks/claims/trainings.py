"""Trains what claims are about in this process, one training after the other; a result is kept by its fingerprint."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from orchestrator.views.runs import PlannedTrial
from workers.contract import Place, Result
from workers.data.scratch import scratch

DATA: Final = Path(os.environ.get("METRICSWEEP_DATA") or Path(__file__).parents[3] / "shared" / "data")
"""The folder of data sets, which the twins of faces need; digits come with scikit-learn."""


class Trainings:
    """Results on disk, and how to get those that are not there yet."""

    def __init__(self, folder: Path, parts: Path | None = None) -> None:
        self._folder, self._parts = folder, parts and parts.resolve()

    def kept(self, trial: PlannedTrial) -> bool:
        """Whether its result is there already."""
        return self._file(trial).is_file()

    def result(self, trial: PlannedTrial) -> Result:
        """The result of a trial, trained where it is not kept."""
        file = self._file(trial)
        if not file.is_file():
            self._keep(_trained(trial, self._parts), file)
        return Result.model_validate_json(file.read_bytes())

    def _file(self, trial: PlannedTrial) -> Path:
        return self._folder / f"{trial.fingerprint}.json"

    def _keep(self, result: Result, file: Path) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        half = file.with_suffix(f".{os.getpid()}")  # a process that is killed leaves no half result
        half.write_text(result.model_dump_json(), encoding="utf-8")
        half.replace(file)


def _trained(trial: PlannedTrial, parts: Path | None) -> Result:
    from workers.train import train  # imports torch, which readers of claims do not need

    with TemporaryDirectory() as folder:
        place = Place(DATA, scratch(), Path(folder) / "kept", checkpoint_seconds=1e9, parts=parts)
        return train(trial.recipe, place, lambda _: None)
