"""Cross-validation within one training: a model for each fold of the training classes, judged apart and together."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import torch

from workers.contract import BEST_TEST, CrossValidation, Place, Progress, Recipe, Result
from workers.evaluation.measures import QueryScores
from workers.tasks import Diverged
from workers.training import checkpoint, determinism, results
from workers.training.loop import Curves, LastCheckpoint, ProgressLog, iterate, told_before
from workers.training.results import finish
from workers.training.session import Session, Weights

_TEST: Final = re.compile(r"/(test|test_\w+)/")


@dataclass(frozen=True)
class Fold:
    """A model that is done."""

    step: int
    """Of the weights that are kept."""
    steps: int
    total: int
    seconds: float
    metrics: dict[str, float]
    curves: Curves
    modules: Weights
    files: dict[str, torch.Tensor]
    """The bytes of its figures' files by their names, until all folds are done."""
    beside: Weights = field(default_factory=dict)
    """The weights that are best on the test split, where the recipe asks for these too."""


def cross_validate(
    recipe: Recipe, place: Place, device: torch.device, report: Callable[[Progress], None], resume: Path | None
) -> Result:
    """Train a model for each fold, one after the other; a checkpoint holds those that are done and the present one."""
    recipes, done, pending = fold_recipes(recipe), list[Fold](), None
    if resume is not None:
        with checkpoint.fitting(resume, recipe) as state:
            done, pending = [Fold(**fold) for fold in state["done"]], state["session"]
    while True:
        session = Session(recipes[len(done)], place, device, told_before(recipe, report))
        if resume is not None and pending is not None:
            with checkpoint.fitting(resume, recipe):
                session.load_state_dict(pending)
            pending = None
        journal = _journal(session, done, len(recipes), report)
        try:
            last = LastCheckpoint(place, journal, lambda: _state(recipe, done, session))  # noqa: B023 - within the turn
            iterate(session, last, journal)
            metrics = finish(session, last, journal, dear=False)  # only of the folds together
            done.append(_fold(session, metrics, results.drawn(session)))
            if len(done) == len(recipes):
                return _result(recipe, done, session, place)
        except Diverged as diverged:
            journal.tell(session.step, {}, f"fold {len(done)} diverged after step {session.step}: {diverged}")
            return _result_of([*done, _fold(session, {}, {})], {}, session, [])


def fold_recipes(recipe: Recipe) -> list[Recipe]:
    """The training of each fold as a recipe of its own, with a seed of its own, as MLRC's models have."""
    if not isinstance(recipe.validation, CrossValidation):
        raise ValueError(f"validation {recipe.validation.name!r} has no folds to train")
    return [
        recipe.model_copy(
            update={"validation": holdout, "seed": determinism.derived(recipe.seed, f"fold {holdout.fold}") % 2**31}
        )
        for holdout in recipe.validation.holdouts
    ]


def _journal(session: Session, done: Sequence[Fold], folds: int, report: Callable[[Progress], None]) -> ProgressLog:
    """The journal of a fold, whose steps count on from those of the folds before it."""
    journal = ProgressLog(
        session.total,
        session.length.every,
        session.curves,
        report,
        before=sum(fold.total for fold in done),
        folds=(len(done), folds),
    )
    began = f"fold {len(done)} of {folds} from step {session.step} on {session.device}"
    journal.tell(session.step, {}, "\n".join([began, *([] if done else session.remarks)]))
    return journal


def _state(recipe: Recipe, done: Sequence[Fold], session: Session) -> Mapping[str, Any]:
    return {
        "fingerprint": recipe.fingerprint,
        "seconds": sum(fold.seconds for fold in done) + session.seconds,
        "done": [vars(fold) for fold in done],
        "session": session.state_dict(),
    }


def _fold(session: Session, metrics: dict[str, float], files: Mapping[str, bytes]) -> Fold:
    """The model that is kept, with what is known of it."""
    return Fold(
        step=session.best.step if session.best else session.step,
        steps=session.step,
        total=session.total,
        seconds=session.seconds,
        metrics=metrics,
        curves=session.curves,
        modules=session.weights(),
        files={name: torch.frombuffer(bytearray(content), dtype=torch.uint8) for name, content in files.items()},
        beside=session.beside.modules if session.beside else {},
    )


def _written(done: Sequence[Fold], folder: Path) -> list[str]:
    """Write the figures of all folds, the fold's number in each name, such as `norms-fold0.npz`."""
    every: dict[str, bytes] = {}
    for number, fold in enumerate(done):
        for name, content in fold.files.items():
            stem, dot, suffix = name.rpartition(".")
            every[f"{stem}-fold{number}{dot}{suffix}"] = content.numpy().tobytes()
    return results.write(folder, every)


def _result(recipe: Recipe, done: Sequence[Fold], session: Session, place: Place) -> Result:
    """Means over the folds, the test metrics of their models joined, and one file with the weights of all."""
    checkpoint_ = recipe.select.checkpoint
    names = session.among(session.metrics)
    metrics = separated([fold.metrics for fold in done])
    scores: dict[str, QueryScores] = {}
    metrics |= joined(session, [fold.modules for fold in done], names, checkpoint_, scores)
    if all(fold.beside for fold in done):
        metrics |= joined(session, [fold.beside for fold in done], names, BEST_TEST)
    queries = results.query_facts(scores, checkpoint_)
    kept = "best.pt" if checkpoint_ == "best" else "final.pt"
    weights = {"step": [fold.step for fold in done], "modules": [fold.modules for fold in done]}
    checkpoint.save(place.storage / kept, {"recipe": recipe.model_dump_json(), **weights})
    written = results.write(place.storage, results.files(scores, checkpoint_, session.manifest))
    result = _result_of(done, metrics, session, [kept, *_written(done, place.storage), *written])
    return result.model_copy(update={"provenance": {**result.provenance, **({"queries": queries} if queries else {})}})


def joined(
    session: Session,
    models: Sequence[Weights],
    names: Sequence[str],
    prefix: str,
    scores: dict[str, QueryScores] | None = None,
) -> dict[str, float]:
    """The test metrics `names`, keyed `<prefix>/test/map@r`, of all models as one; of further test sets too.

    Into `scores` goes by split what each query scored.
    """
    together = session.task.joined(models)
    found: dict[str, float] = {}
    for split in session.tests:
        with session.measures.noting((scores if scores is not None else {}).setdefault(split, {})):
            found |= {f"{prefix}/{split}/{name}": value for name, value in together.evaluate(split, names).items()}
    return found


def separated(folds: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean over the folds of each metric that all of them have; test metrics keyed `best/test_separated/map@r`."""
    shared = [key for key in folds[0] if all(key in fold for fold in folds)]
    means = {key: math.fsum(fold[key] for fold in folds) / len(folds) for key in shared}
    return {_TEST.sub(r"/\1_separated/", key): value for key, value in means.items()}


def _result_of(done: Sequence[Fold], metrics: dict[str, float], session: Session, artifacts: list[str]) -> Result:
    curves: Curves = {}
    before = 0
    for fold in done:
        for key, points in fold.curves.items():
            curves.setdefault(key, []).extend((before + step, value) for step, value in points)
        before += fold.total
    return Result(
        outcome="ok" if artifacts else "diverged",
        metrics=metrics,
        curves=curves,
        steps=sum(fold.steps for fold in done),
        seconds=sum(fold.seconds for fold in done),
        provenance={
            **session.read,
            "folds": [{"step": fold.step, "steps": fold.steps, "metrics": dict(fold.metrics)} for fold in done],
        },
        artifacts=artifacts,
    )
