"""What tests share: one local Ray for the session, and where the shared folder is."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")
ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of golden values, published numbers and real data; a test that needs it skips without it."""
    folder = Path(os.environ.get("METRICSWEEP_SHARED", ROOT.parent / "shared"))
    if not folder.is_dir():
        pytest.skip("the folder ../shared is not here")
    return folder


@pytest.fixture(scope="session")
def local_ray() -> Iterator[None]:
    """A Ray of this process with two CPUs; Ray takes seconds to start, so all tests share it."""
    import ray

    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    ray.init(
        address="local",
        num_cpus=2,
        num_gpus=0,
        namespace="metricsweep",
        include_dashboard=False,
        log_to_driver=False,
        object_store_memory=128 * 2**20,
    )
    yield
    ray.shutdown()
