"""Finds a part by its file name, and builds it from what the trainer offers and the recipe's hyper-parameters."""

import importlib
import importlib.util
import sys
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

from workers.catalog import former_names
from workers.catalog.inner_parts import holders
from workers.catalog.inventory import load, part_files
from workers.catalog.signature import Entry, PartSourceError
from workers.catalog.wording import unknown
from workers.contract import FOLDERS, Part


class UnknownPart(LookupError):  # noqa: N818 - the name says what happened
    """No part of that kind has that name."""

    def __init__(self, kind: str, name: str, suggestion: str) -> None:
        self.kind, self.name, self.suggestion = kind, name, suggestion
        super().__init__(suggestion)


def find(kind: str, name: str, parts: Path | None = None) -> type[Any]:
    """The class of a part, built in or from the folder `parts`; raises UnknownPart."""
    if _is_built_in(kind, name, parts):
        return _built_in(kind, name)[0]
    files = part_files(kind, parts)
    if name not in files:
        raise UnknownPart(kind, name, unknown(kind, name, files))
    path, own = files[name]
    if own:
        return _only_class(path, _own_module(kind, path, path.stat().st_mtime_ns))
    return _built_in(kind, name)[0]


def build(kind: str, part: Part, parts: Path | None = None, **offers: Any) -> Any:
    """The part itself: of `offers` it gets what it asks for, and its options in the catalog's types.

    Raises UnknownPart, TypeError where it asks for what nobody offers, ValueError for an option that does not fit.
    """
    if _is_built_in(kind, part.name, parts):
        made, entry = _built_in(kind, part.name)
    else:
        made, entry = find(kind, part.name, parts), _entry(kind, part.name, parts)
    if absent := [ask for ask in entry.asks if ask not in offers]:
        raise TypeError(f"{kind} {part.name!r} asks for {', '.join(absent)}; on offer are {', '.join(sorted(offers))}")
    options = entry.filled(part.options)
    frozen: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in options.items()
    }
    frozen |= {one.name: Part.model_validate(options[one.name]) for one in holders(entry) if options[one.name]}
    return made(**{ask: offers[ask] for ask in entry.asks}, **frozen)


def _is_built_in(kind: str, name: str, parts: Path | None) -> bool:
    """Whether a part is built in and none of the researcher's own has its name.

    Looks through no folder: an evaluation builds a dozen metrics.
    """
    if name not in _built_in_names(kind):
        return False
    return parts is None or (parts.is_dir() and not (parts / FOLDERS[kind] / f"{name}.py").exists())


@lru_cache
def _built_in_names(kind: str) -> frozenset[str]:
    return frozenset(part_files(kind))


@lru_cache(maxsize=256)
def _built_in(kind: str, name: str) -> tuple[type[Any], Entry]:
    """A built-in part as it was when this process first asked for it, as is its module."""
    module = importlib.import_module(f"workers.{FOLDERS[kind]}.{name}")
    return _only_class(module.__name__, module), _entry(kind, name, None)


def _entry(kind: str, name: str, parts: Path | None) -> Entry:
    entry = load(parts).get(kind, name)
    if entry is None:
        raise UnknownPart(kind, name, f"{kind} {name!r} is gone")
    return entry


def _only_class(where: Path | str, module: ModuleType) -> type[Any]:
    public = [
        value
        for key, value in vars(module).items()
        if isinstance(value, type) and value.__module__ == module.__name__ and not key.startswith("_")
    ]
    if len(public) != 1:
        raise PartSourceError(f"{where}: a part's file has exactly one public class, found {len(public)}")
    return public[0]


@lru_cache(maxsize=256)
def _own_module(kind: str, path: Path, _stamp: int) -> ModuleType:
    """A module of the researcher's folder, imported once for as long as its file does not change."""
    name = f"metricsweep_parts.{FOLDERS[kind]}.{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise PartSourceError(f"{path}: cannot be imported")
    module = importlib.util.module_from_spec(spec)
    former_names.honour()
    sys.modules[name] = module  # dataclasses and pickle look a class's module up there
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
