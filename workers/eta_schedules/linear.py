"""The weight of the regularizer rises through the whole training."""


class Linear:
    """eta x t / T, from 0 at the first of T iterations (SEC's self-supervised learning)."""

    label = "Linear"
    paper = "SEC eq. 29"

    def __init__(self, eta: float, total: int) -> None:
        self._eta, self._total = eta, total

    def __call__(self, step: int) -> float:
        return self._eta * step / self._total
