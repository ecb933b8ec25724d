"""What is kept of trainings and what may go: a policy, what it would take, and what became of it."""

from datetime import datetime

from pydantic import Field

from orchestrator.views.lifecycle import TrialState
from orchestrator.views.pages import View

ENDED = (TrialState.FINISHED, TrialState.FAILED, TrialState.CANCELLED, TrialState.PRUNED)


class CollectionPolicy(View):
    """Which trainings' weights may go: of sweeps that have ended, by age, state and rank."""

    before: datetime
    """Those that ended before."""
    states: list[TrialState] = Field(default_factory=lambda: list(ENDED))
    keep: int = Field(default=1, ge=1, le=10_000)
    """So many candidates of each cell, the best by the sweep's own rule, keep theirs."""

    @property
    def reason(self) -> str:
        """In words, as it stands beside what went."""
        states = ", ".join(self.states)
        best = "its best candidate" if self.keep == 1 else f"its {self.keep} best candidates"
        return f"{states}, ended before {self.before:%Y-%m-%d %H:%M} UTC; each cell keeps {best}"


class CollectedView(View):
    """Weights of a training that were collected."""

    at: datetime
    reason: str
    request: int
    files: int
    bytes: int
    removed: bool
    """False: the record is made and the files are still to go."""


class CollectableSweep(View):
    """What a policy would take of one sweep."""

    sweep: int
    name: str
    trainings: int
    files: int
    bytes: int
    kept: int
    """Trainings of it that keep their weights."""
    retrained: list[str]
    """Columns that today would be evaluated of the kept weights, and then would have to be trained for."""
    request: int | None = None
    """What the conductor was asked; none: nothing was, it was a dry run."""


class CollectionView(View):
    """What a policy would take, or was asked to."""

    dry_run: bool
    sweeps: list[CollectableSweep]
    bytes: int


class SweepStorage(View):
    """What the trainings of one sweep keep in the storage; what several sweeps share counts for each."""

    sweep: int
    name: str
    weights_bytes: int
    figures_bytes: int
    spools_bytes: int
    logs_bytes: int


class StorageView(View):
    """What the installation has on disk."""

    database_bytes: int | None
    """None: the database does not tell."""
    weights_bytes: int
    figures_bytes: int
    spools_bytes: int
    logs_bytes: int
    """Of trainings, in the database."""
    decoded_bytes: int | None
    """Images that lie decoded on the machine of this API."""
    sweeps: list[SweepStorage]
    """The largest first."""
