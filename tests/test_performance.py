"""The page of performance says what was measured; what is missed says so."""

import json

import pytest

from benchmarks.performance import BEGIN, END, GOALS, KEPT, PAGE, RUNS, Goal, Told, table


@pytest.fixture(scope="module")
def kept() -> dict[str, Told]:
    found: dict[str, Told] = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.is_file() else {}
    return found


def test_the_page_shows_what_is_kept(kept: dict[str, Told]) -> None:
    shown = PAGE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]
    assert shown.strip() == table(kept)


def test_every_goal_has_its_benchmark(kept: dict[str, Told]) -> None:
    assert set(kept) <= set(RUNS) == {goal.run for goal in GOALS}


def test_what_is_missed_is_said() -> None:
    goal = Goal("to be fast", "start", lambda told: float(told["s"]), 2)
    assert goal.line({"each": [{"s": 2}]}) == "| to be fast | 2 | one run | 2 | met |"
    assert (
        goal.line({"each": [{"s": 2}, {"s": 3}, {"s": 2.5}]}) == "| to be fast | 2.5 | 2 to 3 of 3 | 2 | **missed** |"
    )
    of_medians = {"each": [{"s": 2}, {"s": 3}], "told": {"s": 1.75}}
    assert goal.line(of_medians) == "| to be fast | 1.75 | 2 to 3 of 2 | 2 | met |"
