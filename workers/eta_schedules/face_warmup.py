"""The weight of the regularizer is zero for some epochs, then rises and stays."""

from typing import Annotated

from annotated_types import Ge


class FaceWarmup:
    """0 for the epochs 1 to `wait`, then linearly to eta within `rise` epochs, then eta (SEC's face recognition).

    An epoch is floor(N/b) iterations, also where the training counts iterations.
    """

    label = "Face warm-up"
    paper = "SEC app. B.2"

    def __init__(
        self, eta: float, epoch: int, *, wait: Annotated[float, Ge(0)] = 3.0, rise: Annotated[float, Ge(0)] = 1.0
    ) -> None:
        self._eta = eta
        self._start = wait * epoch
        self._rise = rise * epoch

    def __call__(self, step: int) -> float:
        if step < self._start:
            return 0.0
        risen = (step - self._start) / self._rise if self._rise else 1.0
        return self._eta * min(1.0, risen)
