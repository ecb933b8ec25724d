"""What stands behind a number: a trial with the recipe, the result and the provenance of its training."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.views.outcomes import TrialOutcome


@dataclass(frozen=True, slots=True)
class TrialProvenance:
    """One trial of a sweep and everything that is known of the training that it points to."""

    outcome: TrialOutcome
    uid: str
    training: str  # UUID; several trials may share it
    fingerprint: str
    recipe: Mapping[str, Any]  # JSON of the completed recipe
    provenance: Mapping[str, Any]  # of the result: versions, device, host, git commit, manifest; empty without one
    best_step: int | None
    seconds: float | None
    score: float | None
    error: str | None
    run: str | None  # the tracker's id of its run
    reason: str | None = None  # why it was pruned

    @property
    def commit(self) -> str | None:
        """The commit of the code that trained it, `-dirty` where that was changed."""
        return _text(self.provenance.get("git_commit"))

    @property
    def data_hash(self) -> str | None:
        """The hash of the data set that was read, else the one that its recipe asks for."""
        pins = self.recipe.get("pins") or {}
        return _text(self.provenance.get("manifest")) or _text(pins.get("manifest"))

    @property
    def dataset(self) -> str:
        """The name of its data set."""
        part = self.recipe.get("dataset")
        return str(part.get("name", "") if isinstance(part, Mapping) else part or "")

    @property
    def versions(self) -> dict[str, str]:
        """The versions of the packages that may change a number."""
        found = self.provenance.get("versions")
        return {str(name): str(one) for name, one in found.items() if one} if isinstance(found, Mapping) else {}

    @property
    def device(self) -> str | None:
        """Where it ran: `cpu (AMD EPYC)`."""
        kind, name = _text(self.provenance.get("device")), _text(self.provenance.get("device_name"))
        return f"{kind} ({name})" if kind and name else kind or name


def _text(value: object) -> str | None:
    return None if value is None or value == "" else str(value)
