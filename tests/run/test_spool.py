"""The spool: no message is lost while the process lives, and a reader sees no gap."""
# ruff: noqa: F811 - fixtures that are imported

from pathlib import Path

import pytest

from orchestrator.host.storage import Folder
from orchestrator.run.spool import FileSpool, Message, PartedSpool, read
from tests.disk_limits import files_of_at_most
from tests.object_store import ObjectStore, bucket_at, bucket_url, object_store  # noqa: F401 - fixtures


def said(spool: FileSpool | PartedSpool, *lines: str) -> list[Message]:
    return [spool.append("progress", {"log": line}) for line in lines]


def test_messages_are_on_disk_at_once(tmp_path: Path) -> None:
    spool = FileSpool(tmp_path / "t" / "1")
    messages = said(spool, "one", "two\n\u2028two", "three")
    assert list(read(Folder(tmp_path), "t/1")) == messages
    assert list(read(Folder(tmp_path), "t/1", 2)) == messages[2:]
    spool.close()
    assert list(read(Folder(tmp_path), "t/2")) == []


def test_a_full_disk_loses_nothing_and_leaves_no_half_line(tmp_path: Path) -> None:
    spool, place, file = FileSpool(tmp_path / "1"), Folder(tmp_path), tmp_path / "1" / "spool.jsonl"
    told = said(spool, "one")
    with files_of_at_most(file.stat().st_size + 20):
        told += said(spool, "two", "three")
        assert [message.seq for message in told] == [1, 2, 3], "who listens hears them"
        assert list(read(place, "1")) == told[:1]
        assert file.read_bytes().endswith(b"}\n"), "the half line is cut off again"
    with files_of_at_most(2 * file.stat().st_size + 20):
        told += said(spool, "four")
        assert list(read(place, "1")) == told[:2], "as many as there is room for"
    told += said(spool, "five")
    assert list(read(place, "1")) == told
    spool.close()


def test_a_folder_that_cannot_be_made_silences_nobody(tmp_path: Path) -> None:
    (tmp_path / "t").touch()
    spool = FileSpool(tmp_path / "t" / "1")
    told = said(spool, "one", "two")
    assert [message.seq for message in told] == [1, 2]
    (tmp_path / "t").unlink()
    told += said(spool, "three")
    assert list(read(Folder(tmp_path), "t/1")) == told
    spool.close()


def test_a_line_that_was_cut_ends_what_is_read(tmp_path: Path) -> None:
    spool = FileSpool(tmp_path / "1")
    messages = said(spool, "one", "two", "three")
    spool.close()
    file = tmp_path / "1" / "spool.jsonl"
    lines = file.read_text().splitlines(keepends=True)
    file.write_text(lines[0] + lines[1][:20] + "\n" + lines[2])
    assert list(read(Folder(tmp_path), "1")) == messages[:1], "what follows a gap may contradict what is missing"
    file.write_bytes(b"\xff\x00\n" + lines[2].encode())
    assert list(read(Folder(tmp_path), "1")) == []


def test_half_a_letter_ends_no_reading(tmp_path: Path) -> None:
    """Else a lost training that had logged such a line would count as silent from there on, its end included."""
    spool = FileSpool(tmp_path / "1")
    messages = said(spool, "half a letter: \ud800", "whole")
    spool.close()
    assert [one.body["log"] for one in read(Folder(tmp_path), "1")] == ["half a letter: \ud800", "whole"]
    assert list(read(Folder(tmp_path), "1")) == messages


def test_a_bucket_has_the_spool_in_parts(bucket_url: str) -> None:
    bucket = bucket_at(bucket_url)
    spool = PartedSpool(bucket, "t/1")
    assert list(read(bucket, "t/1")) == []
    told: list[Message] = []
    for count in (3, 1, 12, 1):
        told += said(spool, *(f"line {number}" for number in range(count)))
        spool.flush()
        spool.flush()
    assert bucket.names("t/1") == [f"spool-{first:09d}.jsonl" for first in (1, 4, 5, 17)]
    for seen in range(len(told) + 2):
        assert list(read(bucket, "t/1", seen)) == told[seen:]


def test_what_failed_is_sent_later(object_store: ObjectStore, bucket_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.host.storage.REQUEST_SECONDS", 3.0)
    bucket = bucket_at(bucket_url)
    spool = PartedSpool(bucket, "t/1")
    told = said(spool, "one")
    spool.flush()
    object_store.halt()
    told += said(spool, "two")
    with pytest.raises(OSError, match=r"t/1/spool-000000002.jsonl in s3://bucket-\w+/metricsweep: .*imeout"):
        spool.flush()
    object_store.go_on()
    told += said(spool, "three")
    spool.flush()
    assert list(read(bucket, "t/1")) == told
