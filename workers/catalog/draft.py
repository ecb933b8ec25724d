"""A recipe as far as it is sound by itself: what rules look at that say whether its parts fit one another."""

from collections.abc import Mapping
from dataclasses import dataclass

from workers.catalog.chosen import Chosen
from workers.contract import Recipe, Select, Validation


@dataclass(frozen=True)
class RecipeDraft:
    """What of a recipe is sound by itself; what is not is absent."""

    parts: Mapping[str, Chosen]
    validation: Validation | None
    select: Select | None
    rest: Recipe
    """Its plain fields; one that is not sound has its default."""
    length: int | None
    """Iterations or epochs, whichever it counts in."""
