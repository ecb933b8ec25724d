"""A figure before it has a format: its Vega-Lite specification, the data behind it, and its words."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.publish.figures.sketch import Value


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure with everything that a format needs."""

    name: str
    sweep: int
    sweep_name: str
    specification: dict[str, Any]
    columns: Sequence[str]  # of the data
    rows: Sequence[Sequence[Value]]

    @property
    def file_stem(self) -> str:
        """The name of a file that holds this figure, without its suffix: ASCII letters, digits, dot and hyphens."""
        stem = re.sub(r"[^A-Za-z0-9]+", "-", f"{self.sweep_name}-{self.sweep}-{self.name}").strip("-").lower()
        return stem[:100]
