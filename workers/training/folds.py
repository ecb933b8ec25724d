"""Cross-validation within one training: a model for each fold of the training classes, evaluated apart and jointly."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import torch

from workers.contract import BEST_TEST, KEPT_FILES, CrossValidation, Place, Progress, Recipe, Result
from workers.evaluation.measures import QueryScores
from workers.tasks import Diverged
from workers.training import checkpoint, determinism, results
from workers.training.loop import Curves, LastCheckpoint, ProgressLog, iterate, reported_before
from workers.training.results import finish
from workers.training.session import Session, Weights

_TEST: Final = re.compile(r"/(test|test_\w+)/")


@dataclass(frozen=True)
class Fold:
    """The trained model of one fold of a cross-validation."""

    step: int  # that of the kept weights
    steps: int
    total: int
    seconds: float
    metrics: dict[str, float]
    curves: Curves
    modules: Weights
    files: dict[str, torch.Tensor]  # the bytes of its figures' files by name
    beside: Weights = field(default_factory=dict)
    """The weights that are best on the test split, if the recipe asks for them."""


def cross_validate(
    recipe: Recipe, place: Place, device: torch.device, report: Callable[[Progress], None], resume: Path | None
) -> Result:
    """Train a model for each fold, one after the other; a checkpoint holds the finished ones and the current one."""
    recipes, done, pending = fold_recipes(recipe), list[Fold](), None
    if resume is not None:
        with checkpoint.fitting(resume, recipe) as state:
            done, pending = [Fold(**fold) for fold in state["done"]], state["session"]
    while True:
        session = Session(recipes[len(done)], place, device, reported_before(recipe, report))
        if resume is not None and pending is not None:
            with checkpoint.fitting(resume, recipe):
                session.load_state_dict(pending)
            pending = None
        journal = _journal(session, done, len(recipes), report)
        try:
            last = LastCheckpoint(place, journal, lambda: _state(recipe, done, session))  # noqa: B023 - used in this turn
            iterate(session, last, journal)
            metrics = finish(session, last, journal, late=False)  # these are of the folds together
            done.append(_fold(session, metrics, results.drawn(session)))
            if len(done) == len(recipes):
                return _result(recipe, done, session, place)
        except Diverged as diverged:
            journal.report(session.step, {}, f"fold {len(done)} diverged after step {session.step}: {diverged}")
            return _result_of([*done, _fold(session, {}, {})], {}, session, [])


def fold_recipes(recipe: Recipe) -> list[Recipe]:
    """The recipe of each fold's training, with a seed of its own as in MLRC."""
    if not isinstance(recipe.validation, CrossValidation):
        raise ValueError(f"validation {recipe.validation.name!r} has no folds to train")
    return [
        recipe.model_copy(
            update={"validation": holdout, "seed": determinism.derived(recipe.seed, f"fold {holdout.fold}") % 2**31}
        )
        for holdout in recipe.validation.holdouts
    ]


def _journal(session: Session, done: Sequence[Fold], folds: int, report: Callable[[Progress], None]) -> ProgressLog:
    """The log of a fold, whose steps count on from those of the folds before it."""
    before, fold = sum(fold.total for fold in done), (len(done), folds)
    journal = ProgressLog(session.total, session.length.every, session.curves, report, before=before, folds=fold)
    began = f"fold {len(done)} of {folds} from step {session.step} on {session.device}"
    journal.report(session.step, {}, "\n".join([began, *([] if done else session.remarks)]))
    return journal


def _state(recipe: Recipe, done: Sequence[Fold], session: Session) -> Mapping[str, Any]:
    return {
        "fingerprint": recipe.fingerprint,
        "seconds": sum(fold.seconds for fold in done) + session.seconds,
        "done": [vars(fold) for fold in done],
        "session": session.state_dict(),
    }


def _fold(session: Session, metrics: dict[str, float], files: Mapping[str, bytes]) -> Fold:
    return Fold(
        step=session.best.step if session.best else session.step,
        steps=session.step,
        total=session.total,
        seconds=session.seconds,
        metrics=metrics,
        curves=session.curves,
        modules=session.weights(),
        files={name: torch.frombuffer(bytearray(content), dtype=torch.uint8) for name, content in files.items()},
        beside=session.best_test.modules if session.best_test else {},
    )


def _written(done: Sequence[Fold], folder: Path) -> list[str]:
    """Write the figures of all folds, such as `norms-fold0.npz`."""
    every = {
        of_fold(name, number): content.numpy().tobytes()
        for number, fold in enumerate(done)
        for name, content in fold.files.items()
    }
    return results.write(folder, every)


def of_fold(name: str, number: int) -> str:
    """The name of a figure's file of a fold."""
    stem, dot, suffix = name.rpartition(".")
    return f"{stem}-fold{number}{dot}{suffix}"


def _result(recipe: Recipe, done: Sequence[Fold], session: Session, place: Place) -> Result:
    """Means over the folds, the test metrics of the joined models, and one file with all weights."""
    checkpoint_ = recipe.select.checkpoint
    names = session.among(session.metrics)
    metrics = separated([fold.metrics for fold in done])
    scores: dict[str, QueryScores] = {}
    metrics |= joined(session, [fold.modules for fold in done], names, checkpoint_, scores)
    if all(fold.beside for fold in done):
        metrics |= joined(session, [fold.beside for fold in done], names, BEST_TEST)
    kept = KEPT_FILES[checkpoint_ == "last"]
    about = {"recipe": recipe.model_dump(mode="json"), "steps": [fold.step for fold in done]}
    checkpoint.keep(place.storage / kept, [fold.modules for fold in done], about | {"network": session.network})
    written = results.write(place.storage, results.files(session.scored(scores), checkpoint_))
    result = _result_of(done, metrics, session, [kept, *_written(done, place.storage), *written])
    return result.model_copy(update={"provenance": result.provenance | results.query_facts(scores, checkpoint_)})


def joined(
    session: Session,
    models: Sequence[Weights],
    names: Sequence[str],
    prefix: str,
    scores: dict[str, QueryScores] | None = None,
) -> dict[str, float]:
    """The test metrics `names` of all models jointly, keyed `<prefix>/test/map@r`; `scores` receives those of each
    query.
    """
    values: dict[str, float] = {}
    for split in session.tests:
        of_split = {} if scores is None else scores.setdefault(split, {})
        with session.task.joined(models), session.measures.noting(of_split):
            found = session.task.evaluate(split, names)
        values |= {f"{prefix}/{split}/{name}": value for name, value in found.items()}
    return values


def separated(folds: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean over the folds of each metric that all have; test metrics are keyed `best/test_separated/map@r`."""
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
