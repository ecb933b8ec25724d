"""Finds a part by its file name, and builds it from what the trainer offers and the recipe's hyper-parameters."""

import importlib
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from importlib.machinery import FileFinder, ModuleSpec, SourceFileLoader
from pathlib import Path
from threading import RLock
from types import CodeType, ModuleType
from typing import Any

from workers.catalog import own_code
from workers.catalog.inventory import Entry, holders
from workers.catalog.source import PartSourceError, load
from workers.catalog.wording import unknown
from workers.contract import FOLDERS, Part


class UnknownPart(LookupError):  # noqa: N818 - the name says what happened
    """There is no part of the given kind and name."""


def find(kind: str, name: str, parts: Path | None = None) -> type[Any]:
    """Finds the class of a part, built in or in the folder `parts`; raises UnknownPart."""
    return _found(kind, name, parts)[0]


def build(kind: str, part: Part, parts: Path | None = None, **offers: Any) -> Any:
    """Builds a part from its hyper-parameters and those of the trainer's `offers` that its constructor requests.

    Raises UnknownPart, TypeError if it asks for something that is not offered, ValueError for an invalid option.
    """
    made, entry = _found(kind, part.name, parts)
    if absent := [ask for ask in entry.inputs if ask not in offers]:
        raise TypeError(f"{kind} {part.name!r} asks for {', '.join(absent)}; on offer are {', '.join(sorted(offers))}")
    options = entry.filled(part.options)
    frozen: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in options.items()
    }
    frozen |= {held.name: Part.model_validate(options[held.name]) for held in holders(entry) if options[held.name]}
    return made(**{ask: offers[ask] for ask in entry.inputs}, **frozen)


def _found(kind: str, name: str, parts: Path | None) -> tuple[type[Any], Entry]:
    """The class and the entry of a part."""
    built_in, file = _built_in(kind, name), f"{FOLDERS[kind]}/{name}.py"
    if built_in and (parts is None or (parts.is_dir() and not (parts / file).exists())):
        return built_in
    catalog = load(parts)
    entry = catalog.get(kind, name)
    if entry is None:
        raise UnknownPart(unknown(kind, name, catalog.names(kind)))
    assert parts is not None
    with _importing:
        _own.begin(parts)
        return _only_class(parts / file, importlib.import_module(f"{own_code.PACKAGE}.{FOLDERS[kind]}.{name}")), entry


@lru_cache(maxsize=256)
def _built_in(kind: str, name: str) -> tuple[type[Any], Entry] | None:
    """A built-in part, as it was when this process first used it; None for an unknown name.

    Cached, since an evaluation builds many metrics.
    """
    entry = load().get(kind, name)
    if entry is None:
        return None
    module = importlib.import_module(f"workers.{FOLDERS[kind]}.{name}")
    return _only_class(module.__name__, module), entry


def _only_class(where: Path | str, module: ModuleType) -> type[Any]:
    public = [
        value
        for key, value in vars(module).items()
        if isinstance(value, type) and value.__module__ == module.__name__ and not key.startswith("_")
    ]
    if len(public) != 1:
        raise PartSourceError(f"{where}: a part's file has exactly one public class, found {len(public)}")
    return public[0]


class _OwnFolder:
    """The folder of own parts whose modules are imported, as it was at that time."""

    def __init__(self) -> None:
        self._known: tuple[Path, own_code.Stamp] | None = None
        self.held = 0  # running trainings, each of which keeps the code that it began with

    def begin(self, parts: Path) -> None:
        """Forget all imported own modules if the folder is another one or a file in it has changed."""
        if self.held and self._known is not None and self._known[0] == parts:
            return
        now = parts, own_code.stamp(parts)
        if self._known == now:
            return
        for folder in {parts, *([self._known[0]] if self._known else [])}:
            _forget(folder)
        package = ModuleType(own_code.PACKAGE)
        package.__path__ = [str(parts)]
        sys.modules[own_code.PACKAGE] = package
        if _OwnModules not in sys.meta_path:
            sys.meta_path.insert(0, _OwnModules)
        importlib.invalidate_caches()
        self._known = now


_own, _importing = _OwnFolder(), RLock()


@contextmanager
def unchanged(parts: Path | None) -> Iterator[None]:
    """Import edited own parts now, and none within the block, so that a training keeps the code it began with."""
    if parts is None:
        yield
        return
    with _importing:
        if not _own.held:
            _own.begin(parts)
        _own.held += 1
    try:
        yield
    finally:
        with _importing:
            _own.held -= 1


def _forget(folder: Path) -> None:
    """Remove the modules below a folder from `sys.modules`, whatever their names."""
    below = f"{folder.absolute()}{os.sep}"
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if name.partition(".")[0] == own_code.PACKAGE or (isinstance(file, str) and file.startswith(below)):
            del sys.modules[name]


class _Source(SourceFileLoader):
    """Compiles a module at each import. Python would check bytecode files only by seconds and size."""

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self.get_data(self.path), self.path)


class _OwnModules:
    """Finds modules that own parts import from their folder, in the package `metricsweep_parts`."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: object = None) -> ModuleSpec | None:
        if not name.startswith(f"{own_code.PACKAGE}."):
            return None
        specs = (FileFinder(folder, (_Source, [".py"])).find_spec(name) for folder in path or ())
        return next((spec for spec in specs if spec is not None and spec.loader is not None), None)
