"""What may be old: computed for a twentieth of the time, and by one at a time."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from orchestrator.host.cache import Cache


class Clock:
    """A computation that waits until the test lets it continue."""

    def __init__(self) -> None:
        self.at = 0.0

    def __call__(self) -> float:
        return self.at


def test_who_asks_while_another_computes_gets_what_was() -> None:
    clock, begun, go_on = Clock(), threading.Event(), threading.Event()
    cache: Cache[str, str] = Cache(2, now=clock)

    def slow() -> str:
        begun.set()
        assert go_on.wait(60)
        clock.at += 1.0
        return "new"

    assert cache.get("a", lambda: "old") == "old"
    clock.at += 1.0
    with ThreadPoolExecutor(1) as pool:
        computing = pool.submit(cache.get, "a", slow)
        assert begun.wait(60)
        assert cache.get("a", lambda: "never") == "old"
        go_on.set()
        assert computing.result(60) == "new"
    assert cache.get("a", lambda: "never") == "new"


def test_all_who_ask_first_wait_for_one() -> None:
    begun, go_on, computed = threading.Event(), threading.Event(), []
    cache: Cache[str, int] = Cache(2)

    def compute() -> int:
        begun.set()
        assert go_on.wait(60)
        computed.append(1)
        time.sleep(0.05)  # else it took no time, and is too old at once
        return len(computed)

    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(cache.get, "a", compute) for _ in range(8)]
        assert begun.wait(60)
        go_on.set()
        assert [one.result(60) for one in asked] == [1] * 8


def test_an_error_is_raised_where_it_happens_and_is_not_kept() -> None:
    begun, go_on = threading.Event(), threading.Event()
    cache: Cache[str, str] = Cache(2)

    def fail() -> str:
        begun.set()
        assert go_on.wait(60)
        raise ValueError("not now")

    with ThreadPoolExecutor(2) as pool:
        failing = pool.submit(cache.get, "a", fail)
        assert begun.wait(60)
        waiting = pool.submit(cache.get, "a", lambda: "own")
        go_on.set()
        assert waiting.result(60) == "own"
        with pytest.raises(ValueError, match="not now"):
            failing.result(60)
