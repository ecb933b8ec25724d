"""Selection's own noise: by how much the best of several candidates looks better than it is, by simulation."""

import math
import random
import re
from itertools import product

import pytest

from orchestrator.publish.aggregate import expected_best, optimism
from orchestrator.publish.tables.build import build_own
from orchestrator.views.runs import Candidate, Cell, SweepOutcomes, TrialOutcome
from orchestrator.views.states import TrialState
from tests.publish import sweeps

KEY = "best/validation/map@r"


def sweep(scores: list[list[float]]) -> SweepOutcomes:
    """One cell with a candidate a row and a repeat a column."""
    trials = tuple(
        TrialOutcome(at * 100 + repeat, 0, at, repeat, {"seed": str(repeat)}, TrialState.FINISHED, values={KEY: value})
        for at, row in enumerate(scores)
        for repeat, value in enumerate(row)
    )
    candidates = tuple(Candidate(0, at, {"eta": str(at)}) for at in range(len(scores)))
    spec = {"select": {"metric": "map@r", "split": "validation"}}
    return SweepOutcomes(7, "s", "finished", spec, (Cell(0, {"loss": "triplet"}),), candidates, trials)


def only(scores: list[list[float]], better: str = "higher"):  # type: ignore[no-untyped-def]
    return optimism(sweep(scores), better).cells[0]  # type: ignore[arg-type]


def test_each_repeat_is_judged_by_what_the_others_select() -> None:
    cell = only([[0.5, 0.5, 0.8], [0.6, 0.6, 0.3]])
    # Without the third repeat the second candidate leads and scores 0.3 there; else the first one does.
    assert (cell.best, cell.held_out) == (pytest.approx(0.6), pytest.approx((0.5 + 0.5 + 0.3) / 3))
    assert cell.optimism == pytest.approx(0.6 - 1.3 / 3)
    lower = only([[-0.5, -0.5, -0.8], [-0.6, -0.6, -0.3]], "lower")
    assert (lower.best, lower.optimism) == (pytest.approx(-0.6), pytest.approx(cell.optimism))


def test_where_nothing_is_selected_it_says_why() -> None:
    assert only([[0.5, 0.6]]).reason == "one candidate, so that none was selected from several"
    assert only([[0.5], [0.6]]).reason == "one repeat: with it left out, none selects"
    nothing = only([[math.nan, 0.5], [0.5, math.nan]])
    assert (nothing.reason, nothing.best, nothing.expected) == (
        "no candidate has finished in every repeat with a score", None, [],
    )  # fmt: skip


def test_the_expected_best_of_n_is_that_of_all_draws() -> None:
    values = [0.3, 0.9, 0.5]
    for n, found in enumerate(expected_best(values), 1):
        draws = [max(one) for one in product(values, repeat=n)]
        assert found == pytest.approx(sum(draws) / len(draws))


@pytest.mark.parametrize(("spread", "bound"), [(0.0, 0.004), (0.02, 0.004)])
def test_the_estimate_is_right_on_the_mean(spread: float, bound: float) -> None:
    """Ten candidates of known worth, five repeats: what is estimated beside what the best one truly lacks."""
    random_, told, true = random.Random(5), [], []
    for _ in range(400):
        worth = [0.6 + random_.gauss(0, spread) for _ in range(10)]
        scores = [[one + random_.gauss(0, 0.02) for _ in range(5)] for one in worth]
        means = [sum(one) / 5 for one in scores]
        told.append(only(scores).optimism)
        true.append(max(means) - worth[means.index(max(means))])
    assert sum(true) / len(true) > 0.004, "the best of ten looks better than it is"
    assert sum(told) / len(told) == pytest.approx(sum(true) / len(true), abs=bound)


def test_a_caption_says_it_where_that_is_asked_for() -> None:
    def caption(seeds: int = 2, **layout: object) -> str:
        table = {"rows": ["loss", "regularizer"], "columns": [], "metrics": ["recall@1"], **layout}
        compare = {"loss": ("triplet", "semihard"), "regularizer": ("none", "sec")}
        made = sweeps.grid(compare, sweeps.spec(tables={"main": table}), seeds=seeds)
        return build_own(made, "main", sweeps.catalog()).caption

    lead = "How optimistic the selected candidates' MAP@R on the validation split is, by leaving each repeat out:"
    assert lead not in caption()
    asked = caption(optimism=True).partition(lead)[2]
    assert re.match(
        r" [+-]?\d+\.\d\d on the mean of 2 cells, from [+-]?\d+\.\d\d to [+-]?\d+\.\d\d; it is unknown in 2\.", asked
    )
    none = caption(1, optimism=True)
    assert "unknown (one candidate, so that none was selected from several; one repeat: with it left" in none
