"""What the packages of this environment take on the disk: python -m benchmarks.installed [--least 20]

Megabytes of each distribution of `--least` and more, of all, of the service without and with workers, and of torch
with what only it asks for.
"""

import argparse
import importlib.metadata
import json
import platform
import re
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress

from packaging.markers import Marker
from packaging.requirements import Requirement


def megabytes(distribution: importlib.metadata.Distribution) -> float:
    """Of its files that are there."""
    files = (distribution.locate_file(file) for file in distribution.files or ())
    return sum(file.stat().st_size for file in files if file.is_file()) / 1e6  # type: ignore[attr-defined]


def name_of(text: str) -> str:
    """A name as it is compared."""
    return re.sub(r"[-_.]+", "-", text).lower()


def reached(requirements: Iterable[str], without: str = "") -> set[str]:
    """What is installed of requirements and all that these ask for; `without` a distribution and what it asks for."""
    waiting, seen = [Requirement(line) for line in requirements], set[tuple[str, frozenset[str]]]()
    while waiting:
        wanted = waiting.pop()
        key = (name_of(wanted.name), frozenset(wanted.extras))
        if key in seen or key[0] == without:
            continue
        with suppress(importlib.metadata.PackageNotFoundError):
            lines = [Requirement(line) for line in importlib.metadata.requires(wanted.name) or ()]
            seen.add(key)
            waiting += [one for one in lines if one.marker is None or _holds(one.marker, wanted.extras)]
    return {name for name, _ in seen}


def _holds(marker: Marker, extras: Collection[str]) -> bool:
    return any(marker.evaluate({"extra": extra}) for extra in ("", *extras))


def total(sizes: Mapping[str, float], names: Iterable[str]) -> int:
    """Megabytes of all of them."""
    return round(sum(sizes.get(name, 0.0) for name in names))


def main() -> None:
    """Print it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--least", type=float, default=20.0, help="MB")
    options = parser.parse_args()
    sizes = {name_of(one.metadata["Name"]): megabytes(one) for one in importlib.metadata.distributions()}
    service, everything = reached(["metricsweep"]), reached(["metricsweep[worker]"])
    torch = everything - reached(["metricsweep[worker]"], without="torch")
    told = {
        "python": platform.python_version(),
        "all, MB": total(sizes, sizes),
        "the service without workers, MB": total(sizes, service),
        "with workers, MB": total(sizes, everything),
        "of that torch with what only it asks for, MB": total(sizes, torch),
        "each, MB": {
            name: round(size) for name, size in sorted(sizes.items(), key=lambda one: -one[1]) if size >= options.least
        },
    }
    print(json.dumps(told, indent=2))


if __name__ == "__main__":
    main()
