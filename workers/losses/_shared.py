"""Losses of pytorch-metric-learning that see directions: unit embeddings."""

from collections.abc import Callable
from functools import partial

from torch import Tensor, nn

from workers.geometry import unit


class OfDirections(nn.Module):
    """The library's `loss` of unit embeddings."""

    loss: nn.Module

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        loss: Tensor = self.loss(unit(embeddings), labels)
        return loss


class ClassifierOfDirections(OfDirections):
    """The library's classifier of unit embeddings; its class vectors start at normal(0, init_std) as in InsightFace."""

    def __init__(
        self, made: Callable[..., nn.Module], dim: int, classes: int, init_std: float, **options: float
    ) -> None:
        super().__init__()
        self.loss = made(classes, dim, weight_init_func=partial(nn.init.normal_, std=init_std), **options)

    def class_vectors(self) -> Tensor:
        weight: Tensor = self.loss.get_parameter("W")
        return weight.T[:, None]
