"""The demand: what Ray says that was asked for, and a node that its own autoscaler starts for it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.run.attempt import Workplace
from orchestrator.run.ray.engine import MOST_BUNDLES, ClusterDemand, RayTune
from orchestrator.spec.slot import Slot
from orchestrator.views.resources import shape_of
from tests.conftest import ROOT

SECONDS = 900.0
SLOT = Slot(cpus=3, gpus=0.25, memory_gb=2, resources={"a100": 1})
BUNDLE = {"CPU": 3.0, "GPU": 0.25, "memory": 2**31, "a100": 1.0}


def asked() -> list[dict[str, float]]:
    from ray.autoscaler._private.constants import AUTOSCALER_RESOURCE_REQUEST_CHANNEL
    from ray.experimental.internal_kv import _internal_kv_get

    found: list[dict[str, float]] = json.loads(_internal_kv_get(AUTOSCALER_RESOURCE_REQUEST_CHANNEL) or b"[]")
    return found


@pytest.mark.ray
def test_what_trains_and_what_waits_is_asked_for_together_until_it_is_withdrawn(local_ray: None) -> None:
    demand = ClusterDemand()
    small, large = shape_of(Slot(gpus=0), []), shape_of(SLOT, [])
    demand.tell([small], [large, large])
    assert sorted(asked(), key=len) == [{"CPU": 1.0}, BUNDLE, BUNDLE]
    demand.tell([], [small] * 1000)
    assert asked() == [{"CPU": 1.0}] * MOST_BUNDLES
    demand.withdraw()
    assert asked() == []


@pytest.mark.ray
def test_an_engine_asks_for_no_more_than_its_limit_of_slots(local_ray: None, tmp_path: Path) -> None:
    engine = RayTune(Workplace("tests.run.trainings:quick", tmp_path, tmp_path), None, tmp_path, limit=2)
    nodes = engine.nodes()
    assert nodes is not None
    assert [node.resources["CPU"] for node in nodes] == [2.0]
    engine.demand([SLOT] * 5)
    assert asked() == [BUNDLE] * 2
    engine.demand([])
    assert asked() == []


@pytest.mark.ray
@pytest.mark.parametrize("autoscaler", ["v1", "v2"])
def test_an_autoscaler_starts_the_node_that_is_waited_for(autoscaler: str, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"}
    environment.pop("RAY_ADDRESS", None)
    command = [sys.executable, "-m", "tests.run.autoscaled", str(tmp_path), autoscaler]
    played = subprocess.Popen(command, env=environment, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        out, _ = played.communicate(timeout=SECONDS)
    finally:
        played.terminate()
        played.wait(timeout=120)
    assert played.returncode == 0
    said = json.loads(out.splitlines()[-1])
    assert said == {
        "before": 0,
        "asked": [{"CPU": 1.0, "a100": 1.0}],
        "joined": True,
        "results": 1,
        "withdrawn": True,
    }
