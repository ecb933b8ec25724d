"""What a client hears of a spec: what it would become, and what it became."""

from pydantic import Field

from orchestrator.cost.view import Cost
from orchestrator.views.pages import View
from orchestrator.views.sweeps import Reuse


class Preview(View):
    """What a spec would become, without storing it."""

    name: str
    cells: int
    candidates: int
    trials: int
    trainings: int
    """Different recipes among the trials."""
    cached: int
    """Trials whose training has finished already."""
    evaluated: int = 0
    """Trials that are evaluated of the weights that a training has kept which differs by `metrics` alone."""
    exact: bool = True
    """False where a search proposes candidates: then all counts but that of the cells are at most so many."""
    cost: Cost
    reuse: Reuse | None = None
    """What would be reused, by the data as it was last looked at; the sweep itself says what was."""
    warnings: list[str] = Field(default_factory=list)
    """Slots that no node which was ever seen can hold and data that no machine has: their trials would wait."""
    notes: list[str] = Field(default_factory=list)
    """What the subset that `only` and `without` take can no longer show."""

    @property
    def said(self) -> list[str]:
        """In words: how many of what there would be, what would come of them, and what of it was trained before."""
        most = "" if self.exact else "at most "
        counts = f"{self.cells} cells, {most}{self.candidates} candidates, {most}{self.trials} trials"
        trained = self._evaluated if self.evaluated else f"{most}{self._trained}"
        return [f"{self.name}: {counts}", trained, *([self.reuse.said] if self.reuse else [])]

    @property
    def _evaluated(self) -> str:
        counts = [f"{self.evaluated} evaluated from kept weights"]
        trained = self.trials - self.evaluated - self.cached
        counts += [f"{trained} trained"] if trained else []
        counts += [f"{self.cached} trained already"] if self.cached else []
        return f"{self.trials} trials: {', '.join(counts)}"

    @property
    def _trained(self) -> str:
        reused = self.trainings - self.cost.trainings
        of_trials = f" for {self.cached} trials" if self.cached > reused else ""
        counts = f"{self.cost.trainings} to be trained, {reused} trained already{of_trials}"
        return f"{self.trainings} different trainings: {counts}"


class Submitted(View):
    """The answer to a submit; `created` is false when the idempotency key was known."""

    id: int
    uid: str
    created: bool
    warnings: list[str] = Field(default_factory=list)
    """Slots that no node which was ever seen can hold and data that no machine has: their trials wait."""
    notes: list[str] = Field(default_factory=list)
    """What the subset that `only` and `without` take can no longer show."""
    reuse: Reuse | None = None
    """What is reused, by the data as it was last looked at; none of more than 2,000 trials."""
    cost: Cost | None = None
    """What is still to be trained; none of more than 2,000 trials, of which a preview tells."""
