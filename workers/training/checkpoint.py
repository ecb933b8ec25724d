"""Checkpoints and kept weights, written atomically and checked when they are read."""

import contextlib
import hashlib
import json
import os
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as serialized

from workers.contract import CheckpointError, Recipe

FORMAT: Final = 2
"""The version of the content of checkpoints."""
KEPT_FORMAT: Final = "1"
"""The version of the content of kept weights."""

Modules = Mapping[str, Mapping[str, Any]]
"""The states of a task's modules by their names."""


def save(path: Path, state: Mapping[str, Any]) -> None:
    """Write the checkpoint `state` to `path` atomically, also in a power failure.

    Raises OSError with the file's name if the disk is full or the file is too large for the system.
    """
    write_file(path, lambda file: torch.save({"format": FORMAT, **state}, file))


def keep(path: Path, models: Sequence[Modules], about: Mapping[str, Any]) -> None:
    """Write the weights of a model, or of each fold, as safetensors, atomically; raises OSError as `save` does.

    A tensor is named `backbone.conv1.weight`, of several models `fold0.backbone.conv1.weight`. The metadata has `about`
    as JSON texts, and the hash of everything else in the file.
    """
    named = {
        f"{f'fold{number}.' if len(models) > 1 else ''}{module}.{name}": value
        for number, modules in enumerate(models)
        for module, state in modules.items()
        for name, value in state.items()
    }
    tensors = {name: value.contiguous() for name, value in named.items() if isinstance(value, torch.Tensor)}
    others = {name: value for name, value in named.items() if name not in tensors}  # extra states of own modules
    texts = {name: json.dumps(value) for name, value in {**about, "models": len(models), "others": others}.items()}
    facts = {"format": "pt", "metricsweep": KEPT_FORMAT, **texts}
    facts["sha256"] = _digest(tensors, facts)
    write_file(path, lambda file: file.write(serialized(tensors, facts)))


def kept(path: Path) -> tuple[list[dict[str, dict[str, Any]]], dict[str, Any]]:
    """Reads the models and facts of a file of kept weights, on the CPU; raises CheckpointError."""
    if not path.is_file():
        raise CheckpointError(f"checkpoint {path} does not exist")
    try:
        with safe_open(path, "pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a mapping
    except (SafetensorError, OSError, ValueError) as error:
        raise CheckpointError(f"checkpoint {path} is damaged or no kept weights ({_first_line(error)})") from error
    if metadata.get("metricsweep") != KEPT_FORMAT:
        raise CheckpointError(f"{path} holds no weights that a training kept in format {KEPT_FORMAT}")
    if metadata.pop("sha256", None) != _digest(tensors, metadata):
        raise CheckpointError(f"checkpoint {path} is damaged: its content differs from its hash")
    try:
        about = {name: json.loads(text) for name, text in metadata.items() if name not in ("format", "metricsweep")}
        several = about.pop("models") > 1
        models: dict[str, dict[str, dict[str, Any]]] = {} if several else {"": {}}
        for name, value in {**tensors, **about.pop("others")}.items():
            fold, _, within = name.partition(".") if several else ("", "", name)
            module, _, key = within.partition(".")
            models.setdefault(fold, {}).setdefault(module, {})[key] = value
        return [models[f"fold{number}" if several else ""] for number in range(len(models))], about
    except (LookupError, TypeError, ValueError, RecursionError) as error:  # a file that no training wrote
        raise CheckpointError(f"{path} holds no weights that a training kept: {_first_line(error)}") from error


def _digest(tensors: Mapping[str, torch.Tensor], facts: Mapping[str, str]) -> str:
    """SHA-256 over facts, and names, types, shapes and bytes of tensors; safetensors itself has no checksum."""
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode())
    for name in sorted(tensors):
        value = tensors[name]
        digest.update(f"{name} {value.dtype} {[*value.shape]}\n".encode())
        digest.update(value.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def write_file(path: Path, put: Callable[[IO[bytes]], object]) -> None:
    """Write the file at `path` atomically, with the content that `put` writes; raises OSError as `save` does."""
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with aside.open("wb") as file:
            put(file)
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
    """Reads the state of a checkpoint on the CPU, without running code in it. Raises CheckpointError."""
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
    """The state of a checkpoint of `recipe`; any exception within the context becomes a CheckpointError."""
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
    """Make the rename durable, if the file system can."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
