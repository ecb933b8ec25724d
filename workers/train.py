"""Training: one recipe in, one result out. Read this file first; everything else is a part or a detail."""

import math
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from workers import checkpoint, determinism, provenance
from workers.contract import Place, Progress, Recipe, Result, Stopped
from workers.geometry import norms
from workers.images import Images
from workers.journal import Journal
from workers.session import Session
from workers.tasks import Diverged, Step

CHEAP = ("recall@1", "map@r")
"""The metrics computed while a training runs, besides the one that selects."""
LAST = "last.pt"
"""The checkpoint from which an unfinished training goes on."""


def train(recipe: Recipe, place: Place, report: Callable[[Progress], None], resume: Path | None = None) -> Result:
    """Train `recipe` at `place`, on from the checkpoint `resume` if one is given.

    While it runs `last.pt` in the storage folder is where it can go on; at the end it leaves `best.pt`, or `final.pt`
    where the recipe selects the last checkpoint. Raises Stopped after a checkpoint when asked to stop; CheckpointError,
    DataMissingError, DataDamagedError; UnknownPart, TypeError or ValueError for a recipe that cannot be trained here.
    """
    device = determinism.device(place.device)
    with determinism.applied(device, place.threads):
        session = Session(recipe, place, device)
        if resume is not None:
            session.resume(resume)
        journal = Journal(recipe.iterations, session.every, session.curves, report)
        journal.tell(session.step, {}, f"training from step {session.step} on {device}")
        metrics: dict[str, float] = {}
        artifacts: list[str] = []
        try:
            _iterate(session, place, journal)
            metrics, artifacts = _conclude(session, place, journal)
        except Diverged as diverged:
            journal.tell(session.step, {}, f"diverged after step {session.step}: {diverged}")
            if session.best is not None:
                metrics = {session.recipe.select.key: session.best.score}
        (place.storage / LAST).unlink(missing_ok=True)
        return Result(
            outcome="ok" if artifacts else "diverged",
            metrics={key: value for key, value in metrics.items() if math.isfinite(value)},
            curves=session.curves,
            best_step=session.best.step if session.best else None,
            steps=session.step,
            seconds=session.seconds,
            provenance={**provenance.facts(device, place.threads), "manifest": session.manifest},
            artifacts=artifacts,
        )


def _iterate(session: Session, place: Place, journal: Journal) -> None:
    """Iterate to the end, evaluating on the way; a checkpoint is only written between two whole iterations."""
    saved = time.monotonic()
    while True:
        if place.stop():
            _save(session, place, journal)
            raise Stopped(f"stopped after {session.step} of {session.total} iterations")
        if session.step == session.total:
            return
        _descend(session, journal)
        if session.step % session.every == 0 and session.step < session.total:
            _judge(session, journal, _evaluate(session, [session.watched], session.among(CHEAP)))
        if time.monotonic() - saved >= place.checkpoint_seconds:
            _save(session, place, journal)
            saved = time.monotonic()


def _descend(session: Session, journal: Journal) -> None:
    """One iteration."""
    rate = session.set_rate()
    step = session.task.step(*session.batch())
    if not bool(step.total.isfinite()):
        raise Diverged("the loss is not finite")
    session.descend(step)
    if session.step % max(1, session.total // 100) == 0 or session.step == session.total:
        journal.trained(session.step, _diagnosis(step, rate))


def _diagnosis(step: Step, rate: float) -> dict[str, float]:
    """What the curves show of one batch; the variance of the norms is the population's."""
    length = norms(step.embeddings.detach())
    values = {
        "train/loss": float(step.loss.detach()),
        "train/lr": rate,
        "train/norm_mean": float(length.mean()),
        "train/norm_var": float(length.var(correction=0)),
    }
    if step.regularizer is not None:
        values["train/regularizer"] = float(step.regularizer.detach())
    return values


def _evaluate(session: Session, splits: list[str], names: list[str]) -> dict[str, float]:
    """The metrics `names` of the present weights, keyed `validation/map@r`."""
    found: dict[str, float] = {}
    for split in splits:
        images: Images = getattr(session.splits, split)
        found |= {f"{split}/{name}": value for name, value in session.task.evaluate(images, names).items()}
    return found


def _judge(session: Session, journal: Journal, values: Mapping[str, float]) -> None:
    """Note an evaluation, and keep the weights where they are the best so far."""
    journal.evaluated(session.step, values)
    select = session.recipe.select
    if select.split == "last":
        return
    score, best = values[f"{select.split}/{select.metric}"], session.best
    if math.isfinite(score) and (best is None or session.improves(score, best.score)):
        session.keep_best(score)


def _conclude(session: Session, place: Place, journal: Journal) -> tuple[dict[str, float], list[str]]:
    """Every metric of the last weights and of the best ones, and the one file of weights that is kept."""
    splits = ["test"] if session.splits.validation is None else ["test", "validation"]
    names = session.among(session.metrics)
    last = _evaluate(session, splits, names)
    watched = [f"{session.watched}/{name}" for name in session.among(CHEAP)]
    _judge(session, journal, {key: last[key] for key in watched})
    metrics = {f"last/{key}": value for key, value in last.items()}
    step, kept = session.step, "final.pt"
    if session.best is not None:
        step, kept = session.best.step, "best.pt"
        if step != session.step:
            session.model.load_state_dict(session.best.model)
            last = _evaluate(session, splits, names)
        metrics |= {f"best/{key}": value for key, value in last.items()}
    weights = {"recipe": session.recipe.model_dump_json(), "step": step, "model": session.model.state_dict()}
    checkpoint.save(place.storage / kept, weights)
    journal.tell(session.step, {}, f"done: keeping step {step} as {kept}")
    return metrics, [kept]


def _save(session: Session, place: Place, journal: Journal) -> None:
    """Write the checkpoint from which to go on, and say so once it is complete."""
    checkpoint.save(place.storage / LAST, session.state_dict())
    journal.tell(session.step, {}, checkpoint=LAST)
