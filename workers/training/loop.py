"""The course of one model: iterations, evaluations on the way, checkpoints, and every metric at the end."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from workers.contract import BEST_TEST, Place, Stopped
from workers.training import checkpoint
from workers.training.progress_log import ProgressLog
from workers.training.session import Session

LAST: Final = "last.pt"
"""The checkpoint from which an unfinished training goes on."""

State = Callable[[], Mapping[str, Any]]


def iterate(session: Session, place: Place, journal: ProgressLog, state: State) -> None:
    """Iterate to the end, evaluating on the way; a checkpoint is only written between two whole iterations.

    What a checkpoint holds is what `state` gives. Raises Diverged, and Stopped when asked to stop, after a checkpoint
    if it can be written.
    """
    saved = time.monotonic()
    while True:
        if place.stop():
            _save(session, place, journal, state)
            raise Stopped(f"stopped after {session.step} of {session.total} iterations")
        if session.over:
            return
        _iteration(session, journal)
        if session.step % session.length.every == 0 and session.step < session.total:
            _judge(session, journal, _evaluate(session, session.watched, session.among(session.cheap)))
        if time.monotonic() - saved >= place.checkpoint_seconds:
            _save(session, place, journal, state)
            saved = time.monotonic()


def finish(session: Session, journal: ProgressLog, dear: bool = True) -> dict[str, float]:
    """Every metric of the last weights and of the best ones, keyed `best/test/map@r`; those of test images also of the
    weights that are best on these, keyed `best_test/test/map@r`, where the recipe asks for it.

    What is dear of test images is computed of the weights that were chosen, and only if `dear`. Leaves the weights that
    are kept in the model: the best, or the last where the recipe selects these.
    """
    names = session.among(session.metrics)

    def everything() -> dict[str, float]:
        return _evaluate(session, session.splits, names) | dict(session.task.end())

    known = {session.step: everything()}
    last = known[session.step]
    if session.step == session.total:  # else patience ended it at an evaluation, which is noted already
        watched = [f"{split}/{name}" for split in session.watched for name in session.among(session.cheap)]
        _judge(session, journal, {key: last[key] for key in watched})
    kept = session.best.step if session.best else session.step
    if session.best is not None and kept not in known:
        session.load(session.best.modules)
        known[kept] = everything()
    late = [*session.task.late("test")] if dear else []
    if late:
        journal.tell(session.step, {}, f"computing {', '.join(late)} of step {kept}: dear of so many images")
        known[kept] |= measured(session, "test", late)
    metrics = {f"last/{key}": value for key, value in last.items()}
    if session.best is not None:
        metrics |= {f"best/{key}": value for key, value in known[kept].items()}
    metrics |= {f"{BEST_TEST}/{key}": value for key, value in _beside(session, names, late, known).items()}
    return {key: value for key, value in metrics.items() if math.isfinite(value)}


def _beside(
    session: Session, names: list[str], late: list[str], known: Mapping[int, Mapping[str, float]]
) -> dict[str, float]:
    """The test metrics where the test split itself chooses; `known` are those of steps whose weights were looked at."""
    if session.beside is None:
        return {}
    found = known.get(session.beside.step, {})
    if not found or any(f"test/{name}" not in found for name in late):
        kept = session.weights()
        session.load(session.beside.modules)
        found = _evaluate(session, ["test"], names) | (measured(session, "test", late) if late else {})
        session.load(kept)
    return {key: value for key, value in found.items() if key.startswith("test/")}


def _iteration(session: Session, journal: ProgressLog) -> None:
    """One iteration: every player has its turn."""
    if session.step == 0:
        session.task.begin()
    values: dict[str, float] = {}
    skipped, due = "", journal.due(session.step + 1)
    for terms in session.turns():
        if not bool(terms.total.isfinite()):
            skipped = session.skip(terms)
            continue
        session.descend(terms)
        if due:
            values |= terms.noted()
    session.step += 1
    if skipped:
        journal.skipped(session.step, skipped)
    session.task.after(session.step)
    if due and not skipped:
        journal.trained(session.step, {f"train/{name}": value for name, value in values.items()})


def _evaluate(session: Session, splits: Sequence[str], names: Sequence[str]) -> dict[str, float]:
    """The metrics `names` of the present weights, keyed `validation/map@r`, but those that are dear of a split."""
    found: dict[str, float] = {}
    for split in splits:
        dear = session.task.late(split)
        found |= measured(session, split, [name for name in names if name not in dear])
    return found


def measured(session: Session, split: str, names: Sequence[str]) -> dict[str, float]:
    """The metrics `names` of the present weights on a split, keyed `test/map@r`; NaN where there is no value."""
    return {f"{split}/{name}": value for name, value in session.task.evaluate(split, names).items()}


def _judge(session: Session, journal: ProgressLog, values: Mapping[str, float]) -> None:
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


def _save(session: Session, place: Place, journal: ProgressLog, state: State) -> None:
    """Write the checkpoint from which to go on, and say so once it is complete.

    One that cannot be written, on a full disk for one, ends no training: the checkpoint before it still stands, the
    next one may fit, and what is kept at the end is another file.
    """
    try:
        checkpoint.save(place.storage / LAST, state())
    except OSError as error:
        reason = f"{error.strerror or error} ({error.filename or LAST})"
        journal.tell(session.step, {}, f"no checkpoint at step {session.step}: {reason}; going on without")
    else:
        journal.tell(session.step, {}, checkpoint=LAST)
