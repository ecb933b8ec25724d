"""The learning rate falls at given iterations."""

from bisect import bisect_right
from typing import Annotated

from annotated_types import Ge


class Step:
    """The learning rate is multiplied by `gamma` at each of the iterations `at`, or after each `every` iterations.

    Both count epochs if the training does. SEC: at 3000 and 6000; Proxy-ISA: every 10 or 20 epochs.
    """

    label = "Step"
    paper = "SEC T6"
    only_where = {"every": {"at": ()}}

    def __init__(
        self,
        unit: int = 1,
        *,
        at: tuple[Annotated[int, Ge(0)], ...] = (),
        every: Annotated[int, Ge(1)] | None = None,
        gamma: Annotated[float, Ge(0)] = 0.1,
    ) -> None:
        if every is not None and at:
            raise ValueError(f"step: give `at` or `every`, found {list(at)} and {every}")
        self._unit = unit
        self._at = sorted(at)
        self._every, self._gamma = every, gamma

    def __call__(self, step: int) -> float:
        passed = step // self._unit
        falls = bisect_right(self._at, passed) if self._every is None else passed // self._every
        factor: float = self._gamma**falls
        return factor
