"""Every metric of the weights that count at the end: the last, the best, and those that are best on the test split."""

from collections.abc import Sequence

import torch

from workers.contract import BEST_TEST
from workers.evaluation.query_scores import QueryScores
from workers.tasks import At
from workers.training import determinism
from workers.training.last_checkpoint import LastCheckpoint
from workers.training.loop import evaluated, judge, measured
from workers.training.progress_log import ProgressLog
from workers.training.session import Session


def finish(session: Session, last: LastCheckpoint, journal: ProgressLog, dear: bool = True) -> dict[str, float]:
    """Every metric of the last weights and of the best ones, keyed `best/test/map@r`; those of test images also of the
    weights that are best on these, keyed `best_test/test/map@r`, where the recipe asks for it.

    What is dear of test images is computed of the weights that were chosen, and only if `dear`. Leaves the weights that
    are kept in the model: the best, or the last where the recipe selects these. A metric without a value is NaN. Raises
    Diverged, and Stopped when asked to stop while the task measures at the end; a checkpoint that was written there is
    gone on from there.
    """
    names, evaluations = session.among(session.metrics), session.ending.found
    if session.step not in evaluations:
        evaluations[session.step] = _every(session, session.step, names)
        if session.step == session.total:  # else patience ended it at an evaluation, which is noted already
            cheap, splits = session.among(session.cheap), session.recipe.select.watched
            watched = [f"{split}/{name}" for split in splits for name in cheap]
            judge(session, journal, {key: evaluations[session.step][key] for key in watched})
    _end(session, session.step, journal, last)
    kept = session.best.step if session.best else session.step
    if session.best is not None and kept not in evaluations:
        session.load(session.best.modules)
        evaluations[kept] = _every(session, kept, names)
    _end(session, kept, journal, last)
    late = {split: [*session.task.late(split)] for split in session.tests} if dear else {}
    if names_late := dict.fromkeys(name for every in late.values() for name in every):
        journal.tell(session.step, {}, f"computing {', '.join(names_late)} of step {kept}: dear of so many images")
    for split, every in late.items():
        evaluations[kept] |= measured(session, split, every)
    metrics = {f"last/{key}": value for key, value in evaluations[session.step].items()}
    if session.best is not None:
        metrics |= {f"best/{key}": value for key, value in evaluations[kept].items()}
    metrics |= {
        f"{BEST_TEST}/{key}": value for key, value in _beside(session, names, late.get("test", []), journal).items()
    }
    return metrics


def _every(session: Session, step: int, names: Sequence[str]) -> dict[str, float]:
    """The metrics `names` of the present weights, those of `step`, and aside what each test query scored."""
    found: dict[str, float] = {}
    for split in session.splits:
        scores: QueryScores = {}
        with session.measures.noting(scores):
            found |= evaluated(session, [split], names)
        if split in session.tests:
            session.ending.queries.setdefault(step, {})[split] = scores
    return found


def _end(session: Session, step: int, journal: ProgressLog, last: LastCheckpoint | None) -> None:
    """Add what the task measures at the end of the present weights, which are those of `step`; once of any weights.

    Between two of its values it may stop, and a checkpoint may be written, where there is a `last` one to write.
    """
    ending = session.ending
    if step in ending.over:
        return
    if ending.now != step:  # else it goes on where a checkpoint was written
        ending.now = step
        _seed(session)
        if session.ended:
            journal.tell(session.step, {}, f"measuring {', '.join(session.ended)} of step {step}")
    for values in session.task.end(At(step, 0.0)):
        ending.found[step] |= session.asked(values)
        journal.passing(session.step, values)
        if last:
            last.stop(session)
            last.keep(session)
    ending.over.append(step)
    ending.now = None


def ended(session: Session, step: int, names: Sequence[str]) -> dict[str, float]:
    """The metrics `names` that the task measures at the end of the present weights, those of `step`; as `finish`."""
    found: dict[str, float] = {}
    _seed(session)
    with torch.enable_grad():
        for values in session.task.end(At(step, 0.0)):
            found |= {key: value for key, value in values.items() if key.partition("/")[2] in names}
    return found


def _seed(session: Session) -> None:
    determinism.seed_everything(determinism.derived(session.recipe.seed, "end"))


def _beside(session: Session, names: Sequence[str], late: Sequence[str], journal: ProgressLog) -> dict[str, float]:
    """The test metrics where the test split itself chooses."""
    if session.beside is None:
        return {}
    step, evaluations = session.beside.step, session.ending.found
    if step not in evaluations or any(f"test/{name}" not in evaluations[step] for name in late):
        kept = session.weights()
        session.load(session.beside.modules)
        looked = evaluated(session, ["test"], names) | measured(session, "test", late)
        evaluations[step] = evaluations.get(step, {}) | looked
        if session.ended:
            _end(session, step, journal, None)
        session.load(kept)
    return {key: value for key, value in evaluations[step].items() if key.startswith("test/")}
