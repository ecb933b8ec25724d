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
    from xdist.workermanage import WorkerController

TOGETHER: Final[Mapping[str, tuple[str, ...]]] = {
    "faults of services": tuple(f"tests/faults/test_{name}.py" for name in ("mlflow", "postgres", "ray")),
    "faults": ("tests/faults/",),
    "ray of engines": (
        "tests/run/test_engine.py",
        "tests/test_pruning.py::test_a_pruned_training_is_stopped_long_before_its_next_report",
    ),
    "ray of slots": ("tests/run/test_ray.py",),
    "slurm": ("tests/faults/test_slurm.py",),
    "presets": ("tests/test_quick_presets.py",),
    "clusters of their own": (
        "tests/run/test_departure.py::test_a_node_of_ray_that_is_told_to_end_costs_no_step",
        "tests/run/test_ray.py::test_an_autoscaler_starts_the_node_that_is_waited_for",
        "tests/run/test_ray.py::test_slots_of_every_shape_over_several_nodes",
    ),
    "compose": ("tests/test_compose_processes.py",),
    "upgrade": ("tests/test_upgraded_slots.py",),
    "served": ("tests/test_served.py",),
    "storage": ("tests/test_storage.py",),
    "browser": ("tests/dashboards/",),
    "wheel": ("tests/test_wheel.py",),
    "record": ("tests/record/",),
}
"""Groups by the beginnings of node ids, the longest group first; every other file is a group of its own.

Of two beginnings the longer decides, so that a test may leave its file. Two Rays cost seconds of CPU more than one, and
spare the end of a run in which one process goes on with all that needs Ray."""

_MOST: Final = 8


def group(nodeid: str) -> str:
    """The group of a test, from its node id such as `tests/run/test_ray.py::test_x[1]`."""
    found = [(len(start), name) for name, starts in TOGETHER.items() for start in starts if nodeid.startswith(start)]
    return max(found)[1] if found else nodeid.split("::", 1)[0]


LONG: Final = (
    "tests/simulation/test_worlds.py",
    "tests/test_tasks_in_tables.py",
    "tests/test_resolutions.py",
    "tests/test_collection.py",
    "tests/run/test_files.py",
    "tests/test_capacity.py",
    "tests/run/test_slot_actor.py",
    "tests/claims/test_cifar10.py",
    "tests/test_pruning.py",
    "tests/claims/test_trained.py",
    "tests/test_evaluations.py",
    "tests/plan/test_hostile.py",
    "tests/publish/test_subsets.py",
    "tests/api/test_serve.py",
    "tests/test_upgrade.py",
    "tests/api/test_isolation.py",
    "tests/api/test_offered.py",
    "tests/api/test_attackers.py",
    "tests/api/test_openapi.py",
    "tests/api/test_oidc.py",
    "tests/api/test_mlflow.py",
    "tests/workers/test_checkpoint.py",
    "tests/test_conductor.py",
    "tests/test_searches.py",
    "tests/test_requests.py",
    "tests/workers/test_published_recipes.py",
    "tests/shape/test_imports.py",
    "tests/workers/test_workers_main.py",
    "tests/test_bundling.py",
    "tests/test_package.py",
    "tests/workers/test_tasks.py",
    "tests/workers/test_backbones.py",
    "tests/workers/test_beside.py",
    "tests/workers/test_figure_files.py",
    "tests/workers/test_train.py",
    "tests/workers/test_full_disk.py",
    "tests/workers/test_verification.py",
    "tests/api/test_process.py",
    "tests/workers/test_frozen.py",
    "tests/workers/test_ahead.py",
    "tests/api/test_turns.py",
    "tests/plan/test_presets.py",
)
"""Files that take long, the longest first: among the last to begin, one of them would go on alone."""


def lasts(group: str) -> bool:
    """Whether a group may take minutes."""
    return group in TOGETHER or group in LONG


_AT_ONCE: Final = 3
_BETWEEN: Final = 4
"""The groups that begin at once, and the files between each two of the others."""


def longest_first(items: "list[pytest.Item]") -> None:
    """Order tests in place: the groups and the files, the long ones as they stand above, then the most tests first.

    The groups mostly wait and the files compute, so that one after the other would leave the cores idle at first and
    contended at last: some groups begin, and between the others stand files.
    """
    sizes = Counter(group(item.nodeid) for item in items)
    long = {name: at for at, name in enumerate(LONG)}
    others = sizes.keys() - TOGETHER.keys()
    files = iter(sorted(others, key=lambda name: (long.get(name, len(LONG)), -sizes[name], name)))
    order: list[str] = []
    for number, name in enumerate(name for name in TOGETHER if name in sizes):
        order += [*(islice(files, _BETWEEN) if number >= _AT_ONCE else ()), name]
    places = {name: at for at, name in enumerate([*order, *files])}
    items.sort(key=lambda item: places[group(item.nodeid)])


def processes() -> int:
    """Two a core, since tests that start servers mostly wait for them; with three, slots starve."""
    return min(_MOST, 2 * (os.cpu_count() or 1))


def by_group(config: "pytest.Config", log: "Producer") -> "LoadScopeScheduling":
    """A scheduler that gives whole groups to processes, in the order of the collected tests.

    xdist's own `--dist loadgroup` renames tests by an attribute that pytest 9.2 no longer has, and so groups nothing.
    """
    from xdist.scheduler import LoadScopeScheduling

    class ByGroup(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group(nodeid)

        def _reschedule(self, node: "WorkerController") -> None:
            # A process is told what follows a test before it begins it; xdist hands out the next group a test earlier.
            if not self.workqueue or self._pending_of(self.assigned_work[node]) <= 1:
                super()._reschedule(node)

        def _assign_work_unit(self, node: "WorkerController") -> None:
            # What waits behind the last test of a long group waits long: the least, and not what should have begun.
            if any(lasts(name) and False in tests.values() for name, tests in self.assigned_work[node].items()):
                self.workqueue.move_to_end(next(reversed(self.workqueue)), last=False)
            super()._assign_work_unit(node)

    config.option.loadscopereorder = False  # its order, by the number of tests, would start the longest last
    return ByGroup(config, log)
