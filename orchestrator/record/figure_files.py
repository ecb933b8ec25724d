"""Reads figure files and kept weights of trainings, only from inside the storage."""

import io
import json
import logging
import mimetypes
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final, TypeVar
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from orchestrator.host.storage import opened
from orchestrator.record.attempts import Kept
from orchestrator.record.retention import WEIGHTS
from orchestrator.record.store import Store
from orchestrator.views.errors import NotFoundError
from orchestrator.views.pages import FigureFile, Rendered
from workers.catalog import OWN_CODE
from workers.contract import EXPORTED_WEIGHTS

log = logging.getLogger(__name__)

Held = TypeVar("Held")
Arrays = Mapping[str, NDArray[Any]]
"""The named arrays of one file."""

MAX_BYTES: Final = 64 * 2**20
"""The largest file that is served or read."""
MAX_UNPACKED: Final = 256 * 2**20
"""The largest size of a file's arrays in memory."""


_PIECE: Final = 2**20
_MOST_HEADER: Final = 100 * 2**20
"""The largest header of weights; safetensors itself has this limit."""
_README: Final = """\
# Trial {trial} of sweep {sweep}

```json
{about}
```

On a machine with metricsweep's worker packages (`pip install "metricsweep[worker]"`):

```python
from workers import model
network = model.load("trial-{trial}")  # this folder
embeddings = network.embed(["a.jpg", "b.jpg"])  # float32 [n, d], as the evaluation computed them
```

- `{weights}`: the weights, for `safetensors.torch.load_file`; those of the network begin with `backbone.` and `head.`,
  of several folds with `fold0.backbone.` and so on.
- `preprocessing.json`: images are decoded to `channels` (red first), resized as `decode` says, cropped at the centre to
  `centre_crop` pixels, resized to `side` pixels if it is given, and normalized to (pixel / scale - mean) / std, with
  blue first where `bgr` is true. With `mirrored`, the embedding of the mirror image is added.
- `recipe.json`: everything that decided the training.
"""


class _AwayError(NotFoundError):
    """The storage does not answer."""


class FigureFiles:
    """Reads figures and weights from the workers' storage: a shared folder or the URL of an object store."""

    def __init__(self, store: Store, storage: Path | str) -> None:
        self._store = store
        self._storage = opened(storage)

    def listed(self, trial: int) -> list[FigureFile]:
        """The figure files of a trial that the storage has; raises NotFoundError if there is no such trial."""
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
            except OSError as error:  # a store that does not answer would not answer for the next file either
                log.warning("the figure files of trial %d are not listed: %s", trial, error)
                break
            address = f"/v1/trials/{trial}/figures/{quote(name)}"
            files.append(FigureFile(name=name, media_type=_media_type(name), size=size, url=address))
        return files

    def read(self, trial: int, name: str) -> Rendered:
        """The content of a figure file of a trial; raises NotFoundError."""
        kept = self._store.artifacts.of_trial(trial)
        if kept is None or name not in _of_figures(kept):
            known = ", ".join(sorted(_of_figures(kept)))
            raise NotFoundError(f"trial {trial} has no figure file {name!r}; it has {known or 'none'}")
        content = self._content(kept.holder(name) or kept, name, f"figure file {name!r} of trial {trial}")
        return Rendered(content=content, media_type=_media_type(name), filename=name)

    def model(self, trial: int) -> tuple[str, Iterator[bytes]]:
        """A ZIP file with a trial's kept weights, recipe and preprocessing, as its name and an iterator of bytes.

        Raises NotFoundError if there is no such trial, or its weights are not kept.
        """
        view, kept = self._store.trials.get(trial), self._store.artifacts.of_trial(trial)
        name = None if kept is None else kept.weights
        if kept is None or name is None:
            raise NotFoundError(f"trial {trial} has no weights: its training has not finished, or diverged")
        if self._store.collection.of_trial(trial) is not None:
            raise NotFoundError(
                f"the weights of trial {trial} were removed to free disk space; train it again to get them"
            )
        what = f"{name} of trial {trial}"
        try:
            size = self._storage.size(kept.folder, name)
            with self._storage.opened(kept.folder, name) as file:
                about = _header(file, what)
        except FileNotFoundError:
            raise NotFoundError(f"{what} is not in the storage any more") from None
        except OSError as error:
            raise _AwayError(f"{what} cannot be read: {error.strerror or error}") from error
        prepared = {key: value for key, value in about["network"].items() if key != "offers"}
        named = json.dumps({"sweep": view.sweep_name, **view.labels}, indent=2, ensure_ascii=False)
        readme = _README.format(trial=trial, sweep=view.sweep, about=named, weights=EXPORTED_WEIGHTS)
        files = {
            "README.md": readme.encode(),
            "recipe.json": _json(about["recipe"]),
            "preprocessing.json": _json(prepared),
        }
        if OWN_CODE in kept.names:
            files[OWN_CODE] = self._content(kept, OWN_CODE, f"{OWN_CODE} of trial {trial}")
        return f"trial-{trial}.zip", self._zipped(files, kept, name, size)

    def _zipped(self, files: Mapping[str, bytes], kept: Kept, name: str, size: int) -> Iterator[bytes]:
        """The pieces of a ZIP file of `files` and weights, which are read while it is sent."""
        into = _Pieces()
        with zipfile.ZipFile(into, "w") as archive, self._storage.opened(kept.folder, name) as weights:
            for path, content in files.items():
                archive.writestr(zipfile.ZipInfo(path), content)
            large = size >= zipfile.ZIP64_LIMIT
            with archive.open(zipfile.ZipInfo(EXPORTED_WEIGHTS), "w", force_zip64=large) as entry:
                while piece := weights.read(_PIECE):
                    entry.write(piece)
                    yield into.taken()
        yield into.taken()

    def arrays_of(self, trials: Iterable[int], file: str) -> tuple[dict[int, Arrays], dict[int, str]]:
        """The arrays of the figure file `<file>.npz` by trial, and by trial the reason why they are missing."""
        return self._of_each(trials, f"{file}.npz", _arrays)

    def pictures_of(self, trials: Iterable[int], file: str) -> tuple[dict[int, bytes], dict[int, str]]:
        """The content of the figure file `<file>.png` by trial, and by trial the reason why it is missing."""
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
            except _AwayError as error:  # do not wait for it again for each of the other trials
                missing[trial], away = str(error), str(error.__cause__)
            except NotFoundError as error:
                missing[trial] = str(error)
        return converted, missing

    def _content(self, kept: Kept, name: str, what: str) -> bytes:
        """A file of an attempt's folder, never of another place; raises NotFoundError."""
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


class _Pieces(io.RawIOBase):
    """A file that is written in order; `taken` gives what was written since the last call."""

    def __init__(self) -> None:
        self._written = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        self._written += content
        return len(content)

    def taken(self) -> bytes:
        """What was written since the last call."""
        content, self._written = bytes(self._written), bytearray()
        return content


def _header(file: IO[bytes], what: str) -> dict[str, Any]:
    """The recipe and the network in the metadata of kept weights (workers/training/checkpoint.py)."""
    length = int.from_bytes(file.read(8), "little")
    try:
        if length > _MOST_HEADER:
            raise ValueError(f"its header of {length:,} bytes is longer than {_MOST_HEADER:,}")
        metadata = json.loads(file.read(length))["__metadata__"]
        return {key: dict(json.loads(metadata[key])) for key in ("recipe", "network")}
    except (ValueError, LookupError, TypeError) as error:
        raise NotFoundError(f"{what} is damaged or is not a weights file of a training ({error})") from error


def _json(value: Any) -> bytes:
    return f"{json.dumps(value, indent=2, ensure_ascii=False)}\n".encode()


def _media_type(name: str) -> str:
    return mimetypes.guess_type(name)[0] or "application/octet-stream"


def _of_figures(kept: Kept | None) -> set[str]:
    names = kept.every if kept else ()
    return {name for name in names if _is_plain(name) and PurePosixPath(name).suffix.lower() not in WEIGHTS}


def _is_plain(name: str) -> bool:
    """Whether a name is that of a file inside its folder."""
    return name == PurePosixPath(name).name and "\\" not in name and name.isprintable() and not name.startswith(".")


def _arrays(content: bytes, name: str) -> Arrays:
    """The arrays of an `.npz`, without pickle; raises NotFoundError if it is damaged or too large."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if sum(entry.file_size for entry in archive.infolist()) > MAX_UNPACKED:
                raise NotFoundError(f"{name} unpacks to more than {MAX_UNPACKED // 2**20} MiB")
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            return {key: archive[key] for key in archive.files}
    except NotFoundError:
        raise
    except Exception as error:  # damaged files raise zlib.error, struct.error, NotImplementedError and others
        raise NotFoundError(f"{name} is damaged: {error}") from error
