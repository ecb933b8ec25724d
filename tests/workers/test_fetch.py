"""Fetching a data set: from a server of this test, since no test reaches a network."""

import hashlib
import io
import os
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from workers.__main__ import main
from workers.contract import DataDamagedError, DataMissingError
from workers.data.download import Archive, fetch


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    folder = tmp_path / "served"
    folder.mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield folder, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def tar(*names: str) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        for name in names:
            entry = tarfile.TarInfo(name)
            entry.size = 5
            archive.addfile(entry, io.BytesIO(b"bird\n"))
    return content.getvalue()


@pytest.fixture(params=["of today", "before 3.11.4"])
def any_python(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python's filter of what an archive may write came with a patch: Debian 12 has 3.11.2."""
    if request.param != "of today":
        monkeypatch.delattr(tarfile, "data_filter", raising=False)


def archive(served: tuple[Path, str], name: str, content: bytes, into: str = ".") -> Archive:
    folder, address = served
    (folder / name).write_bytes(content)
    return Archive(f"{address}/{name}?download=1", hashlib.md5(content).hexdigest(), into)


@pytest.mark.usefixtures("any_python")
def test_archives_and_files(served: tuple[Path, str], tmp_path: Path) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as zipped:
        zipped.writestr("shop/list.txt", "shoe\n")
    sources = {
        "mine": (
            archive(served, "birds.tgz", tar("birds/images.txt")),
            archive(served, "shop.zip", packed.getvalue()),
            archive(served, "digits.gz", b"as it is", "raw"),
        )
    }
    data = tmp_path / "data"
    fetch("mine", data, sources)
    assert (data / "birds/images.txt").read_text() == "bird\n"
    assert (data / "shop/list.txt").read_text() == "shoe\n"
    assert (data / "raw/digits.gz").read_bytes() == b"as it is"
    (served[0] / "birds.tgz").unlink()
    fetch("mine", data, sources)  # what has the right checksum is not fetched again


def test_another_checksum(served: tuple[Path, str], tmp_path: Path) -> None:
    wrong = Archive(archive(served, "birds.tgz", tar("a")).url, "0" * 32)
    with pytest.raises(DataDamagedError, match=f"has the MD5 .*, expected {'0' * 32}"):
        fetch("mine", tmp_path / "data", {"mine": (wrong,)})
    assert [one.name for one in (tmp_path / "data").iterdir()] == [".birds.tgz.lock"]


@pytest.mark.usefixtures("any_python")
@pytest.mark.parametrize("leads", ["up", "through a link", "from the root"])
def test_nothing_is_written_outside(served: tuple[Path, str], tmp_path: Path, leads: str) -> None:
    packed, name = io.BytesIO(), {"up": "../outside.txt", "through a link": "link/outside.txt"}.get(leads)
    with tarfile.open(fileobj=packed, mode="w:gz") as made:
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, str(tmp_path)
        if leads == "through a link":
            made.addfile(link)
        entry = tarfile.TarInfo(name or str(tmp_path / "outside.txt"))
        entry.size = 5
        made.addfile(entry, io.BytesIO(b"bird\n"))
    source = archive(served, "birds.tgz", packed.getvalue())
    # Python's filter takes a leading / off, and so writes inside.
    taken = leads == "from the root" and hasattr(tarfile, "data_filter")
    with nullcontext() if taken else pytest.raises(DataDamagedError, match="cannot be unpacked"):
        fetch("mine", tmp_path / "data", {"mine": (source,)})
    assert not (tmp_path / "outside.txt").exists()


@pytest.mark.usefixtures("any_python")
def test_what_is_unpacked_is_ours_and_runs_nothing(served: tuple[Path, str], tmp_path: Path) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as made:
        entry = tarfile.TarInfo("birds.txt")
        entry.size, entry.mode, entry.uid, entry.uname = 5, 0o6777, 12_345, "daemon"
        made.addfile(entry, io.BytesIO(b"bird\n"))
    fetch("mine", tmp_path / "data", {"mine": (archive(served, "birds.tgz", packed.getvalue()),)})
    found = (tmp_path / "data/birds.txt").stat()
    assert found.st_uid == os.geteuid()
    assert not found.st_mode & 0o6022


def test_what_cannot_be_fetched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("cars196", "inshop", "nothing"):
        with pytest.raises(DataMissingError, match=f"{name} cannot be fetched: "):
            fetch(name, tmp_path)
    assert main(["data", "fetch", "inshop", "--data", str(tmp_path)]) == 1
    assert "accept their agreement" in capsys.readouterr().err
