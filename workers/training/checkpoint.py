"""Checkpoint files: written aside and renamed, so that a file with the name is complete, and checked when read."""

import contextlib
import os
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import torch

from workers.contract import CheckpointError, Recipe

FORMAT: Final = 2
"""The version of what checkpoints hold: since 2 the states of a task's modules by name."""


def save(path: Path, state: Mapping[str, Any]) -> None:
    """Write `state` to `path`: at any moment the file is the old one or the new one, also when the power fails.

    Raises OSError, with the file's name, where the disk is full or the file is larger than the system allows.
    """
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with aside.open("wb") as file:
            torch.save({"format": FORMAT, **state}, file)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    except (OSError, RuntimeError) as error:
        # torch.save answers an error of the file with one of its own, which says nothing of a disk.
        cause = error if isinstance(error, OSError) else error.__context__
        if not isinstance(cause, OSError):
            raise
        raise OSError(cause.errno, cause.strerror, str(path)) from error
    finally:
        aside.unlink(missing_ok=True)
    _sync_folder(path.parent)


def load(path: Path) -> dict[str, Any]:
    """What `save` wrote, on the CPU; no code in it is run. Raises CheckpointError."""
    if not path.is_file():
        raise CheckpointError(f"checkpoint {path} does not exist")
    try:
        # torch.load does not compare the checksums, so that a flipped bit would become a weight.
        with zipfile.ZipFile(path) as archive:
            damaged = archive.testzip()
        if damaged is not None:
            raise CheckpointError(f"checkpoint {path} is damaged: {damaged} differs from its checksum")
        state = torch.load(path, map_location="cpu", weights_only=True)
    except CheckpointError:
        raise
    except Exception as error:  # zlib.error, struct.error, NotImplementedError: damage decides what a reader raises
        raise CheckpointError(f"checkpoint {path} is damaged or no checkpoint ({_first_line(error)})") from error
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        raise CheckpointError(f"checkpoint {path} is of another format than {FORMAT}, the one this version writes")
    return state


@contextlib.contextmanager
def fitting(path: Path, recipe: Recipe) -> Iterator[dict[str, Any]]:
    """The state of a checkpoint of `recipe`; within, what fails to take it up becomes a CheckpointError."""
    state = load(path)
    if state.get("fingerprint") != recipe.fingerprint:
        raise CheckpointError(f"checkpoint {path} belongs to another recipe")
    try:
        yield state
    except Exception as error:
        raise CheckpointError(f"checkpoint {path} does not fit: {error}") from error


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _sync_folder(folder: Path) -> None:
    """Make the rename itself durable, where the file system can."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
