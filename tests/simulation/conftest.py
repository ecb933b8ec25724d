"""The ground of a test process, in memory where the machine has such a place."""

import gc
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.simulation.ground import MEMORY, Ground


@pytest.fixture(scope="session")
def ground() -> Iterator[Ground]:
    with tempfile.TemporaryDirectory(prefix="metricsweep-worlds-", dir=MEMORY) as folder:
        made = Ground(Path(folder))
        gc.collect()
        gc.freeze()  # what pytest and SQLAlchemy hold is not looked through again and again, which takes a tenth
        yield made
        gc.unfreeze()
        made.close()
