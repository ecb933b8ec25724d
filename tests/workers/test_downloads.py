"""Published weights: found by their hash, fetched whole or not at all, and used where `pretrained: true` asks."""

import hashlib
import http.server
import io
import os
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torchvision.models import get_model_weights

from workers.__main__ import main
from workers.backbones._torchvision import PUBLISHED
from workers.contract import DataDamagedError, DataMissingError
from workers.data import published_weights, weights
from workers.data.download import Archive, Checksum, DownloadError, download, fetch
from workers.data.published_weights import PublishedWeights

CONTENT = bytes(range(256)) * 40
DIGEST = hashlib.sha256(CONTENT).hexdigest()
SUM = Checksum("sha256", DIGEST[:8])


class Server:
    """Serves CONTENT at /file and whatever else is added, or as much of it as `cut` says; notes what is asked for."""

    def __init__(self) -> None:
        self.cut, self.ranges, self.asked = len(CONTENT), True, list[tuple[str, str]]()
        self.files = {"/file": CONTENT}
        served = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                pass

            def do_GET(self) -> None:
                given = self.headers.get("Range", "")
                served.asked.append((self.path, given))
                content = served.files.get(self.path.partition("?")[0])
                if content is None:
                    self.send_error(404)
                    return
                start = int(given[6:-1]) if given and served.ranges else 0
                if start >= len(content):
                    self.send_error(416)
                    return
                self.send_response(206 if start else 200)
                self.send_header("Content-Length", str(len(content) - start))
                self.end_headers()
                self.wfile.write(content[start : served.cut])

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.server.shutdown()
    made.server.server_close()


class TestDownloads:
    def test_a_broken_connection_goes_on_where_it_ended(self, server: Server, tmp_path: Path) -> None:
        path = tmp_path / "weights" / "net.pth"
        server.cut = 5_000
        with pytest.raises(DownloadError, match=r"/file: the connection ended after 5,000 of 10,240 bytes; try again"):
            download([f"{server.address}/file"], path, SUM)
        assert not path.exists(), "half a file never has the name"
        server.cut = len(CONTENT)
        download([f"{server.address}/file"], path, SUM)
        assert path.read_bytes() == CONTENT
        assert server.asked[-1] == ("/file", "bytes=5000-")
        assert not path.with_name(".net.pth.part").exists()

    def test_a_server_that_knows_no_rest_gives_all(self, server: Server, tmp_path: Path) -> None:
        path = tmp_path / "net.pth"
        server.ranges = False
        path.with_name(".net.pth.part").write_bytes(CONTENT[:100])
        download([f"{server.address}/file"], path, SUM)
        assert path.read_bytes() == CONTENT

    def test_what_was_left_of_another_file_is_thrown_away(self, server: Server, tmp_path: Path) -> None:
        for number, left in enumerate((b"of another file", CONTENT + b"more")):
            path = tmp_path / f"{number}.pth"
            path.with_name(f".{number}.pth.part").write_bytes(left)
            download([f"{server.address}/file"], path, SUM)
            assert path.read_bytes() == CONTENT

    def test_another_file_is_no_file(self, server: Server, tmp_path: Path) -> None:
        path = tmp_path / "net.pth"
        with pytest.raises(
            DataDamagedError, match=f"/file: the file has the SHA-256 {DIGEST}, expected beginning with 00"
        ):
            download([f"{server.address}/file"], path, Checksum("sha256", "00"))
        assert [one.name for one in tmp_path.iterdir()] == [".net.pth.lock"]

    def test_every_mirror_is_asked(self, server: Server, tmp_path: Path) -> None:
        path, away = tmp_path / "net.pth", [f"{server.address}/gone", "http://127.0.0.1:9/file"]
        with pytest.raises(DownloadError, match=r"/gone: .*Not Found.*; http://127.0.0.1:9/file: .*refused"):
            download(away, path, SUM)
        download([*away, f"{server.address}/file"], path, SUM)
        assert path.read_bytes() == CONTENT


def test_the_table_is_torchvisions() -> None:
    for file in published_weights.FILES:
        if file.backbone == "bn_inception":
            continue
        assert file.addresses == (get_model_weights(file.backbone)[PUBLISHED].url,)
        assert file.name == file.addresses[0].rpartition("/")[2]
        assert len(file.checksum.digest) == 8


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> PublishedWeights:
    """A published ResNet-18 of this test, which lies in the data root; the network is away, the cache empty."""
    (tmp_path / "data" / "weights").mkdir(parents=True)
    torch.save({"weight": torch.ones(300_000)}, tmp_path / "state.pth")
    digest = hashlib.sha256((tmp_path / "state.pth").read_bytes()).hexdigest()
    name = f"resnet18-{digest[:8]}.pth"
    (tmp_path / "state.pth").rename(tmp_path / "data" / "weights" / name)
    file = PublishedWeights(name, "resnet18", ("http://127.0.0.1:9/nobody",))
    monkeypatch.setattr(published_weights, "FILES", (file,))
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "cache"))
    return file


def commanded(capsys: Any, *arguments: str) -> tuple[int, str]:
    code = main(["weights", *arguments])
    said = capsys.readouterr()
    return code, said.out + said.err


class TestCommands:
    def test_what_is_here_is_listed_and_verified(self, own: PublishedWeights, tmp_path: Path, capsys: Any) -> None:
        data = ["--data", str(tmp_path / "data")]
        path = tmp_path / "data" / "weights" / own.name
        assert commanded(capsys, "list", *data) == (0, f"ok       resnet18       {own.name}\nin {path.parent}\n")
        assert commanded(capsys, "verify", *data) == (0, f"ok       {path}\n1 files as their names promise\n")
        path.write_bytes(path.read_bytes()[:-9])
        assert commanded(capsys, "list", *data)[1].startswith("wrong    resnet18")
        code, said = commanded(capsys, "verify", "resnet18", *data)
        assert (code, said.splitlines()[1].startswith(f"error: {path} has SHA-256")) == (1, True)
        path.unlink()
        code, said = commanded(capsys, "verify", "resnet18", *data)
        assert (code, "not there: " + own.name in said) == (1, True)
        assert commanded(capsys, "verify", *data) == (0, f"no published file is in {tmp_path / 'data'}\n")
        code, said = commanded(capsys, "fetch", "resnet19", *data)
        assert (code, said) == (1, f"error: no file of weights is named 'resnet19'; there are resnet18 ({own.name})\n")

    def test_a_mirror_is_asked_first(
        self, own: PublishedWeights, server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any
    ) -> None:
        file = PublishedWeights(f"net-{DIGEST[:8]}.pth", "net", (f"{server.address}/file",))
        monkeypatch.setattr(published_weights, "FILES", (file,))
        code, said = commanded(
            capsys, "fetch", "net", "--mirror", f"{server.address}/ours/", "--data", str(tmp_path / "data")
        )
        path = tmp_path / "data" / "weights" / file.name
        assert (code, said.splitlines()[0], path.read_bytes()) == (0, str(path), CONTENT)
        assert [one for one, _ in server.asked] == [f"/ours/{file.name}", "/file"]


def test_pretrained_weights_come_from_the_data_folder(own: PublishedWeights, tmp_path: Path) -> None:
    root, cache = tmp_path / "data", tmp_path / "cache" / "hub" / "checkpoints" / own.name
    path = root / "weights" / own.name
    weights.into_cache(root, "resnet18")
    assert cache.read_bytes() == path.read_bytes()
    cache.write_bytes(b"half a file")
    weights.into_cache(root, "resnet18")
    assert cache.read_bytes() == path.read_bytes(), "what is damaged in the cache is replaced"
    cache.unlink()
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(weights.WeightsDamagedError, match=r"pretrained: .* has SHA-256 .*fetch it again"):
        weights.from_hub("weights", lambda: weights.into_cache(root, "resnet18"), "resnet18")
    path.unlink()
    with pytest.raises(
        weights.WeightsMissingError, match=f"put {own.name} into weights/ of the data folder, or put a file"
    ):
        weights.from_hub("weights", lambda: weights.into_cache(root, "resnet18"), "resnet18")


def test_safetensors_are_read_and_a_damaged_one_is_told(tmp_path: Path) -> None:
    save_file({"layer.weight": torch.ones(3)}, tmp_path / "net.safetensors")
    assert weights.read(tmp_path, "net.safetensors").state["layer.weight"].tolist() == [1, 1, 1]
    whole = (tmp_path / "net.safetensors").read_bytes()
    for content in (whole[:-4], b"", b"no such thing"):
        (tmp_path / "net.safetensors").write_bytes(content)
        with pytest.raises(weights.WeightsError, match=r"net.safetensors cannot be read; fetch the file again"):
            weights.read(tmp_path, "net.safetensors")


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


def archive(server: Server, name: str, content: bytes, into: str = ".") -> Archive:
    server.files[f"/{name}"] = content
    return Archive(f"{server.address}/{name}?download=1", hashlib.md5(content).hexdigest(), into)


@pytest.mark.usefixtures("any_python")
def test_archives_and_files(server: Server, tmp_path: Path) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as zipped:
        zipped.writestr("shop/list.txt", "shoe\n")
    sources = {
        "mine": (
            archive(server, "birds.tgz", tar("birds/images.txt")),
            archive(server, "shop.zip", packed.getvalue()),
            archive(server, "digits.gz", b"as it is", "raw"),
        )
    }
    data = tmp_path / "data"
    fetch("mine", data, sources)
    assert (data / "birds/images.txt").read_text() == "bird\n"
    assert (data / "shop/list.txt").read_text() == "shoe\n"
    assert (data / "raw/digits.gz").read_bytes() == b"as it is"
    del server.files["/birds.tgz"]
    fetch("mine", data, sources)  # what has the right checksum is not fetched again


def test_another_checksum(server: Server, tmp_path: Path) -> None:
    wrong = Archive(archive(server, "birds.tgz", tar("a")).url, "0" * 32)
    with pytest.raises(DataDamagedError, match=f"has the MD5 .*, expected {'0' * 32}"):
        fetch("mine", tmp_path / "data", {"mine": (wrong,)})
    assert [one.name for one in (tmp_path / "data").iterdir()] == [".birds.tgz.lock"]


@pytest.mark.usefixtures("any_python")
@pytest.mark.parametrize("leads", ["up", "through a link", "from the root"])
def test_nothing_is_written_outside(server: Server, tmp_path: Path, leads: str) -> None:
    packed, name = io.BytesIO(), {"up": "../outside.txt", "through a link": "link/outside.txt"}.get(leads)
    with tarfile.open(fileobj=packed, mode="w:gz") as made:
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, str(tmp_path)
        if leads == "through a link":
            made.addfile(link)
        entry = tarfile.TarInfo(name or str(tmp_path / "outside.txt"))
        entry.size = 5
        made.addfile(entry, io.BytesIO(b"bird\n"))
    source = archive(server, "birds.tgz", packed.getvalue())
    # Python's filter takes a leading / off, and so writes inside.
    taken = leads == "from the root" and hasattr(tarfile, "data_filter")
    with nullcontext() if taken else pytest.raises(DataDamagedError, match="cannot be unpacked"):
        fetch("mine", tmp_path / "data", {"mine": (source,)})
    assert not (tmp_path / "outside.txt").exists()


@pytest.mark.usefixtures("any_python")
def test_what_is_unpacked_is_ours_and_runs_nothing(server: Server, tmp_path: Path) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as made:
        entry = tarfile.TarInfo("birds.txt")
        entry.size, entry.mode, entry.uid, entry.uname = 5, 0o6777, 12_345, "daemon"
        made.addfile(entry, io.BytesIO(b"bird\n"))
    fetch("mine", tmp_path / "data", {"mine": (archive(server, "birds.tgz", packed.getvalue()),)})
    found = (tmp_path / "data/birds.txt").stat()
    assert found.st_uid == os.geteuid()
    assert not found.st_mode & 0o6022


def test_what_cannot_be_fetched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("cars196", "inshop", "nothing"):
        with pytest.raises(DataMissingError, match=f"{name} cannot be fetched: "):
            fetch(name, tmp_path)
    assert main(["data", "fetch", "inshop", "--data", str(tmp_path)]) == 1
    assert "accept their agreement" in capsys.readouterr().err
