"""Stacked networks: those of several seeds as one, whose channels lie side by side, seed by seed."""

import copy
from collections.abc import Sequence
from typing import Final, cast

import torch
from torch import Tensor, nn

from workers.backbones.mlp import Mlp
from workers.backbones.small_cnn import SmallCnn
from workers.heads.bn_fc import BnFc
from workers.heads.fc import Fc

KEPT: Final = (SmallCnn, Mlp, Fc, BnFc, nn.Sequential, nn.ReLU, nn.MaxPool2d, nn.Flatten)
"""What computes the same for each channel, whosever it is, or only hands on to layers that are stacked."""


class StackedLinear(nn.Module):
    """The linear layers of several seeds: values [b, seeds x n], seed by seed, to [b, seeds x m]."""

    bias: nn.Parameter | None

    def __init__(self, seeds: int, one: nn.Linear) -> None:
        super().__init__()
        self.weight = nn.Parameter(one.weight.new_empty(seeds, one.out_features, one.in_features))
        bias = one.weight.new_empty(seeds * one.out_features)
        self.register_parameter("bias", None if cast(Tensor | None, one.bias) is None else nn.Parameter(bias))

    def forward(self, values: Tensor) -> Tensor:
        """One product of a batch of matrices, a seed each."""
        seeds, outputs, inputs = self.weight.shape
        apart, weight = values.view(-1, seeds, inputs).transpose(0, 1), self.weight.transpose(1, 2)
        if self.bias is None:
            product = torch.bmm(apart, weight)
        else:
            product = torch.baddbmm(self.bias.view(seeds, 1, outputs), apart, weight)
        return product.transpose(0, 1).reshape(len(values), seeds * outputs)


def stacked(networks: Sequence[nn.Module]) -> nn.Module:
    """One network for values of `networks` side by side, with their present weights.

    Its state has their names, and each tensor holds theirs one after the other. Raises TypeError for a layer that it
    does not know.
    """
    made = _shaped(networks[0], len(networks))
    every = [network.state_dict() for network in networks]
    with torch.no_grad():
        for name, value in made.state_dict().items():
            parts = [state[name] for state in every]
            value.copy_(torch.cat(parts).view_as(value) if parts[0].ndim else parts[0])
    return made


def hand_back(made: nn.Module, networks: Sequence[nn.Module]) -> None:
    """Give `networks` the weights that they have in what was stacked of them."""
    state = made.state_dict()
    for place, network in enumerate(networks):
        with torch.no_grad():
            for name, value in network.state_dict().items():
                whole = state[name]
                value.copy_(whole.chunk(len(networks))[place].view_as(value) if whole.ndim else whole)


def _shaped(one: nn.Module, seeds: int) -> nn.Module:
    """The stack of so many networks like `one`, with any weights."""
    if isinstance(one, nn.Conv2d):
        sizes = (seeds * one.in_channels, seeds * one.out_channels, cast(tuple[int, int], one.kernel_size))
        groups, padding, bias = seeds * one.groups, cast(tuple[int, int], one.padding), one.bias is not None
        stride = cast(tuple[int, int], one.stride)
        return nn.Conv2d(*sizes, stride, padding, groups=groups, bias=bias, device=one.weight.device)
    if isinstance(one, nn.BatchNorm1d | nn.BatchNorm2d):
        return type(one)(seeds * one.num_features, one.eps, one.momentum, device=one.weight.device)
    if isinstance(one, nn.Linear):
        return StackedLinear(seeds, one)
    if not isinstance(one, KEPT):
        raise TypeError(f"{type(one).__name__} was not stacked yet")
    made = copy.deepcopy(one)
    for name, layer in one.named_children():
        setattr(made, name, _shaped(layer, seeds))
    return made
