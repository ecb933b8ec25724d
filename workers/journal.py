"""What a training says while it runs: its curves, and the progress messages, which are few."""

import math
import time
from collections.abc import Callable, Mapping
from typing import Final

from workers.contract import Progress

REPORT_SECONDS: Final = 0.3
"""The least time between two messages that nothing special calls for."""
LINE_SECONDS: Final = 5.0
"""The least time between two lines of the log that nothing special calls for."""
POINTS: Final = 1_000
"""The most points of a metric's curve, so that all curves together stay under 10,000."""

Curves = dict[str, list[tuple[int, float]]]


class Journal:
    """Adds to `curves` and tells `report`, of a training that evaluates `every` so many of its `total` iterations."""

    def __init__(self, total: int, every: int, curves: Curves, report: Callable[[Progress], None]) -> None:
        self._total = total
        self._evaluations = every * max(1, math.ceil(total / every / POINTS))  # those that become points
        self._curves = curves
        self._report = report
        self._reported = self._written = time.monotonic()

    def trained(self, step: int, values: Mapping[str, float]) -> None:
        """Note an iteration; it is reported only where nothing was for a while."""
        self._add(step, values)
        now = time.monotonic()
        if now - self._reported >= REPORT_SECONDS:
            self.tell(step, values, self._line(step, values) if now - self._written >= LINE_SECONDS else "")

    def evaluated(self, step: int, values: Mapping[str, float]) -> None:
        """Note an evaluation and report it."""
        if step % self._evaluations == 0 or step == self._total:
            self._add(step, values)
        latest = {key: points[-1][1] for key, points in self._curves.items() if key.startswith("train/")}
        loss = {key: value for key, value in latest.items() if key == "train/loss"}
        self.tell(step, latest | dict(values), self._line(step, loss | dict(values)))

    def tell(self, step: int, values: Mapping[str, float], line: str = "", checkpoint: str | None = None) -> None:
        """Report now."""
        self._reported = time.monotonic()
        if line:
            self._written = self._reported
        log = f"{line}\n" if line else ""
        self._report(Progress(step=step, total=self._total, metrics=dict(values), log=log, checkpoint=checkpoint))

    def _add(self, step: int, values: Mapping[str, float]) -> None:
        """Points of curves; a value that is not finite is no point."""
        for key, value in values.items():
            if math.isfinite(value):
                self._curves.setdefault(key, []).append((step, value))

    def _line(self, step: int, values: Mapping[str, float]) -> str:
        """`step 50/150 loss 0.123 validation/map@r 0.82`."""
        words = [f"{key.removeprefix('train/')} {value:.4g}" for key, value in values.items()]
        return " ".join([f"step {step}/{self._total}", *words])
