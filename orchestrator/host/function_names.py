"""Functions by name: whether what a setting calls `module:function` is there, found without importing it."""

import re
from collections.abc import Sequence
from contextlib import suppress
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from pathlib import Path
from typing import Final

FUNCTION_NAME: Final = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
_ANY_NAME: Final = re.compile(r"^from .* import \*|__getattr__|globals\(\)", re.MULTILINE)
"""What may give a module names that do not stand in its source."""


def missing(name: str, path: Sequence[str]) -> str | None:
    """What of `module:function` a Python with this path would not find; none where it would, or nobody can tell."""
    module, _, function = name.partition(":")
    spec = _found(module, path)
    if spec is None:
        return f"Python finds no module '{module}'"
    file = Path(spec.origin or "")
    if file.suffix != ".py" or not file.is_file():
        return None
    text = file.read_text(encoding="utf-8", errors="replace")
    if re.search(rf"\b{function}\b", text) or _ANY_NAME.search(text):
        return None
    return f"{file} has no '{function}'"


def _found(module: str, path: Sequence[str]) -> ModuleSpec | None:
    top, *inner = module.split(".")
    spec = PathFinder.find_spec(top, [each or "." for each in path])
    if spec is None:
        # Past the path there is only the import hook of an editable installation.
        with suppress(ValueError):  # `__main__`, which is another one in every process
            spec = find_spec(top)
    for name in inner:
        if spec is None or spec.submodule_search_locations is None:
            return None
        spec = PathFinder.find_spec(f"{spec.name}.{name}", list(spec.submodule_search_locations))
    return spec
