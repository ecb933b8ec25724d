"""What is kept with a stamp: computed anew where that is another, and what was asked for last stays."""

from concurrent.futures import ThreadPoolExecutor

from orchestrator.service.stamped_cache import StampedCache


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
