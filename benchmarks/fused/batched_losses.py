"""Losses of all seeds at once: what vmap makes of the product's, and a triplet loss that was written for it."""

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

import workers.losses
from workers.embeddings.geometry import unit
from workers.losses.triplet import Triplet

BatchedLoss = Callable[[Tensor, Tensor], Tensor]
"""Embeddings [seeds, b, d] with labels [seeds, b] to losses [seeds]."""


def batched(loss: nn.Module) -> BatchedLoss:
    """That of a triplet loss over all triplets, by masks in place of lists; raises TypeError for another."""
    if not isinstance(loss, Triplet):
        raise TypeError("only the triplet loss was written for all seeds at once")
    margin = float(loss.loss.margin)

    def computed(embeddings: Tensor, labels: Tensor) -> Tensor:
        directions = unit(embeddings.flatten(0, 1)).view_as(embeddings)
        apart = (2 - 2 * directions @ directions.mT).clamp(min=0)
        same = labels[:, :, None] == labels[:, None, :]
        positive = same & ~torch.eye(labels.shape[1], dtype=torch.bool, device=labels.device)
        triplets = positive[:, :, :, None] & ~same[:, :, None, :]
        terms = (apart[:, :, :, None] - apart[:, :, None, :] + margin).relu() * triplets
        return terms.sum(dim=(1, 2, 3)) / triplets.sum(dim=(1, 2, 3)).clamp(min=1)

    return computed


def _plain() -> Iterator[tuple[str, nn.Module]]:
    """The losses that ask for nothing: those that learn nothing of their own."""
    for module in pkgutil.iter_modules(workers.losses.__path__):
        found = vars(importlib.import_module(f"workers.losses.{module.name}"))
        for part in [*found.values()]:
            here = inspect.isclass(part) and part.__module__ == f"workers.losses.{module.name}"
            if here and hasattr(part, "label"):
                asked = inspect.signature(part).parameters.values()
                if all(one.default is not one.empty for one in asked):
                    yield module.name, part()


def vmapped() -> dict[str, bool]:
    """Whether torch's vmap takes a loss as it is, of those that learn nothing."""
    told = {}
    embeddings, labels = torch.randn(2, 8, 4), torch.arange(4).repeat_interleave(2).repeat(2, 1)
    for name, loss in _plain():
        try:
            torch.func.vmap(loss)(embeddings, labels)
        except (RuntimeError, TypeError):  # lists whose length depends on values, and questions to the device
            told[name] = False
        else:
            told[name] = True
    return told
