"""The learning rate follows half a cosine."""

import math
from typing import Annotated

from annotated_types import Ge, Le


class Cosine:
    """A linear rise over `warmup` iterations, then half a cosine from 1 down to `floor` at the end of training.

    `warmup` is epochs where the training counts epochs.
    """

    label = "Cosine"
    paper = "Loshchilov & Hutter 2017, SGDR"
    shorter_than_training = ("warmup",)

    def __init__(
        self,
        total: int,
        unit: int = 1,
        *,
        warmup: Annotated[int, Ge(0)] = 0,
        floor: Annotated[float, Ge(0), Le(1)] = 0.0,
    ) -> None:
        warmup *= unit
        if not 0 <= warmup < total:
            raise ValueError(f"cosine: warmup must be less than the {total} iterations, found {warmup}")
        self._total, self._warmup, self._floor = total, warmup, floor

    def __call__(self, step: int) -> float:
        if step < self._warmup:
            return (step + 1) / self._warmup
        progress = (step - self._warmup) / (self._total - self._warmup)
        return self._floor + (1 - self._floor) * 0.5 * (1 + math.cos(math.pi * progress))
