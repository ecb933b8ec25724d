"""What is kept with a stamp: computed anew where that is another, and what was asked for last stays."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from orchestrator.service.stamped_cache import SHARE, StampedCache


def test_a_value_is_computed_once_for_a_stamp() -> None:
    cache: StampedCache[str, int] = StampedCache(2)
    made: list[int] = []

    def compute() -> int:
        made.append(len(made))
        return made[-1]

    assert [cache.get("a", stamp, compute) for stamp in ("1", "1", "2")] == [0, 0, 1]


def test_what_was_asked_for_last_stays() -> None:
    cache: StampedCache[str, str] = StampedCache(2)
    for key in ("a", "b", "a", "c"):
        cache.get(key, "1", lambda: "once")
    assert [cache.get(key, "1", lambda: "again") for key in ("a", "c", "b")] == ["once", "once", "again"]


def test_threads_do_not_lose_one_another() -> None:
    cache: StampedCache[int, int] = StampedCache(3)

    def ask(number: int) -> bool:
        key = number % 7
        return cache.get(key, str(number % 2), lambda: key) == key

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(ask, range(5_000)))


class Clock:
    """One that stands still until it is told to go on."""

    def __init__(self) -> None:
        self.at = 0.0

    def __call__(self) -> float:
        return self.at


def test_what_may_be_old_is_computed_for_a_twentieth_of_the_time() -> None:
    clock = Clock()
    cache: StampedCache[str, float] = StampedCache(2, clock)

    def compute() -> float:
        clock.at += 2.0
        return clock.at

    def asked() -> float:
        return cache.recent("a", lambda: str(clock.at), compute)

    assert asked() == 2.0
    clock.at += 2.0 * SHARE - 0.1
    assert asked() == 2.0, "another stamp, but it took two seconds"
    clock.at += 0.2
    assert asked() == clock.at, "computed now"


def test_who_asks_while_another_computes_gets_what_was() -> None:
    clock, begun, go_on = Clock(), threading.Event(), threading.Event()
    cache: StampedCache[str, str] = StampedCache(2, clock)

    def slow() -> str:
        begun.set()
        assert go_on.wait(60)
        return "new"

    assert cache.recent("a", lambda: "1", lambda: "old") == "old"
    clock.at += 1.0
    with ThreadPoolExecutor(1) as pool:
        computing = pool.submit(cache.recent, "a", lambda: "2", slow)
        assert begun.wait(60)
        assert cache.recent("a", lambda: "2", lambda: "never") == "old"
        go_on.set()
        assert computing.result(60) == "new"
    assert cache.recent("a", lambda: "2", lambda: "never") == "new"


def test_what_cannot_be_computed_keeps_nobody_from_trying_again() -> None:
    clock = Clock()
    cache: StampedCache[str, str] = StampedCache(2, clock)

    def fails() -> str:
        raise ValueError("not now")

    cache.recent("a", lambda: "1", lambda: "old")
    clock.at += 1.0
    with pytest.raises(ValueError, match="not now"):
        cache.recent("a", lambda: "2", fails)
    assert cache.recent("a", lambda: "2", lambda: "new") == "new"
