"""The loop of a training: steps, evaluations, progress and the last checkpoint."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from workers.contract import Place, Progress, Recipe, Stopped
from workers.training import checkpoint
from workers.training.session import Best, Session

REPORT_SECONDS: Final = 1.0
"""The least time between two regular messages: each is written to disk, passed on and recorded."""
REPORT_SHARE: Final = 0.05
"""The least time between them as a share of the training's time so far, up to `_LATE_REPORT_SECONDS`."""
_LATE_REPORT_SECONDS: Final = 5.0
LINE_SECONDS: Final = 5.0
"""The least time between two regular lines of the log."""
POINTS: Final = 1_000
"""The maximal number of points of a metric's curve, so that all curves stay under 10,000."""
_ITERATIONS: Final = 100  # points of a curve of the training itself

Curves = dict[str, list[tuple[int, float]]]


class ProgressLog:
    """Records the curves of a training and reports its progress; evaluations come after `every` of `total` iterations.

    If it is one of several `folds` (its number, their count), all folds share the points, and reports count on from the
    `before` iterations of the folds before it.
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
        # Every so many iterations become points.
        self._evaluations = every * max(1, math.ceil(total / every / max(1, POINTS // count)))
        self._iterations = max(1, total * count // _ITERATIONS)
        self._curves = curves
        self._report = report
        self._began = self._reported = self._written = time.monotonic()
        self._skipped = False

    def due(self, step: int) -> bool:
        """Whether iteration `step` becomes a point of the curves."""
        return step % self._iterations == 0 or step == self._total

    def trained(self, step: int, values: Mapping[str, float]) -> None:
        """Record the values of an iteration; they are reported only if nothing was for a while."""
        self._add(step, values)
        self.passing(step, values)

    def skipped(self, step: int, why: str) -> None:
        """Report an iteration that was left out: the first, and others if no line was logged for a while."""
        if not self._skipped or time.monotonic() - self._written >= LINE_SECONDS:
            self.report(step, {}, f"step {step}/{self._total} {why}")
        self._skipped = True

    def evaluated(self, step: int, values: Mapping[str, float]) -> None:
        """Record and report the metrics of an evaluation."""
        if step % self._evaluations == 0 or step == self._total:
            self._add(step, values)
        latest = {key: points[-1][1] for key, points in self._curves.items() if key.startswith("train/")}
        loss = {key: value for key, value in latest.items() if key == "train/loss"}
        self.report(step, latest | dict(values), self._line(step, loss | dict(values)))

    def passing(self, step: int, values: Mapping[str, float]) -> None:
        """Report values that are not part of the curves, if nothing was reported for a while."""
        now = time.monotonic()
        growing = min(_LATE_REPORT_SECONDS, REPORT_SHARE * (now - self._began))
        if now - self._reported >= max(REPORT_SECONDS, growing):
            self.report(step, values, self._line(step, values) if now - self._written >= LINE_SECONDS else "")

    def report(self, step: int, values: Mapping[str, float], line: str = "", checkpoint: str | None = None) -> None:
        """Report immediately."""
        self._reported = time.monotonic()
        if line:
            self._written = self._reported
        log = f"{line}\n" if line else ""
        place = {"step": self._before + step, "total": self._whole}
        self._report(Progress(**place, metrics=dict(values), log=log, checkpoint=checkpoint))

    def _add(self, step: int, values: Mapping[str, float]) -> None:
        """Add points to curves, except values that are not finite."""
        for key, value in values.items():
            if math.isfinite(value):
                self._curves.setdefault(key, []).append((step, value))

    def _line(self, step: int, values: Mapping[str, float]) -> str:
        """Such as `step 50/150 loss 0.123 validation/map@r 0.82`."""
        words = [f"{key.removeprefix('train/')} {value:.4g}" for key, value in values.items()]
        return " ".join([f"step {step}/{self._total}", *words])


def reported_before(recipe: Recipe, report: Callable[[Progress], None]) -> Callable[[str], None]:
    """Reports lines of the log before the first iteration, when the length of the training is not known."""
    return lambda line: report(Progress(step=0, total=recipe.iterations or 1, log=f"{line}\n"))


LAST: Final = "last.pt"


class LastCheckpoint:
    """Writes the checkpoint of a training at `place` from the state that `state` returns."""

    def __init__(self, place: Place, journal: ProgressLog, state: Callable[[], Mapping[str, Any]]) -> None:
        self._place, self._journal, self._state = place, journal, state
        self._saved = time.monotonic()

    def stop(self, session: Session) -> None:
        """If asked to stop, write a checkpoint if possible, and raise Stopped."""
        if self._place.stop():
            self._save(session)
            raise Stopped(f"stopped after {session.step} of {session.total} iterations")

    def keep(self, session: Session) -> None:
        """Write the checkpoint if the last one is old enough."""
        if time.monotonic() - self._saved >= self._place.checkpoint_seconds:
            self._save(session)
            self._saved = time.monotonic()

    def _save(self, session: Session) -> None:
        """Write the checkpoint, and report it.

        If it cannot be written, for example on a full disk, the training goes on: the previous checkpoint is still
        there, the next may fit, and the kept weights are another file.
        """
        try:
            checkpoint.save(self._place.storage / LAST, self._state())
        except OSError as error:
            reason = f"{error.strerror or error} ({error.filename or LAST})"
            self._journal.report(session.step, {}, f"no checkpoint at step {session.step}: {reason}; going on without")
        else:
            self._journal.report(session.step, {}, checkpoint=LAST)


def iterate(session: Session, last: LastCheckpoint, journal: ProgressLog) -> None:
    """Run the iterations of a training to its end, with evaluations and checkpoints between them.

    Raises Diverged, and Stopped if asked to stop.
    """
    while True:
        last.stop(session)
        if session.over:
            session.settle()
            return
        try:
            iteration(session, journal)
        except Exception:
            session.settle()  # an earlier loss that was not finite may be the cause
            raise
        if session.step % session.length.every == 0 and session.step < session.total:
            session.settle()
            judge(session, journal, evaluated(session, session.recipe.select.watched, session.among(session.cheap)))
        last.keep(session)


def iteration(session: Session, journal: ProgressLog) -> None:
    """Run one iteration: every player makes its step."""
    if session.step == 0:
        session.task.begin()
    values: dict[str, float] = {}
    skipped, due = "", journal.due(session.step + 1)
    for terms in session.turns():
        if not session.finite(terms):
            skipped = session.players[terms.player].scale.skip()
            continue
        session.players[terms.player].down(terms.total)
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
    """Evaluates the current weights: the metrics `names` keyed `validation/map@r`, without expensive metrics."""
    values: dict[str, float] = {}
    for split in splits:
        late = session.task.late(split)
        values |= measured(session, split, [name for name in names if name not in late])
    return values


def measured(session: Session, split: str, names: Sequence[str]) -> dict[str, float]:
    """The metrics `names` of the current weights on a split, keyed `test/map@r`; NaN if there is no value."""
    if not names:  # a task that measures at the end only
        return {}
    return {f"{split}/{name}": value for name, value in session.task.evaluate(split, names).items()}


def judge(session: Session, journal: ProgressLog, values: Mapping[str, float]) -> None:
    """Record an evaluation, and keep the weights if they score best so far."""
    journal.evaluated(session.step, values)
    select = session.recipe.select
    if select.split == "last":
        return
    score, best = values[f"{select.split}/{select.metric}"], session.best
    session.unimproved += 1
    if math.isfinite(score) and (best is None or session.improves(score, best.score)):
        session.best = Best(session.step, score, session.weights())
        session.unimproved = 0
    if select.beside is not None:
        score, best = values[f"{select.beside}/{select.metric}"], session.best_test
        if math.isfinite(score) and (best is None or session.improves(score, best.score)):
            session.keep_best_test(score)
