"""Files of pretrained weights: found under the data root, checked, read without running code, and fitted by name."""

import pickle
from collections import OrderedDict
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from workers.data import weights
from workers.data.weights import WeightsError


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


def test_every_name_that_does_not_fit_is_told_at_once(tmp_path: Path) -> None:
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
            with pytest.raises(WeightsError, match=r"no named tensors|is no tensor"):
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


def test_a_hub_out_of_reach_says_what_to_do() -> None:
    def fetch() -> None:
        raise ConnectionError("no route\nto host")

    with pytest.raises(WeightsError) as caught:
        weights.from_hub("the weights of X", fetch)
    assert str(caught.value) == (
        "pretrained: the weights of X could not be fetched, and are not in this machine's cache "
        "(ConnectionError: no route). Without a network, put a file of weights under the data folder and write "
        "`weights: <its path>` instead"
    )
