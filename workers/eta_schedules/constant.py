"""A constant weight of the regularizer."""


class ConstantEta:
    """eta does not change."""

    label = "Constant"
    paper = "SEC sec. 4, deep metric learning"
    moves = False

    def __init__(self, eta: float) -> None:
        self._eta = eta

    def __call__(self, step: int) -> float:
        return self._eta
