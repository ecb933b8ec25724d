"""A node of the Ray cluster dies with all its processes, and so does the head."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.faults.conftest import Note
from tests.faults.disturbing import HELD, begin, go_on, goes_on, held, whole
from tests.faults.installation import Installation, RayCluster
from tests.faults.sweeps import spec

pytestmark = [pytest.mark.faults, pytest.mark.ray]


@pytest.fixture
def cluster(folder: Path, request: pytest.FixtureRequest) -> Iterator[RayCluster]:
    head_only = request.param
    name, cpus = ("head", 2) if head_only else ("nodes", 0)
    made = RayCluster(folder / f"ray-{name}", cpus=cpus, loopback=head_only)
    try:
        made.up()
        yield made
    finally:
        made.end_all()


@pytest.mark.soak
@pytest.mark.parametrize("cluster", [False], indirect=True, ids=["nodes"])
def test_a_node_dies(empty: Callable[..., Installation], cluster: RayCluster, note: Note) -> None:
    installation = empty(cluster)
    installation.start_api()
    installation.start_conductor()
    installation.until(lambda: "holding the lease" in installation.log("conductor"), "it conducts")
    for name in ("node-a", "node-b"):
        cluster.join(name, 1)
    body = spec()
    sweep = begin(installation, body, hold=HELD)
    held(installation, sweep)
    cluster.end("node-b", hard=True)
    go_on(installation)
    seconds = goes_on(installation, sweep)
    found = whole(installation, sweep, body)
    assert found.attempts >= 1, "what trained there goes on elsewhere; until Ray notices, another may be sent there"
    note("SIGKILL of a Ray node", found, seconds=seconds)


@pytest.mark.parametrize("cluster", [True], indirect=True, ids=["head"])
def test_the_head_dies(empty: Callable[..., Installation], cluster: RayCluster, note: Note) -> None:
    installation = empty(cluster)
    installation.start_api()
    installation.start_conductor()
    body = spec()
    sweep = begin(installation, body, hold=HELD)
    held(installation, sweep)
    cluster.end("ray", hard=True)
    go_on(installation)
    cluster.up()
    seconds = goes_on(installation, sweep)
    found = whole(installation, sweep, body)
    assert found.attempts == 2, "both trainings are requeued, and once"
    note("SIGKILL of the Ray head", found, seconds=seconds)
