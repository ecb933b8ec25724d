"""Which tests of `make test` run in one process: those that share a server, a Ray or a trained sweep stay together."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import pytest
    from xdist.remote import Producer
    from xdist.scheduler import LoadScopeScheduling

TOGETHER: Final[Mapping[str, tuple[str, ...]]] = {
    "faults of services": tuple(f"tests/faults/test_{name}.py" for name in ("mlflow", "postgres", "ray")),
    "faults": ("tests/faults/",),
    "ray": ("tests/run/", "tests/test_pruning.py"),
    "presets": ("tests/test_quick_presets.py",),
    "compose": ("tests/test_compose_processes.py",),
    "upgrade": ("tests/test_upgraded_slots.py",),
    "served": ("tests/test_killed_conductor.py", "tests/test_quick_svmax.py", "tests/test_storm.py"),
    "storage": ("tests/test_storage.py",),
    "browser": ("tests/dashboards/",),
    "wheel": ("tests/test_wheel.py",),
    "record": ("tests/record/",),
}
"""Groups by the beginning of a test's path, the longest first; every other file is a group of its own."""

_MOST: Final = 8


def group(nodeid: str) -> str:
    """The group of a test, from its node id such as `tests/run/test_warm.py::test_x[1]`."""
    file = nodeid.split("::", 1)[0]
    return next((name for name, paths in TOGETHER.items() if file.startswith(paths)), file)


def longest_first(items: "list[pytest.Item]") -> None:
    """Order tests in place: the groups as they stand above, which mostly wait, then the files, the most tests first."""
    names = [group(item.nodeid) for item in items]
    places = {name: at for at, name in enumerate(TOGETHER)}
    sizes = {name: names.count(name) for name in set(names)}
    order = sorted(range(len(items)), key=lambda at: (places.get(names[at], len(places)), -sizes[names[at]], names[at]))
    items[:] = [items[at] for at in order]


def processes() -> int:
    """Two a core, since tests that start servers mostly wait for them; a process takes about 1 GB."""
    return min(_MOST, 2 * (os.cpu_count() or 1))


def by_group(config: "pytest.Config", log: "Producer") -> "LoadScopeScheduling":
    """A scheduler that gives whole groups to processes, in the order of the collected tests.

    xdist's own `--dist loadgroup` renames tests by an attribute that pytest 9.2 no longer has, and so groups nothing.
    """
    from xdist.scheduler import LoadScopeScheduling

    class ByGroup(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group(nodeid)

    config.option.loadscopereorder = False  # its order, by the number of tests, would start the longest last
    return ByGroup(config, log)
