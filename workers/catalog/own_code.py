"""The source of own parts: a part's file, what it imports from the folder of own parts, and the hash of these."""

import ast
import hashlib
import io
import os
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from workers.contract import FOLDERS

PACKAGE: Final = "metricsweep_parts"
"""The package under which own parts are imported, so that `from ._ranges import positive` finds their modules."""
_SKIPPED: Final = frozenset({"__pycache__", "site-packages", "node_modules"})

FILE: Final = "own_code.zip"
"""The artifact of a training with the source of its own parts."""

Stamp = tuple[tuple[str, int, int], ...]
"""Path, size and time of files in the folder of own parts; equal stamps mean equal contents."""


def stamp(parts: Path, endings: tuple[str, ...] = (".py",)) -> Stamp:
    """The sizes and times of the files with these endings in the folder of own parts; skips hidden folders."""
    return tuple(sorted(_files(str(parts), endings)))


def _files(folder: str, endings: tuple[str, ...]) -> Iterator[tuple[str, int, int]]:
    try:
        with os.scandir(folder) as entries:
            found = [entry for entry in entries if not entry.name.startswith(".")]
    except OSError:
        return
    for entry in found:
        if entry.is_dir(follow_symlinks=False):
            if entry.name not in _SKIPPED:
                yield from _files(entry.path, endings)
        elif entry.name.endswith(endings):
            try:
                status = entry.stat()
            except OSError:  # removed meanwhile, or a broken link
                continue
            yield entry.path, status.st_size, status.st_mtime_ns


def sources(path: Path, parts: Path) -> dict[str, bytes]:
    """The source files that the own part in the file `path` depends on, by their paths below the folder `parts`.

    These are its file, the modules of the folder that it imports directly or indirectly, and the own parts that a
    string in them names. What a part loads in another way is not found. Raises OSError, SyntaxError.
    """
    found: dict[str, bytes] = {}
    waiting = [path]
    while waiting:
        file = waiting.pop()
        name = file.relative_to(parts).as_posix()
        if name not in found:
            found[name] = file.read_bytes()
            waiting += _used(ast.parse(found[name], str(file)), file, parts)
    return dict(sorted(found.items()))


def digest(found: Mapping[str, bytes]) -> str:
    """The hash of source files and their paths."""
    whole = hashlib.sha256()
    for name, content in sorted(found.items()):
        whole.update(f"{name}\0{hashlib.sha256(content).hexdigest()}\n".encode())
    return f"sha256:{whole.hexdigest()}"


def packed(found: Mapping[str, bytes]) -> bytes:
    """Packs source files into a ZIP archive; equal sources give equal bytes."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in sorted(found.items()):
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return file.getvalue()


def _used(tree: ast.Module, path: Path, parts: Path) -> Iterator[Path]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                for alias in names:
                    yield from _module(parts, alias.name)
            case ast.ImportFrom(module=module, names=names, level=level):
                above = path.parents[level - 1] if 0 < level <= len(path.parents) else parts
                if above == parts or parts in above.parents:
                    yield from _module(above, module or "")
                    for alias in names:
                        yield from _module(above, f"{module}.{alias.name}" if module else alias.name)
            case ast.Constant(value=str(text)) if text.isidentifier():
                named = (parts / folder / f"{text}.py" for folder in FOLDERS.values())
                yield from (file for file in named if file != path and file.is_file())


def _module(folder: Path, name: str) -> Iterator[Path]:
    """The files below `folder` that an import of the module `name` runs."""
    names = name.removeprefix(f"{PACKAGE}.").split(".") if name else []
    for depth in range(len(names) + 1):
        below = folder.joinpath(*names[:depth])
        candidates = [below / "__init__.py", *([below.with_suffix(".py")] if depth else [])]
        yield from (file for file in candidates if file.is_file())
