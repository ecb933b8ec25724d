"""Training: turns a recipe into a result. Start reading here."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from pydantic import JsonValue

from workers import registry
from workers.catalog import own_code
from workers.contract import KEPT_FILES, CrossValidation, Place, Progress, Recipe, Result, Stopped
from workers.evaluation.measures import NotedScores
from workers.tasks import Diverged
from workers.training import checkpoint, determinism, kept_weights, results
from workers.training.folds import cross_validate
from workers.training.loop import LAST, LastCheckpoint, ProgressLog, iterate, reported_before
from workers.training.results import finish
from workers.training.session import Session, own_sources


def train(recipe: Recipe, place: Place, report: Callable[[Progress], None], resume: Path | None = None) -> Result:
    """Train `recipe` at `place`, from the checkpoint `resume` on if it is given.

    The storage folder has the checkpoint `last.pt` during the training, and at the end `best.safetensors`, or
    `final.safetensors` if the recipe selects the last checkpoint. Raises Stopped after a checkpoint if asked to stop;
    CheckpointError, DataMissingError, DataDamagedError; UnknownPart, TypeError or ValueError for a recipe that cannot
    be trained here.
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
    """Free the GPU memory of trainings that have ended; returns the bytes that stay reserved on each GPU.

    Called between two trainings. Raises RuntimeError if a GPU has failed.
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
    """The metrics and figures `names` of the file `weights`, which a training of `recipe` without these has kept.

    A figure is named by its `key`. All equal those of a training of `recipe`. The result has nothing else but the
    duration. Raises as `train` does, and Stopped only before it begins.
    """
    began = time.monotonic()
    if place.stop():
        raise Stopped("stopped before it evaluated anything")
    shown = [name.partition(" ")[0] for name in names]
    report(Progress(step=0, total=1, log=f"evaluating {', '.join(shown)} of {weights.name}\n"))
    kept, noted = kept_weights.read(weights), NotedScores()
    metrics = kept_weights.further(recipe, kept, names, place, noted)
    facts = results.facts(determinism.device(place.device), place.threads)
    written = results.write(place.storage, results.files(noted, kept.checkpoint) | noted.files)
    facts |= results.query_facts(noted.scores, kept.checkpoint)
    seconds = time.monotonic() - began
    return Result(outcome="ok", metrics=metrics, steps=0, seconds=seconds, provenance=facts, artifacts=written)


def _one(
    recipe: Recipe, place: Place, device: torch.device, report: Callable[[Progress], None], resume: Path | None
) -> Result:
    session = Session(recipe, place, device, reported_before(recipe, report))
    if resume is not None:
        session.resume(resume)
    journal = ProgressLog(session.total, session.length.every, session.curves, report)
    began = f"training from step {session.step} on {device}"
    journal.report(session.step, {}, "\n".join([began, *session.remarks]))
    metrics: dict[str, float] = {}
    artifacts: list[str] = []
    queries: dict[str, JsonValue] = {}
    try:
        last = LastCheckpoint(place, journal, session.state_dict)
        iterate(session, last, journal)
        metrics = finish(session, last, journal)
        kept = "best" if session.best else "last"
        scores = session.ending.queries[session.best.step if session.best else session.step]
        files = results.drawn(session) | results.files(session.scored(scores), kept)
        artifacts = [_keep(session, place, journal), *results.write(place.storage, files)]
        queries = results.query_facts(scores, kept)
    except Diverged as diverged:
        journal.report(session.step, {}, f"diverged after step {session.step}: {diverged}")
        if session.best is not None:
            metrics = {recipe.select.key: session.best.score}
    return Result(
        outcome="ok" if artifacts else "diverged",
        metrics=metrics,
        curves=session.curves,
        best_step=session.best.step if session.best else None,
        steps=session.step,
        seconds=session.seconds,
        provenance=session.read | queries,
        artifacts=artifacts,
    )


def _keep(session: Session, place: Place, journal: ProgressLog) -> str:
    step, kept = (session.best.step, KEPT_FILES[0]) if session.best else (session.step, KEPT_FILES[1])
    about = {"recipe": session.recipe.model_dump(mode="json"), "steps": [step], "network": session.network}
    checkpoint.keep(place.storage / kept, [session.weights()], about)
    journal.report(session.step, {}, f"done: keeping step {step} as {kept}")
    return kept
