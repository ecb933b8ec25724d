"""The optimizers of a training: learning rates, warm-up, loss scale, and losses that are known late."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import torch
from torch import Tensor, nn

from workers import registry
from workers.contract import Recipe
from workers.tasks import Diverged

FLOOR: Final = 1.0
"""The least loss scale: below it, gradients would become smaller than they are."""
LONGEST_RUN: Final = 16
"""Iterations in a row that may be left out; one more is a divergence. As many halvings bring torch's first scale,
65,536, to the floor."""

_LATE: Final = 8
_NORMALIZATIONS: Final = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.GroupNorm, nn.LayerNorm)
"""The layers whose weights and biases are not decayed by default."""


class Length(NamedTuple):
    """The lengths of a training, its epochs and its warm-up, in iterations."""

    total: int
    every: int  # between two evaluations
    warmup: int  # at the start, with a frozen backbone
    epoch: int  # floor(N/b) batches of the N images that train, at least 1; 1 if there are no images
    unit: int  # what the recipe counts: 1, or an epoch


class Optimization:
    """A player's optimizer over `modules`, with learning rates and the treatment of gradients.

    `rate` is a factor on all learning rates. `every` are the modules whose buffers change when the player computes;
    None means `modules`.
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
        # Parameters that are always frozen are in no group and stay as they are.
        self._backbone = [p for group in param_groups if group["name"].startswith("backbone") for p in group["params"]]
        self._parameters = [parameter for group in param_groups for parameter in group["params"]]
        kept = modules.values() if every is None else every
        self.scale = LossScale(device, kept, enabled=recipe.precision == "fp16")

    def prepare(self, step: int) -> float:
        """Set learning rates and frozen parameters for iteration `step`; returns the optimizer's learning rate."""
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
        if self._recipe.clip_value is not None:
            nn.utils.clip_grad_value_(self._parameters, self._recipe.clip_value)
        if self._recipe.clip_norm is not None:
            nn.utils.clip_grad_norm_(self._parameters, self._recipe.clip_norm)

    def state_dict(self) -> dict[str, Any]:
        return {"optimizer": self.optimizer.state_dict(), **self.scale.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.optimizer.load_state_dict(state["optimizer"])
        self.scale.load_state_dict(state)


def length(recipe: Recipe, images: int, batch: int) -> Length:
    """The length of the recipe's training in iterations, for `images` training images and `batch` images per batch."""
    epoch = max(1, images // batch)
    if recipe.epochs is not None:
        every = recipe.evaluates_every * epoch
        return Length(recipe.epochs * epoch, every, recipe.warmup * epoch, epoch, epoch)
    if recipe.iterations is None:
        raise ValueError("a recipe gives `iterations` or `epochs`")
    return Length(recipe.iterations, recipe.evaluates_every, recipe.warmup, epoch, 1)


def loss_rate(recipe: Recipe, loss: nn.Module) -> float:
    """The factor on the learning rate of the loss's parameters."""
    return float(getattr(loss, "lr_scale", 1.0) if recipe.loss_rate is None else recipe.loss_rate)


def parameter_groups(modules: Mapping[str, nn.Module], undecayed: str = "norm") -> Iterator[dict[str, Any]]:
    """For each module, an optimizer group, and another without weight decay for what `undecayed` leaves out.

    By default these are normalization layers (SEC's rule). A module whose fact `decayed` is False has no weight decay
    at all; parameters without gradients are left out.
    """
    for name, module in modules.items():
        decayed: list[nn.Parameter] = []
        exempt: list[nn.Parameter] = []
        for layer in module.modules():
            norm = isinstance(layer, _NORMALIZATIONS) and undecayed != "none"
            for key, parameter in layer.named_parameters(recurse=False):
                if parameter.requires_grad:
                    spared = norm or (undecayed == "norm_and_bias" and key == "bias")
                    (exempt if spared else decayed).append(parameter)
        if decayed:
            rule = {} if getattr(module, "decayed", True) else {"weight_decay": 0.0}
            yield {"name": name, "params": decayed, **rule}
        if exempt:
            yield {"name": f"{name}/norm", "params": exempt, "weight_decay": 0.0}


class LossScale:
    """torch's gradient scaler, which also leaves out iterations whose loss is not finite; does nothing unless
    `enabled`.

    float16 overflows beyond 65,504, in gradients and on the way to the loss. Either halves the scale, and the iteration
    counts without a step. After an overflow on the way to the loss, the buffers of `modules`, such as running means of
    batch norm, are restored, since they would stay infinite.
    """

    def __init__(self, device: torch.device, modules: Iterable[nn.Module], *, enabled: bool) -> None:
        self._scaler = torch.amp.GradScaler(device.type, enabled=enabled)
        self._modules = [*modules]
        self._kept: list[tuple[nn.Module, str, Tensor]] = []
        self._run = 0
        self.enabled = enabled

    def keep(self) -> None:
        """Store the buffers of the modules before the network computes."""
        if self.enabled:
            owners = (part for module in self._modules for part in module.modules() if part.training)
            named = ((owner, name, value) for owner in owners for name, value in owner.named_buffers(recurse=False))
            self._kept = [(owner, name, value.clone()) for owner, name, value in named]

    def descend(self, total: Tensor, optimizer: torch.optim.Optimizer, clip: Callable[[], None]) -> None:
        """One step down the gradient of the finite scalar `total`, or none if the gradient is not finite.

        `clip` may change the gradients. Raises Diverged after too many such iterations in a row.
        """
        self._scaler.scale(total).backward()  # type: ignore[no-untyped-call]
        self._scaler.unscale_(optimizer)
        clip()
        before = self._scaler.get_scale()
        self._scaler.step(optimizer)
        self._scaler.update()
        if self.enabled and self._scaler.get_scale() < before:
            self._left_out("gradient", self._scaler.get_scale())
        else:
            self._run = 0

    def skip(self) -> str:
        """Leave out an iteration whose loss is not finite; returns a message.

        Raises Diverged if nothing is scaled, or after too many such iterations in a row.
        """
        if not self.enabled:
            raise Diverged("the loss is not finite")
        with torch.no_grad():
            for owner, name, value in self._kept:
                getattr(owner, name).copy_(value)
        scale = self._left_out("loss", self._scaler.get_scale() * self._scaler.get_backoff_factor())
        return f"the loss is not finite: no step, {self._run} in a row; gradients are scaled by {scale:g} from now on"

    def _left_out(self, what: str, scale: float) -> float:
        """Count an iteration without a step; returns the new scale."""
        self._run += 1
        if self._run > LONGEST_RUN:
            raise Diverged(f"the {what} is not finite, in the {self._run}th iteration in a row, in float16")
        scale = max(FLOOR, scale)
        self._scaler.load_state_dict({**self._scaler.state_dict(), "scale": scale, "_growth_tracker": 0})
        return scale

    def state_dict(self) -> dict[str, Any]:
        return {"scaler": self._scaler.state_dict(), "run": self._run}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._scaler.load_state_dict(state["scaler"])
        self._run = state["run"]


def lateness(device: torch.device) -> int:
    """The number of iterations that a training may run ahead of the known losses: none on a CPU."""
    return _LATE if device.type == "cuda" else 0


class _LateLoss(NamedTuple):
    """Whether the loss after `step` iterations is finite, known once the GPU has reached `event`."""

    step: int
    finite: torch.Tensor
    event: torch.cuda.Event | None


class LateLosses:
    """Finds the first loss that is not finite, which a GPU reports later."""

    def __init__(self) -> None:
        self._pending: deque[_LateLoss] = deque()

    def note(self, step: int, total: torch.Tensor) -> None:
        """Add the loss of the iteration after `step` iterations."""
        finite, event = total.detach().isfinite(), None
        if finite.is_cuda:
            pinned = torch.empty(finite.shape, dtype=torch.bool, pin_memory=True)
            finite = pinned.copy_(finite, non_blocking=True)
            event = torch.cuda.current_stream(total.device).record_event()
        self._pending.append(_LateLoss(step, finite, event))

    def diverged(self, step: int) -> int | None:
        """The number of iterations before the first loss that is not finite; None if the first `step` losses are
        finite.

        Waits only for these losses.
        """
        while self._pending and self._pending[0].step <= step:
            loss = self._pending.popleft()
            if loss.event is not None:
                loss.event.synchronize()
            if not bool(loss.finite):
                return loss.step
        return None
