"""The installation: whether another package hides one of ours, and which extra brings a package that is missing."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import orchestrator
from orchestrator.views.errors import MetricsweepError

NAMES: Final = ("workers", "orchestrator", "dashboards", "api")
_HOME: Final = Path(orchestrator.__file__).absolute().parents[1]


@contextmanager
def brought_by(extra: str) -> Iterator[None]:
    """Turn the import of a package that is not installed into a MetricsweepError that names the extra of ours."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if not package or package in NAMES:
            raise
        raise MetricsweepError(
            f"the package '{package}' is not installed; `pip install \"metricsweep[{extra}]\"` brings it"
        ) from error


def require(package: str, extra: str) -> None:
    """Raise the MetricsweepError of `brought_by` where a package that another process imports is not installed."""
    with brought_by(extra):
        if find_spec(package) is None:
            raise ModuleNotFoundError(name=package)


def refuse_hidden() -> None:
    """Raise MetricsweepError where Python would take another package for one of ours.

    `import metricsweep` asks the same in words of its own, before it dares to import anything of ours.
    """
    if said := hidden(sys.path):
        raise MetricsweepError("\n".join(said))


def hidden(path: Sequence[str]) -> list[str]:
    """A sentence for each of our packages that another one hides on a path."""
    found = {name: _found(name, path) for name in NAMES}
    return [
        f"{place} comes before metricsweep's own package '{name}' in {_HOME}: start in another folder, rename that "
        "one, or give metricsweep an environment of its own"
        for name, place in found.items()
        if place is not None and place.resolve() != (_HOME / name).resolve()
    ]


def _found(name: str, path: Sequence[str]) -> Path | None:
    """The folder or the file that Python finds; none where only the import hook of an editable installation does."""
    spec = PathFinder.find_spec(name, [each or "." for each in path])
    if spec is None:
        return None
    folders = list(spec.submodule_search_locations or ())
    return Path(folders[0] if folders else str(spec.origin)).absolute()
