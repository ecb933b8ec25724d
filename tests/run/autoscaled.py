"""Runs an order on a cluster that has no worker until an autoscaler sees the demand; prints what it saw as JSON.

The cloud is Ray's own imitation of one: its real autoscaler starts real node processes on this machine.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
from ray.autoscaler._private.constants import AUTOSCALER_RESOURCE_REQUEST_CHANNEL
from ray.autoscaler._private.fake_multi_node.node_provider import (
    FAKE_HEAD_NODE_ID,
    FAKE_HEAD_NODE_TYPE,
    FakeMultiNodeProvider,
)
from ray.autoscaler.v2.sdk import get_cluster_status
from ray.experimental.internal_kv import _internal_kv_get

from orchestrator.run import dispatch
from orchestrator.run.attempt import Workplace
from orchestrator.run.ray.engine import RayTune
from orchestrator.spec.spec import Slot
from tests.ports import free_port
from tests.run.broker import MemoryBroker, order

PATIENCE_SECONDS = 300.0


def config(address: str) -> dict[str, Any]:
    """A head without CPUs, and one worker that the autoscaler may start."""
    commands = ("initialization", "setup", "head_setup", "worker_setup", "head_start_ray", "worker_start_ray")
    nothing: dict[str, list[str]] = {f"{name}_commands": [] for name in commands}
    nothing |= {"cluster_synced_files": [], "rsync_exclude": [], "rsync_filter": []}
    worker = {"CPU": 2, "a100": 1, "object_store_memory": 100_000_000}
    return {
        **nothing, "cluster_name": "imitated", "max_workers": 1, "upscaling_speed": 1.0, "idle_timeout_minutes": 5,
        "provider": {
            # By its module: of its own name the wheel lacks the defaults.
            "type": "external", "module": f"{FakeMultiNodeProvider.__module__}.{FakeMultiNodeProvider.__name__}",
            "use_node_id_as_ip": True, "disable_node_updaters": True,
            "disable_launch_config_check": True, "launch_multiple": True, "head_node_id": FAKE_HEAD_NODE_ID,
            "gcs_address": address,
        },
        "available_node_types": {
            FAKE_HEAD_NODE_TYPE: {"resources": {"CPU": 0}, "node_config": {}, "max_workers": 0},
            "worker": {"resources": worker, "node_config": {}, "min_workers": 0, "max_workers": 1},
        },
        "head_node_type": FAKE_HEAD_NODE_TYPE, "auth": {}, "docker": {}, "file_mounts": {},
        "file_mounts_sync_continuously": False,
    }  # fmt: skip


@contextmanager
def imitated_cloud(scratch: Path, version: str) -> Iterator[str]:
    """The address of its head; all its processes end with it."""
    ray = Path(sys.executable).with_name("ray")
    port = free_port()
    address = f"127.0.0.1:{port}"
    file = scratch / "cloud.json"
    file.write_text(json.dumps(config(address)))
    environment = {
        **os.environ, "AUTOSCALER_UPDATE_INTERVAL_S": "1", "RAY_FAKE_CLUSTER": "1",
        "RAY_enable_autoscaler_v2": "1" if version == "v2" else "0", "RAY_CLOUD_INSTANCE_ID": FAKE_HEAD_NODE_ID,
        "RAY_OVERRIDE_NODE_ID_FOR_TESTING": FAKE_HEAD_NODE_ID,
    }  # fmt: skip
    command = [ray, "start", "--head", "--block", f"--port={port}", "--num-cpus=0", "--node-ip-address=127.0.0.1",
               "--include-dashboard=false", "--disable-usage-stats", f"--autoscaling-config={file}",
               "--object-store-memory=100000000"]  # fmt: skip
    with (scratch / "cloud.log").open("w") as log:
        head = psutil.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT)
    try:
        yield address
    finally:
        everything = [*head.children(recursive=True), head]
        for one in everything:
            with suppress(psutil.NoSuchProcess):  # a helper of Ray's that ends by itself meanwhile
                one.kill()
        psutil.wait_procs(everything, timeout=20)


def asked(address: str, version: str) -> list[dict[str, float]]:
    """The resources requested of Ray by its own state, for its second or its first autoscaler."""
    if version == "v1":
        found: list[dict[str, float]] = json.loads(_internal_kv_get(AUTOSCALER_RESOURCE_REQUEST_CHANNEL) or b"[]")
        return found
    demands = get_cluster_status(address).resource_demands.cluster_constraint_demand
    return [dict(one.bundle) for demand in demands for one in demand.bundles_by_count for _ in range(one.count)]


def wait_for(look: Callable[[], Any]) -> Any:
    """What `look` finds, as soon as it finds something."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (found := look()) and time.monotonic() < deadline:
        time.sleep(0.5)
    return found


def play(scratch: Path, address: str, version: str) -> dict[str, Any]:
    """What happens from an empty cluster to a result."""
    dispatch.LINGER_SECONDS = 0
    engine = RayTune(Workplace("tests.run.trainings:quick", scratch / "storage", scratch), address, scratch)
    slot = Slot(cpus=1, gpus=0, resources={"a100": 1})
    broker = MemoryBroker(deque([replace(order(), slot=slot)]))
    said: dict[str, Any] = {}
    try:
        said["before"] = sum(node.resources.get("CPU", 0) for node in wait_for(engine.nodes) or ())
        engine.demand([slot])
        said["asked"] = wait_for(lambda: asked(address, version))
        said["joined"] = bool(wait_for(lambda: [node for node in engine.nodes() or () if node.resources.get("a100")]))
        if said["joined"]:
            engine.run(broker)
        said["results"] = len(broker.results)
        engine.demand([])
        said["withdrawn"] = wait_for(lambda: not asked(address, version))
    finally:
        engine.close()
    return said


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the cloud ends with it
    folder, chosen = Path(sys.argv[1]), sys.argv[2]
    with imitated_cloud(folder, chosen) as head_address:
        print(json.dumps(play(folder, head_address, chosen)))
