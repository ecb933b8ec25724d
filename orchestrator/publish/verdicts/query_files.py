"""The files of what each test query scored, read a few at a time and summed up by class."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from orchestrator.views.deadline import timely
from orchestrator.views.query_sums import QuerySource, QuerySums

AT_ONCE: Final = 8
"""Files whose scores are held at a time: SOP's have 60,000 queries."""

Arrays = Mapping[str, Any]
ArrayFiles = Callable[[Sequence[int], str], tuple[Mapping[int, Arrays], Mapping[int, str]]]
"""The arrays of a data file by trial, and for each trial without them why that is."""

_SAID: Final = frozenset({"query", "class", "checkpoint", "data"})


def source(read: ArrayFiles) -> QuerySource:
    """The sums of trainings whose files are read by `read`."""

    def of(trials: Sequence[int], split: str) -> tuple[Mapping[int, QuerySums], Mapping[int, str]]:
        name = "queries" if split == "test" else f"queries-{split}"
        scores: dict[int, QuerySums] = {}
        missing: dict[int, str] = {}
        asked = list(dict.fromkeys(trials))
        for first in timely(range(0, len(asked), AT_ONCE)):
            some = asked[first : first + AT_ONCE]
            arrays, troubles = read(some, name)
            missing |= {trial: _told(why, name) for trial, why in troubles.items()}
            for trial, held in arrays.items():
                try:
                    scores[trial] = summed(held)
                except (KeyError, ValueError, TypeError) as error:
                    reason = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
                    missing[trial] = f"{name}.npz of trial {trial} is not as it should be: {reason}"
        return scores, missing

    return of


def _told(why: str, name: str) -> str:
    """Why there is no file, and what helps where an older release has trained."""
    helps = "an older release trained it; ask for a further metric, and its kept weights are evaluated"
    return f"{why}: {helps}" if why.endswith(f"kept no {name}.npz") else why


def summed(arrays: Arrays) -> QuerySums:
    """What a file holds; raises KeyError for what it lacks and ValueError for what cannot be."""
    import numpy as np

    queries, classes = (_whole(arrays[name], name) for name in ("query", "class"))
    if len(classes) != len(queries):
        raise ValueError(f"{len(queries):,} queries have {len(classes):,} classes")
    numbers, places = np.unique(classes, return_inverse=True)
    sums = {}
    for name in sorted(arrays.keys() - _SAID):
        scores = np.asarray(arrays[name], dtype=np.float64)
        if scores.shape != queries.shape or not bool(np.isfinite(scores).all()):
            raise ValueError(
                f"{name[:60]!r} has the shape {[*scores.shape]} for {len(queries):,} queries, or no numbers"
            )
        sums[name] = np.bincount(places, weights=scores, minlength=len(numbers))
    data, checkpoint = str(arrays["data"]), str(arrays["checkpoint"])
    if checkpoint not in ("best", "last"):
        raise ValueError("its scores are neither of the best weights nor of the last")
    digest = hashlib.sha256(f"{data}\n".encode() + queries.tobytes() + classes.tobytes()).hexdigest()
    return QuerySums(digest, checkpoint, np.bincount(places, minlength=len(numbers)), sums)


def _whole(array: Any, name: str) -> Any:
    import numpy as np

    found = np.asarray(array)
    if found.ndim != 1 or found.dtype.kind not in "iu" or not len(found):
        raise ValueError(
            f"{name!r} has the shape {[*found.shape]} of {found.dtype}, and is to be whole numbers in a row"
        )
    return np.ascontiguousarray(found, dtype=np.int64)
