"""The stages of a training at which a data file looks: in the words that stand over their panels."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from orchestrator.publish.figures import files
from orchestrator.publish.figures.sketch import Arrays, Sketch

Seen = TypeVar("Seen")


class Stage(NamedTuple):
    """A stage, as the recipe counts."""

    at: int
    epochs: bool

    @property
    def key(self) -> str:
        """Its name in the data behind a figure, which no other stage has."""
        return f"{self._unit}_{self.at}"

    @property
    def title(self) -> str:
        """Over its panels."""
        return f"After {self.at:,} {self._unit}{'' if self.at == 1 else 's'}" if self.at else "Before training"

    @property
    def _unit(self) -> str:
        return "epoch" if self.epochs else "iteration"


def read(arrays: Arrays, convert: Callable[[Arrays, int], Seen]) -> Mapping[Stage, Seen]:
    """What `convert` makes of each stage, which it is told by its place in the file."""
    steps = files.vector(arrays, "step")
    stages = files.vector(arrays, "at", len(steps))
    epochs = bool((steps != stages).any())
    return {Stage(int(at), epochs and at > 0): convert(arrays, place) for place, at in enumerate(stages)}


def drawn(it: Sketch, seen: Sequence[Mapping[Stage, object]]) -> tuple[list[Stage], list[str]]:
    """The stages of any of several files, the earliest first, of those that the figure asks for; a note on the rest."""
    found = sorted({stage for one in seen for stage in one})
    wanted = it.layout.stages
    if wanted is None:
        return found, []
    known = {stage.at for stage in found}
    absent = [f"{at:,}" for at in wanted if at not in known] if seen else []
    notes = [f"No training looked at stage {', '.join(absent)}."] if absent else []
    return [stage for stage in found if stage.at in wanted], notes
