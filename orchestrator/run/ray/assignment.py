"""An assignment: which attempt a relay follows on which slot, and what Ray's own tools show of it."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from orchestrator.views.orders import Order

LONGEST: Final = 200
"""Characters of a value, or of a name, that are shown."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """What a relay is to follow."""

    order: Order
    slot: str
    namespace: str
    seen: int

    @property
    def config(self) -> dict[str, str | int | float | bool | None]:
        """The config of Tune's trial: four keys that the relay goes by, and the name and the recipe for people.

        Every value is flat, since Tune evaluates `{"eval": ...}` wherever it finds one in a config.
        """
        shown = {path: one for path, one in _flat("recipe", self.order.recipe) if not path.startswith("recipe.pins.")}
        shown |= {"trial": self.name, "attempt": self.order.attempt, "slot": self.slot}
        return shown | {"namespace": self.namespace, "seen": self.seen}

    @property
    def name(self) -> str:
        """What a person calls it."""
        called = self.order.label or self.order.training
        return (called if self.order.number == 1 else f"{called} (attempt {self.order.number})")[:LONGEST]


def folder_of(name: str, trial: str) -> str:
    """The folder of Tune's trial with this name."""
    return f"{re.sub(r'[^A-Za-z0-9=.@-]+', '_', name).strip('_.')[:100]}-{trial}"


def _flat(path: str, value: Any) -> Iterator[tuple[str, str | int | float | bool | None]]:
    if isinstance(value, Mapping):
        for key, one in value.items():
            yield from _flat(f"{path}.{key}", one)
    elif value is None or isinstance(value, bool | int | float):
        yield path, value
    else:
        yield path, (value if isinstance(value, str) else json.dumps(value))[:LONGEST]
