"""docs/performance.md shows the measured figures, and the reason of each missed goal."""

import json

import pytest

from benchmarks.performance import BEGIN, END, GOALS, KEPT, PAGE, RUNS, Figures, Goal, table


@pytest.fixture(scope="module")
def kept() -> dict[str, Figures]:
    found: dict[str, Figures] = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.is_file() else {}
    return found


def test_the_page_shows_what_is_kept(kept: dict[str, Figures]) -> None:
    shown = PAGE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]
    assert shown.strip() == table(kept)


def test_every_goal_has_its_benchmark(kept: dict[str, Figures]) -> None:
    assert set(kept) <= set(RUNS) == {goal.run for goal in GOALS}


def test_a_missed_goal_names_its_reason() -> None:
    goal = Goal("to be fast", "start", lambda figures: float(figures["s"]), 2, "it waits")
    assert goal.line({"each": [{"s": 2}]}) == "| to be fast | 2 | one run | 2 | met |"
    assert (
        goal.line({"each": [{"s": 2}, {"s": 3}, {"s": 2.5}]})
        == "| to be fast | 2.5 | 2 to 3 of 3 | 2 | **missed**: it waits |"
    )
    of_medians = {"each": [{"s": 2}, {"s": 3}], "medians": {"s": 1.75}}
    assert goal.line(of_medians) == "| to be fast | 1.75 | 2 to 3 of 2 | 2 | met |"
