"""What the faults share: one Ray that none of them kills, an installation that outlives most of them, and the notes."""

import json
import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

import pytest

from tests.faults.evidence import Found
from tests.faults.installation import ROOT, Installation, RayCluster

NOTES = ROOT / "build" / "faults.jsonl"
MOMENTS = int(os.environ.get("FAULT_MOMENTS", "1"))
"""The most moments at which a fault strikes: one in `make test`, two in `make soak`, ten in `make faults`."""
SOAK = [pytest.mark.soak] if MOMENTS > 1 else []
"""The mark of a fault that `make test` injects once and `make soak` more often."""

Note = Callable[..., None]


def moments(fault: str, longest: float, most: int) -> pytest.MarkDecorator:
    """Parametrizes a test by `moment`: seconds after a sweep's start, drawn by a seed; a single one is the middle."""
    drawn = random.Random(fault)
    found = sorted(round(drawn.uniform(0, longest), 2) for _ in range(min(most, MOMENTS)))
    found = found if MOMENTS > 1 else [round(longest / 2, 2)]
    return pytest.mark.parametrize("moment", [pytest.param(one, marks=SOAK) for one in found])


@pytest.fixture
def note(request: pytest.FixtureRequest) -> Note:
    """Keeps the figures of a fault for the report."""

    def keep(fault: str, found: Found, *, moment: float | None = None, **figures: float) -> None:
        NOTES.parent.mkdir(exist_ok=True)
        line = {"fault": fault, "moment": moment, **asdict(found), **{k: round(v, 2) for k, v in figures.items()}}
        with NOTES.open("a") as file:
            file.write(json.dumps(line) + "\n")

    return keep


@pytest.fixture(scope="session")
def folder() -> Iterator[Path]:
    """A folder with a short path, which Ray's sockets need."""
    made = Path(tempfile.mkdtemp(prefix="ms-"))
    yield made
    shutil.rmtree(made, ignore_errors=True)


@pytest.fixture(scope="session")
def ray_head(folder: Path) -> Iterator[RayCluster]:
    """A Ray with two CPUs; only one installation may use it at a time."""
    cluster = RayCluster(folder / "ray", cpus=2)
    try:
        cluster.up()
        yield cluster
    finally:
        cluster.end_all()


@pytest.fixture(scope="module")
def empty(folder: Path) -> Iterator[Callable[..., Installation]]:
    """Makes installations in which nothing runs yet; they end with the module."""
    made: list[Installation] = []

    def make(ray: RayCluster | None, **settings: object) -> Installation:
        made.append(Installation(Path(tempfile.mkdtemp(dir=folder)), ray, **settings))
        return made[-1]

    yield make
    for installation in made:
        installation.end_all()


@pytest.fixture(scope="module")
def standing(empty: Callable[..., Installation], ray_head: RayCluster) -> Installation:
    """An API and a conductor over SQLite, which every fault of a module hits in turn."""
    installation = empty(ray_head)
    installation.start_api()
    installation.start_conductor()
    return installation
