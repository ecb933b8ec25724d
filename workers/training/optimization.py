"""The way down the gradient: parameter groups, learning rates, warm-up, clipping and the optimizer's step."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import torch
from torch import nn

from workers import registry
from workers.contract import Recipe
from workers.training.length import Length
from workers.training.loss_scale import LossScale

NORMALIZATIONS: Final = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.GroupNorm, nn.LayerNorm)
"""The layers whose weights and biases are not decayed by default."""


class Optimization:
    """A player's optimizer over `modules`, and what it does to learning rates and gradients.

    The recipe's fields say more of the modules `backbone` and `loss`; `rate` is a factor on all learning rates. `every`
    are the modules whose buffers change as the player computes; none: its own.
    """

    def __init__(
        self,
        recipe: Recipe,
        length: Length,
        modules: Mapping[str, nn.Module],
        device: torch.device,
        parts: Path | None,
        every: Iterable[nn.Module] | None = None,
        rate: float = 1.0,
    ) -> None:
        self._recipe, self._warmup = recipe, length.warmup
        factors = {"backbone": recipe.backbone_rate}
        if "loss" in modules:
            factors["loss"] = loss_rate(recipe, modules["loss"])
        groups = list(parameter_groups(modules, recipe.undecayed))
        self.optimizer: torch.optim.Optimizer = registry.build("optimizer", recipe.optimizer, parts, groups=groups)
        self._base = float(self.optimizer.defaults["lr"])
        param_groups = self.optimizer.param_groups
        named = [factors.get(group["name"].partition("/")[0], 1.0) for group in param_groups]
        self.rates = [float(group["lr"]) * factor * rate for group, factor in zip(param_groups, named, strict=True)]
        self.schedule = registry.build("schedule", recipe.schedule, parts, total=length.total, unit=length.unit)
        # What is frozen for good, such as the batch norm of a backbone, is in no group and stays as it is.
        self._backbone = [p for group in param_groups if group["name"].startswith("backbone") for p in group["params"]]
        self._parameters = [parameter for group in param_groups for parameter in group["params"]]
        kept = modules.values() if every is None else every
        self.scale = LossScale(device, kept, enabled=recipe.precision == "fp16")

    def prepare(self, step: int) -> float:
        """Set learning rates and what is frozen for iteration `step`, from 0; gives the optimizer's learning rate."""
        factor = float(self.schedule(step))
        for group, rate in zip(self.optimizer.param_groups, self.rates, strict=True):
            group["lr"] = rate * factor
        for parameter in self._backbone:
            parameter.requires_grad_(step >= self._warmup)
        return self._base * factor

    def down(self, total: torch.Tensor) -> None:
        """One step of the optimizer down the gradient of the finite scalar `total`; raises Diverged."""
        self.optimizer.zero_grad(set_to_none=True)
        self.scale.descend(total, self.optimizer, self._clip)

    def _clip(self) -> None:
        value, norm = self._recipe.clip_value, self._recipe.clip_norm
        if value is None and norm is None:
            return
        self.scale.unscale(self.optimizer)
        if value is not None:
            nn.utils.clip_grad_value_(self._parameters, value)
        if norm is not None:
            nn.utils.clip_grad_norm_(self._parameters, norm)

    def state_dict(self) -> dict[str, Any]:
        """What it needs to go on."""
        return {"optimizer": self.optimizer.state_dict(), **self.scale.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where the state was taken."""
        self.optimizer.load_state_dict(state["optimizer"])
        self.scale.load_state_dict(state)


def loss_rate(recipe: Recipe, loss: nn.Module) -> float:
    """The factor on the learning rate of the loss's own parameters."""
    return float(getattr(loss, "lr_scale", 1.0) if recipe.loss_rate is None else recipe.loss_rate)


def parameter_groups(modules: Mapping[str, nn.Module], undecayed: str = "norm") -> Iterator[dict[str, Any]]:
    """One optimizer group for each module, and one without weight decay for what `undecayed` spares of it.

    By default these are its normalization layers (SEC's rule). A module whose fact `decayed` is False is spared whole,
    and a parameter that needs no gradient is left out.
    """
    for name, module in modules.items():
        decayed: list[nn.Parameter] = []
        exempt: list[nn.Parameter] = []
        for layer in module.modules():
            norm = isinstance(layer, NORMALIZATIONS) and undecayed != "none"
            for key, parameter in layer.named_parameters(recurse=False):
                if parameter.requires_grad:
                    spared = norm or (undecayed == "norm_and_bias" and key == "bias")
                    (exempt if spared else decayed).append(parameter)
        if decayed:
            rule = {} if getattr(module, "decayed", True) else {"weight_decay": 0.0}
            yield {"name": name, "params": decayed, **rule}
        if exempt:
            yield {"name": f"{name}/norm", "params": exempt, "weight_decay": 0.0}
