"""A bucket whose store is late, forgetful or broken: nothing is lost, and nothing is done twice."""

from collections import deque
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from orchestrator.host.bucket import Bucket
from orchestrator.record.weight_files import WeightFiles
from orchestrator.run.attempt import Workplace
from orchestrator.run.lost_order import settle_from_spool
from orchestrator.run.message import Message
from orchestrator.run.spool import PartedSpool, read
from orchestrator.views.orders import Failure
from tests.lying_store import Lies, lying
from tests.object_store import ObjectStore, bucket_at, bucket_url, object_store  # noqa: F401 - fixtures
from tests.run.broker import MemoryBroker, order
from workers.contract import Result


@pytest.fixture
def lies() -> Lies:
    return Lies()


@pytest.fixture
def url(object_store: ObjectStore, bucket_url: str, lies: Lies) -> Iterator[str]:  # noqa: F811
    """The bucket as the liar shows it."""
    with lying(object_store.port, lies) as port:
        yield bucket_url.replace(f":{object_store.port}", f":{port}")


@pytest.fixture
def bucket(url: str) -> Bucket:
    return bucket_at(url)


def spooled(bucket: Bucket, folder: str, *counts: int) -> list[Message]:
    """A spool of so many parts, of so many messages each."""
    spool, told = PartedSpool(bucket, folder), []
    for count in counts:
        told += [spool.append("progress", {"step": at, "total": 9}) for at in range(count)]
        spool.flush()
    return told


def test_the_truth_passes(bucket: Bucket, tmp_path: Path) -> None:
    (tmp_path / "here").write_bytes(b"x" * 1000)
    bucket.put(tmp_path / "here", "t/1", "last.pt")
    bucket.fetch("t/1/last.pt", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == b"x" * 1000
    assert bucket.entries("t/1") == [("last.pt", 1000)]
    bucket.remove("t")
    assert bucket.names("t/1") == []


def test_what_a_listing_lacks_is_read(bucket: Bucket, lies: Lies) -> None:
    told = spooled(bucket, "t/1", 3, 1, 12, 1)
    for hidden in ((1,), (4,), (17,), (5, 17), (1, 4, 5, 17)):
        lies.hides = lambda key, hidden=hidden: any(f"spool-{first:09d}" in key for first in hidden)
        for seen in (0, 3, 6, 16, 17):
            assert list(read(bucket, "t/1", seen)) == told[seen:], (hidden, seen)


def test_what_a_cut_listing_lacks_is_read(bucket: Bucket, lies: Lies) -> None:
    told = spooled(bucket, "t/1", 1, 2, 3, 4)
    for lies.page in (0, 1, 2):
        assert len(bucket.names("t/1")) == lies.page
        assert list(read(bucket, "t/1")) == told
        assert list(read(bucket, "t/1", 8)) == told[8:]


def test_what_a_listing_still_shows_was_never_said(bucket: Bucket, lies: Lies) -> None:
    lies.remembers = True
    spooled(bucket, "t/1", 2, 2)
    assert len(bucket.names("t/1")) == 2
    bucket.remove("t")
    assert len(bucket.names("t/1")) == 2, "it lies"
    assert [list(read(bucket, "t/1", seen)) for seen in range(5)] == [[]] * 5
    told = spooled(bucket, "t/1", 3)  # a part of the same name, and one that is gone
    assert list(read(bucket, "t/1", 2)) == told[2:]


def test_a_training_that_ended_unheard_ends_once(bucket: Bucket, url: str, lies: Lies, tmp_path: Path) -> None:
    each = order()
    spool = PartedSpool(bucket, f"{each.training}/1")
    spool.append("progress", {"step": 3, "total": 3})
    spool.flush()
    spool.append("finished", Result(outcome="ok", metrics={}, steps=3, seconds=0.1).model_dump(mode="json"))
    spool.flush()
    lies.hides = lambda key: True
    broker = MemoryBroker(deque())
    settle_from_spool(broker, each, Workplace("", url, tmp_path), 0, Failure("infrastructure", "slot is gone"))
    assert (list(broker.results), broker.failures, list(broker.waiting)) == ([each.training], [], [])


def test_weights_that_a_listing_lacks_are_removed(bucket: Bucket, lies: Lies, tmp_path: Path) -> None:
    (tmp_path / "here").write_bytes(b"weights")
    for name in ("best.pt", "last.pt", "odd.ckpt", "norms.npz"):
        bucket.put(tmp_path / "here", "t/1", name)
    lies.hides = lambda key: "best" in key or "last" in key
    files = WeightFiles(bucket)
    found = files.of("t", [1])
    assert found == [("t/1", "best.pt", 7), ("t/1", "last.pt", 7), ("t/1", "odd.ckpt", 7)]
    files.remove(found)
    lies.hides = lambda key: False
    lies.remembers = True
    assert bucket.names("t/1") == ["best.pt", "last.pt", "norms.npz", "odd.ckpt"], "it lies"
    assert files.of("t", [1]) == []
    files.remove(found)
    assert bucket.content("t/1", "norms.npz") == b"weights"


def parts(lies: Lies) -> list[str]:
    return [path for method, path in lies.seen if method == "PUT" and "partNumber=" in path]


CONTENT = np.random.default_rng(0).bytes(25_000_000)  # three parts


class Break:
    """Breaks the first requests of a kind."""

    def __init__(self, method: str, word: str, times: int) -> None:
        self.method, self.word, self.left = method, word, times

    def __call__(self, method: str, path: str) -> bool:
        hit = self.left > 0 and method == self.method and self.word in path
        self.left -= hit
        return hit


def test_an_upload_that_breaks_once_sends_that_part_again(bucket: Bucket, lies: Lies, tmp_path: Path) -> None:
    (tmp_path / "here").write_bytes(CONTENT)
    lies.cuts = Break("PUT", "partNumber=2", 1)
    bucket.put(tmp_path / "here", "t/1", "last.pt")
    sent = ["".join(path.partition("partNumber=")[2][:1]) for path in parts(lies)]
    assert sorted(sent) == ["1", "2", "2", "3"]
    bucket.fetch("t/1/last.pt", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == CONTENT


def test_an_upload_that_breaks_for_good_leaves_the_checkpoint_before(
    bucket: Bucket, lies: Lies, tmp_path: Path
) -> None:
    (tmp_path / "before").write_bytes(b"before")
    bucket.put(tmp_path / "before", "t/1", "last.pt")
    (tmp_path / "here").write_bytes(CONTENT)
    lies.cuts = Break("PUT", "partNumber=2", 99)
    with pytest.raises(OSError, match=r"last\.pt"):
        bucket.put(tmp_path / "here", "t/1", "last.pt")
    lies.cuts = lambda method, path: False
    assert bucket.content("t/1", "last.pt") == b"before"
    bucket.put(tmp_path / "here", "t/1", "last.pt")
    assert bucket.size("t/1", "last.pt") == len(CONTENT)


def test_a_download_that_breaks_is_made_whole_or_is_an_error(bucket: Bucket, lies: Lies, tmp_path: Path) -> None:
    (tmp_path / "here").write_bytes(CONTENT)
    bucket.put(tmp_path / "here", "t/1", "last.pt")
    lies.cuts = Break("GET", "last.pt", 1)  # the client asks for the rest by itself
    bucket.fetch("t/1/last.pt", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == CONTENT
    lies.cuts = Break("GET", "last.pt", 99)
    with pytest.raises(OSError, match=r"last\.pt"):
        bucket.fetch("t/1/last.pt", tmp_path / "back")
    lies.cuts = lambda method, path: False
    bucket.fetch("t/1/last.pt", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == CONTENT
