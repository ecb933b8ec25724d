"""The files that trainings keep for figures: listed, served and read, never from outside the storage."""

import io
import logging
import mimetypes
import zipfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Final, TypeVar
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from orchestrator.host.storage import opened
from orchestrator.record.attempts import Kept
from orchestrator.record.store import Store
from orchestrator.views.errors import NotFoundError
from orchestrator.views.pages import FigureFile, Rendered

log = logging.getLogger(__name__)

Held = TypeVar("Held")
Arrays = Mapping[str, NDArray[Any]]
"""The named arrays of one file."""

WEIGHTS: Final = frozenset({".pt", ".pth", ".ckpt"})
"""What a training keeps besides figures."""
MAX_BYTES: Final = 64 * 2**20
"""The largest file that is served or read."""
MAX_UNPACKED: Final = 256 * 2**20
"""The most that the arrays of one file take in memory."""


class _AwayError(NotFoundError):
    """The storage does not answer."""


class FigureFiles:
    """Reads from the storage that workers write to: a folder that this machine sees too, or the URL of a store."""

    def __init__(self, store: Store, storage: Path | str) -> None:
        self._store = store
        self._storage = opened(storage)

    def listed(self, trial: int) -> list[FigureFile]:
        """The figure files of a trial that lie in the storage; raises NotFoundError where there is no such trial."""
        kept = self._store.artifacts.of_trial(trial)
        if kept is None:
            return []
        files = []
        for name in sorted(_of_figures(kept)):
            holder = kept.holder(name) or kept
            try:
                size = self._storage.size(holder.folder, name)
            except (FileNotFoundError, PermissionError):
                continue
            except OSError as error:  # a store that does not answer would not answer for the next one either
                log.warning("the figure files of trial %d are not listed: %s", trial, error)
                break
            address = f"/v1/trials/{trial}/figures/{quote(name)}"
            files.append(FigureFile(name=name, media_type=media_type(name), size=size, url=address))
        return files

    def read(self, trial: int, name: str) -> Rendered:
        """One figure file of a trial; raises NotFoundError."""
        kept = self._store.artifacts.of_trial(trial)
        if kept is None or name not in _of_figures(kept):
            known = ", ".join(sorted(_of_figures(kept))) if kept else ""
            raise NotFoundError(f"trial {trial} has no figure file {name!r}; it has {known or 'none'}")
        content = self._content(kept.holder(name) or kept, name, f"figure file {name!r} of trial {trial}")
        return Rendered(content=content, media_type=media_type(name), filename=name)

    def arrays_of(self, trials: Iterable[int], file: str) -> tuple[dict[int, Arrays], dict[int, str]]:
        """The arrays of `<file>.npz` by trial, and for each trial without them why that is."""
        return self._of_each(trials, f"{file}.npz", _arrays)

    def pictures_of(self, trials: Iterable[int], file: str) -> tuple[dict[int, bytes], dict[int, str]]:
        """The content of `<file>.png` by trial, and for each trial without it why that is."""
        return self._of_each(trials, f"{file}.png", lambda content, _: content)

    def _of_each(
        self, trials: Iterable[int], name: str, convert: Callable[[bytes, str], Held]
    ) -> tuple[dict[int, Held], dict[int, str]]:
        wanted = list(dict.fromkeys(trials))
        kept = self._store.artifacts.of(wanted)
        converted: dict[int, Held] = {}
        missing: dict[int, str] = {}
        away = ""
        for trial in wanted:
            try:
                if away:
                    raise NotFoundError(f"{name} of trial {trial} cannot be read: {away}")
                holder = kept[trial].holder(name) if trial in kept else None
                if holder is None:
                    raise NotFoundError(f"the training of trial {trial} kept no {name}")
                converted[trial] = convert(self._content(holder, name, f"{name} of trial {trial}"), name)
            except _AwayError as error:  # nor would it answer for the others, each of which would take its time
                missing[trial], away = str(error), str(error.__cause__)
            except NotFoundError as error:
                missing[trial] = str(error)
        return converted, missing

    def _content(self, kept: Kept, name: str, what: str) -> bytes:
        """A file of an attempt's folder and of nowhere else; raises NotFoundError."""
        try:
            if not _is_plain(name):
                raise FileNotFoundError
            if self._storage.size(kept.folder, name) > MAX_BYTES:
                raise NotFoundError(f"{what} is larger than {MAX_BYTES // 2**20} MiB and is not served")
            return self._storage.content(kept.folder, name)
        except FileNotFoundError:
            raise NotFoundError(
                f"{what} is not in the storage any more, or METRICSWEEP_STORAGE_URL is another"
            ) from None
        except OSError as error:
            kind = NotFoundError if isinstance(error, PermissionError) else _AwayError
            raise kind(f"{what} cannot be read: {error.strerror or error}") from error


def media_type(name: str) -> str:
    """What a file is, by its name."""
    return mimetypes.guess_type(name)[0] or "application/octet-stream"


def _of_figures(kept: Kept | None) -> set[str]:
    return {
        name
        for name in (kept.every if kept else ())
        if _is_plain(name) and PurePosixPath(name).suffix.lower() not in WEIGHTS
    }


def _is_plain(name: str) -> bool:
    """Whether a name is that of a file in its folder, and no way out of it."""
    return name == PurePosixPath(name).name and "\\" not in name and name.isprintable() and not name.startswith(".")


def _arrays(content: bytes, name: str) -> Arrays:
    """The arrays of an `.npz`, without pickle; raises NotFoundError where it is damaged or too large."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if sum(entry.file_size for entry in archive.infolist()) > MAX_UNPACKED:
                raise NotFoundError(f"{name} unpacks to more than {MAX_UNPACKED // 2**20} MiB")
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            return {key: archive[key] for key in archive.files}
    except NotFoundError:
        raise
    except Exception as error:  # zlib.error, struct.error, NotImplementedError: damage decides what a reader raises
        raise NotFoundError(f"{name} is damaged: {error}") from error
