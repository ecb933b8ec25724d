"""Weights and data sets: fetched whole or not at all, found by their hash, and read without running code."""

import hashlib
import http.server
import io
import os
import pickle
import tarfile
import zipfile
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import nullcontext
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import nn
from torchvision.models import get_model_weights

from tests.ports import Quiet, running
from workers.__main__ import main
from workers.backbones._shared import PUBLISHED
from workers.contract import DataDamagedError, DataMissingError
from workers.data import published_weights, weights
from workers.data.download import Archive, Checksum, DownloadError, download, fetch
from workers.data.published_weights import PublishedWeights
from workers.data.weights import WeightsError

CONTENT = bytes(range(256)) * 40
DIGEST = hashlib.sha256(CONTENT).hexdigest()
SUM = Checksum("sha256", DIGEST[:8])


class Server:
    """Serves CONTENT at /file and whatever else is added, or as much of it as `cut` says; records the requests."""

    def __init__(self) -> None:
        self.cut, self.ranges, self.asked = len(CONTENT), True, list[tuple[str, str]]()
        self.files = {"/file": CONTENT}
        served = self

        class Handler(Quiet, http.server.BaseHTTPRequestHandler):
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


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    with running(made.server):
        yield made


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

    def test_every_mirror_is_tried(self, server: Server, tmp_path: Path) -> None:
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
    output = capsys.readouterr()
    return code, output.out + output.err


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
        assert (code, "missing weights: " + own.name in said) == (1, True)
        assert commanded(capsys, "verify", *data) == (0, f"no published file is in {tmp_path / 'data'}\n")
        code, said = commanded(capsys, "fetch", "resnet19", *data)
        assert (code, said) == (1, f"error: no file of weights is named 'resnet19'; there are resnet18 ({own.name})\n")

    def test_a_mirror_is_tried_first(
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


def test_safetensors_are_read_and_a_damaged_file_is_reported(tmp_path: Path) -> None:
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


def net() -> nn.Module:
    return nn.Sequential(OrderedDict(conv=nn.Conv2d(3, 4, 3), norm=nn.BatchNorm2d(4)))


def state() -> dict[str, torch.Tensor]:
    return {name: torch.rand_like(value.float()) for name, value in net().state_dict().items()}


def saved(folder: Path, content: Any, name: str = "net.pth") -> str:
    torch.save(content, folder / name)
    return name


def filled(folder: Path, content: Any) -> nn.Module:
    target = net()
    weights.fill(target, weights.read(folder, saved(folder, content)).state, "net.pth", unused=("fc.",))
    return target


@pytest.mark.parametrize(
    "wrap",
    [
        lambda given: given,
        lambda given: {"state_dict": given, "meta": {"padding": "tf_same"}},
        lambda given: {"epoch": 3, "model": {f"module.{name}": value for name, value in given.items()}},
        lambda given: OrderedDict([*given.items(), ("fc.weight", torch.zeros(2, 4))]),
    ],
    ids=["bare", "state_dict", "DataParallel", "classifier"],
)
def test_the_usual_forms_of_a_file_are_read(tmp_path: Path, wrap: Any) -> None:
    given = state()
    target = filled(tmp_path, wrap(given))
    for name, value in target.state_dict().items():
        assert torch.equal(value, given[name].to(value.dtype))


def test_a_file_says_where_it_comes_from_and_what_it_is(tmp_path: Path) -> None:
    name = saved(tmp_path, {"state_dict": state(), "meta": {"padding": "tf_same"}})
    read = weights.read(tmp_path, name)
    assert (read.meta, read.origin) == (
        {"padding": "tf_same"}, f"sha256:{sha256((tmp_path / name).read_bytes()).hexdigest()}",
    )  # fmt: skip


def test_batch_norms_of_before_pytorch_0_4_are_understood(tmp_path: Path) -> None:
    given = {name: value for name, value in state().items() if not name.endswith("num_batches_tracked")}
    old = {name: value[None] if name.startswith("norm.") else value for name, value in given.items()}
    torch.save(old, tmp_path / "old.pth", _use_new_zipfile_serialization=False, pickle_protocol=2)
    target = net()
    weights.fill(target, weights.read(tmp_path, "old.pth").state, "old.pth")
    assert torch.equal(target.state_dict()["norm.running_var"], given["norm.running_var"])


def test_all_names_that_do_not_fit_are_reported_at_once(tmp_path: Path) -> None:
    given = state()
    del given["conv.bias"]
    given["norm.weight"] = torch.zeros(5)
    given["stem.weight"] = torch.zeros(1)
    with pytest.raises(WeightsError) as caught:
        filled(tmp_path, given)
    assert str(caught.value) == (
        "weights net.pth do not fit Sequential: 1 missing: conv.bias; 1 unknown: stem.weight; "
        "1 of another shape: norm.weight [5], expected [4]"
    )


def test_a_network_that_does_not_fit_is_left_alone(tmp_path: Path) -> None:
    target = net()
    before = {name: value.clone() for name, value in target.state_dict().items()}
    with pytest.raises(WeightsError):
        weights.fill(target, {**state(), "strange": torch.zeros(1)}, "net.pth")
    assert all(torch.equal(value, before[name]) for name, value in target.state_dict().items())


class TestRefused:
    def test_missing_or_outside_the_data_root(self, tmp_path: Path) -> None:
        with pytest.raises(WeightsError, match=r"'a/b.pth' are missing: .*METRICSWEEP_DATA"):
            weights.read(tmp_path, "a/b.pth")
        for path in ("../net.pth", "/etc/passwd", "a/../../net.pth"):
            with pytest.raises(WeightsError, match="relative to the data folder, and within it"):
                weights.read(tmp_path / "data", path)

    def test_truncated(self, tmp_path: Path) -> None:
        path = tmp_path / saved(tmp_path, state())
        path.write_bytes(path.read_bytes()[:-200])
        with pytest.raises(
            WeightsError, match=r"net.pth (cannot be read; fetch|hold more than tensors, or are damaged)"
        ):
            weights.read(tmp_path, "net.pth")
        for content in (b"", b"<html>404</html>"):
            path.write_bytes(content)
            with pytest.raises(WeightsError, match=r"net.pth "):
                weights.read(tmp_path, "net.pth")

    def test_code(self, tmp_path: Path) -> None:
        class Trap:
            def __reduce__(self) -> tuple[Any, tuple[str]]:
                return (Path.touch, (tmp_path / "sprung",))  # type: ignore[return-value]

        (tmp_path / "net.pth").write_bytes(pickle.dumps({"weight": Trap()}))
        with pytest.raises(WeightsError, match="hold more than tensors"):
            weights.read(tmp_path, "net.pth")
        assert not (tmp_path / "sprung").exists()

    def test_no_named_tensors(self, tmp_path: Path) -> None:
        for content in ([1, 2], {}, {"epoch": 3}, torch.zeros(3)):
            with pytest.raises(WeightsError, match=r"no named tensors|is not a tensor"):
                weights.read(tmp_path, saved(tmp_path, content))

    def test_a_hash_that_differs_from_the_known_one(self, tmp_path: Path) -> None:
        name = saved(tmp_path, state())
        found = sha256((tmp_path / name).read_bytes()).hexdigest()
        with pytest.raises(WeightsError, match=f"have SHA-256 {found}, expected 00ff; fetch the file again"):
            weights.read(tmp_path, name, {name: "00ff"})
        assert weights.read(tmp_path, name, {name: found, "other.pth": "00ff"}).state

    def test_a_hash_that_differs_from_the_one_in_the_name(self, tmp_path: Path) -> None:
        name = saved(tmp_path, state())
        found = sha256((tmp_path / name).read_bytes()).hexdigest()
        (tmp_path / name).rename(tmp_path / f"net-{found[:9]}.pth")
        assert weights.read(tmp_path, f"net-{found[:9]}.pth").state
        (tmp_path / f"net-{found[:9]}.pth").rename(tmp_path / "net-0676ba61.pth")
        with pytest.raises(WeightsError, match="expected 0676ba61"):
            weights.read(tmp_path, "net-0676ba61.pth")
