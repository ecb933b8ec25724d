"""What a training needs of a data root, and what an inspection finds there."""

import hashlib
from pathlib import Path

import numpy as np
import pytest

from tests.workers import trees
from workers.catalog import Finding, Need, load, need_of, usual_needs
from workers.contract import Part
from workers.data import images, inspection, published_weights
from workers.data.download import BY_HAND, SOURCES
from workers.data.inspection import inspect
from workers.data.published_weights import PublishedWeights

CATALOG = load()


def need(name: str, **options: object) -> Need:
    found = need_of(part(name, **options), Part(name="mlp"), CATALOG)
    assert found is not None
    return found


def finding(one: Need, root: Path) -> Finding:
    """What is found, without the content and the counts."""
    (found,) = inspect([one], root, root / "scratch")
    return found.model_copy(update={"content": {}, "counts": {}})


def part(name: str, **options: object) -> Part:
    return Part.model_validate({"name": name, **options})


def test_what_a_training_needs(tmp_path: Path) -> None:
    digits, resnet = part("digits"), part("resnet50", weights="r.pth")
    assert need_of(digits, part("mlp"), CATALOG) is None
    assert need_of(digits, part("resnet50", pretrained=False), CATALOG) is None
    assert need("cub200", side=128, resize="square") == need("cub200"), "however images are decoded"
    assert need("cub200", official=False) != need("cub200")
    assert need("cub200").key == need("cub200", official=True).key == "019a8925dfd633df"
    (tmp_path / "datasets").mkdir()
    (tmp_path / "datasets" / "mine.py").write_text("class Mine:\n    def __init__(self, root): ...\n")
    assert need_of(part("mine"), part("mlp"), load(tmp_path)) is None, "own parts are not looked into"
    timm = part("timm_model", architecture="resnet18", pretrained=True, pool="avg")
    for dataset, backbone, said in (
        (part("cub200", side=64), part("mlp"), "cub200"),
        (part("packed", file="birds.npz"), part("mlp"), "packed file=birds.npz"),
        (part("cub200", official=False), resnet, "cub200 official=false with weights r.pth"),
        (digits, resnet, "weights r.pth"),
        (part("sop"), part("resnet50", pretrained=True), "sop with pretrained resnet50"),
        (digits, timm, "pretrained timm_model architecture=resnet18"),
        (digits, part("resnet50", pretrained=True, pool="max"), "pretrained resnet50"),
    ):
        assert str(need_of(dataset, backbone, CATALOG)) == said


def test_an_empty_root_lacks_every_data_set_and_the_finding_names_the_root(tmp_path: Path) -> None:
    for one in (one for one in usual_needs(CATALOG) if one.dataset):
        found = finding(one, tmp_path)
        assert found.state == "missing", one
        assert str(tmp_path) in found.said
        assert "METRICSWEEP_DATA" in found.said
        assert one.dataset is not None
        assert ("data fetch" in found.said) == (one.dataset.name in SOURCES)
        assert one.dataset.name in SOURCES or BY_HAND[one.dataset.name] in found.said


def test_a_data_set_with_other_counts_is_wrong_unless_a_part_of_it_is_meant(tmp_path: Path) -> None:
    trees.cub(tmp_path)
    found = finding(need("cub200"), tmp_path)
    assert found.state == "wrong"
    assert "train has 9 images, expected 5,864" in found.said
    assert finding(need("cub200", official=False), tmp_path) == Finding()


def test_nothing_is_decoded_and_a_hash_is_compared_once_it_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trees.cub(tmp_path)
    other = need("cub200", official=False, content="sha256:" + 64 * "0")
    assert finding(other, tmp_path) == Finding(), "nobody has decoded it yet"
    assert not [path for path in (tmp_path / "scratch" / "decoded").rglob("*") if path.is_file()]
    whole = images.load(part("cub200", official=False), tmp_path, tmp_path / "scratch")
    monkeypatch.setattr("workers.data.decoded.digest", None)  # as much as photographs are is not hashed anew
    found = finding(other, tmp_path)
    assert (found.state, "expected sha256:0000" in found.said) == ("wrong", True)
    right = need("cub200", official=False, content=images.content_hash(whole))
    assert finding(right, tmp_path) == Finding()


def test_a_pack_with_other_content_is_wrong(tmp_path: Path) -> None:
    image = np.arange(4 * 64, dtype=np.uint8).reshape(4, 8, 8)
    np.savez(tmp_path / "birds.npz", image=image, label=np.array([0, 0, 1, 1]))
    assert finding(need("packed", file="birds.npz"), tmp_path) == Finding()
    found = finding(need("packed", file="birds.npz", content="sha256:" + 64 * "0"), tmp_path)
    assert (found.state, "expected sha256:0000" in found.said) == ("wrong", True)
    planned = need("packed", file="birds.npz").model_copy(update={"content": {"data": "sha256:" + 64 * "0"}})
    found = finding(planned, tmp_path)
    assert (found.state, "expected sha256:00000000)" in found.said) == ("wrong", True), found.said
    np.savez(tmp_path / "omniglot28.npz", image=np.zeros((4, 28, 28), np.uint8), label=np.arange(4), split=np.eye(4)[0])
    assert finding(need("omniglot"), tmp_path).state == "wrong"


def test_what_is_wrong_with_a_recipe_is_left_to_the_training(tmp_path: Path) -> None:
    trees.class_folders(tmp_path / "birds", {"a": 2, "b": 3})
    assert finding(need("image_folder", folder="birds", train_classes=7), tmp_path) == Finding()


def test_weights_are_looked_at_and_hashed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def looked(path: str) -> Finding:
        found = need_of(part("digits"), part("resnet50", weights=path), CATALOG)
        assert found is not None
        return finding(found, tmp_path)

    missing = looked("r-00000000.pth")
    assert (missing.state, "METRICSWEEP_DATA" in missing.said) == ("missing", True)
    (tmp_path / "r-00000000.pth").write_bytes(b"weights")
    wrong = looked("r-00000000.pth")
    assert (wrong.state, "expected 00000000" in wrong.said) == ("wrong", True)
    name = f"r-{hashlib.sha256(b'weights').hexdigest()[:8]}.pth"
    (tmp_path / name).write_bytes(b"weights")
    assert looked(name) == Finding()
    monkeypatch.setattr(inspection.weights, "_sha256", None)  # type: ignore[attr-defined]
    assert looked(name) == Finding()


class TestPretrained:
    """The weights that `pretrained: true` loads, where the network is away."""

    STORED, LOADED = Need(stored=part("resnet18")), Need(pretrained=part("resnet18"))

    @pytest.fixture
    def file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PublishedWeights:
        """A published file of this test, which is nowhere."""
        digest = hashlib.sha256(b"weights").hexdigest()
        file = PublishedWeights(f"resnet18-{digest[:8]}.pth", "resnet18", ("http://127.0.0.1:9/nobody",))
        monkeypatch.setattr(published_weights, "FILES", (file,))
        monkeypatch.setenv("TORCH_HOME", str(tmp_path / "cache"))
        return file

    def test_they_are_found_by_their_hash(self, file: PublishedWeights, tmp_path: Path) -> None:
        for place, state in (("cache/hub/checkpoints", "missing"), ("weights", "wrong")):
            path = tmp_path / place / file.name
            path.parent.mkdir(parents=True)
            path.write_bytes(b"weights")
            assert finding(self.STORED, tmp_path) == finding(self.LOADED, tmp_path) == Finding()
            path.write_bytes(b"others")
            assert finding(self.LOADED, tmp_path).state == state

    def test_where_nobody_gives_them_it_is_said_what_to_do(self, file: PublishedWeights, tmp_path: Path) -> None:
        found = finding(self.LOADED, tmp_path)
        assert found.state == "missing"
        where = f"looked in {tmp_path / 'weights'} and {tmp_path / 'cache/hub/checkpoints'}"
        assert found.said.startswith(
            f"{file.name} is missing: {where}, and nobody gives it (http://127.0.0.1:9/nobody: "
        )
        assert "refused); run `metricsweep weights fetch resnet18` where there is a network, and put" in found.said

    def test_timms_hub_is_told_too(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
        monkeypatch.setattr("huggingface_hub.constants.is_offline_mode", lambda: True)
        one = need_of(part("digits"), part("timm_model", architecture="resnet18", pretrained=True), CATALOG)
        assert one is not None
        found = finding(one, tmp_path)
        assert found.said.startswith(f"model.safetensors of timm/resnet18.a1_in1k is missing: looked in {tmp_path}")
        assert "(HF_HUB_OFFLINE is set)" in found.said
