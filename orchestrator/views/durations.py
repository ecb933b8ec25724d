"""Lengths of time in words: a plain one, and one that is left and uncertain."""

MINUTE, HOUR, DAY = 60, 3_600, 86_400


def duration(seconds: float, parts: int = 2) -> str:
    """A length of time in its largest units: `45 s`, `4 min 5 s`, `2 h 10 min`, `3 d 4 h`."""
    if 0.05 <= seconds < 10 and parts > 1:
        return f"{seconds:.1f} s"
    left = max(0, round(seconds))
    said: list[tuple[int, str]] = []
    for size, unit in ((DAY, "d"), (HOUR, "h"), (MINUTE, "min"), (1, "s")):
        count, left = divmod(left, size)
        if count or said:
            said.append((count, unit))
    return " ".join(f"{count} {unit}" for count, unit in said[:parts] if count) or "0 s"


def time_left(seconds: float | None, low: float | None, high: float | None) -> str:
    """What is left with its uncertainty: `about 4 min 5 s left (3 min to 6 min)`; empty where it is not known."""
    if seconds is None:
        return ""
    said = f"about {duration(seconds)} left"
    if low is None or high is None:
        return said
    least, most = duration(low), duration(high)
    return said if least == most else f"{said} ({least} to {most})"
