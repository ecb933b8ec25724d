"""Reads a range of numbers that an adaptive search draws from."""

import math
from collections.abc import Mapping
from typing import Any, Final

from orchestrator.spec.axis import Span
from workers.catalog import Problem, shown

_DIGITS: Final = 6


def read_span(posted: Mapping[str, Any], source: str, problems: list[Problem]) -> Span | None:
    """The range of a mapping with `low` and `high`; notes what is wrong with it."""
    known = len(problems)
    for end in ("low", "high"):
        if not _is_number(posted.get(end)):
            problems.append(Problem(f"{source}.{end}", f"expected a finite number, found {shown(posted.get(end))}"))
    log, step = posted.get("log", False), posted.get("step")
    if not isinstance(log, bool):
        problems.append(Problem(f"{source}.log", f"expected true or false, found {shown(log)}"))
    if step is not None and (not _is_number(step) or step <= 0):
        problems.append(Problem(f"{source}.step", f"expected a number above 0, found {shown(step)}"))
    if len(problems) > known:
        return None
    low, high = posted["low"], posted["high"]
    if low >= high:
        problems.append(Problem(source, f"`low` must be below `high`, found {shown(low)} and {shown(high)}"))
    elif log and low <= 0:
        problems.append(Problem(f"{source}.low", f"a logarithmic range begins above 0, found {shown(low)}"))
    elif log and step is not None:
        problems.append(Problem(f"{source}.step", "a logarithmic range has no `step`"))
    elif step is not None and step > high - low:
        problems.append(Problem(f"{source}.step", f"expected at most {shown(high - low)}, found {shown(step)}"))
    if len(problems) > known:
        return None
    whole = all(isinstance(one, int) for one in (low, high, step or 0))
    return Span(low=low, high=high, log=log, step=step, whole=whole)


def drawn(span: Span, value: float) -> float | int:
    """A drawn value as the recipe gets it: whole, or of six digits, so that a table can print it."""
    if span.whole:
        return round(value)
    rounded = float(f"{value:.{_DIGITS}g}")
    return min(max(rounded, span.low), span.high)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
