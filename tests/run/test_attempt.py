"""An attempt: from which checkpoint it goes on, and what it tells where the storage fails it."""
# ruff: noqa: F811 - fixtures that are imported

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.host.storage import Bucket, opened
from orchestrator.run import workdir
from orchestrator.run.attempt import ADVICE, Workplace, execute, explained, out_of_memory
from orchestrator.run.spool import Message, read
from orchestrator.views.errors import UnavailableError
from orchestrator.views.runs import Order, RequestedEvaluation
from tests.disk_limits import files_of_at_most
from tests.object_store import ObjectStore, bucket_at, bucket_url, object_store, put  # noqa: F401 - fixtures
from tests.run.broker import order
from tests.workers.recipes import recipe
from workers.contract import Progress, Result
from workers.data.scratch import unmade

HASTY = "tests.remote_trainings:hasty"
QUICK = "tests.run.trainings:quick"


@pytest.fixture(autouse=True)
def own_scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return unmade()


@pytest.fixture
def store(object_store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> ObjectStore:
    """An object store; once halted it is given up soon, but not where it answers late on a busy machine."""
    monkeypatch.setattr("orchestrator.host.storage.REQUEST_SECONDS", 3.0)
    monkeypatch.setattr(workdir, "ON_THE_WAY", ())
    return object_store


@pytest.fixture(params=["folder", "bucket"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    found: str = request.getfixturevalue("bucket_url") if request.param == "bucket" else ""
    return found or tmp_path / "storage"


def ran(
    each: Order,
    where: Path | str,
    train: str = HASTY,
    stop: Callable[[], bool] = lambda: False,
    after: Callable[[Message], None] = lambda message: None,
) -> list[Message]:
    """All messages of an attempt."""
    told: list[Message] = []

    def tell(message: Message) -> None:
        told.append(message)
        after(message)

    execute(each, Workplace(train, where, Path("data")), stop, tell)
    return told


def log_of(told: list[Message]) -> str:
    return "".join(message.body.get("log", "") for message in told)


def damage(where: Path | str, folder: str) -> None:
    """Cut the last checkpoint of an attempt in half."""
    whole = opened(where).content(folder, "last.pt")
    put(opened(where), folder, "last.pt", whole[: len(whole) // 2])


def stopped_after(steps: int) -> Callable[[], bool]:
    turns = iter([False] * steps)
    return lambda: next(turns, True)


def test_a_damaged_checkpoint_gives_way_to_an_earlier_attempts(where: Path | str) -> None:
    first = replace(order(), recipe=recipe().model_dump(mode="json"))
    whole = ran(replace(first, training="whole"), where)[-1]
    assert ran(first, where, stop=stopped_after(3))[-1].kind == "stopped"
    second = replace(first, number=2, resume=f"{first.training}/1/last.pt")
    messages = ran(second, where, stop=stopped_after(4))
    assert "training from step 3" in log_of(messages)
    damage(where, f"{first.training}/2")
    third = replace(first, number=3, resume=f"{first.training}/2/last.pt")
    messages = ran(third, where)
    log = log_of(messages)
    assert "is damaged" in log
    assert f"going on from {first.training}/1/last.pt\ntraining from step 3" in log
    assert messages[-1].body["metrics"] == whole.body["metrics"]
    damage(where, f"{first.training}/1")
    fourth = replace(first, number=4, resume=f"{first.training}/3/last.pt")  # the third has finished and has none
    messages = ran(fourth, where)
    assert f"checkpoint {fourth.resume} is gone\n" in log_of(messages)
    assert "starting from the beginning\ntraining from step 0" in log_of(messages)
    assert messages[-1].body["metrics"] == whole.body["metrics"]


def test_messages_of_an_attempt_on_a_full_disk_arrive(tmp_path: Path) -> None:
    each = replace(order(), recipe=recipe().model_dump(mode="json"))
    with files_of_at_most(1000):
        messages = ran(each, tmp_path / "storage")
    assert "no checkpoint at step 1: File too large" in log_of(messages)
    assert messages[-1].kind == "failed"
    assert messages[-1].body["kind"] == "infrastructure"
    assert messages[-1].body["message"].startswith("OSError: [Errno 27] File too large: ")
    assert messages[-1].body["message"].endswith("best.safetensors'")
    assert [message.seq for message in messages] == list(range(1, len(messages) + 1))
    for message in read(opened(tmp_path / "storage"), f"{each.training}/1"):
        assert message == messages[message.seq - 1]


def test_no_folder_no_silence(tmp_path: Path) -> None:
    (tmp_path / "storage").write_text("not a folder")
    (last,) = ran(order(), tmp_path / "storage", QUICK)
    assert last.kind == "failed"


def test_a_store_that_is_away_for_a_while_stops_no_training(
    store: ObjectStore, bucket_url: str, own_scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workdir, "REST", 0)

    def meanwhile(message: Message) -> None:
        if message.seq == 3:
            store.halt()
        if "checkpoint not stored" in message.body.get("log", ""):
            store.go_on()

    each = order(iterations=8)
    messages = ran(each, bucket_url, QUICK, after=meanwhile)
    stored = [message.body["checkpoint"] for message in messages[:-1]]
    assert stored == ["last.pt"] * 3 + [None] + ["last.pt"] * 4
    assert f"step 4\ncheckpoint not stored: {each.training}/1/last.pt in s3://" in messages[3].body["log"]
    assert messages[3].body["log"].endswith("; going on\n")
    assert messages[-1].kind == "finished"
    assert list(read(bucket_at(bucket_url), f"{each.training}/1")) == messages
    assert not list(own_scratch.glob("attempts/*/1"))


def test_a_lost_store_fails_the_machine(store: ObjectStore, bucket_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workdir, "AT_THE_END", (0.1,))
    each = replace(order(), recipe=recipe().model_dump(mode="json"))
    messages = ran(each, bucket_url, after=lambda message: store.halt() if message.seq == 8 else None)
    store.go_on()
    failure: dict[str, Any] = messages[-1].body
    assert (messages[-1].kind, failure["kind"]) == ("failed", "infrastructure")
    assert failure["message"].startswith(f"OSError: {each.training}/1/best.safetensors in s3://")
    assert bucket_at(bucket_url).size(f"{each.training}/1", "last.pt") > 0, "what was stored before stays"
    again = ran(replace(each, number=2, resume=f"{each.training}/1/last.pt"), bucket_url)
    assert again[-1].kind == "finished"
    assert "training from step" in log_of(again)
    assert "training from step 0" not in log_of(again)


def test_an_unwanted_attempt_does_not_wait_for_a_store(store: ObjectStore, bucket_url: str) -> None:
    stop = False

    def halt(message: Message) -> None:
        nonlocal stop
        if message.seq == 3:
            store.halt()
            stop = True

    told = ran(order(iterations=100), bucket_url, QUICK, stop=lambda: stop, after=halt)
    assert (len(told), told[-1].kind) == (4, "stopped")


def test_a_training_that_exits_has_failed(where: Path | str) -> None:
    messages = ran(order("exits"), where, QUICK)
    assert [message.kind for message in messages] == ["progress", "failed"]
    assert (messages[-1].body["kind"], messages[-1].body["message"]) == ("recipe", "SystemExit: no such file")


@pytest.mark.parametrize("who", ["tell", "stop"])
def test_what_our_own_side_raises_is_no_failure_of_the_training(tmp_path: Path, who: str) -> None:
    def away() -> bool:
        raise UnavailableError("the database does not answer")

    each, told = order(), [Message.made(0, "progress", {})]
    with pytest.raises(UnavailableError, match="the database does not answer"):
        execute(
            each,
            Workplace(QUICK, tmp_path, Path("data")),
            away if who == "stop" else lambda: False,
            lambda message: told.append(message) if who == "stop" else away() and None,
        )
    assert all(message.kind == "progress" for message in [*told, *read(opened(tmp_path), f"{each.training}/1")])


def test_only_what_lies_in_its_folder_is_sent(bucket_url: str, own_scratch: Path) -> None:
    each, bucket = order(), bucket_at(bucket_url)
    place = workdir.RemoteWorkDirectory(bucket, each, own_scratch, lambda: False)
    place.open()
    (place.folder / "best.safetensors").write_text("weights")
    (place.folder.parent / "secret").write_text("not theirs")
    (place.folder / "link.npz").symlink_to(place.folder.parent / "secret")
    strays = ["../secret", str(place.folder.parent / "secret"), "link.npz", "gone.npz"]
    place.keep(Result(outcome="ok", steps=1, seconds=0, artifacts=["best.safetensors", *strays]))
    assert bucket.names(f"{each.training}/1") == ["best.safetensors"]
    assert bucket.names(each.training) == []
    said = place.report(Progress(step=1, total=2, checkpoint="../secret")).body
    assert said["checkpoint"] is None
    assert f"[Errno 22] the checkpoint is outside of the attempt's folder {place.folder}: '../secret'" in said["log"]
    place.end("stopped", {})


def test_a_checkpoint_goes_after_the_end(bucket_url: str, own_scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    each, bucket = order(), bucket_at(bucket_url)
    place = workdir.RemoteWorkDirectory(bucket, each, own_scratch, lambda: True)
    place.open()
    (place.folder / "last.pt").write_text("1")
    place.report(Progress(step=1, total=2, checkpoint="last.pt"))

    def refuse(*given: Any) -> None:
        raise OSError("slow down")

    monkeypatch.setattr(Bucket, "write", refuse)
    place.end("finished", {"artifacts": []})
    assert bucket.size(f"{each.training}/1", "last.pt") == 1, "nobody may ever hear of this end"


def test_a_scratch_folder_of_another_fails_the_attempt(where: Path | str, own_scratch: Path, tmp_path: Path) -> None:
    (tmp_path / "prepared").mkdir()
    own_scratch.symlink_to(tmp_path / "prepared")
    (last,) = ran(order(), where, QUICK)
    assert (last.kind, last.body["kind"]) == ("failed", "recipe"), "another attempt would meet it again"
    assert "is a link, so that its owner decides what is read there" in last.body["message"]
    assert list((tmp_path / "prepared").iterdir()) == []


def test_memory_that_ran_out_is_explained_and_other_failures_are_not() -> None:
    gone = [
        "OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
        "RuntimeError: [enforce fail at alloc_cpu.cpp:117] . DefaultCPUAllocator: can't allocate memory: you tried 4",
        "MemoryError: ",
        "slot lost: OutOfMemoryError: Task was killed due to the node running low on memory",
        "RuntimeError: not enough memory: you tried to allocate 8 bytes",
    ]
    others = [
        "ValueError: alpha must be positive",
        "RuntimeError: no room for a boomerang",
        "slot lost: ActorDiedError",
    ]
    assert [one for one in gone if not (out_of_memory(one) and explained(one).endswith(ADVICE))] == []
    assert [one for one in others if out_of_memory(one) or explained(one) != one] == []


def test_a_training_that_runs_out_of_memory_may_be_tried_again(tmp_path: Path) -> None:
    (last,) = ran(order(), tmp_path, f"{__name__}:greedy")
    assert (last.body["kind"], ADVICE in last.body["message"]) == ("infrastructure", True)


def greedy(*given: object) -> None:
    """A training function for which the GPU is too small."""
    raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB")


def test_kept_weights_are_evaluated_in_either_storage(where: Path | str) -> None:
    put(opened(where), "source/1", "best.safetensors", b"0.25")
    asked = [RequestedEvaluation(f"source/1/{name}.safetensors", ("nmi_sec",)) for name in ("best", "gone")]
    good, gone = (ran(replace(order(), evaluation=one), where, QUICK)[-1].body for one in asked)
    other = ran(replace(order(), evaluation=asked[0]), where, HASTY)[-1].body
    assert good["metrics"] == {"best/test/nmi_sec": 0.25}
    assert (gone["kind"], gone["message"]) == (
        "kept_weights",
        "kept weights: the kept weights source/1/gone.safetensors are not in the storage any more",
    )
    assert (other["kind"], f"the module of {HASTY} has no function" in other["message"]) == ("kept_weights", True)


def test_an_attempt_lets_a_store_that_does_not_answer_rest(store: ObjectStore, bucket_url: str) -> None:
    def meanwhile(message: Message) -> None:
        if message.seq == 3:
            store.halt()
        if message.seq == 50:
            store.go_on()

    each = order(iterations=50)
    messages = ran(each, bucket_url, QUICK, after=meanwhile)
    assert log_of(messages).count("checkpoint not stored") == 1, "it is not asked again for the rest of the steps"
    assert [message.body["checkpoint"] for message in messages[:-1]] == ["last.pt"] * 3 + [None] * 47
    assert messages[-1].kind == "finished"
    assert list(read(bucket_at(bucket_url), f"{each.training}/1")) == messages
