"""The learning rate falls at given iterations."""

from bisect import bisect_right


class Step:
    """The learning rate is multiplied by `gamma` at each of the iterations `at`, or every so many (`every`).

    Both are epochs where the training counts epochs. SEC: at 3000 and 6000; Proxy-ISA: every 10 or 20 epochs.
    """

    label = "Step"
    paper = "SEC T6"
    version = 1

    def __init__(
        self, unit: int = 1, *, at: tuple[int, ...] = (), every: int | None = None, gamma: float = 0.1
    ) -> None:
        if every is not None and (every < 1 or at):
            raise ValueError(f"step: give `at`, or `every` of at least 1; found {list(at)} and {every}")
        self._unit = unit
        self._at = sorted(at)
        self._every = every
        self._gamma = gamma

    def __call__(self, step: int) -> float:
        """The factor at iteration `step`, from 0."""
        passed = step // self._unit
        falls = bisect_right(self._at, passed) if self._every is None else passed // self._every
        factor: float = self._gamma**falls
        return factor
