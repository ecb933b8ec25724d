"""Small real trainings for tests: recipes on digits, and places to run them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from workers import catalog
from workers.contract import Place, Progress, Recipe, Result
from workers.data.batches import Batches
from workers.tasks.retrieval import Retrieval
from workers.train import train
from workers.training import checkpoint
from workers.training.session import Session

DIGITS: dict[str, Any] = {
    "dataset": "digits",
    "backbone": {"name": "small_cnn", "width": 8},
    "embedding": 16,
    "loss": "triplet",
    "sampler": {"name": "balanced", "classes": 3, "per_class": 4},
    "iterations": 12,
    "evaluate_every": 5,
    "validation": {"name": "class_holdout", "folds": 3, "fold": 0},
}


def recipe(parts: Path | None = None, **changes: Any) -> Recipe:
    """A complete recipe on digits."""
    raw = {**DIGITS, **changes}
    known = catalog.load(parts)
    return catalog.complete(Recipe.model_validate(raw), known)


def problems(raw: Mapping[str, Any], parts: Path | None = None) -> dict[str, str]:
    """What is wrong with a recipe, by the path at which it is wrong."""
    return {one.path: one.message for one in catalog.problems(raw, catalog.load(parts))}


def completed(raw: Mapping[str, Any], parts: Path | None = None) -> Recipe:
    """A sound recipe, with all that it leaves to defaults."""
    assert problems(raw, parts) == {}
    return catalog.complete(Recipe.model_validate(raw), catalog.load(parts))


def own_part(parts: Path, folder: str, name: str, source: str, **changes: Any) -> Recipe:
    """A recipe that uses a part of the researcher's own, which is written to the folder `parts` first."""
    (parts / folder).mkdir()
    (parts / folder / f"{name}.py").write_text(source)
    return recipe(parts, **changes)


def place(folder: Path, **changes: Any) -> Place:
    """A place in a temporary folder, without data."""
    values: dict[str, Any] = {"checkpoint_seconds": 1e9, **changes}
    return Place(folder / "data", folder / "scratch", folder, **values)


def run(what: Recipe, folder: Path, resume: Path | None = None, **changes: Any) -> tuple[Result, list[Progress]]:
    """Train, and give the result with all that was reported."""
    reports: list[Progress] = []
    return train(what, place(folder, **changes), reports.append, resume), reports


def begun(what: Recipe, folder: Path, **changes: Any) -> Session:
    """A session on the CPU that has not trained yet."""
    return Session(what, place(folder, **changes), torch.device("cpu"))


def retrieval(session: Session) -> Retrieval:
    """The task of a session that trains retrieval."""
    assert isinstance(session.task, Retrieval)
    return session.task


def batches(session: Session) -> Batches:
    """The images of a session."""
    assert session.batches is not None
    return session.batches


def flat(modules: Mapping[str, Mapping[str, Any]]) -> dict[str, torch.Tensor]:
    """The states of modules by one name each, such as `head.linear.bias`."""
    return {f"{name}.{key}": value for name, state in modules.items() for key, value in state.items()}


def weights(path: Path) -> dict[str, torch.Tensor]:
    """The weights in a kept checkpoint."""
    (only,) = checkpoint.kept(path)[0]
    return flat(only)


def weights_of_folds(path: Path) -> list[dict[str, torch.Tensor]]:
    """Those of each fold."""
    return [flat(one) for one in checkpoint.kept(path)[0]]


def same(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> bool:
    """Whether both hold the same bits."""
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


def numbers(result: Result) -> dict[str, Any]:
    """All of a result that must repeat exactly."""
    return result.model_dump(include={"outcome", "metrics", "curves", "best_step", "steps", "artifacts"})
