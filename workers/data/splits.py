"""What a training learns from and is judged on: a data set with its hold-out applied."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import torch

from workers.contract import ClassHoldout, ImageHoldout, Recipe
from workers.data.images import DataSet, Images, content, test_sets

_SEED: Final = 0  # the same images are held out in all trainings


@dataclass(frozen=True)
class Splits:
    """What one training learns from and is judged on."""

    train: Images
    validation: Images | None
    test: Images
    content: str | None = None
    """The hash of what was read, where the data set knows it: for the provenance."""
    tests: Mapping[str, Images] = field(default_factory=dict)
    """The test sets beside `test`, by the names of their splits: `test_lfw`."""

    @property
    def names(self) -> tuple[str, ...]:
        """The splits that the weights at the end are judged on."""
        return ("test", *(["validation"] if self.validation else []), *self.tests)

    def named(self, name: str) -> Images:
        """The split `train`, `validation`, `test` or `test_lfw`; raises ValueError where there is none."""
        every = {"train": self.train, "validation": self.validation, "test": self.test, **self.tests}
        if name not in every:
            raise ValueError(f"there is no split {name!r}; there are {', '.join(every)}")
        found = every[name]
        if found is None:
            raise ValueError(f"the recipe holds nothing out, so there is no split {name!r}")
        return found


def splits(recipe: Recipe, dataset: DataSet) -> Splits:
    """A data set with the hold-out of a recipe applied; raises ValueError where that leaves too few classes."""
    wanted = recipe.validation
    train, validation = dataset.train, None
    if isinstance(wanted, ClassHoldout):
        train, validation = hold_out(dataset.train, wanted.held_out(dataset.train.classes))
    elif isinstance(wanted, ImageHoldout):
        held = dealt(dataset.train.labels, wanted.folds, wanted.fold)
        train, validation = dataset.train.of_images(~held), dataset.train.of_images(held)
    if validation and len(validation.labels.unique()) < 2:  # type: ignore[no-untyped-call]
        found = len(validation.labels.unique())  # type: ignore[no-untyped-call]
        raise ValueError(f"validation: the hold-out leaves {found} classes to validate; it needs 2")
    return Splits(train, validation, dataset.test, content(dataset), test_sets(dataset))


def hold_out(images: Images, classes: range) -> tuple[Images, Images]:
    """(the images of all other classes, the images of `classes`), each with labels contiguous from 0."""
    held = torch.zeros(images.classes, dtype=torch.bool)
    held[classes.start : classes.stop] = True
    return images.of_classes(~held), images.of_classes(held)


def dealt(labels: torch.Tensor, folds: int, fold: int) -> torch.Tensor:
    """Which images (bool [n]) one of `folds` shares has, of each class as many as of any or one more.

    A fixed seed shuffles those of a class. An image that is alone in its class is in no share.
    """
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(_SEED))
    order = order[labels[order].argsort(stable=True)]
    several = labels.bincount()[labels] > 1
    held = torch.zeros(len(labels), dtype=torch.bool)
    held[order[several[order]][fold::folds]] = True
    return held
