"""Labels: what a value of a recipe is called where it is chosen, held and printed."""

import json
from typing import Any


def label_of(value: Any) -> str:
    """A value as the label of the alternative that it is: 0.001 -> 0.001, 1e-5 -> 1e-05, true -> true."""
    if type(value) is int:
        return str(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def number_of(label: str) -> float | None:
    """The number that a label is; none where it is none."""
    try:
        return float(label)
    except ValueError:
        return None
