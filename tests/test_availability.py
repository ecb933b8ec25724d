"""The conductor and data that are not there: what waits blocks nothing, says why, and goes on when they come."""

import hashlib
import socket
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import yaml
from torchvision.models import ResNet18_Weights, resnet18

from orchestrator.__main__ import main
from orchestrator.conduct.broker import LeasedBroker
from orchestrator.conduct.waiting import Availability
from orchestrator.record.store import Store
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from orchestrator.views.operations import Inspected, Node
from tests.inline_conductor import inline
from tests.run import trainings
from tests.test_capacity import Cluster
from tests.test_conductor import SPEC, trained
from tests.workers import faces
from workers.catalog import Need
from workers.contract import Part
from workers.data import published_weights
from workers.data.published_weights import PublishedWeights
from workers.datasets.megaface import Megaface

HOST = socket.gethostname()
COMPARED = {"dataset": ["digits", "cub200"]}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "data").mkdir()
    return Settings(
        home=tmp_path,
        engine="inline",
        train="tests.run.trainings:reading",
        inspect="tests.run.trainings:looking",
        lease_seconds=5,
    )


class Held(Cluster):
    """A conductor over the inline engine, one turn at a time."""

    def __init__(self, settings: Settings) -> None:
        self.store = Store.open(settings.database)
        self.conductor = inline(settings, self.store)


@pytest.fixture
def held(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[Held]:
    monkeypatch.setattr("orchestrator.conduct.waiting.AGAIN_SECONDS", 0.0)
    monkeypatch.setattr("orchestrator.conduct.waiting.DATA_SECONDS", 0.0)
    monkeypatch.setattr("orchestrator.conduct.waiting.SHARE", 0)
    made = Held(settings)
    yield made
    made.store.close()


def spec(**changes: Any) -> bytes:
    tables = {"main": {"rows": ["loss"], "columns": ["dataset"], "metrics": ["map@r"]}}
    return yaml.safe_dump({**SPEC, "compare": COMPARED, "tables": tables, **changes}, sort_keys=False).encode()


def test_missing_data_hold_their_trials_alone(service: Service, held: Held, settings: Settings) -> None:
    sweep = service.submissions.submit(spec()).id
    held.conduct()
    found = service.sweeps.get(sweep)
    assert (found.state, found.counts.finished, found.counts.waiting, found.counts.failed) == ("running", 4, 4, 0)
    assert found.notice == (
        f"no node has cub200: on {HOST}: cub200 is missing: looked in {settings.data_root}; "
        "its trials wait until it is there"
    )
    assert len(trained(settings)) == 4, "nothing was begun that could only fail"
    (settings.data_root / "cub200").mkdir()
    held.conduct()
    found = service.sweeps.get(sweep)
    assert (found.state, found.counts.finished, found.notice) == ("finished", 8, None)


def test_a_submit_warns_of_what_was_seen_to_be_missing(service: Service, held: Held, settings: Settings) -> None:
    assert service.submissions.submit(spec()).warnings == [], "nobody has looked yet"
    held.conduct()
    (warning,) = service.submissions.preview(spec(name="again")).warnings
    assert warning.startswith(f"no node has cub200: on {HOST}: cub200 is missing: looked in {settings.data_root}")
    assert service.submissions.submit(spec(name="again")).warnings == [warning]
    strict = {"name": "cub200", "content": "sha256:" + 64 * "0"}
    assert service.submissions.preview(
        spec(compare={"dataset": [{"label": "CUB", "patch": {"dataset": strict}}]})
    ).warnings
    assert service.submissions.preview(spec(compare={"dataset": ["digits", "sop"]})).warnings == [], (
        "nobody has asked for it yet"
    )
    assert service.submissions.preview(spec(compare={"dataset": ["digits"]})).warnings == []


def test_a_training_without_its_data_waits_again(
    service: Service, held: Held, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    (settings.data_root / "blind").touch()
    sweep = service.submissions.submit(spec(compare={"dataset": ["cub200"]}, repeat={"seed": [0]}, tune={})).id
    for pause in ("FIRST_PAUSE", "LONGEST_PAUSE"):
        monkeypatch.setattr(f"orchestrator.conduct.upkeep.{pause}", 1e9)  # it is not tried again
    failed = LeasedBroker.failed

    def seeing(self: LeasedBroker, order: Any, failure: Any) -> None:
        assert failure.kind == "missing"
        (settings.data_root / "blind").unlink()
        failed(self, order, failure)

    monkeypatch.setattr(LeasedBroker, "failed", seeing)
    held.conduct(turns=5)
    found = service.sweeps.get(sweep)
    assert (found.state, found.counts.waiting, found.counts.failed) == ("running", 1, 0)
    assert found.notice is not None
    (attempt,) = service.trials.get(service.store.trials.page(sweep, None, None, None, 9).items[0].id).attempts
    assert (attempt.state, (attempt.reason or "").partition(":")[0]) == ("failed", "DataMissingError")


def test_a_run_says_what_is_missing(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("train", "inspect", "home"):
        monkeypatch.setenv(f"METRICSWEEP_{name.upper()}", str(getattr(settings, name)))
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "spec.yaml"
    file.write_bytes(spec())
    assert main(["run", str(file)]) == 1
    assert not (tmp_path / "mlflow.db").exists(), "no MLflow is named, so none is made here"
    output = capsys.readouterr()
    assert "no node has cub200" in output.err
    assert "| " in output.out, "what could be trained is in the table"


def test_pretrained_weights_are_waited_for(tmp_path: Path, held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.save(resnet18().state_dict(), tmp_path / "state.pth")
    name = f"resnet18-{hashlib.sha256((tmp_path / 'state.pth').read_bytes()).hexdigest()[:8]}.pth"
    file = PublishedWeights(name, "resnet18", (f"http://127.0.0.1:9/{name}",))
    monkeypatch.setattr(published_weights, "FILES", (file,))
    monkeypatch.setitem(vars(ResNet18_Weights.IMAGENET1K_V1.value), "url", file.addresses[0])
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("orchestrator.conduct.waiting.SETTLE_SECONDS", -1.0)
    settings = Settings(home=tmp_path / "real", engine="inline", lease_seconds=5)
    backbone = {"name": "resnet18", "pretrained": True}
    recipe = {"dataset": "digits", "backbone": backbone, "embedding": 4, "iterations": 1, "sampler": "shuffle"}
    body = {**SPEC, "recipe": recipe, "compare": {"loss": ["triplet"]}, "tune": {}, "repeat": {"seed": [0]}}
    body |= {"select": {"split": "last", "metric": "recall@1"}, "slot": {"gpus": 0}}
    service, real = Service.open(settings), Held(settings)
    real.conduct()
    where = f"{name} is missing: looked in {settings.data_root / 'weights'} and {tmp_path / 'cache/hub/checkpoints'}"
    (warning,) = service.submissions.preview(yaml.safe_dump(body).encode()).warnings
    assert warning == (
        f"no node has the weights of resnet18: on {HOST}: {where}; the first training fetches it from "
        "http://127.0.0.1:9, or `metricsweep weights fetch resnet18` before; where it cannot be fetched its trials wait"
    )
    submitted = service.submissions.submit(yaml.safe_dump(body).encode())
    assert submitted.warnings == [warning]
    real.conduct()
    found = service.sweeps.get(submitted.id)
    assert (found.state, found.counts.waiting, found.counts.failed) == ("running", 1, 0)
    assert (found.notice or "").startswith(f"no node has pretrained resnet18: on {HOST}: {where}, and nobody gives it")
    assert service.trials.get(service.store.trials.page(found.id, None, None, None, 9).items[0].id).attempts == []
    (settings.data_root / "weights").mkdir(parents=True)
    (tmp_path / "state.pth").rename(settings.data_root / "weights" / name)
    real.conduct(turns=6)
    found = service.sweeps.get(submitted.id)
    assert (found.state, found.counts.finished, found.notice) == ("finished", 1, None), found.problems
    service.close()
    real.store.close()


def test_damaged_faces_are_found_before_a_training(tmp_path: Path, held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(home=tmp_path / "real", engine="inline", lease_seconds=5)
    faces.of_sec(settings.data_root)
    records = settings.data_root / "faces_webface_112x112/train.rec"
    records.write_bytes(records.read_bytes()[:-30])
    message = "record 36 would begin at byte"
    monkeypatch.setitem(vars(Megaface)["__init__"].__kwdefaults__, "sizes", (10,))
    recipe = {
        "task": "verification",
        "dataset": {"name": "casia_webface", "official": False, "side": 8, "tests": ["megaface"]},
        "backbone": {"name": "small_cnn", "width": 4},
        "embedding": 4,
        "sampler": {"name": "shuffle", "batch": 4},
        "iterations": 1,
    }
    body = {**SPEC, "recipe": recipe, "compare": {"loss": ["softmax"]}, "tune": {}, "repeat": {"seed": [0]}}
    tables = {"main": {"rows": ["loss"], "metrics": ["accuracy"]}}
    body |= {"select": {"split": "last", "metric": "accuracy"}, "slot": {"gpus": 0}, "tables": tables}
    service, real = Service.open(settings), Held(settings)
    sweep = service.submissions.submit(yaml.safe_dump(body).encode()).id
    real.conduct()
    found = service.sweeps.get(sweep)
    assert (found.state, found.counts.waiting) == ("running", 1)
    assert message in (found.notice or "")
    (warning,) = service.submissions.preview(yaml.safe_dump({**body, "name": "again"}).encode()).warnings
    assert message in warning
    assert service.trials.get(service.store.trials.page(sweep, None, None, None, 9).items[0].id).attempts == []
    assert not [path for path in (settings.resolved_home / "storage").rglob("*") if path.is_file()]
    service.close()
    real.store.close()


class Machines:
    """A store and an engine whose data alone matter; an inspection ends when the test lets it."""

    def __init__(self, *needs: Need) -> None:
        self.needs = list(needs)
        self.there = [Node("a", "ann", {}), Node("b", "bob", {})]
        self.looks: list[tuple[str, list[Need]]] = []
        self.found: list[Inspected] = []
        self.noted: list[list[str]] = []
        self.data = self.sweeps = self
        self.going = False

    def requested_needs(self) -> list[tuple[int, Need]]:
        return [(1, need) for need in self.needs]

    def waiting_for(self, sweep: int, key: str) -> bool:
        return True

    def note_findings(self, found: Sequence[Inspected], there: list[str]) -> None:
        self.noted.append(there)

    def active(self) -> bool:
        return self.going

    def machines(self) -> list[Node]:
        return list(self.there)

    def inspect(self, machine: Node, needs: Sequence[Need]) -> None:
        self.looks.append((machine.uid, list(needs)))

    def inspected(self) -> list[Inspected]:
        found, self.found = self.found, []
        return found

    def end(self, root: Path) -> None:
        """Let every look end, each machine with a root of its own."""
        for uid, needs in self.looks:
            node = next((one for one in self.there if one.uid == uid), Node(uid, "", {}))
            findings = trainings.looking(needs, root / uid, root)
            for need, finding in zip(needs, findings, strict=True):
                self.found.append(Inspected(uid, node.host, need, finding, datetime.now(UTC)))
        self.looks.clear()


CUB, SOP = (Need(dataset=Part(name=name)) for name in ("cub200", "sop"))


def test_where_some_have_the_data_only_they_are_given_their_trainings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]
    monkeypatch.setattr("orchestrator.conduct.waiting.time", SimpleNamespace(monotonic=lambda: clock[0]))
    machines = Machines(CUB)
    (tmp_path / "b" / "cub200").mkdir(parents=True)
    one = Availability(machines, machines, machines, [SOP])  # type: ignore[arg-type]
    one.update()
    assert [uid for uid, _ in machines.looks] == ["a", "b"]
    assert (one.missing_needs, one.settled, one.notices) == ({CUB.key}, False, {}), "not known yet, and no notice"
    assert set(one.lacking(CUB.key)) == {"a", "b"}
    machines.end(tmp_path)
    one.update()
    assert (one.missing_needs, one.settled, one.lacking(CUB.key), one.lacking(None)) == (frozenset(), True, ("a",), ())
    machines.there.pop()
    clock[0] += 2
    one.update()
    assert one.missing_needs == {CUB.key}, "the one that had them left"
    assert one.notices[1][0].startswith("no node has cub200: on ann: ")
    assert machines.noted[-1] == ["a"]
    machines.there.clear()
    clock[0] += 2
    one.update()
    assert (one.missing_needs, one.notices) == (frozenset(), {}), "a node that joins may have them"
