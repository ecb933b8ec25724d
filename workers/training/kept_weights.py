"""Computes further metrics from the weights that a training has kept, instead of training again."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import torch

from workers.catalog import load, problems
from workers.catalog.inventory import named
from workers.catalog.recipe import code_of, versions_of
from workers.contract import KEPT_FILES, CheckpointError, CrossValidation, Place, Recipe
from workers.evaluation.measures import NotedScores, QueryScores
from workers.figures.options import OF_WEIGHTS
from workers.training import checkpoint, determinism
from workers.training.folds import fold_recipes, joined, of_fold, separated
from workers.training.loop import measured
from workers.training.results import drawn, ended
from workers.training.session import Session, Weights

_READING: Final = ("task", "dataset", "backbone", "head", "precision")
"""The fields that decide how weights are used. The others, such as the loss, may have other versions by now."""


class KeptWeights(NamedTuple):
    """The recipe, models and facts in a file of kept weights."""

    recipe: Recipe
    checkpoint: str  # `best` or `last`, as in the keys of metrics; also `last` if there never was a best score
    models: list[Weights]  # one, or one for each fold
    steps: list[int]
    network: Mapping[str, Any]  # what builds the embedding network again (Session.network)


def read(path: Path) -> KeptWeights:
    """Reads a file of kept weights; raises CheckpointError."""
    models, about = checkpoint.kept(path)
    try:
        recipe, steps, network = Recipe.model_validate(about["recipe"]), about["steps"], about["network"]
    except (KeyError, ValueError) as error:
        raise CheckpointError(f"{path} holds no weights of a recipe of this version: {error}") from error
    kept = "last" if path.name == KEPT_FILES[1] else recipe.select.checkpoint
    return KeptWeights(recipe, kept, models, steps, network)


def evaluate(kept: KeptWeights, names: Sequence[str], place: Place) -> dict[str, float]:
    """Computes the metrics `names` of kept weights on all splits, keyed as in a result: `best/test/recall@1`.

    For cross-validation, of the joined folds, and the means over them, `best/test_separated/recall@1`. Metrics without
    a value are left out. Raises ValueError for a wrong name, or if a part that uses the weights has another version
    now; CheckpointError if they do not fit; DataMissingError, DataDamagedError.
    """
    return _evaluated(_asking(kept.recipe, names, place.parts), kept, names, place)


def further(
    recipe: Recipe, kept: KeptWeights, names: Sequence[str], place: Place, noted: NotedScores
) -> dict[str, float]:
    """Computes added metrics of kept weights for `recipe`, which differs from the weights' recipe only by metrics.

    `noted` receives the scores of each test query for all metrics of the recipe that are means over queries, and the
    files of the figures whose keys are in `names`. Raises CheckpointError if the recipes differ by more.
    """
    if _trained(recipe) != _trained(kept.recipe):
        raise CheckpointError("the kept weights belong to another recipe")
    return _evaluated(recipe, kept, names, place, noted)


def _trained(recipe: Recipe) -> dict[str, Any]:
    """The fields of a recipe that decide its training."""
    fields = recipe.model_dump(mode="json", exclude={"metrics"})
    fields["figures"] = [figure for figure in fields["figures"] if figure["name"] not in OF_WEIGHTS]
    for name in ("versions", "code"):
        pinned = fields["pins"].get(name, {})
        fields["pins"][name] = {key: value for key, value in pinned.items() if not key.startswith("metric.")}
    return fields


def _evaluated(
    recipe: Recipe, kept: KeptWeights, names: Sequence[str], place: Place, noted: NotedScores | None = None
) -> dict[str, float]:
    device = determinism.device(place.device)
    folds = fold_recipes(recipe) if isinstance(recipe.validation, CrossValidation) else []
    found: list[dict[str, float]] = []
    figures = [figure for figure in recipe.figures if figure.key in names]
    names = [name for name in names if " " not in name]
    with determinism.applied(device, place.threads), torch.no_grad():
        for model, weights, step in zip(folds or [recipe], kept.models, kept.steps, strict=True):
            session = Session(model, place, device)
            try:
                session.load(weights)
            except (KeyError, TypeError, ValueError, RuntimeError) as error:
                raise CheckpointError(f"the weights do not fit their recipe: {str(error).splitlines()[0]}") from error
            # Expensive metrics and scores are computed of the folds together.
            found.append(_of_splits(session, names, step, kept.checkpoint, None if folds else noted, late=not folds))
            if noted is not None and figures:
                files = drawn(session, figures)
                number = len(found) - 1
                noted.files |= {of_fold(name, number): file for name, file in files.items()} if folds else files
        values = found[0]
        if folds:
            evaluated = [name for name in _with_noted(session, names, noted) if name not in session.ended]
            together = joined(session, kept.models, evaluated, kept.checkpoint, _scores(session, noted))
            values = separated(found) | together
    return {key: value for key, value in values.items() if key.rpartition("/")[2] in names}


def _asking(recipe: Recipe, names: Sequence[str], parts: Path | None) -> Recipe:
    """The recipe with these metrics, in their current versions."""
    catalog = load(parts)
    written = recipe.model_dump(mode="json", exclude={"pins", "metrics"}) | {"metrics": list(names)}
    if wrong := problems(written, catalog):
        raise ValueError("; ".join(map(str, wrong)))
    then = recipe.pins.versions
    if not then:  # the recipe was not completed, so that any versions will do
        return recipe.model_copy(update={"metrics": list(names)})
    computed = [*catalog.metrics(recipe.dataset, recipe.task), *names, recipe.select.metric]
    today = versions_of(named(recipe, catalog), computed, recipe.precision, catalog)
    versions = today | {key: version for key, version in then.items() if key.partition(".")[0] in _READING}
    source = {key: code for key, code in recipe.pins.code.items() if key.partition(".")[0] in _READING}
    code = code_of(named(recipe, catalog), computed, catalog) | source
    pins = recipe.pins.model_copy(update={"versions": versions, "code": code})
    return recipe.model_copy(update={"metrics": list(names), "pins": pins})


def _of_splits(
    session: Session, names: Sequence[str], step: int, prefix: str, noted: NotedScores | None, *, late: bool
) -> dict[str, float]:
    """The metrics that a training gives: expensive ones only of test images, and only if `late`.

    Of test images also those that `noted` asks for.
    """
    values: dict[str, float] = {}
    for split in session.splits:
        tests = split in session.tests
        left_out = {*session.ended, *(session.task.late(split) if not tests or not late else ())}
        wanted = _with_noted(session, names, noted) if tests else names
        with session.measures.noting(_scores(session, noted).setdefault(split, {}) if tests else {}):
            values |= measured(session, split, [name for name in wanted if name not in left_out])
    if {*names} & {*session.ended, *getattr(session.task, "trained", ())}:
        values |= ended(session, step, names)
    return {f"{prefix}/{key}": value for key, value in values.items()}


def _with_noted(session: Session, names: Sequence[str], noted: NotedScores | None) -> list[str]:
    """The metrics `names`, and if scores are wanted all that are means over queries."""
    over_queries = [name for name in session.metrics if session.measures.attribute_of(name, "each") is not None]
    return [*dict.fromkeys([*names, *(over_queries if noted is not None else [])])]


def _scores(session: Session, noted: NotedScores | None) -> dict[str, QueryScores]:
    """Where the scores of each split are stored."""
    if noted is None:
        return {}
    known = session.scored(noted.scores)
    noted.names, noted.data = known.names, known.data
    return noted.scores
