"""The course of one model: iterations, and evaluations on the way, by which the best weights are chosen."""

import math
from collections.abc import Mapping, Sequence

from workers.training.last_checkpoint import LastCheckpoint
from workers.training.progress_log import ProgressLog
from workers.training.session import Session


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
