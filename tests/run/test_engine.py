"""The conformance suite: what every engine does with orders.

`pytest tests/run/test_engine.py --engine module:factory` puts another engine through it.
"""

import re
import time
from collections import deque
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from orchestrator.run.attempt import Workplace
from orchestrator.run.engine import Engine, Site, engine_named
from orchestrator.run.spool import FILE, attempt_folder
from orchestrator.views.errors import NotFoundError
from orchestrator.views.operations import Inspected
from orchestrator.views.runs import Order, RequestedEvaluation
from tests.run.broker import MemoryBroker, order
from workers.catalog import Need
from workers.contract import Part

LOOKING = "tests.run.trainings:looking"


@pytest.fixture
def engine(engine_name: str, request: pytest.FixtureRequest, tmp_path: Path) -> Engine:
    workplace = Workplace("tests.run.trainings:quick", tmp_path / "storage", tmp_path / "data", inspect=LOOKING)
    if engine_name == "ray_tune":
        request.getfixturevalue("local_ray")
    if engine_name == "files":
        request.getfixturevalue("file_slot")
    made = engine_named(engine_name, Site(workplace, tmp_path / "tune"))
    while engine_name == "files" and not made.machines():
        made.rest(broker_of())  # by which its slot is greeted
    return made


def broker_of(*orders: Order) -> MemoryBroker:
    return MemoryBroker(deque(orders))


def test_every_order_ends_exactly_once(engine: Engine) -> None:
    orders = [order(seed=seed) for seed in range(7)]
    broker = broker_of(*orders)
    engine.run(broker)
    assert sorted(broker.ended) == sorted(each.training for each in orders)
    assert {broker.results[each.training].metrics["best/test/map@r"] for each in orders} == {s / 100 for s in range(7)}


def test_messages_arrive_in_order_without_gaps_and_as_they_are_spooled(engine: Engine, tmp_path: Path) -> None:
    good, bad = order(iterations=20), order("raises")
    broker = broker_of(good, bad)
    engine.run(broker)
    assert broker.messages[good.attempt] == list(range(1, 21))
    for each in (good, bad):
        spooled = (tmp_path / "storage" / attempt_folder(each) / FILE).read_bytes()
        assert b"".join(broker.lines[each.attempt]) == spooled


def test_each_end_is_reported_and_other_attempts_go_on(engine: Engine) -> None:
    bad, lacking, damaged, diverging, good = map(order, ("raises", "lacks", "damages", "diverges", "ok"))
    broker = broker_of(bad, lacking, damaged, diverging, good)
    engine.run(broker)
    assert {failure.kind: failure.message for failure in broker.failures} == {
        "recipe": "ValueError: alpha must be positive",
        "missing": "DataMissingError: cub200 is missing",
        "damaged": "DataDamagedError: cub200 has 3 images, expected 4",
    }
    assert all("trainings.py" in failure.trace for failure in broker.failures)
    ends = {training: result.outcome for training, result in broker.results.items()}
    assert ends == {diverging.training: "diverged", good.training: "ok"}


def heard(engine: Engine, wanted: int) -> list[Inspected]:
    found: list[Inspected] = []
    until = time.monotonic() + 120
    while len(found) < wanted and time.monotonic() < until:
        found += engine.inspected()
        time.sleep(0.02)
    return found


def test_a_machine_says_what_its_data_root_has(engine: Engine, tmp_path: Path) -> None:
    (machine,) = engine.machines()
    cub, sop = (Need(dataset=Part(name=name)) for name in ("cub200", "sop"))
    (tmp_path / "data" / "sop").mkdir(parents=True)
    engine.inspect(machine, [cub, sop])
    found = heard(engine, 2)
    assert {one.node for one in found} == {machine.uid}
    assert {str(one.need): one.finding.state for one in found} == {"cub200": "missing", "sop": "ok"}
    assert engine.inspected() == []
    (tmp_path / "data" / "blind").touch()
    engine.inspect(machine, [cub])
    (blind,) = heard(engine, 1)
    assert (blind.finding.state, "PermissionError" in blind.finding.message) == ("unknown", True)


def test_kept_weights_are_evaluated_in_place_of_training(engine: Engine, tmp_path: Path) -> None:
    kept = tmp_path / "storage" / "source" / "1"
    kept.mkdir(parents=True)
    (kept / "best.safetensors").write_text("0.25")
    (kept / "damaged.safetensors").write_text("none")
    good, bad, gone = (
        replace(order(), evaluation=RequestedEvaluation(f"source/1/{name}.safetensors", ("nmi_sec", "recall@16")))
        for name in ("best", "damaged", "gone")
    )
    broker = broker_of(good, bad, gone)
    engine.run(broker)
    assert broker.results[good.training].metrics == {"best/test/nmi_sec": 0.25, "best/test/recall@16": 0.25}
    assert not (tmp_path / "storage" / good.training / "steps.txt").exists(), "nothing was trained"
    assert sorted((failure.kind, failure.message) for failure in broker.failures) == [
        ("kept_weights", "kept weights: checkpoint damaged.safetensors is damaged"),
        ("kept_weights", "kept weights: the kept weights source/1/gone.safetensors are not in the storage any more"),
    ]


def test_an_unwanted_order_is_stopped_while_it_trains(engine: Engine) -> None:
    slow, other = order(iterations=2000, delay=0.02), order()

    def cancel(broker: MemoryBroker) -> None:
        if slow.training in broker.last:
            broker.unwanted.add(slow.training)

    broker = broker_of(slow, other)
    broker.at_tick = cancel
    engine.run(broker)
    assert sorted(broker.ended) == sorted([slow.training, other.training])
    assert slow.training not in broker.results


def test_orders_that_come_while_it_runs_are_taken(engine: Engine) -> None:
    first, late = order(iterations=30, delay=0.02), order()

    def add(broker: MemoryBroker) -> None:
        if first.training in broker.last and late is not None and late.training not in broker.ended:
            broker.at_tick = lambda broker: None
            broker.waiting.append(late)

    broker = broker_of(first)
    broker.at_tick = add
    engine.run(broker)
    assert set(broker.results) == {first.training, late.training}


def test_a_closing_broker_ends_the_run_and_the_next_run_goes_on(engine: Engine, tmp_path: Path) -> None:
    each = order("waits", iterations=60)

    def close(broker: MemoryBroker) -> None:
        if each.training in broker.last and broker.last[each.training].step >= 3:
            broker.close = True

    broker = broker_of(each)
    broker.at_tick = close
    engine.run(broker)
    assert broker.ended == []
    (tmp_path / "storage" / "go").touch()
    broker.close, broker.at_tick = False, lambda broker: None
    broker.waiting.append(replace(each, holder=broker.holders[each.attempt], seen=len(broker.messages[each.attempt])))
    engine.run(broker)
    assert each.training in broker.results
    steps = [int(line) for line in (tmp_path / "storage" / each.training / "steps.txt").read_text().split()]
    assert steps == list(range(1, 61)), "no step was trained twice"


def test_a_wrong_name_is_refused_with_what_is_wrong(tmp_path: Path) -> None:
    wrong = {
        "orchestrator.run.rayy:engine": "no engine 'orchestrator.run.rayy:engine': No module named",
        "orchestrator.run.inline:Outline": "has no attribute 'Outline'",
        "tests.run.test_engine:no_engine": "it has no `demand`, no `inspect`, no `inspected`, no `leave`",
    }
    for name, said in wrong.items():
        with pytest.raises(NotFoundError, match=rf"^METRICSWEEP_ENGINE: .*{re.escape(said)}"):
            engine_named(name, Site(Workplace("tests.run.trainings:quick", tmp_path, tmp_path), tmp_path))


def no_engine(site: Site) -> SimpleNamespace:
    """Has a part of what an engine has."""
    return SimpleNamespace(close=print)
