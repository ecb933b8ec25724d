"""The weight of the regularizer rises fast at the beginning."""

from typing import Annotated

from annotated_types import Gt


class MinRamp:
    """min(eta, `slope` x t / T) at iteration t of T: with SEC's slope of 500, eta = 1 is reached at t = T / 500."""

    label = "Minimum ramp"
    paper = "SEC eq. 32"

    def __init__(self, eta: float, total: int, *, slope: Annotated[float, Gt(0)] = 500.0) -> None:
        self._eta, self._total, self._slope = eta, total, slope

    def __call__(self, step: int) -> float:
        return min(self._eta, self._slope * step / self._total)
