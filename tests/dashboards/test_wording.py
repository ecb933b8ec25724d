"""Times, lengths of time, numbers and sizes as the pages write them."""

import math
from datetime import UTC, datetime, timedelta, timezone

from dashboards import rendering
from orchestrator.views.pages import duration

NOW = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)


def test_what_pages_write() -> None:
    cases = (
        (duration, [
            (0, "0 s"), (0.01, "0 s"), (0.4, "0.4 s"), (8.25, "8.2 s"), (45, "45 s"), (59.4, "59 s"), (60, "1 min"),
            (245, "4 min 5 s"), (3600, "1 h"), (3_605, "1 h"), (7_805, "2 h 10 min"), (273_600, "3 d 4 h"), (-5, "0 s"),
        ]),
        (lambda before: rendering.ago(NOW - before, NOW), [
            (timedelta(seconds=3), "just now"), (timedelta(seconds=-60), "just now"),
            (timedelta(seconds=10), "10 s ago"), (timedelta(minutes=5, seconds=40), "5 min ago"),
            (timedelta(days=2), "2 d ago"), (timedelta(days=40), "2026-03-22"),
        ]),
        (rendering.number, [
            (0.61234, "0.6123"), (0.0, "0.0000"), (-0.5, "−0.5000"), (2e-7, "2.000e-07"), (12345.0, "1.234e+04"),
            (None, "not a number"), (math.nan, "not a number"), (math.inf, "inf"),
        ]),
        (rendering.plain, [
            ("a", "a"), (None, "none"), (True, "yes"), (3, "3"), (0.001, "0.001"), ([1, "é"], '[1, "é"]'), ({}, "{}"),
        ]),
        (rendering.size, [(0, "0 B"), (1_023, "1023 B"), (1_482, "1 KiB"), (2_621_440, "2.5 MiB")]),
    )  # fmt: skip
    wrong = [(given, wrote(given), said) for wrote, rows in cases for given, said in rows if wrote(given) != said]
    assert wrong == []


def test_moments_are_in_utc() -> None:
    east = datetime(2026, 5, 1, 14, 0, tzinfo=timezone(timedelta(hours=2)))
    for moment in (NOW, east, NOW.replace(tzinfo=None)):
        assert rendering.exact(moment) == "2026-05-01 12:00:00 UTC"
        assert rendering.machine(moment) == "2026-05-01T12:00:00Z"
