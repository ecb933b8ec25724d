"""Heads: the order of their layers, their initializations, and what rebuttal table 5 compares."""

import pytest
import torch
from torch import nn

from workers.heads.bn_fc import BnFc
from workers.heads.fc import Fc
from workers.heads.fc_bn import FcBn
from workers.heads.projection import Projection
from workers.heads.unit_fc import UnitFc
from workers.heads.weight_norm_fc import WeightNormFc

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
