"""The learning rate falls by a polynomial."""

from typing import Annotated

from annotated_types import Ge, Le, Lt


class Polynomial:
    """1 for the first `hold` of training (a fraction), then down to `floor` by (1 - progress)^power.

    SVMax holds for half the iterations and then decays with a power it does not state (`hold` 0.5, power 1) to a
    learning rate of 1e-7: `floor`, a factor, is 1e-7 / lr.
    """

    label = "Polynomial"
    paper = "SVMax sec. 4"

    def __init__(
        self,
        total: int,
        *,
        power: Annotated[float, Ge(0)] = 1.0,
        floor: Annotated[float, Ge(0), Le(1)] = 0.0,
        hold: Annotated[float, Ge(0), Lt(1)] = 0.5,
    ) -> None:
        self._total, self._power, self._floor, self._hold = total, power, floor, hold

    def __call__(self, step: int) -> float:
        progress = max(0.0, (step / self._total - self._hold) / (1 - self._hold))
        factor: float = self._floor + (1 - self._floor) * (1 - progress) ** self._power
        return factor
