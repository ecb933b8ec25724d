"""What a training says while it runs: its curves, and the progress messages, which are few."""

import math
import time
from collections.abc import Callable, Mapping
from typing import Final

from workers.contract import Progress, Recipe

REPORT_SECONDS: Final = 1.0
"""The least time between two messages that nothing special calls for: each is written to disk, passed on, recorded."""
REPORT_SHARE: Final = 0.05
"""Of the time that a training has taken so far: also the least, as long as that is below the next."""
LATE_REPORT_SECONDS: Final = 5.0
"""So long, then, after a hundred seconds."""
LINE_SECONDS: Final = 5.0
"""The least time between two lines of the log that nothing special calls for."""
POINTS: Final = 1_000
"""The most points of a metric's curve, so that all curves together stay under 10,000."""
ITERATIONS: Final = 100
"""The points of a curve of the training itself."""

Curves = dict[str, list[tuple[int, float]]]


class ProgressLog:
    """Adds to `curves` and tells `report`, of a training that evaluates `every` so many of its `total` iterations.

    Where it is one of several `folds` (its number, how many) all share the points, and what is reported counts on from
    the `before` iterations of the folds that are done.
    """

    def __init__(
        self,
        total: int,
        every: int,
        curves: Curves,
        report: Callable[[Progress], None],
        *,
        before: int = 0,
        folds: tuple[int, int] = (0, 1),
    ) -> None:
        number, count = folds
        self._total = total
        self._before, self._whole = before, before + (count - number) * total
        # Those that become points.
        self._evaluations = every * max(1, math.ceil(total / every / max(1, POINTS // count)))
        self._iterations = max(1, total * count // ITERATIONS)
        self._curves = curves
        self._report = report
        self._began = self._reported = self._written = time.monotonic()
        self._skipped = False

    def due(self, step: int) -> bool:
        """Whether iteration `step` becomes a point."""
        return step % self._iterations == 0 or step == self._total

    def trained(self, step: int, values: Mapping[str, float]) -> None:
        """Note an iteration; it is reported only where nothing was for a while."""
        self._add(step, values)
        self.passing(step, values)

    def skipped(self, step: int, why: str) -> None:
        """Tell of an iteration that was left out: of the first, and of another where no line was for a while."""
        if not self._skipped or time.monotonic() - self._written >= LINE_SECONDS:
            self.tell(step, {}, f"step {step}/{self._total} {why}")
        self._skipped = True

    def evaluated(self, step: int, values: Mapping[str, float]) -> None:
        """Note an evaluation and report it."""
        if step % self._evaluations == 0 or step == self._total:
            self._add(step, values)
        latest = {key: points[-1][1] for key, points in self._curves.items() if key.startswith("train/")}
        loss = {key: value for key, value in latest.items() if key == "train/loss"}
        self.tell(step, latest | dict(values), self._line(step, loss | dict(values)))

    def passing(self, step: int, values: Mapping[str, float]) -> None:
        """Report what is no point of a curve, only where nothing was reported for a while."""
        now = time.monotonic()
        growing = min(LATE_REPORT_SECONDS, REPORT_SHARE * (now - self._began))
        if now - self._reported >= max(REPORT_SECONDS, growing):
            self.tell(step, values, self._line(step, values) if now - self._written >= LINE_SECONDS else "")

    def tell(self, step: int, values: Mapping[str, float], line: str = "", checkpoint: str | None = None) -> None:
        """Report now."""
        self._reported = time.monotonic()
        if line:
            self._written = self._reported
        log = f"{line}\n" if line else ""
        place = {"step": self._before + step, "total": self._whole}
        self._report(Progress(**place, metrics=dict(values), log=log, checkpoint=checkpoint))

    def _add(self, step: int, values: Mapping[str, float]) -> None:
        """Points of curves; a value that is not finite is no point."""
        for key, value in values.items():
            if math.isfinite(value):
                self._curves.setdefault(key, []).append((step, value))

    def _line(self, step: int, values: Mapping[str, float]) -> str:
        """`step 50/150 loss 0.123 validation/map@r 0.82`."""
        words = [f"{key.removeprefix('train/')} {value:.4g}" for key, value in values.items()]
        return " ".join([f"step {step}/{self._total}", *words])


def told_before(recipe: Recipe, report: Callable[[Progress], None]) -> Callable[[str], None]:
    """What takes lines of the log before there is a training to number them by."""
    return lambda line: report(Progress(step=0, total=recipe.iterations or 1, log=f"{line}\n"))
