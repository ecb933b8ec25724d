"""The page of the cluster: what it says of nodes, slots and the queue, and how it looks while a sweep runs."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, expect
from pydantic import TypeAdapter

from api.routes.cluster import EXAMPLE
from dashboards.cluster import cluster_page
from orchestrator.views.cluster import ClusterView, ProcessUsage, SlotReport
from orchestrator.views.nodes import Node
from tests.dashboards.markup import read
from tests.dashboards.specimens import HOSTILE, NOW
from tests.dashboards.stage import SMALL_SPEC, SPEC, Stage

GIB = 2**30


def page(**more: Any) -> str:
    return cluster_page(ClusterView.model_validate(EXAMPLE | more), now=NOW)


def test_the_example_holds() -> None:
    read = TypeAdapter(ClusterView)
    assert read.dump_python(read.validate_python(EXAMPLE), mode="json") == EXAMPLE


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


def occupy(stage: Stage) -> None:
    """Two machines of four CPUs; one slot trains, one is idle, and a sweep waits for a third."""
    order = stage.start(0.5)
    nodes = [Node(uid * 20, host, {"CPU": 4.0, "memory": 8.0 * GIB}) for uid, host in (("a", "lab-3"), ("b", "lab-4"))]
    stage.writer.capacity.note_nodes(nodes)
    usage = ProcessUsage(
        memory_bytes=3 * GIB, cpus=1.7, machine_memory_bytes=8 * GIB, machine_memory_free_bytes=2 * GIB, machine_cpus=4,
        machine_load=2.5,
    )  # fmt: skip
    trains = SlotReport(f"slot:2:0:0:0a1b2c3d:{'a' * 12}:", "a" * 12, "lab-3", {"CPU": 2.0}, order.attempt, usage)
    idle = SlotReport(f"slot:1:0:0:9f8e7d6c:{'b' * 12}:", "b" * 12, "lab-4", {"CPU": 1.0}, None, usage)
    stage.writer.capacity.note_slots([trains, idle])


@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 420])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_and_keeps_itself_current(
    context: BrowserContext, stage: Stage, width: int, scheme: str, tmp_path: Path
) -> None:
    stage.submit(SPEC)
    occupy(stage)
    stage.submit(SMALL_SPEC, begin=False)
    page = context.new_page()
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    page.clock.install()
    page.goto("/cluster")
    expect(page.locator("#slots tbody tr")).to_have_count(2)
    expect(page.locator("#queue tbody tr")).to_have_count(2)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.screenshot(path=tmp_path / f"cluster-{width}-{scheme}.png", full_page=True)
    stage.begin()
    page.clock.run_for(3_100)
    expect(page.locator("#queue tbody")).not_to_contain_text("takes its sweep up")
    page.get_by_role("navigation", name="Site").get_by_role("link", name="Cluster").focus()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement !== document.body")
