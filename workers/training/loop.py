"""The loop of a training: steps, evaluations, progress and the last checkpoint."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from workers.contract import Place, Progress, Recipe, Stopped
from workers.training import checkpoint
from workers.training.session import Session

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


LAST: Final = "last.pt"
"""Its file."""


class LastCheckpoint:
    """Keeps the one checkpoint of a training at `place`; what it holds is what `state` gives."""

    def __init__(self, place: Place, journal: ProgressLog, state: Callable[[], Mapping[str, Any]]) -> None:
        self._place, self._journal, self._state = place, journal, state
        self._saved = time.monotonic()

    def stop(self, session: Session) -> None:
        """Raise Stopped when asked to stop, after a checkpoint if it can be written."""
        if self._place.stop():
            self._save(session)
            raise Stopped(f"stopped after {session.step} of {session.total} iterations")

    def keep(self, session: Session) -> None:
        """Write it where the last one is old enough."""
        if time.monotonic() - self._saved >= self._place.checkpoint_seconds:
            self._save(session)
            self._saved = time.monotonic()

    def _save(self, session: Session) -> None:
        """Write it, and say so once it is complete.

        One that cannot be written, on a full disk for one, ends no training: the checkpoint before it still stands, the
        next one may fit, and what is kept at the end is another file.
        """
        try:
            checkpoint.save(self._place.storage / LAST, self._state())
        except OSError as error:
            reason = f"{error.strerror or error} ({error.filename or LAST})"
            self._journal.tell(session.step, {}, f"no checkpoint at step {session.step}: {reason}; going on without")
        else:
            self._journal.tell(session.step, {}, checkpoint=LAST)


def iterate(session: Session, last: LastCheckpoint, journal: ProgressLog) -> None:
    """Iterate to the end, evaluating on the way; a checkpoint is only written between two whole iterations.

    Raises Diverged, and Stopped when asked to stop.
    """
    while True:
        last.stop(session)
        if session.over:
            session.settle()
            return
        try:
            iteration(session, journal)
        except Exception:
            session.settle()  # a loss before that was not finite is why, if there was one
            raise
        if session.step % session.length.every == 0 and session.step < session.total:
            session.settle()
            judge(session, journal, evaluated(session, session.recipe.select.watched, session.among(session.cheap)))
        last.keep(session)


def iteration(session: Session, journal: ProgressLog) -> None:
    """One iteration: every player has its turn."""
    if session.step == 0:
        session.task.begin()
    values: dict[str, float] = {}
    skipped, due = "", journal.due(session.step + 1)
    for terms in session.turns():
        if not session.finite(terms):
            skipped = session.skip(terms)
            continue
        session.descend(terms)
        if due:
            session.settle()
            values |= terms.noted()
    session.step += 1
    if skipped:
        journal.skipped(session.step, skipped)
    session.task.after(session.step)
    if due and not skipped:
        journal.trained(session.step, {f"train/{name}": value for name, value in values.items()})


def evaluated(session: Session, splits: Sequence[str], names: Sequence[str]) -> dict[str, float]:
    """The metrics `names` of the present weights, keyed `validation/map@r`, but those that are dear of a split."""
    found: dict[str, float] = {}
    for split in splits:
        dear = session.task.late(split)
        found |= measured(session, split, [name for name in names if name not in dear])
    return found


def measured(session: Session, split: str, names: Sequence[str]) -> dict[str, float]:
    """The metrics `names` of the present weights on a split, keyed `test/map@r`; NaN where there is no value."""
    if not names:  # a task that measures at the end only
        return {}
    return {f"{split}/{name}": value for name, value in session.task.evaluate(split, names).items()}


def judge(session: Session, journal: ProgressLog, values: Mapping[str, float]) -> None:
    """Note an evaluation, and keep the weights where they are the best so far."""
    journal.evaluated(session.step, values)
    select = session.recipe.select
    if select.split == "last":
        return
    score, best = values[f"{select.split}/{select.metric}"], session.best
    session.unimproved += 1
    if math.isfinite(score) and (best is None or session.improves(score, best.score)):
        session.keep_best(score)
        session.unimproved = 0
    if select.beside is not None:
        score, best = values[f"{select.beside}/{select.metric}"], session.beside
        if math.isfinite(score) and (best is None or session.improves(score, best.score)):
            session.keep_beside(score)
