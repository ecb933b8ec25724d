"""The small convolutional network: what it was before it had options, SVMax's toy, and each option."""

from typing import Any

import pytest
import torch
from torch import nn

from workers import registry
from workers.contract import Part

TOY: dict[str, Any] = {
    "widths": [32], "bias": True, "norm": False, "halve": False, "padding": False, "pool": "flatten", "hidden": [128],
    "centred": False,
}  # fmt: skip
"""The network of SVMax's figure 7."""


def made(channels: int = 1, side: int = 28, **options: Any) -> Any:
    torch.manual_seed(0)
    return registry.build("backbone", Part(name="small_cnn", **options), channels=channels, side=side)


def images(side: int = 28, count: int = 3) -> torch.Tensor:
    return torch.rand(count, 1, side, side, generator=torch.Generator().manual_seed(1))


def test_by_default_it_is_the_network_that_it_always_was() -> None:
    torch.manual_seed(0)
    layers = nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2),
    )  # fmt: skip
    found = made()
    assert {name.removeprefix("layers."): value.shape for name, value in found.state_dict().items()} == {
        name: value.shape for name, value in layers.state_dict().items()
    }
    assert torch.equal(found(images()), layers(images()).mean(dim=(2, 3)))
    assert found.features == 64


def test_it_can_be_svmaxs_toy() -> None:
    found = made(**TOY)
    assert [type(layer) for layer in (*found.layers, *found.hidden)] == [nn.Conv2d, nn.ReLU, nn.Linear, nn.ReLU]
    assert found.layers[0].weight.shape == (32, 1, 3, 3)
    assert found.layers[0].bias is not None
    assert found.hidden[0].weight.shape == (128, 26 * 26 * 32)
    assert found(images()).shape == (3, found.features) == (3, 128)
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
        found = made(**options)
        assert found.features == features
        assert found(images()).shape == (3, features)
    with pytest.raises(ValueError, match="maps of side 1 are too small"):
        made(widths=[1] * 5, padding=False, side=8)
