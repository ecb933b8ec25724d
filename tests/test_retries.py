"""Which failures are tried again, how often and when."""

from orchestrator.conduct.retries import FIRST_PAUSE, INFRASTRUCTURE_TRIES, LONGEST_PAUSE, MOST_LOSSES, Retries
from orchestrator.spec.slot import Slot
from orchestrator.views.orders import Failure
from tests.run.broker import order

LOST, STALLED, WRONG = (Failure(kind, "said") for kind in ("infrastructure", "stalled", "recipe"))


class Clock:
    """A monotonic clock that a test winds."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_what_a_recipe_raises_is_final() -> None:
    assert not Retries().after(order(), WRONG)


def test_a_machine_may_be_lost_a_few_times() -> None:
    retries, one = Retries(), order()
    told = [retries.after(one, LOST) for _ in range(INFRASTRUCTURE_TRIES)]
    assert told == [True] * (INFRASTRUCTURE_TRIES - 1) + [False]
    assert retries.after(order(), LOST), "of another training nothing was lost"
    retries.forget()
    assert retries.after(one, LOST)


def test_a_stall_has_the_users_limit_and_losses_do_not_count_against_it() -> None:
    retries, one = Retries(), order()
    assert one.slot == Slot(gpus=0)
    assert [retries.after(one, failure) for failure in (LOST, STALLED, LOST, STALLED)] == [True, True, True, False]


def test_the_pause_doubles_and_ends_by_the_monotonic_clock() -> None:
    clock = Clock()
    retries, one = Retries(clock), order()
    retries.after(one, LOST)
    assert retries.resting() == {one.training}
    clock.now += FIRST_PAUSE
    assert not retries.resting()
    retries.after(one, LOST)
    clock.now += FIRST_PAUSE
    assert retries.resting()
    clock.now += FIRST_PAUSE
    assert not retries.resting()
    assert FIRST_PAUSE * 2**20 > LONGEST_PAUSE


def test_losses_count_in_a_row_while_the_training_gets_no_further() -> None:
    retries, preempted = Retries(), order()
    for step in range(1, MOST_LOSSES):
        assert retries.after(preempted, LOST), "each attempt got further than the one before"
        retries.advanced(preempted, 10 * step)
    assert not retries.after(preempted, LOST), "but not for ever"
    poison = order()
    told = []
    for _ in range(INFRASTRUCTURE_TRIES + 1):
        told.append(retries.after(poison, LOST))
        retries.advanced(poison, 5)  # it comes to the same checkpoint each time, and dies there
    assert told == [True, True, True, False]


def test_what_never_began_says_nothing_of_the_recipe() -> None:
    retries, one = Retries(), order()
    gone = Failure("infrastructure", "its node left", begun=False)
    assert all(retries.after(one, gone) for _ in range(MOST_LOSSES - 1))
    assert not retries.after(one, gone), "but a cluster that never begins it is not tried for ever"


def test_what_ended_is_forgotten() -> None:
    retries, one = Retries(), order()
    retries.after(one, LOST)
    retries.ended(one)
    assert not retries.resting()
    assert [retries.after(one, LOST) for _ in range(2)] == [True, True]
