"""The files of runs where MLflow's server keeps them in a folder of our own: written as it would write them."""

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Final

from orchestrator.host.disk import replace_file
from orchestrator.record.mlflow.new_store import ARTIFACTS

ARTIFACTS_FOLDER: Final = "mlartifacts"
"""What `serve` calls it, beside the store."""
_PLAIN: Final = frozenset("0123456789abcdefghijklmnopqrstuvwxyz")


class ArtifactFiles:
    """The folder that a server is given as `--artifacts-destination`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def keeps(self, location: str) -> bool:
        """Whether what lies at a run's artifact location (`mlflow-artifacts:/<experiment>/<run>/artifacts`) is here."""
        return location.startswith(ARTIFACTS) and all(part and set(part) <= _PLAIN for part in _parts(location))

    def write(self, location: str, files: Mapping[str, bytes]) -> None:
        """Put files at a location that is kept here, each whole or not at all; ValueError for a path beyond it."""
        inner = {inner_path(name): content for name, content in files.items()}
        for path, content in inner.items():
            target = self._folder.joinpath(*_parts(location), *path.parts)
            replace_file(target, content)


def inner_path(name: str) -> PurePosixPath:
    """The path of an artifact within its run; raises ValueError for one that leads out of it."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        raise ValueError(f"an artifact's path stays within its run: {name!r}")
    return path


def _parts(location: str) -> list[str]:
    return location.removeprefix(ARTIFACTS).split("/")
