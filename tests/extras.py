"""A Python in which only the packages of the client and of chosen extras can be imported."""

import importlib.metadata
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from typing import Any, Final

from packaging.requirements import Requirement

from tests.conftest import ROOT

PROJECT: Final[dict[str, Any]] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
OURS: Final = {"metricsweep", "api", "dashboards", "orchestrator", "workers", "tests", "benchmarks"}
REFUSE: Final = """
import sys
from importlib.machinery import PathFinder

class Installed(PathFinder):
    refused = set(sys.argv.pop(1).split(","))

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in cls.refused else super().find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = Installed
"""


def canonical(name: str) -> str:
    """A distribution's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def installed(extras: Iterable[str]) -> set[str]:
    """The distributions that the client and the extras need, as far as they are installed."""
    waiting = [Requirement(line) for line in PROJECT["dependencies"]]
    waiting.append(Requirement(f"metricsweep[{','.join(extras)}]"))
    seen, found = set(), set()
    while waiting:
        requirement = waiting.pop()
        name, extra = canonical(requirement.name), frozenset(requirement.extras)
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        if name == "metricsweep":
            waiting += [Requirement(line) for each in extra for line in PROJECT["optional-dependencies"][each]]
            continue
        try:
            further = [Requirement(line) for line in importlib.metadata.requires(name) or ()]
        except importlib.metadata.PackageNotFoundError:
            continue
        found.add(name)
        waiting += [
            each for each in further if not each.marker or any(each.marker.evaluate({"extra": e}) for e in {"", *extra})
        ]
    return found


def run(extras: Iterable[str], code: str, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `code` with `arguments` where no installed package can be imported that the extras do not bring."""
    allowed = installed(extras)
    refused = {
        module
        for module, brought in importlib.metadata.packages_distributions().items()
        if module not in OURS and not allowed & set(map(canonical, brought))
    }
    command = [sys.executable, "-c", REFUSE + code, ",".join(sorted(refused)), *map(str, arguments)]
    plain = {name: value for name, value in os.environ.items() if not name.startswith("METRICSWEEP_")}
    return subprocess.run(
        command, cwd=ROOT, env=plain | environment, capture_output=True, text=True, timeout=120, check=False
    )
