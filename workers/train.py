"""Training: one recipe in, one result out. Read this file first; everything else is a part or a detail."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from pydantic import JsonValue

from workers import registry
from workers.catalog import own_code
from workers.contract import CrossValidation, Place, Progress, Recipe, Result, Stopped
from workers.evaluation.measures import NotedScores
from workers.tasks import Diverged
from workers.training import checkpoint, determinism, kept_weights, results
from workers.training.folds import cross_validate
from workers.training.loop import LAST, LastCheckpoint, ProgressLog, iterate, told_before
from workers.training.results import finish
from workers.training.session import Session, own_sources

# Whoever names `workers.train:train` finds beside it what to call between two trainings, and in place of one.
__all__ = ["evaluate", "release", "train"]


def train(recipe: Recipe, place: Place, report: Callable[[Progress], None], resume: Path | None = None) -> Result:
    """Train `recipe` at `place`, on from the checkpoint `resume` if one is given.

    While it runs `last.pt` in the storage folder is where it can go on; at the end it leaves `best.pt`, or `final.pt`
    where the recipe selects the last checkpoint. Raises Stopped after a checkpoint when asked to stop; CheckpointError,
    DataMissingError, DataDamagedError; UnknownPart, TypeError or ValueError for a recipe that cannot be trained here.
    """
    device = determinism.device(place.device)
    with registry.unchanged(place.parts), determinism.applied(device, place.threads), torch.enable_grad():
        several, code = isinstance(recipe.validation, CrossValidation), own_sources(recipe, place.parts)
        result = (cross_validate if several else _one)(recipe, place, device, report, resume)
        if code and result.artifacts:
            kept = results.write(place.storage, {own_code.FILE: own_code.packed(code)})
            result = result.model_copy(update={"artifacts": [*result.artifacts, *kept]})
        (place.storage / LAST).unlink(missing_ok=True)
        facts = results.facts(device, place.threads)
        return result.model_copy(update={"provenance": {**facts, **result.provenance}})


def release() -> dict[str, int]:
    """Let go of what trainings that ended left on GPUs; gives the bytes that stay reserved on each.

    It is called between two trainings. Raises RuntimeError where a GPU has failed.
    """
    reserved: dict[str, int] = {}
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]  # asking starts CUDA, which takes some hundred MB
        torch.cuda.empty_cache()
        for number in range(torch.cuda.device_count()):
            reserved[f"memory on GPU {number}"] = int(torch.cuda.memory_reserved(number))
            torch.cuda.reset_peak_memory_stats(number)
    return reserved


def evaluate(
    recipe: Recipe, place: Place, report: Callable[[Progress], None], weights: Path, names: Sequence[str]
) -> Result:
    """The metrics `names` of the file `weights`, which a training of `recipe` without them has kept.

    They equal those that a training of `recipe` would give for the weights that it keeps. The result has nothing else
    but how long that took. Raises as `train` does, and Stopped only before it begins.
    """
    began = time.monotonic()
    if place.stop():
        raise Stopped("stopped before it evaluated anything")
    report(Progress(step=0, total=1, log=f"evaluating {', '.join(names)} of {weights.name}\n"))
    kept, noted = kept_weights.read(weights), NotedScores()
    metrics = kept_weights.further(recipe, kept, names, place, noted)
    facts = results.facts(determinism.device(place.device), place.threads)
    written = results.write(place.storage, results.files(noted.scores, kept.checkpoint, noted.data))
    if queries := results.query_facts(noted.scores, kept.checkpoint):
        facts = {**facts, "queries": queries}
    seconds = time.monotonic() - began
    return Result(outcome="ok", metrics=metrics, steps=0, seconds=seconds, provenance=facts, artifacts=written)


def _one(
    recipe: Recipe, place: Place, device: torch.device, report: Callable[[Progress], None], resume: Path | None
) -> Result:
    """Train one model."""
    session = Session(recipe, place, device, told_before(recipe, report))
    if resume is not None:
        session.resume(resume)
    journal = ProgressLog(session.total, session.length.every, session.curves, report)
    began = f"training from step {session.step} on {device}"
    journal.tell(session.step, {}, "\n".join([began, *session.remarks]))
    metrics: dict[str, float] = {}
    artifacts: list[str] = []
    queries: dict[str, JsonValue] = {}
    try:
        last = LastCheckpoint(place, journal, session.state_dict)
        iterate(session, last, journal)
        metrics = finish(session, last, journal)
        kept = "best" if session.best else "last"
        scores = results.scored(session, session.best.step if session.best else session.step)
        files = results.drawn(session) | results.files(scores, kept, session.manifest)
        artifacts = [_keep(session, place, journal), *results.write(place.storage, files)]
        queries = results.query_facts(scores, kept)
    except Diverged as diverged:
        journal.tell(session.step, {}, f"diverged after step {session.step}: {diverged}")
        if session.best is not None:
            metrics = {recipe.select.key: session.best.score}
    return Result(
        outcome="ok" if artifacts else "diverged",
        metrics=metrics,
        curves=session.curves,
        best_step=session.best.step if session.best else None,
        steps=session.step,
        seconds=session.seconds,
        provenance=session.read | ({"queries": queries} if queries else {}),
        artifacts=artifacts,
    )


def _keep(session: Session, place: Place, journal: ProgressLog) -> str:
    """Write the one file of weights that is kept."""
    step, kept = (session.best.step, "best.pt") if session.best else (session.step, "final.pt")
    weights = {"recipe": session.recipe.model_dump_json(), "step": step, "modules": session.weights()}
    checkpoint.save(place.storage / kept, weights)
    journal.tell(session.step, {}, f"done: keeping step {step} as {kept}")
    return kept
