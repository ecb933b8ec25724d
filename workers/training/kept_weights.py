"""The weights that a training kept, measured again: metrics that nobody had asked for cost no second training."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import torch

from workers.catalog import load, problems
from workers.catalog.inventory import named
from workers.catalog.recipe import code_of, versions_of
from workers.contract import KEPT_FILES, CheckpointError, CrossValidation, Place, Recipe
from workers.evaluation.measures import NotedScores, QueryScores
from workers.training import checkpoint, determinism
from workers.training.folds import fold_recipes, joined, separated
from workers.training.loop import measured
from workers.training.results import ended
from workers.training.session import Session, Weights

READING: Final = ("task", "dataset", "backbone", "head", "precision")
"""What of a recipe decides what weights mean; losses and all else that only trains may have other versions by now."""


class KeptWeights(NamedTuple):
    """What a file of kept weights holds."""

    recipe: Recipe
    checkpoint: str
    """`best` or `last`, as in the keys of the metrics; `last` too where nothing was ever the best."""
    models: list[Weights]
    """The states of modules by name: one, or one a fold."""
    steps: list[int]
    """The iterations after which they were these."""


def read(path: Path) -> KeptWeights:
    """What `best.pt` or `final.pt` of a training holds; raises CheckpointError."""
    state = checkpoint.load(path)
    if "recipe" not in state or "modules" not in state:
        raise CheckpointError(f"{path} holds no weights that a training kept; these are best.pt, or final.pt")
    recipe = Recipe.model_validate_json(state["recipe"])
    models, steps = (one if isinstance(one, list) else [one] for one in (state["modules"], state["step"]))
    kept = "last" if path.name == KEPT_FILES[1] else recipe.select.checkpoint
    return KeptWeights(recipe, kept, models, steps)


def evaluate(kept: KeptWeights, names: Sequence[str], place: Place) -> dict[str, float]:
    """The metrics `names` of kept weights, keyed as a result's: `best/test/recall@1`, and of images held out too.

    Of cross-validation those of the folds joined, and the means over them, `best/test_separated/recall@1`. What has no
    value is left out. Raises ValueError where a name is wrong, or where a part that reads the weights has another
    version now; CheckpointError where they do not fit; DataMissingError, DataDamagedError.
    """
    return _evaluated(_asking(kept.recipe, names, place.parts), kept, names, place)


def further(
    recipe: Recipe, kept: KeptWeights, names: Sequence[str], place: Place, noted: NotedScores
) -> dict[str, float]:
    """The same in the versions that `recipe` is for, which differs from that of the weights by metrics alone.

    Into `noted` goes what each test query scored, under all metrics of the recipe that are means over queries. Raises
    CheckpointError where it differs by more.
    """
    if _steps(recipe) != _steps(kept.recipe):
        raise CheckpointError("the kept weights belong to another recipe")
    return _evaluated(recipe, kept, names, place, noted)


def _steps(recipe: Recipe) -> dict[str, Any]:
    """What of a recipe decides what its training does."""
    said = recipe.model_dump(mode="json", exclude={"metrics"})
    for held in ("versions", "code"):
        pinned = said["pins"].get(held, {})
        said["pins"][held] = {key: one for key, one in pinned.items() if not key.startswith("metric.")}
    return said


def _evaluated(
    recipe: Recipe,
    kept: KeptWeights,
    names: Sequence[str],
    place: Place,
    noted: NotedScores | None = None,
) -> dict[str, float]:
    device = determinism.device(place.device)
    with determinism.applied(device, place.threads), torch.no_grad():
        several = isinstance(recipe.validation, CrossValidation)
        return (_of_folds if several else _of_one)(recipe, kept, names, place, device, noted)


def _asking(recipe: Recipe, names: Sequence[str], parts: Path | None) -> Recipe:
    """The recipe with these metrics, in today's versions."""
    catalog = load(parts)
    written = recipe.model_dump(mode="json", exclude={"pins", "metrics"}) | {"metrics": list(names)}
    if wrong := problems(written, catalog):
        raise ValueError("; ".join(str(one) for one in wrong))
    then = recipe.pins.versions
    if not then:  # a recipe that was never completed stands for whatever versions there are
        return recipe.model_copy(update={"metrics": list(names)})
    computed = [*catalog.metrics(recipe.dataset, recipe.task), *names, recipe.select.metric]
    today = versions_of(named(recipe, catalog), computed, recipe.precision, catalog)
    versions = today | {key: version for key, version in then.items() if key.partition(".")[0] in READING}
    source = {key: one for key, one in recipe.pins.code.items() if key.partition(".")[0] in READING}
    code = code_of(named(recipe, catalog), computed, catalog) | source
    pins = recipe.pins.model_copy(update={"versions": versions, "code": code})
    return recipe.model_copy(update={"metrics": list(names), "pins": pins})


def _of_one(
    recipe: Recipe,
    kept: KeptWeights,
    names: Sequence[str],
    place: Place,
    device: torch.device,
    noted: NotedScores | None,
) -> dict[str, float]:
    session = _with(Session(recipe, place, device), kept.models[0])
    found = _of_splits(session, names, kept.steps[0], kept.checkpoint, noted)
    return {key: value for key, value in found.items() if key.rpartition("/")[2] in names}


def _of_folds(
    recipe: Recipe,
    kept: KeptWeights,
    names: Sequence[str],
    place: Place,
    device: torch.device,
    noted: NotedScores | None,
) -> dict[str, float]:
    every: list[dict[str, float]] = []
    for fold, weights, step in zip(fold_recipes(recipe), kept.models, kept.steps, strict=True):
        session = _with(Session(fold, place, device), weights)
        # What is dear is of the folds together.
        every.append(_of_splits(session, names, step, kept.checkpoint, None, dear=False))
    evaluated = [name for name in _beside(session, names, noted) if name not in session.ended]
    together = joined(session, kept.models, evaluated, kept.checkpoint, _into(session, noted))
    return separated(every) | {key: value for key, value in together.items() if key.rpartition("/")[2] in names}


def _of_splits(
    session: Session,
    names: Sequence[str],
    step: int,
    prefix: str,
    noted: NotedScores | None,
    *,
    dear: bool = True,
) -> dict[str, float]:
    """Those that a training gives: what is dear of a split, of test images alone and only if `dear`.

    Of test images also those that `noted` asks for.
    """
    values: dict[str, float] = {}
    for split in session.splits:
        tests = split in session.tests
        left_out = {*session.ended, *(session.task.late(split) if not tests or not dear else ())}
        wanted = _beside(session, names, noted) if tests else names
        with session.measures.noting(_into(session, noted).setdefault(split, {}) if tests else {}):
            values |= measured(session, split, [name for name in wanted if name not in left_out])
    if {*names} & {*session.ended, *getattr(session.task, "trained", ())}:
        values |= ended(session, step, names)
    return {f"{prefix}/{key}": value for key, value in values.items()}


def _beside(session: Session, names: Sequence[str], noted: NotedScores | None) -> list[str]:
    """The metrics `names`, and where scores are wanted all that are means over queries."""
    more = [] if noted is None else [one for one in session.metrics if session.measures.over_queries(one)]
    return [*dict.fromkeys([*names, *more])]


def _into(session: Session, noted: NotedScores | None) -> dict[str, QueryScores]:
    """Where scores go, by split."""
    if noted is None:
        return {}
    noted.data = session.manifest
    return noted.scores


def _with(session: Session, weights: Weights) -> Session:
    try:
        session.load(weights)
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise CheckpointError(f"the weights do not fit their recipe: {str(error).splitlines()[0]}") from error
    return session
