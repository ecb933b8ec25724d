"""The weight of the regularizer rises fast at the very beginning, whatever it is to become."""

import math


class MinRamp:
    """min(eta, `slope` x t / T) at iteration t of T: with SEC's slope of 500, eta = 1 is reached at t = T / 500."""

    label = "Minimum ramp"
    paper = "SEC eq. 32"
    version = 1

    def __init__(self, eta: float, total: int, *, slope: float = 500.0) -> None:
        if not 0 < slope < math.inf:
            raise ValueError(f"min_ramp: slope must be a finite number above 0, found {slope}")
        self._eta = eta
        self._total = total
        self._slope = slope

    def __call__(self, step: int) -> float:
        """eta at iteration `step`, from 0."""
        return min(self._eta, self._slope * step / self._total)
