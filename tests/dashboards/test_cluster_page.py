"""The page of the cluster: what it says of nodes, slots and the queue."""

from datetime import timedelta
from typing import Any

from api.routes.cluster import EXAMPLE
from dashboards.cluster import cluster_page
from orchestrator.views.cluster import ClusterView
from tests.dashboards.markup import read
from tests.dashboards.specimens import HOSTILE, NOW


def page(**more: Any) -> str:
    return cluster_page(ClusterView.model_validate(EXAMPLE | more), now=NOW)


def test_it_says_who_uses_what() -> None:
    text = read(page()).text
    for said in (
        "1 node, 1 slot, 1 of them training; conductor heard 3 s ago",
        "4 of 16 CPUs", "0.5 of 1 GPU", "21.4 of 59.6 GB", "load 5.2 on 16 CPUs", "4 CPUs, 0.5 GPU",
        "trial 93 of sec-on-digits #7", "step 120 of 300", "2.89 GB", "2.4 CPUs busy",
        "NVIDIA A100-SXM4-40GB", "7.6 of 39.6 GB", "63% busy",
        "52 trials wait: 40 for a free slot, 12 for a machine that has its data", "ada@lab", "no machine has cub200",
    ):  # fmt: skip
        assert said in text, said


def test_what_is_not_there_is_said() -> None:
    empty = read(page(nodes=[], slots=[], queue=[], conducted=False, heartbeat_seconds=None)).text
    for said in ("No node is there", "There is no slot", "Nothing waits", "No conductor holds the lease"):
        assert said in empty, said
    without = {**EXAMPLE["slots"][0], "usage": {**EXAMPLE["slots"][0]["usage"], "gpus": None}}
    assert "none" in read(page(slots=[without])).text
    silent = {**EXAMPLE["slots"][0], "usage": None}
    assert "not told yet" in read(page(slots=[silent])).text
    assert "told once a slot is there" in read(page(slots=[])).text
    left = {**EXAMPLE["nodes"][0], "alive": False, "seen": (NOW - timedelta(hours=2)).isoformat()}
    assert "1 node that left" in read(page(nodes=[left])).text


def test_names_are_only_text() -> None:
    slot, queued = EXAMPLE["slots"][0], EXAMPLE["queue"][0]
    trains = {**slot["trains"], "sweep_name": HOSTILE, "labels": {HOSTILE: HOSTILE}}
    gpus = [{**slot["usage"]["gpus"][0], "name": HOSTILE}]
    made = page(
        nodes=[{**EXAMPLE["nodes"][0], "host": HOSTILE}],
        slots=[{**slot, "host": HOSTILE, "trains": trains, "usage": {**slot["usage"], "gpus": gpus}}],
        queue=[{**queued, "name": HOSTILE, "actor": HOSTILE, "notice": HOSTILE}],
    )
    assert "<script>alert" not in made
    assert "<img" not in made
    assert "{{ 7*7 }}" in read(made).text
