"""What this process has told MLflow of runs: what it was told once is not told again."""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

_MOST: Final = 5_000  # of runs that are remembered


@dataclass(slots=True)
class ToldRun:
    """What a run shows, as far as we know: hashes of values by name, and its end."""

    status: str = ""
    ended: int | None = None
    params: int | None = None
    tags: dict[str, int] = field(default_factory=dict)
    data: bool = False

    def new_tags(self, tags: Mapping[str, str]) -> dict[str, str]:
        """Those of the tags that it does not show."""
        return {name: value for name, value in tags.items() if self.tags.get(name) != hash(value)}

    def note_tags(self, tags: Mapping[str, str]) -> None:
        """It shows these now."""
        self.tags |= {name: hash(value) for name, value in tags.items()}

    def knows(self, params: Mapping[str, str]) -> bool:
        """Whether it shows these params."""
        return self.params == _sum(params)

    def note_params(self, params: Mapping[str, str]) -> None:
        """It shows these now."""
        self.params = _sum(params)


class Memory:
    """What was told of the runs that were spoken of last."""

    def __init__(self) -> None:
        self._runs: OrderedDict[str, ToldRun] = OrderedDict()
        self._tried: set[int] = set()  # hashes of keys

    def note_try(self, key: str) -> None:
        """This process has made a run of this key, or may have."""
        self._tried.add(hash(key))

    def has_tried(self, key: str) -> bool:
        """Whether this process may have made a run of this key."""
        return hash(key) in self._tried

    def of(self, run: str) -> ToldRun:
        """What was told of a run; nothing of one that is not remembered."""
        found = self._runs.setdefault(run, ToldRun())
        self._runs.move_to_end(run)
        while len(self._runs) > _MOST:
            self._runs.popitem(last=False)
        return found

    def forget(self, run: str) -> None:
        """The run shows nothing that we know of."""
        self._runs.pop(run, None)


def _sum(params: Mapping[str, str]) -> int:
    return hash(frozenset(params.items()))
