"""Backbones and heads: shapes, pooling, frozen batch norm, published architectures, where weights come from."""

import math
import re
import urllib.request
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import timm
import torch
import torchvision
from torch import nn
from torch.nn import functional

from tests.workers import recipes
from workers import registry
from workers.backbones import ConvNet, gem, pooled
from workers.backbones._shared import FaceResNet, SameConv2d
from workers.backbones.bn_inception import BnInception
from workers.catalog import load, problems
from workers.contract import Part
from workers.data.weights import WeightsError
from workers.heads.bn_fc import BnFc
from workers.heads.fc import Fc
from workers.heads.fc_bn import FcBn
from workers.heads.projection import Projection
from workers.heads.unit_fc import UnitFc
from workers.heads.weight_norm_fc import WeightNormFc
from workers.model import load as load_model

SIDE = 64
OPTIONS: dict[str, dict[str, Any]] = {
    "alexnet": {},
    "bn_inception": {},
    "googlenet": {},
    "ir18": {},
    "mobilenet_v1": {"width": 0.25},
    "mobilenet_v2": {"width": 0.35},
    "resnet18": {},
    "resnet50": {},
    "se_resnet50_ir": {},
    "timm_model": {"architecture": "resnet18"},
}
DATA_PAGE = Path(__file__).parents[2] / "docs/data.md"
DOCUMENTED = re.compile(r"^\| [^|]*\| `(vit_\S+|deit_\S+)` \| (\d+) \| (\d+) \|", re.MULTILINE)
"""A row of the table of networks: its name in timm, the side of its input, its features."""
NOWHERE = Path("there is no such folder")


def made(name: str, channels: int = 3, side: int = SIDE, root: Path = NOWHERE, **options: Any) -> ConvNet:
    torch.manual_seed(0)
    part = Part(name=name, **OPTIONS[name], **options)
    backbone: ConvNet = registry.build("backbone", part, channels=channels, side=side, root=root)
    return backbone


@lru_cache
def shared_net(name: str) -> ConvNet:
    return made(name).eval()


def images(channels: int = 3, side: int = SIDE, count: int = 2) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randint(0, 256, (count, channels, side, side), dtype=torch.uint8, generator=generator)


@pytest.mark.parametrize("name", sorted(OPTIONS))
def test_each_gives_features_of_bytes_and_reads_its_own_weights(name: str, tmp_path: Path) -> None:
    backbone = shared_net(name)
    assert backbone.origin == "random"
    with pytest.raises(ValueError, match="3 channels, or grey images of 1; found 4"):
        made(name, channels=4)
    grey = backbone(backbone.preprocess(images(1)))
    features = backbone(backbone.preprocess(images()))
    assert grey.shape == features.shape == (2, backbone.features)
    assert grey.isfinite().all()
    assert features.isfinite().all()
    backbone.zero_grad()
    features.sum().backward()
    assert all(parameter.grad is not None for parameter in backbone.parameters())
    torch.save((backbone if name == "bn_inception" else backbone.net).state_dict(), tmp_path / "net.pth")
    torch.manual_seed(1)
    part = Part(name=name, weights="net.pth", resize=SIDE, **OPTIONS[name])
    again = registry.build("backbone", part, channels=3, side=SIDE, root=tmp_path).eval()
    assert torch.equal(again(again.preprocess(images())), features)
    assert again.origin.startswith("sha256:")
    assert again.preprocess(images(side=8)).shape == (2, 3, SIDE, SIDE), "`resize` enlarges"
    if name not in {"ir18", "mobilenet_v1", "se_resnet50_ir"}:
        with pytest.raises(ValueError, match="give one of them"):
            made(name, pretrained=True, weights="net.pth")


def test_pretrained_without_a_network_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    monkeypatch.setattr(urllib.request, "_opener", None)  # it keeps the proxies of the first request of a process
    for proxy in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(proxy, "http://127.0.0.1:9")  # where nothing listens
    for direct in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(direct, raising=False)
    with pytest.raises(
        WeightsError, match=r"could not be fetched, .* \(\w+: .*put \w+-[0-9a-f]+\.pth into .*`weights: "
    ):
        made("bn_inception", pretrained=True)


def test_images_that_would_leave_no_map_are_refused() -> None:
    for name, least in (("alexnet", 63), ("googlenet", 15)):
        backbone = shared_net(name)
        assert backbone(backbone.preprocess(images(side=least))).isfinite().all()
        assert made(name, side=least).features == backbone.features
        with pytest.raises(ValueError, match=f"side {least - 1}; it needs {least} at least: set `resize`"):
            made(name, side=least - 1)


def test_maps_are_pooled(tmp_path: Path) -> None:
    maps = torch.tensor([[[[1.0, 2.0], [3.0, 6.0]], [[-1.0, -2.0], [-3.0, -6.0]]]])
    assert pooled(maps, "avg").tolist() == [[3.0, -3.0]]
    assert pooled(maps, "max").tolist() == [[6.0, -1.0]]
    assert pooled(maps, "avg+max").tolist() == [[9.0, -4.0]]
    backbone = made("mobilenet_v1", pool="avg+max").eval()
    inputs = backbone.preprocess(images())
    assert torch.equal(backbone(inputs), pooled(backbone.maps(inputs), "avg+max"))


def naive_gem(maps: torch.Tensor, p: float) -> list[list[float]]:
    """Radenovic et al., equation 3, value by value."""
    return [
        [(sum(max(float(x), 1e-6) ** p for x in one.flatten()) / one.numel()) ** (1 / p) for one in image]
        for image in maps.detach()
    ]


def test_gem_is_the_generalized_mean() -> None:
    maps = torch.rand(3, 4, 2, 5, generator=torch.Generator().manual_seed(0)) - 0.1
    for p in (0.5, 1.0, 3.0, 6.5):
        assert torch.allclose(gem(maps, p), torch.tensor(naive_gem(maps, p)), rtol=1e-5), p
    positive = maps.clamp(min=1e-6)
    assert torch.allclose(gem(positive, 1.0), pooled(positive, "avg"))
    assert torch.allclose(gem(positive, 200.0), pooled(positive, "max"), rtol=0.03)
    for p in (3.0, 50.0):
        inputs = torch.zeros(1, 2, 2, 2)
        inputs[0, 1, 0, 0] = 4.0
        exponent = torch.tensor(p, requires_grad=True)
        gem(inputs.requires_grad_(), exponent).sum().backward()
        right = 4 * 0.25 ** (1 / p)  # of the second map
        assert inputs.grad is not None
        assert inputs.grad[0].flatten(1).tolist() == [[0.0] * 4, [pytest.approx(right / 4), 0.0, 0.0, 0.0]]
        assert float(exponent.grad) == pytest.approx(-right * math.log(0.25) / p**2, rel=1e-4)


def test_the_exponent_of_gem_is_learned_or_fixed(tmp_path: Path) -> None:
    torch.save(shared_net("resnet18").net.state_dict(), tmp_path / "net.pth")
    for options, learned, p in (({}, True, 3.0), ({"gem_p": 2.5}, False, 2.5)):
        backbone = made("resnet18", pool="gem", weights="net.pth", root=tmp_path, **options).eval()
        inputs = backbone.preprocess(images())
        assert torch.allclose(backbone(inputs), torch.tensor(naive_gem(backbone.maps(inputs), p)), rtol=1e-4)
        assert ("gem_p" in dict(backbone.named_parameters())) is learned
        if learned:
            backbone(inputs).sum().backward()
            assert backbone.gem_p.grad.abs() > 0
            again = made("resnet18", pool="gem")
            again.load_state_dict(backbone.state_dict() | {"gem_p": torch.tensor(4.0)})
            assert again.gem_p.item() == 4
    torch.save(shared_net("bn_inception").state_dict(), tmp_path / "bn.pth")
    assert dict(made("bn_inception", pool="gem", weights="bn.pth", root=tmp_path).named_parameters())["gem_p"] == 3
    frozen = {"name": "frozen", "of": {"name": "resnet50", "pretrained": True, "gem_p": 2}}
    for part, path in (({"name": "resnet50", "gem_p": 2}, "backbone.gem_p"), (frozen, "backbone.of.gem_p")):
        recipe = {"dataset": "digits", "loss": "triplet", "sampler": "balanced", "iterations": 10, "backbone": part}
        refused = {one.path: one.message for one in problems(recipe, load())}
        assert refused[path].startswith("is only for `pool: gem`"), refused


def after_a_step(backbone: ConvNet) -> dict[str, torch.Tensor]:
    """Its state after all that could thaw it: training mode from above, requires_grad, and a step with weight decay."""
    whole = nn.Sequential(backbone, nn.BatchNorm1d(backbone.features)).train()
    for parameter in whole.parameters():
        parameter.requires_grad_(True)
    optimizer = torch.optim.SGD(whole.parameters(), lr=0.1, weight_decay=0.1)
    whole(backbone.preprocess(images(count=4))).square().sum().backward()
    optimizer.step()
    assert whole[1].training
    return backbone.state_dict()


def test_frozen_batch_norms_do_not_move() -> None:
    for name in ("mobilenet_v1", "timm_model"):
        before = {key: value.clone() for key, value in made(name, freeze_bn=True).state_dict().items()}
        after = after_a_step(made(name, freeze_bn=True))
        norms = {key.rpartition(".")[0] for key in before if key.endswith("running_mean")}
        assert norms
        for key, value in before.items():
            assert torch.equal(after[key], value) == (key.rpartition(".")[0] in norms), key
    frozen, free = made("mobilenet_v1", freeze_bn=True), made("mobilenet_v1")
    assert sorted(frozen.state_dict()) == sorted(free.state_dict())
    assert all(parameter.ndim == 4 for parameter in frozen.parameters()), "no optimizer gets a norm"
    frozen.load_state_dict(free.state_dict())
    inputs = frozen.preprocess(images())
    assert torch.equal(frozen.train()(inputs), frozen.eval()(inputs))


class TestBnInception:
    """Against the architecture as published with the file bn_inception-52deb4733.pth."""

    def test_parameters_names_and_shapes(self) -> None:
        count = sum(parameter.numel() for parameter in shared_net("bn_inception").parameters())
        classifier = 1024 * 1000 + 1000
        assert count + classifier == 11_295_240
        shapes = {name: tuple(value.shape) for name, value in shared_net("bn_inception").state_dict().items()}
        convolutions = {name.removesuffix("_bn.running_var") for name in shapes if name.endswith("_bn.running_var")}
        assert len(convolutions) == 69
        assert len(shapes) == 69 * 7
        assert {f"{name}.{kind}" for name in convolutions for kind in ("weight", "bias")} <= set(shapes)
        published = {
            "conv1_7x7_s2": (64, 3, 7, 7), "conv2_3x3_reduce": (64, 64, 1, 1), "conv2_3x3": (192, 64, 3, 3),
            "inception_3a_1x1": (64, 192, 1, 1), "inception_3a_pool_proj": (32, 192, 1, 1),
            "inception_3b_double_3x3_1": (96, 64, 3, 3), "inception_3c_3x3_reduce": (128, 320, 1, 1),
            "inception_3c_3x3": (160, 128, 3, 3), "inception_3c_double_3x3_2": (96, 96, 3, 3),
            "inception_4a_1x1": (224, 576, 1, 1), "inception_4c_pool_proj": (128, 576, 1, 1),
            "inception_4d_1x1": (96, 608, 1, 1), "inception_4e_3x3_reduce": (128, 608, 1, 1),
            "inception_4e_double_3x3_2": (256, 256, 3, 3), "inception_5a_1x1": (352, 1056, 1, 1),
            "inception_5a_double_3x3_reduce": (160, 1056, 1, 1), "inception_5b_double_3x3_reduce": (192, 1024, 1, 1),
            "inception_5b_pool_proj": (128, 1024, 1, 1),
        }  # fmt: skip
        assert {name: shapes[f"{name}.weight"] for name in published} == published
        assert not {"inception_3c_1x1", "inception_3c_pool_proj", "inception_4e_1x1"} & convolutions

    def test_sides(self) -> None:
        backbone = shared_net("bn_inception")
        with torch.no_grad():
            for side, rows in ((227, 7), (256, 8), (32, 1)):
                assert BnInception(3, side, NOWHERE) is not None
                assert backbone.maps(torch.zeros(1, 3, side, side)).shape == (1, 1024, rows, rows)
        for side, near in ((110, "near it are 96 and 128"), (28, "near it are 32"), (112, "near it are 96 and 128")):
            with pytest.raises(ValueError, match=f"side {side}; {near}.*resize"):
                made("bn_inception", side=side)

    def test_input_is_blue_first_less_the_published_means(self) -> None:
        pixel = torch.tensor([200, 100, 50], dtype=torch.uint8)[None, :, None, None]
        assert made("bn_inception").preprocess(pixel).flatten().tolist() == [50 - 104, 100 - 117, 200 - 128]
        sec = made("bn_inception", mean=[104, 117, 123])
        assert sec.preprocess(pixel).flatten().tolist() == [50 - 104, 100 - 117, 200 - 123]
        rgb = made("bn_inception", mean=[123, 117, 104], channel_order="rgb")
        assert rgb.preprocess(pixel).flatten().tolist() == [200 - 123, 100 - 117, 50 - 104]
        with pytest.raises(ValueError, match="three values"):
            made("bn_inception", mean=[1])


def face_network(units: tuple[int, ...], *, squeeze: bool) -> FaceResNet:
    made: type[FaceResNet] = type("Network", (FaceResNet,), {"_units": units, "_squeeze": squeeze})
    return made(3, 112, Path(), dropout=0.0)


class TestFaces:
    """InsightFace's networks, against the sizes that it and others publish of them."""

    def test_parameters_with_output_e(self) -> None:
        published = {(2, 2, 2, 2): 24.03, (3, 4, 6, 3): 34.14, (3, 4, 14, 3): 43.59, (3, 13, 30, 3): 65.16}
        for units, millions in published.items():
            with torch.device("meta"):
                backbone = face_network(units, squeeze=False)
                both = nn.ModuleList([backbone, FcBn(backbone.features, 512)])
            assert sum(one.numel() for one in both.parameters()) / 1e6 == pytest.approx(millions, abs=0.005)

    def test_squeezes_are_what_fifty_layers_have_more(self) -> None:
        with torch.device("meta"):
            plain, squeezed = (face_network((3, 4, 14, 3), squeeze=one) for one in (False, True))
        least = [width // 16 for width, count in ((64, 3), (128, 4), (256, 14), (512, 3)) for _ in range(count)]
        more = sum((2 * 16 * one * one + one) + one + 16 * one for one in least)
        assert (
            sum(one.numel() for one in squeezed.parameters()) - sum(one.numel() for one in plain.parameters()) == more
        )
        assert sum(isinstance(one, nn.PReLU) for one in squeezed.modules()) == 1 + 2 * 24

    def test_112_pixels_become_maps_of_7(self) -> None:
        for name in ("ir18", "se_resnet50_ir"):
            with torch.device("meta"):
                backbone = made(name, side=112).eval()
                assert backbone.features == 512 * 7 * 7
                assert backbone.maps(torch.zeros(1, 3, 112, 112)).shape == (1, 512, 7, 7)

    def test_input_is_red_first_around_zero(self) -> None:
        """As MXNet decodes it; OpenCV's images are blue first."""
        red = torch.tensor([255, 0, 0], dtype=torch.uint8)[None, :, None, None]
        assert shared_net("ir18").preprocess(red).flatten().tolist() == [127.5 / 128, -127.5 / 128, -127.5 / 128]

    def test_the_last_batch_norm_may_have_no_gain(self) -> None:
        head = FcBn(8, 4, gain=False)
        assert [name for name, one in head.named_parameters() if one.requires_grad] == [
            "linear.weight", "linear.bias", "norm.bias",
        ]  # fmt: skip
        spread = head(torch.randn(64, 8, generator=torch.Generator().manual_seed(0))).var(dim=0, correction=0)
        assert spread.tolist() == pytest.approx([1.0] * 4, abs=1e-3)


class TestTorchvision:
    """The trunks give what torchvision's whole networks do."""

    def test_googlenet_with_its_own_change_of_input(self) -> None:
        backbone = shared_net("googlenet")
        whole = torchvision.models.googlenet(aux_logits=False, init_weights=False, transform_input=True).eval()
        whole.load_state_dict(backbone.net.state_dict(), strict=False)
        whole.fc = nn.Identity()
        mean, std = (torch.tensor(values)[:, None, None] for values in ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)))
        expected = whole((images() / 255 - mean) / std)
        assert torch.allclose(backbone(backbone.preprocess(images())), expected, atol=1e-4)

    @pytest.mark.parametrize(("name", "head"), [("resnet18", "fc"), ("resnet50", "fc"), ("mobilenet_v2", "classifier")])
    def test_networks_that_average(self, name: str, head: str) -> None:
        backbone = shared_net(name)
        options = {"width_mult": 0.35} if name == "mobilenet_v2" else {}
        whole = torchvision.models.get_model(name, weights=None, **options).eval()
        whole.load_state_dict(backbone.net.state_dict(), strict=False)
        setattr(whole, head, nn.Identity())
        inputs = backbone.preprocess(images())
        assert torch.allclose(backbone(inputs), whole(inputs), atol=1e-5)


class TestStem:
    """ResNets on CIFAR begin with one 3x3 convolution and no pooling."""

    def test_all_else_is_torchvisions(self) -> None:
        """Of images of 32 pixels an eighth of the side is left, where ImageNet's stem leaves one pixel."""
        backbone = made("resnet18", stem="cifar").eval()
        whole = torchvision.models.resnet18(weights=None).eval()
        whole.conv1, whole.maxpool, whole.fc = nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.Identity(), nn.Identity()
        whole.load_state_dict(backbone.net.state_dict())
        inputs = backbone.preprocess(images(side=32))
        assert torch.allclose(backbone(inputs), whole(inputs), atol=1e-5)
        assert backbone.maps(inputs).shape == (2, 512, 4, 4)
        assert shared_net("resnet18").maps(inputs).shape == (2, 512, 1, 1)

    @pytest.mark.parametrize("name", ["resnet18", "resnet50"])
    def test_its_first_layer_is_not_that_of_imagenet(self, name: str, tmp_path: Path) -> None:
        """Begun as torchvision begins convolutions."""
        first = made(name, stem="cifar").net.conv1.weight.detach()
        assert first.shape == (64, 3, 3, 3)
        assert float(first.std()) == pytest.approx((2 / (64 * 9)) ** 0.5, rel=0.05)
        with pytest.raises(ValueError, match="another first layer than the pretrained network"):
            made(name, stem="cifar", pretrained=True)
        torch.save(shared_net(name).net.state_dict(), tmp_path / "net.pth")
        with pytest.raises(WeightsError, match="conv1"):
            made(name, stem="cifar", weights="net.pth", root=tmp_path)


class TestTensorflow:
    def test_flavour(self) -> None:
        ours, theirs = made("mobilenet_v2", flavour="tensorflow"), made("mobilenet_v2")
        assert sorted(ours.state_dict()) == sorted(theirs.state_dict())
        assert all(torch.equal(value, theirs.state_dict()[name]) for name, value in ours.state_dict().items())
        strided = [layer for layer in ours.modules() if isinstance(layer, nn.Conv2d) and layer.stride == (2, 2)]
        assert len(strided) == 5
        assert all(isinstance(layer, SameConv2d) for layer in strided)
        assert {layer.eps for layer in ours.modules() if isinstance(layer, nn.BatchNorm2d)} == {1e-3}
        assert {layer.eps for layer in theirs.modules() if isinstance(layer, nn.BatchNorm2d)} == {1e-5}
        inputs = torch.rand(1, 3, SIDE, SIDE)
        assert not torch.allclose(ours.eval()(inputs), theirs.eval()(inputs))

    def test_a_file_of_the_other_flavour_is_refused(self, tmp_path: Path) -> None:
        state = shared_net("mobilenet_v2").net.state_dict()
        torch.save({"state_dict": state, "meta": {"padding": "tf_same"}}, tmp_path / "net.pt")
        with pytest.raises(WeightsError, match="write `flavour: tensorflow`"):
            made("mobilenet_v2", root=tmp_path, weights="net.pt")
        assert made("mobilenet_v2", root=tmp_path, weights="net.pt", flavour="tensorflow")
        with pytest.raises(ValueError, match="hub has weights of `flavour: torchvision` and width 1 only"):
            made("mobilenet_v2", flavour="tensorflow", pretrained=True)


class TestTimm:
    def built(self, architecture: str, **options: Any) -> ConvNet:
        part = Part(name="timm_model", architecture=architecture, **options)
        backbone: ConvNet = registry.build("backbone", part, channels=1, side=28, root=NOWHERE)
        return backbone.eval()

    def test_a_vision_transformer_gets_the_side_it_was_made_for(self) -> None:
        for pool in ("own", "avg", "avg+max"):
            backbone = self.built("vit_tiny_patch16_224", pool=pool)
            inputs = backbone.preprocess(images(1, 28))
            assert inputs.shape == (2, 3, 224, 224)
            with torch.no_grad():
                features, tokens = backbone(inputs), backbone.net.forward_features(inputs)
            patches = tokens[:, 1:]
            expected = {"own": tokens[:, 0], "avg": patches.mean(1), "avg+max": patches.mean(1) + patches.amax(1)}[pool]
            assert features.shape == (2, 192)
            assert torch.allclose(features, expected, atol=1e-5), pool

    def test_each_network_of_the_documentation_has_its_own_normalization_and_takes_other_sides(self) -> None:
        documented = DOCUMENTED.findall(DATA_PAGE.read_text("utf-8"))
        assert len(documented) >= 6
        for architecture, own, features in documented:
            config = timm.models.get_pretrained_cfg(architecture)
            patch = int(re.search(r"patch(\d+)", architecture)[1])  # type: ignore[index]
            assert config.input_size[-1] == int(own), architecture
            for pool in ("own", "gem"):
                backbone = self.built(architecture, pool=pool, resize=2 * patch)
                inputs = backbone.preprocess(images(3, 40))
                raw = functional.interpolate(
                    images(3, 40) / 255, (2 * patch, 2 * patch), mode="bilinear", antialias=True
                )
                mean, std = (torch.tensor(values)[:, None, None] for values in (config.mean, config.std))
                assert torch.allclose(inputs, (raw - mean) / std, atol=1e-4), architecture
                with torch.no_grad():
                    assert backbone(inputs).shape == (2, backbone.features) == (2, int(features)), architecture

    def test_position_embeddings_are_interpolated_after_weights_are_loaded(self, tmp_path: Path) -> None:
        whole = self.built("vit_tiny_patch16_224")
        torch.save(whole.net.state_dict(), tmp_path / "net.pth")
        part = Part(name="timm_model", architecture="vit_tiny_patch16_224", weights="net.pth", resize=64)
        small = registry.build("backbone", part, channels=3, side=28, root=tmp_path)
        assert small.net.pos_embed.shape == (1, 1 + 4 * 4, 192)
        assert torch.equal(small.net.pos_embed[:, 0], whole.net.pos_embed[:, 0])
        grid = whole.net.pos_embed[:, 1:].view(1, 14, 14, 192).permute(0, 3, 1, 2)
        shrunk = functional.interpolate(grid, (4, 4), mode="bicubic", antialias=True)
        assert torch.allclose(small.net.pos_embed[0, 1:], shrunk.flatten(2)[0].T, atol=1e-5)
        with pytest.raises(ValueError, match="has patches of 16 pixels; write 96"):
            self.built("vit_tiny_patch16_224", resize=100)

    def test_vision_transformers_train_and_freeze_at_a_small_side(self, tmp_path: Path) -> None:
        dinov2 = {"name": "timm_model", "architecture": "vit_small_patch14_dinov2.lvd142m", "resize": 28}
        (tmp_path / "data").mkdir()
        torch.save(self.built(str(dinov2["architecture"])).net.state_dict(), tmp_path / "data/dinov2.pth")
        dino = {"name": "timm_model", "architecture": "vit_small_patch16_224.dino", "resize": 32, "pool": "gem"}
        for part in (dino, {"name": "frozen", "of": {**dinov2, "weights": "dinov2.pth"}}):
            result, _ = recipes.run(recipes.recipe(backbone=part, iterations=1, evaluate_every=1), tmp_path)
            assert result.outcome == "ok", part
            model = load_model(tmp_path / "best.safetensors", "cpu", data=tmp_path / "data")
            digits = np.random.default_rng(0).integers(0, 256, (3, 8, 8), dtype=np.uint8)
            assert model.embed(digits).shape == (3, 16), part

    def test_a_name_that_does_not_exist(self) -> None:
        with pytest.raises(ValueError, match="no model named 'resnet-18'; did you mean 'resnet18'"):
            self.built("resnet-18")


TOY: dict[str, Any] = {
    "widths": [32], "bias": True, "norm": False, "halve": False, "padding": False, "pool": "flatten", "hidden": [128],
    "centred": False,
}  # fmt: skip
"""The network of SVMax's figure 7."""


def small(channels: int = 1, side: int = 28, **options: Any) -> Any:
    torch.manual_seed(0)
    return registry.build("backbone", Part(name="small_cnn", **options), channels=channels, side=side)


def shades(side: int = 28, count: int = 3) -> torch.Tensor:
    return torch.rand(count, 1, side, side, generator=torch.Generator().manual_seed(1))


def test_by_default_it_is_the_network_that_it_always_was() -> None:
    torch.manual_seed(0)
    layers = nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2),
    )  # fmt: skip
    found = small()
    assert {name.removeprefix("layers."): value.shape for name, value in found.state_dict().items()} == {
        name: value.shape for name, value in layers.state_dict().items()
    }
    assert torch.equal(found(shades()), layers(shades()).mean(dim=(2, 3)))
    assert found.features == 64


def test_it_can_be_svmaxs_toy() -> None:
    found = small(**TOY)
    assert [type(layer) for layer in (*found.layers, *found.hidden)] == [nn.Conv2d, nn.ReLU, nn.Linear, nn.ReLU]
    assert found.layers[0].weight.shape == (32, 1, 3, 3)
    assert found.layers[0].bias is not None
    assert found.hidden[0].weight.shape == (128, 26 * 26 * 32)
    assert found(shades()).shape == (3, found.features) == (3, 128)
    grey = found.preprocess(torch.tensor([[[[0, 255]]]], dtype=torch.uint8))
    assert grey.flatten().tolist() == [0.0, 1.0]


def test_features_are_as_many_as_it_says() -> None:
    options: dict[str, Any]
    for options, features in (
        ({"widths": [4, 6, 5]}, 5),
        ({"widths": [4, 6], "pool": "flatten"}, 6 * 7 * 7),
        ({"widths": [4, 6], "pool": "flatten", "padding": False}, 6 * 5 * 5),
        ({"widths": [4, 6], "pool": "flatten", "halve": False}, 6 * 28 * 28),
        ({"width": 3, "blocks": 1, "hidden": [9, 7]}, 7),
    ):
        found = small(**options)
        assert found.features == features
        assert found(shades()).shape == (3, features)
    with pytest.raises(ValueError, match="maps of side 1 are too small"):
        small(widths=[1] * 5, padding=False, side=8)


FEATURES = torch.linspace(-3, 9, 8 * 6).view(8, 6).sin() * 4 + 2


def normalized(values: torch.Tensor) -> torch.Tensor:
    return (values - values.mean(0)) / (values.var(0, unbiased=False) + 1e-5).sqrt()


def test_bn_fc_normalizes_the_features() -> None:
    head = BnFc(6, 4)
    expected = normalized(FEATURES) @ head.linear.weight.T + head.linear.bias
    assert torch.allclose(head(FEATURES), expected, atol=1e-5)


def test_fc_bn_normalizes_the_embeddings() -> None:
    head = FcBn(6, 4)
    assert torch.allclose(head(FEATURES), normalized(FEATURES @ head.linear.weight.T), atol=1e-4)
    both = FcBn(6, 4, first_bn=True)
    assert torch.allclose(both(FEATURES), normalized(normalized(FEATURES) @ both.linear.weight.T), atol=1e-4)


def test_weight_norm_gives_each_row_a_length_of_its_own() -> None:
    torch.manual_seed(0)
    plain = Fc(6, 4)
    torch.manual_seed(0)
    head = WeightNormFc(6, 4)
    assert torch.allclose(head(FEATURES), plain(FEATURES), atol=1e-5)  # it starts as the plain head
    shapes = {name: tuple(value.shape) for name, value in head.named_parameters()}
    assert sorted(shapes.values()) == [(4,), (4, 1), (4, 6)]
    lengths, directions = head.linear.parametrizations["weight"].parameters()  # type: ignore[operator,union-attr]
    with torch.no_grad():
        directions.mul_(3)  # a direction has no length
        assert torch.allclose(head(FEATURES), plain(FEATURES), atol=1e-5)
        lengths.mul_(2)
    assert torch.allclose(head.linear.weight, 2 * plain.linear.weight, atol=1e-6)
    assert WeightNormFc(6, 4, first_bn=True)(FEATURES).shape == (8, 4)


def test_initializations() -> None:
    for head in (BnFc, Fc, FcBn, UnitFc, WeightNormFc):
        linear = head(6, 4, init="orthogonal").linear
        assert torch.allclose(linear.weight @ linear.weight.T, torch.eye(4), atol=1e-5)
        assert not linear.bias.any()
        torch.manual_seed(0)
        linear = head(300, 200, init="kaiming").linear  # of the width of the embedding
        assert float(linear.weight.detach().std()) == pytest.approx((2 / 200) ** 0.5, rel=0.02)
        assert not linear.bias.any()


def test_a_linear_layer_may_be_cut_at_zero() -> None:
    head = Fc(6, 4, relu=True)
    torch.testing.assert_close(head(FEATURES), head.linear(FEATURES).clamp(min=0))


def test_the_projection_of_simclr() -> None:
    """Two layers, the first as wide as the features."""
    head = Projection(6, 4)
    first, second = (layer for layer in head.layers if isinstance(layer, nn.Linear))
    expected = (FEATURES @ first.weight.T + first.bias).relu() @ second.weight.T + second.bias
    assert torch.allclose(head(FEATURES), expected, atol=1e-5)
    assert (first.weight.shape, second.weight.shape) == ((6, 6), (4, 6))
    head = Projection(6, 4, hidden=9, norm=True)
    first, second = (layer for layer in head.layers if isinstance(layer, nn.Linear))
    expected = normalized(FEATURES @ first.weight.T).relu() @ second.weight.T + second.bias
    assert [name for name, _ in first.named_parameters()] == ["weight"]
    assert torch.allclose(head(FEATURES), expected, atol=1e-5)
