"""By what a sweep selects, and how many candidates each of its cells gets."""

from functools import cached_property

from pydantic import Field

from orchestrator.spec.patch import Patch
from workers.contract import Select


class Selection(Select):
    """The selection of a spec; what concerns the whole sweep enters no recipe."""

    budget: int | None = Field(default=None, ge=1, le=10_000, exclude_if=lambda value: value is None)
    """Candidates of every cell, filled up by learning rates (plan/budget.py); none: as its axes give them."""

    @cached_property
    def of_recipes(self) -> Patch:
        """What each recipe says of it."""
        return self.model_dump(mode="json", exclude={"budget"})
