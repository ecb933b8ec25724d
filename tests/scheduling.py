"""Which tests of `make test` run in one process: those that share a server, a Ray or a trained sweep stay together."""

import os
from collections import Counter
from collections.abc import Mapping
from itertools import islice
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
    "served": (
        "tests/test_killed_conductor.py",
        "tests/test_quick_svmax.py",
        "tests/test_storm.py",
        "tests/test_tutorial.py",
    ),
    "storage": ("tests/test_storage.py",),
    "browser": ("tests/dashboards/",),
    "wheel": ("tests/test_wheel.py",),
    "record": ("tests/record/",),
}
"""Groups by the beginning of a test's path, the longest first; every other file is a group of its own."""

_MOST: Final = 8


def group(nodeid: str) -> str:
    """The group of a test, from its node id such as `tests/run/test_actor_reuse.py::test_x[1]`."""
    file = nodeid.split("::", 1)[0]
    return next((name for name, paths in TOGETHER.items() if file.startswith(paths)), file)


LONG: Final = (
    "tests/claims/test_cifar10.py",
    "tests/claims/test_trained.py",
    "tests/api/test_openapi.py",
    "tests/api/test_serve.py",
    "tests/api/test_mlflow.py",
    "tests/api/test_connections.py",
    "tests/plan/test_hostile.py",
    "tests/workers/test_checkpoint.py",
    "tests/workers/test_workers_main.py",
    "tests/workers/test_beside.py",
    "tests/workers/test_figure_files.py",
    "tests/workers/test_train.py",
    "tests/workers/test_full_disk.py",
)
"""Files of few tests that take long: among the last to begin, one of them would go on alone."""

_AT_ONCE: Final = 3
_BETWEEN: Final = 4
"""The groups that begin at once, and the files between each two of the others."""


def longest_first(items: "list[pytest.Item]") -> None:
    """Order tests in place: the groups as they stand above and the files, the long ones and the most tests first.

    The groups mostly wait and the files compute, so that one after the other would leave the cores idle at first and
    contended at last: some groups begin, and between the others stand files.
    """
    sizes = Counter(group(item.nodeid) for item in items)
    files = iter(sorted(sizes.keys() - TOGETHER.keys(), key=lambda name: (name not in LONG, -sizes[name], name)))
    order: list[str] = []
    for number, name in enumerate(name for name in TOGETHER if name in sizes):
        order += [*(islice(files, _BETWEEN) if number >= _AT_ONCE else ()), name]
    places = {name: at for at, name in enumerate([*order, *files])}
    items.sort(key=lambda item: places[group(item.nodeid)])


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
