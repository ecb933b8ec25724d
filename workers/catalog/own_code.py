"""The source that a researcher's own part depends on: its file, what it imports from the own folder, and its hash."""

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
"""The package that the own folder is while its parts are loaded: `from ._ranges import positive` finds its modules."""
_PASSED_OVER: Final = frozenset({"__pycache__", "site-packages", "node_modules"})

FILE: Final = "own_code.zip"
"""The file with the own code of a training, which it keeps."""

Stamp = tuple[tuple[str, int, int], ...]
"""Every Python file below the own folder with its size and time: equal stamps stand for equal sources."""


def stamp(parts: Path) -> Stamp:
    """The Python files of the own folder; hidden folders and installed packages are passed over."""
    return tuple(sorted(_files(str(parts))))


def _files(folder: str) -> Iterator[tuple[str, int, int]]:
    try:
        with os.scandir(folder) as entries:
            found = [entry for entry in entries if not entry.name.startswith(".")]
    except OSError:
        return
    for entry in found:
        if entry.is_dir(follow_symlinks=False):
            if entry.name not in _PASSED_OVER:
                yield from _files(entry.path)
        elif entry.name.endswith(".py"):
            try:
                status = entry.stat()
            except OSError:  # removed since, or a link to nothing
                continue
            yield entry.path, status.st_size, status.st_mtime_ns


def sources(path: Path, parts: Path) -> dict[str, bytes]:
    """The sources that the own part in the file `path` depends on, by their paths below the own folder.

    These are its file, the modules of the own folder that it imports, directly or by way of others, and the own parts
    that it names in a text. What a part loads in another way is not seen. Raises OSError, SyntaxError.
    """
    found: dict[str, bytes] = {}
    waiting = [path]
    while waiting:
        one = waiting.pop()
        name = one.relative_to(parts).as_posix()
        if name in found:
            continue
        found[name] = one.read_bytes()
        waiting += _used(ast.parse(found[name], str(one)), one, parts)
    return dict(sorted(found.items()))


def digest(found: Mapping[str, bytes]) -> str:
    """One hash of some sources and their paths."""
    whole = hashlib.sha256()
    for name, content in sorted(found.items()):
        whole.update(f"{name}\0{hashlib.sha256(content).hexdigest()}\n".encode())
    return f"sha256:{whole.hexdigest()}"


def packed(found: Mapping[str, bytes]) -> bytes:
    """Some sources as a zip archive: the same sources give the same bytes."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in sorted(found.items()):
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return file.getvalue()


def _used(tree: ast.Module, path: Path, parts: Path) -> Iterator[Path]:
    """The files of the own folder that a module uses."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                for one in names:
                    yield from _module(parts, one.name)
            case ast.ImportFrom(module=module, names=names, level=level):
                above = path.parents[level - 1] if 0 < level <= len(path.parents) else parts
                if above == parts or parts in above.parents:
                    yield from _module(above, module or "")
                    for one in names:
                        yield from _module(above, f"{module}.{one.name}" if module else one.name)
            case ast.Constant(value=str(text)) if text.isidentifier():
                named = (parts / folder / f"{text}.py" for folder in FOLDERS.values())
                yield from (one for one in named if one != path and one.is_file())


def _module(folder: Path, name: str) -> Iterator[Path]:
    """The files that an import of the module `name` runs, as far as they lie below the own folder `folder`."""
    names = name.removeprefix(f"{PACKAGE}.").split(".") if name else []
    for depth in range(len(names) + 1):
        below = folder.joinpath(*names[:depth])
        candidates = [below / "__init__.py", *([below.with_suffix(".py")] if depth else [])]
        yield from (one for one in candidates if one.is_file())
