"""The time that is left: of long and short trainings, few and many slots, and what was never timed."""

import math
import random

import pytest

from orchestrator.cost.time_left import Pending, Timed, time_left
from orchestrator.record.reads.pace import expected_share


def test_nothing_timed_or_nothing_left_is_not_told() -> None:
    assert time_left([("a", 10.0)], [], [], 1.0) is None
    assert time_left([], [], [Timed("a", 100, 10.0)], 1.0) is None


def test_steps_take_as_long_as_they_took() -> None:
    timed = [Timed("a", 100, 10.0), Timed("a", 100, 12.0), Timed("a", 100, 8.0)]
    found = time_left([("a", 50.0)], [Pending("a", 4, 400)], timed, 1.0)
    assert found is not None
    assert found.seconds == pytest.approx(45.0)
    assert found.low < 45.0 < found.high


def test_slots_share_the_work_and_the_last_one_decides() -> None:
    timed = [Timed("a", 100, 10.0)] * 3
    found = time_left([("a", 100.0), ("a", 10.0)], [Pending("a", 1, 100)], timed, 2.0)
    assert found is not None
    assert found.seconds == pytest.approx(11.0)  # 1 s, then the one that waits; not half of 21 s
    gaps = time_left([("a", 100.0), ("a", 100.0)], [], timed, 1.6)
    assert gaps is not None
    assert gaps.seconds == pytest.approx(12.5)  # four fifths of the time a slot trains


def test_kinds_keep_their_own_pace_and_an_unknown_one_widens_the_doubt() -> None:
    timed = [*[Timed("small", 100, 1.0)] * 3, *[Timed("large", 100, 100.0)] * 3]
    found = time_left([("large", 100.0)], [Pending("small", 10, 1_000)], timed, 1.0)
    assert found is not None
    assert found.seconds == pytest.approx(110.0)
    doubtful = time_left([("other", 100.0)], [], timed, 1.0)
    assert doubtful is not None
    assert doubtful.high / doubtful.low > found.high / found.low


def test_what_runs_tells_the_pace_until_one_has_finished() -> None:
    running = Timed("a", 40, 4.0, whole=False)
    first = time_left([("a", 60.0)], [Pending("a", 1, 100)], [running], 1.0)
    assert first is not None
    assert first.seconds == pytest.approx(16.0)
    then = time_left([("a", 60.0)], [Pending("a", 1, 100)], [running, Timed("a", 100, 20.0)], 1.0)
    assert then is not None
    assert then.seconds == pytest.approx(32.0)


@pytest.mark.parametrize("spread", [0.1, 0.4])
def test_four_times_of_five_it_ends_between_the_two(spread: float) -> None:
    drawn = random.Random(3)
    inside = 0
    for _ in range(400):
        lengths = [drawn.gauss(10.0, 10.0 * spread) for _ in range(20)]
        found = time_left([], [Pending("a", 12, 1_200)], [Timed("a", 100, max(0.5, one)) for one in lengths[:8]], 1.0)
        assert found is not None
        inside += found.low <= sum(lengths[8:]) <= found.high
    assert inside / 400 >= 0.75
    assert spread == 0.1 or inside / 400 <= 0.95  # lengths alike: the drift of a machine is more than their spread


def test_doubt_of_the_steps_widens_the_bounds_alone() -> None:
    timed = [Timed("a", 100, 10.0)] * 3
    sure = time_left([], [Pending("a", 4, 400)], timed, 1.0)
    doubtful = time_left([], [Pending("a", 4, 400)], timed, 1.0, doubt=0.5)
    assert sure is not None
    assert doubtful is not None
    assert doubtful.seconds == sure.seconds
    assert doubtful.low < sure.low
    assert doubtful.high > sure.high


@pytest.mark.parametrize("share", [0.1, 0.6])
def test_how_early_others_end_is_learnt_within_its_bounds(share: float) -> None:
    """Candidates that end at a first look or come to their end, some of them judged and some that wait."""
    drawn, inside = random.Random(5), 0
    for _ in range(400):
        ends = [1.0 if drawn.random() < share else 0.1 for _ in range(16)]
        found = expected_share(ends[:6], 10)
        bound = 1.2816 * found.doubt
        inside += found.mean * math.exp(-bound) <= sum(ends[6:]) / 10 <= found.mean * math.exp(bound)
    assert inside / 400 >= 0.7


def test_very_many_trainings_are_not_dealt_one_by_one() -> None:
    found = time_left([("a", 100.0)] * 4, [Pending("a", 100_000, 10_000_000)], [Timed("a", 100, 10.0)] * 3, 4.0)
    assert found is not None
    assert found.seconds == pytest.approx(250_010.0)
