"""What validation holds out: whether task and data set allow it, what is left to train, what there is to select by."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from workers.catalog.chosen import Chosen
from workers.catalog.draft import RecipeDraft
from workers.catalog.wording import Problem, counted
from workers.contract import ClassHoldout, CrossValidation, ImageHoldout, NoValidation

FEWEST_CLASSES: Final = 2
"""Below it there is no pair of classes to tell apart: neither a training nor an evaluation means anything."""
_USUAL: Final = ("class_holdout",)
"""What a task allows that says nothing of it."""


def disagreements(draft: RecipeDraft) -> Iterator[Problem]:
    """What does not fit; each rule is silent where something that it needs is absent."""
    yield from _classes(draft)
    yield from _unallowed(draft)
    yield from _selection_split(draft)


def _classes(draft: RecipeDraft) -> Iterator[Problem]:
    """The hold-out leaves enough classes to validate on, and as many to train on as a batch holds."""
    dataset, validation = draft.parts.get("dataset"), draft.validation
    counts = dataset.fact("classes") if dataset else None
    if dataset is None or validation is None or not isinstance(counts, dict):
        return
    total = counts.get("train")
    if not isinstance(total, int):
        return
    remaining, message = total, f"{dataset} has only {counted(total, 'training class')}"
    if isinstance(validation, ImageHoldout):
        yield from _images(dataset, validation)
    elif not isinstance(validation, NoValidation):
        least, most = _extremes(validation, total)
        held, remaining = len(least.held_out(total)), total - len(most.held_out(total))
        of_all = f"{_possessive(dataset.entry.name)} {counted(total, 'training class')}"
        after = f"fold {most.fold} of {most.folds} is held out for validation"
        message = f"only {remaining} of {of_all} remain after {after}"
        message += f"; {_way_out(dataset, validation)}" if _chosen(dataset) else ""
        if held < FEWEST_CLASSES:
            fold = f"fold {least.fold} of {least.folds}"
            needs = f"validation needs at least {FEWEST_CLASSES}; {_way_out(dataset, validation)}"
            yield Problem(path="validation.folds", message=f"{fold} holds out {held} of {of_all}, but {needs}")
    yield from _drawn(draft.parts.get("sampler"), remaining, message)


def _chosen(dataset: Chosen) -> bool:
    """Whether the recipe says how many of the classes train."""
    return dataset.entry.parameter("train_classes") is not None


def _way_out(dataset: Chosen, validation: ClassHoldout | CrossValidation) -> str:
    """What to change where a hold-out is too small, or leaves too little."""
    if not _chosen(dataset):
        return "take fewer folds"
    folds = "take fewer folds, " if validation.folds > FEWEST_CLASSES else ""
    return f"{folds}let more classes train (`dataset.train_classes`), or hold nothing out (`validation: none`)"


@lru_cache(maxsize=256)
def _extremes(validation: ClassHoldout | CrossValidation, total: int) -> tuple[ClassHoldout, ClassHoldout]:
    """The folds that hold out the fewest and the most of the classes."""
    folds = validation.holdouts if isinstance(validation, CrossValidation) else [validation]
    sizes = [len(fold.held_out(total)) for fold in folds]
    return folds[sizes.index(min(sizes))], folds[sizes.index(max(sizes))]


def _drawn(sampler: Chosen | None, remaining: int, message: str) -> Iterator[Problem]:
    """A batch finds its classes among those that remain; `message` says how many these are."""
    option = sampler.fact("draws") if sampler else None
    draws = sampler.options.get(option) if sampler and isinstance(option, str) else None
    if isinstance(draws, int) and draws > remaining:
        drawn = f"the sampler draws {counted(draws, 'class')} a batch"
        yield Problem(path=f"sampler.{option}", message=f"{drawn}, but {message}")
    elif remaining < FEWEST_CLASSES:
        yield Problem(path="dataset", message=f"a training needs at least {FEWEST_CLASSES} classes, but {message}")


def _possessive(name: str) -> str:
    return f"{name}'" if name.endswith("s") else f"{name}'s"


def _images(dataset: Chosen, validation: ImageHoldout) -> Iterator[Problem]:
    """The share of the images is large enough to judge by."""
    counts = dataset.fact("images")
    total = counts.get("train") if isinstance(counts, dict) else None
    if isinstance(total, int) and (held := total // validation.folds) < FEWEST_CLASSES:
        of_all = f"{_possessive(dataset.entry.name)} {counted(total, 'training image')}"
        needs = f"validation needs at least {FEWEST_CLASSES}; take fewer folds"
        message = f"fold {validation.fold} of {validation.folds} holds out {held} of {of_all}, but {needs}"
        yield Problem(path="validation.folds", message=message)


def _allowed(task: Chosen | None) -> list[str]:
    """The names of what a task can validate by: nothing where it takes no images, or says so."""
    if task is None or ("batches" in task.entry.asks and "validations" not in task.entry.facts):
        return [*_USUAL]
    return task.entry.stated("validations") if "batches" in task.entry.asks else []


def _unallowed(draft: RecipeDraft) -> Iterator[Problem]:
    """The task can validate so, and the models of several folds are joined only where that means something."""
    task, validation = draft.parts.get("task"), draft.validation
    if task is None or "batches" not in task.entry.asks or validation is None or isinstance(validation, NoValidation):
        return
    allowed = _allowed(task)
    if validation.name not in allowed:
        several = isinstance(validation, CrossValidation)
        why = "has no way to join the models of several folds" if several else f"does not validate by {validation.name}"
        named = ", ".join(f"{{name: {name}}}" for name in allowed)
        right = f"take {named}, or none" if named else "leave it out"
        yield Problem(path="validation", message=f"{task} {why}; {right}")


def _selection_split(draft: RecipeDraft) -> Iterator[Problem]:
    """What selects exists: a validation split only where something is held out."""
    if draft.select and draft.select.beside and draft.select.split != "validation":
        message = f"is only for `split: validation`, but split is {draft.select.split!r}; leave it out"
        yield Problem(path="select.beside", message=message)
    if draft.select and draft.select.split == "validation" and isinstance(draft.validation, NoValidation):
        first = next(iter(_allowed(draft.parts.get("task"))), None)
        right = f"add `validation: {{name: {first}}}`, or select" if first else "select"
        held = {"image_holdout": "no images are", None: "nothing is"}.get(first, "no classes are")
        found = f"{held} held out to select by 'validation'"
        yield Problem(path="select.split", message=f"{found}; {right} by 'test' or 'last'")
