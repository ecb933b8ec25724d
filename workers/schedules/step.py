"""The learning rate falls at given iterations."""

from bisect import bisect_right


class Step:
    """The learning rate is multiplied by `gamma` at each of the iterations `at` (SEC: at 3000 and 6000)."""

    label = "Step"
    paper = "SEC T6"
    version = 1

    def __init__(self, *, at: tuple[int, ...], gamma: float = 0.1) -> None:
        self._at = sorted(at)
        self._gamma = gamma

    def __call__(self, step: int) -> float:
        """The factor at iteration `step`, from 0."""
        factor: float = self._gamma ** bisect_right(self._at, step)
        return factor
