"""Validation: what of the training classes, or of their images, is held out, by one fold or by all of them in turn."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from workers.recipe.parts import Frozen


class NoValidation(Frozen):
    """All training classes train; nothing is held out."""

    name: Literal["none"] = "none"


class ClassHoldout(Frozen):
    """One of `folds` contiguous blocks of training classes validates, the others train (MLRC's partition)."""

    name: Literal["class_holdout"] = "class_holdout"
    folds: int = Field(default=4, ge=2, le=1000)
    fold: int = Field(default=0, ge=0)

    @model_validator(mode="after")
    def _fold_exists(self) -> "ClassHoldout":
        _check_fold(self.fold, self.folds)
        return self

    def held_out(self, classes: int) -> range:
        """The class indices that validate, of `classes` training classes 0..classes-1."""
        start = classes * self.fold // self.folds
        return range(start, classes * (self.fold + 1) // self.folds)


class ImageHoldout(Frozen):
    """One of `folds` equal shares of the training images validates, the others train; of each class an equal share.

    Which images these are is drawn once for all trainings; the only image of a class trains.
    """

    name: Literal["image_holdout"] = "image_holdout"
    folds: int = Field(default=10, ge=2, le=1000)
    fold: int = Field(default=0, ge=0)

    @model_validator(mode="after")
    def _fold_exists(self) -> "ImageHoldout":
        _check_fold(self.fold, self.folds)
        return self


class CrossValidation(Frozen):
    """One model for each of `folds` contiguous blocks of training classes, which validates on it (MLRC)."""

    name: Literal["cross_validation"] = "cross_validation"
    folds: int = Field(default=4, ge=2, le=1000)

    @property
    def holdouts(self) -> list[ClassHoldout]:
        """The hold-out of each model."""
        return [ClassHoldout(folds=self.folds, fold=fold) for fold in range(self.folds)]


Validation = Annotated[NoValidation | ClassHoldout | CrossValidation | ImageHoldout, Field(discriminator="name")]


def _check_fold(fold: int, folds: int) -> None:
    if fold >= folds:
        raise ValueError(f"fold {fold} does not exist; with {folds} folds it is 0 to {folds - 1}")
