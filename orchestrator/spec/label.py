"""Labels: what a value of a recipe is called where it is chosen, held and printed."""

import json
import re
from collections.abc import Iterable
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


def flow(labels: Iterable[str]) -> str:
    """Labels as YAML, ready to copy: `l2`, or `[l2, sec]`."""
    quoted = [label if re.fullmatch(r"[A-Za-z0-9_.@+-]+", label) else json.dumps(label) for label in labels]
    return quoted[0] if len(quoted) == 1 else f"[{', '.join(quoted)}]"
