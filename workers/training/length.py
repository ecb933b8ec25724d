"""How long a training is: whatever unit its recipe counts in, in iterations."""

from typing import NamedTuple

from workers.contract import Recipe


class Length(NamedTuple):
    """The spans of one training, in iterations."""

    total: int
    every: int
    """Between two evaluations on the way."""
    warmup: int
    """With a frozen backbone, at the start."""
    epoch: int
    """floor(N/b) batches of the N images that train, at least one; 1 where there are no images."""
    unit: int
    """What the recipe counts in: 1, or an epoch."""


def length(recipe: Recipe, images: int, batch: int) -> Length:
    """The spans of `recipe` with that many training images and images a batch."""
    epoch = max(1, images // batch)
    if recipe.epochs is not None:
        every = recipe.evaluates_every * epoch
        return Length(recipe.epochs * epoch, every, recipe.warmup * epoch, epoch, epoch)
    if recipe.iterations is None:
        raise ValueError("a recipe gives `iterations` or `epochs`")
    return Length(recipe.iterations, recipe.evaluates_every, recipe.warmup, epoch, 1)
