"""What the trainings of a sweep leave for its figures: curves by key, and files of data."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from orchestrator.plan.reading.computed import at_the_end, stated
from orchestrator.spec.figure import DATA
from orchestrator.spec.spec import Spec
from workers.catalog import Catalog, Entry, listed, meant, metric_problem
from workers.contract import Select


def trouble_of_curve(key: str, select: Select, tasks: Sequence[Entry], catalog: Catalog) -> str | None:
    """Why no training leaves the curve `split/metric`, or `metric` on the split that is watched; none where it does."""
    trained, watched_too = stated(tasks, "curves"), stated(tasks, "watched")
    watched = select.watched[0]
    split, slash, metric = key.rpartition("/")
    if split == "train":
        return None if metric in trained else f"no curve is named '{key}'; {_meant(key, 'train', trained)}"
    if slash and split not in select.watched:
        if split in ("validation", "test"):
            why = f"this sweep selects on '{select.split}', so that trainings are evaluated on the {watched} split"
            return f"there is no such curve: {why}; write '{watched}/{metric}', or just '{metric}'"
        return f"no curve is of '{split}'; expected 'train', '{watched}', or just the metric"
    if wrong := metric_problem(metric, catalog):
        return wrong
    evaluated = dict.fromkeys((*watched_too, *([] if at_the_end(select.metric, tasks, catalog) else [select.metric])))
    if metric in evaluated:
        return None
    return f"'{metric}' is not evaluated while a training runs; only {listed(evaluated)} and train/... are"


def _meant(key: str, split: str, metrics: Sequence[str]) -> str:
    return meant(key, [f"{split}/{metric}" for metric in metrics])


def trouble_of_data(kind: str, data: str, kept: set[str] | None) -> str | None:
    """Why a figure of `kind` cannot draw `data`; `kept` are the files that trainings leave, none where unknown."""
    name = data.partition("-")[0]
    owners = {one: owner for owner, names in DATA.items() for one in names}
    if name not in owners:
        return f"there is no figure data '{data}'; {meant(name, owners)}"
    if owners[name] != kind:
        return f"'{data}' is drawn by kind '{owners[name]}', not by '{kind}'"
    if kept is not None and data not in kept:
        held = f"they keep {listed(sorted(kept))}" if kept else "they keep none"
        return f"the trainings keep no such data ({held}); add it to the recipe: `figures: [{name}]`"
    return None


def kept_data(spec: Spec) -> set[str]:
    """The data files, without their suffix, that some recipe of the sweep asks for."""
    files = {file for patch in spec.patches() for file in _files(patch.get("figures"))}
    validation = spec.recipe.get("validation")
    if not isinstance(validation, Mapping) or validation.get("name") != "cross_validation":
        return files
    folds = validation.get("folds", 4)
    return {f"{file}-fold{fold}" for file in files for fold in range(folds if isinstance(folds, int) else 0)}


def _files(figures: Any) -> Iterator[str]:
    """What each figure of a recipe's list is named: by itself, and by its split where that is not `test`."""
    for figure in figures if isinstance(figures, list) else ():
        if isinstance(figure, str):
            yield figure
        elif isinstance(figure, Mapping):
            split = figure.get("split", "test")
            yield f"{figure.get('name')}" if split == "test" else f"{figure.get('name')}-{split}"
