"""A module as its optimizer will have made it some steps ahead, as a function of what it learns from there."""

import copy
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, Final

import torch
from torch import Tensor, nn

Parameters = Mapping[str, Tensor]
"""The parameters of a module by their names."""

_TINY: Final = 1e-36
"""Below any square of a gradient that a float32 step would notice."""
_ROOTED: Final = ("exp_avg_sq", "square_avg")
"""What optimizers take the root of. The root's slope at 0, where a unit is dead, would make NaN of what is 0."""


def ahead(
    module: nn.Module,
    optimizer: torch.optim.Optimizer,
    loss: Callable[[Parameters], Tensor],
    steps: int,
    *,
    through: bool = True,
) -> Parameters:
    """The parameters of `module` after `steps` steps of its optimizer down `loss`; both stay as they are.

    `loss` takes the parameters as they are before each step. With `through` the result is a function of whatever it
    computes with, and can be differentiated through the steps (Metz et al. 2017, equations 7 to 9); otherwise it is
    constant.
    """
    now = {name: parameter.detach().clone().requires_grad_() for name, parameter in module.named_parameters()}
    names = {parameter: name for name, parameter in module.named_parameters()}
    states = {name: _copied(optimizer.state.get(parameter, {}), through) for parameter, name in names.items()}
    for _ in range(steps):
        slopes = torch.autograd.grad(loss(now), [*now.values()], create_graph=through)
        later = {name: parameter.clone() for name, parameter in now.items()}
        for parameter, slope in zip(later.values(), slopes, strict=True):
            parameter.grad = slope
        twin = _twin(optimizer, {parameter: later[name] for parameter, name in names.items()})
        twin.state.update({later[name]: state for name, state in states.items()})
        twin.step()
        states = {name: _copied(twin.state[parameter], through, first=False) for name, parameter in later.items()}
        now = later if through else {name: parameter.detach().requires_grad_() for name, parameter in later.items()}
    return now


def _twin(optimizer: torch.optim.Optimizer, moved: Mapping[Tensor, Tensor]) -> torch.optim.Optimizer:
    """An optimizer that moves other tensors by the same rule, with no state yet, in steps that have a derivative."""
    twin = copy.copy(optimizer)
    plain = {"differentiable": True, "fused": None, "foreach": False}
    twin.defaults = {**optimizer.defaults, **plain}
    twin.param_groups = [
        {**group, **plain, "params": [moved[one] for one in group["params"] if one in moved]}
        for group in optimizer.param_groups
    ]
    twin.state = defaultdict(dict)
    return twin


def _copied(state: Mapping[str, Any], through: bool, *, first: bool = True) -> dict[str, Any]:
    """The state of a parameter apart from it: a step writes over its own."""
    found = {}
    for name, value in state.items():
        if not isinstance(value, Tensor):
            found[name] = value
            continue
        found[name] = value.clone() if through else value.detach().clone()
        if name == "step":  # Adam raises its betas to this power, by which a float32 would lose five of its digits
            found[name] = found[name].double()
        if through and first and name in _ROOTED:
            found[name] += _TINY
    return found
