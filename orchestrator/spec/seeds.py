"""The axis of a spec that repeats its trainings by seed, and the seeds on it."""

from collections.abc import Mapping
from dataclasses import dataclass

from orchestrator.spec.axis import Choice
from orchestrator.spec.spec import Spec

_PATH = "seed"


@dataclass(frozen=True, slots=True)
class SeedAxis:
    """A repeat axis whose alternatives set the seed and nothing else."""

    name: str
    by_label: Mapping[str, int]
    """The seeds by their labels, in the order of the spec."""


def seed_axis(spec: Spec) -> SeedAxis | None:
    """The axis to which seeds can be added; none where the spec repeats by no seed."""
    for name, groups in spec.repeat.items():
        found = {choice.label: seed for group in groups for choice in group.choices if (seed := seed_of(choice)) >= 0}
        if found and len(found) == len({choice.label for group in groups for choice in group.choices}):
            return SeedAxis(name, found)
    return None


def seed_of(choice: Choice) -> int:
    """The seed that an alternative sets alone; -1 where it sets anything else."""
    seed = choice.patch.get(_PATH)
    return seed if list(choice.patch) == [_PATH] and type(seed) is int and seed >= 0 else -1
