"""The data files of a figure: read once by point and repeat, each turned into what its kind draws."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from orchestrator.publish.figures.points import FigurePoint
from orchestrator.publish.figures.sketch import Arrays, Sketch
from orchestrator.publish.statistics import statistic
from orchestrator.views.outcomes import Statistic

Read = TypeVar("Read")
Held = TypeVar("Held")


@dataclass(frozen=True, slots=True)
class Pooled(Generic[Read]):
    """What the files of each point hold, one a repeat, and a note on those that are missing."""

    found: Sequence[tuple[FigurePoint, Sequence[Read]]]
    notes: Sequence[str]


def read(it: Sketch, convert: Callable[[Arrays], Read], *, first: bool = False) -> Pooled[Read]:
    """The files of the selected candidates, as `convert` gives them; with `first`, of one repeat a point."""
    return _pooled(it, it.sources.arrays, ".npz", lambda _, arrays: convert(arrays), first=first)


def pictures(it: Sketch, convert: Callable[[int, bytes], Read]) -> Pooled[Read]:
    """The sheets of the selected candidates, of one repeat a point; `convert` takes the trial and a PNG file."""
    return _pooled(it, it.sources.pictures, ".png", convert, first=True)


def _pooled(
    it: Sketch,
    source: Callable[[Sequence[int], str], tuple[Mapping[int, Held], Mapping[int, str]]],
    suffix: str,
    convert: Callable[[int, Held], Read],
    *,
    first: bool,
) -> Pooled[Read]:
    data = it.layout.data or ""
    wanted = [[trial.trial for trial in point.trials] for point in it.drawn]
    files, missing = source([trial for trials in wanted for trial in trials], data)
    troubles = dict(missing)
    held: dict[int, Read] = {}
    for trial, file in files.items():
        try:
            held[trial] = convert(trial, file)
        except (KeyError, ValueError, IndexError, TypeError) as error:
            reason = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
            troubles[trial] = f"{data}{suffix} of trial {trial} is not as it should be: {reason}"
    pooled = []
    for point, trials in zip(it.drawn, wanted, strict=True):
        kept = [held[trial] for trial in trials if trial in held]
        if kept:
            pooled.append((point, kept[:1] if first else kept))
    return Pooled(pooled, _notes(list(troubles.values())))


def _notes(troubles: Sequence[str]) -> list[str]:
    if not troubles:
        return []
    count = "A data file is" if len(troubles) == 1 else f"{len(troubles)} data files are"
    return [f"{count} not drawn: {troubles[0]}{'' if len(troubles) == 1 else ', for one'}."]


def figure_of(it: Sketch) -> str:
    """The figure whose data it is: `norms` of `norms-train`."""
    return (it.layout.data or "").partition("-")[0]


def split_of(it: Sketch) -> str:
    """Of which images the data is, in words: of the test split unless the file's name says another."""
    said = (it.layout.data or "").split("-")[1:]
    return "training" if "train" in said else "validation" if "validation" in said else "test"


def vector(arrays: Arrays, name: str, length: int | None = None) -> NDArray[np.float64]:
    """An array of numbers in one dimension; raises KeyError where it is absent, ValueError where it is another."""
    found = np.asarray(arrays[name], dtype=np.float64)
    if found.ndim != 1 or (length is not None and len(found) != length):
        raise ValueError(f"{name} has the shape {[*found.shape]}")
    if not bool(np.isfinite(found).all()):
        raise ValueError(f"{name} holds what is no number")
    return found


def scalar(arrays: Arrays, name: str) -> float:
    """A number; raises KeyError, ValueError."""
    return float(np.asarray(arrays[name], dtype=np.float64).reshape(()))


def means(repeats: Sequence[NDArray[np.float64]]) -> list[Statistic]:
    """The statistic of each place of some arrays [n] over repeats, as far as all of them go."""
    shared = min(len(one) for one in repeats)
    return [statistic([float(one[at]) for one in repeats]) for at in range(shared)]
