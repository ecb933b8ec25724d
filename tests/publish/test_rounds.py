"""Which seeds are trained next, and which comparisons are left out."""

from orchestrator.publish.verdicts.rounds import Limits, Question, Stock, next_round

PLAN = frozenset(range(5))


def stock(hours: float | None = 1.0) -> Stock:
    return Stock(range(5), {0: PLAN, 1: PLAN, 2: PLAN}, {0: 1.0, 1: hours, 2: 1.0})


def questions() -> list[Question[str]]:
    return [Question("first", 1, 0, 5, 4), Question("second", 2, 0, 5, 6)]


def test_half_of_each_need_is_trained_and_the_baseline_is_shared() -> None:
    found = next_round(questions(), stock(), Limits())
    assert found.seeds == {0: [5, 6, 7], 1: [5, 6], 2: [5, 6, 7]}
    assert (found.hours, found.left_out) == (8.0, {})


def test_what_the_dearer_one_needs_is_not_taken_from_the_cheaper_one() -> None:
    asked = [Question("first", 1, 0, 5, 4), Question("second", 2, 0, 5, 40, lambda _: 0.02)]
    found = next_round(asked, stock(), Limits(hours=10.0))
    assert found.seeds == {0: [5, 6], 1: [5, 6]}
    assert found.left_out == {"second": "needs about 40, the budget has 2: decided once of 50 times"}


def test_hours_bound_nothing_whose_duration_is_not_known() -> None:
    found = next_round(questions(), stock(hours=None), Limits(hours=100.0))
    assert found.seeds == {0: [5, 6, 7], 2: [5, 6, 7]}
    assert list(found.left_out) == ["first"]
    assert "is not known" in found.left_out["first"]
    assert next_round(questions(), stock(hours=None), Limits(seeds=9)).left_out == {}


def test_pairs_come_in_the_order_of_the_seeds_whatever_was_seen() -> None:
    """By which a comparison's t is that of the sequence whose boundary holds."""
    held = {0: PLAN | {5, 6, 7}, 1: PLAN, 2: PLAN | {5}}
    found = next_round(questions(), Stock(range(8), held, {0: 1.0, 1: 1.0, 2: 1.0}), Limits())
    for cell in (1, 2):
        both = (held[cell] | set(found.seeds[cell])) & (held[0] | set(found.seeds.get(0, ())))
        assert both == set(range(len(both)))


def test_cells_may_begin_with_unequal_seeds() -> None:
    uneven = Stock(range(5), {0: PLAN, 1: frozenset({0, 1, 4})}, {0: 1.0, 1: 1.0})
    found = next_round([Question("only", 1, 0, 3, 2)], uneven, Limits(seeds=1))
    assert found.seeds == {1: [2]}, "the baseline has seed 2 already"
