"""How times, numbers and labels are written on the pages."""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from markupsafe import Markup

from orchestrator.views.pages import DAY, duration

NO_NUMBER: Final = "not a number"


def utc(moment: datetime) -> datetime:
    """The moment in UTC; one without a zone is in UTC already."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def exact(moment: datetime) -> str:
    """`2026-05-01 12:30:05 UTC`."""
    return f"{utc(moment):%Y-%m-%d %H:%M:%S} UTC"


def machine(moment: datetime) -> str:
    """The moment as a `<time>` element's `datetime` wants it."""
    return f"{utc(moment):%Y-%m-%dT%H:%M:%SZ}"


def ago(moment: datetime, now: datetime) -> str:
    """`5 min ago`; the date where that was more than a month ago."""
    seconds = (utc(now) - utc(moment)).total_seconds()
    if seconds < 10:  # or in the future, by another machine's clock
        return "just now"
    return f"{duration(seconds, parts=1)} ago" if seconds < 31 * DAY else f"{utc(moment):%Y-%m-%d}"


def seconds_since(later: datetime, earlier: datetime) -> float:
    """Seconds between two moments, never fewer than none."""
    return max(0.0, (utc(later) - utc(earlier)).total_seconds())


def number(value: float | None) -> str:
    """A metric as a fraction: four decimals, or four digits where it is very small or large."""
    if value is None or value != value:  # noqa: PLR0124 - only NaN differs from itself
        return NO_NUMBER
    shown = f"{value:.4f}" if value == 0 or 1e-3 <= abs(value) < 1e4 else f"{value:.3e}"
    return shown.replace("-", "−", 1) if value < 0 else shown


def share(score: float | None) -> str:
    """A score in a candidate's row: four decimals, a dash where there is none."""
    return "–" if score is None else number(score)


def short_axis(axis: str) -> str:
    """The last step of an axis's path: `eta` for `regularizer.eta`."""
    return axis.rpartition(".")[2] or axis


def plain(value: Any) -> str:
    """A value of a recipe or a provenance in one line."""
    match value:
        case str():
            return value
        case None:
            return "none"
        case bool():
            return "yes" if value else "no"
        case float() | int():
            return f"{value:g}" if isinstance(value, float) else str(value)
        case _:
            return json.dumps(value, ensure_ascii=False, default=str)


def size(count: int) -> str:
    """Bytes in their largest unit: `340 B`, `12 KiB`, `1.4 MiB`."""
    if count < 1024:
        return f"{count} B"
    if count < 1024**2:
        return f"{count / 1024:.0f} KiB"
    return f"{count / 1024**2:.1f} MiB" if count < 1024**3 else f"{count / 1024**3:.1f} GiB"


def indented(value: Any) -> str:
    """JSON for reading."""
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)


def counted(count: int, noun: str) -> str:
    """`1 trial`, `1,200 trials`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def held(slot: Mapping[str, Any]) -> str:
    """The resources of a slot: `4 CPUs, 0.5 GPU, 16 GB, 1 a100`."""
    gpus, memory = slot.get("gpus"), slot.get("memory_gb")
    said = [_amount(slot["cpus"], "CPU")] if "cpus" in slot else []
    if gpus == "auto":
        said.append("GPU where there is one")
    elif gpus:
        said.append(_amount(gpus, "GPU"))
    if memory is not None:
        said.append(f"{memory:g} GB")
    return ", ".join([*said, *(f"{amount:g} {name}" for name, amount in (slot.get("resources") or {}).items())])


def upper_first(text: str) -> str:
    """A sentence as it begins a line."""
    return text[:1].upper() + text[1:]


def breakable(path: str) -> Markup:
    """A name such as `best/validation/map@r` that a narrow column breaks after a mark, and never within a word."""
    return Markup("").join(Markup("{}<wbr>").format(one) for one in re.split(r"(?<=[/._])", path))


def _amount(amount: float, noun: str) -> str:
    return f"{amount:.3g} {noun}{'s' if amount > 1 else ''}"
