"""Which candidate a cell shows, how far it has come, and by how much selection flatters, by simulation."""

import math
import random
import re
from dataclasses import replace
from itertools import product

import pytest

from orchestrator.publish.aggregate import direction, expected_best, optimism, selection, summaries
from orchestrator.publish.tables.build import build
from orchestrator.views.errors import ConflictError
from orchestrator.views.runs import Candidate, Cell, SweepResults, TrialResult
from orchestrator.views.states import TrialState
from tests.publish import sweeps

KEY = "best/validation/map@r"


def results(*candidates, spec=None):
    """One cell; a candidate is a list of repeats: a score, or the name of a trial state, or `diverged`."""
    trials = []
    for number, repeats in enumerate(candidates):
        for repeat, what in enumerate(repeats):
            finished = isinstance(what, float) or what == "diverged"
            trials.append(
                TrialResult(
                    trial=len(trials), cell=0, candidate=number, repeat=repeat, repeat_labels={"seed": str(repeat)},
                    state=TrialState.FINISHED if finished else TrialState(what), diverged=what == "diverged",
                    values={KEY: what, "best/test/map@r": what / 2} if isinstance(what, float) else {},
                ),
            )  # fmt: skip
    found = tuple(Candidate(0, number, {"eta": str(number)}) for number in range(len(candidates)))
    return SweepResults(1, "s", "running", spec or sweeps.spec(), (Cell(0, {}),), found, tuple(trials))


def test_the_best_mean_score_wins_and_its_test_metrics_are_shown():
    found = summaries(results([0.5, 0.7], [0.6, 0.8], [0.9, 0.1]), "higher")[0]
    assert (found.status, found.candidate, found.labels) == ("complete", 1, {"eta": "1"})
    assert found.score.mean == pytest.approx(0.7)
    assert found.score.std == pytest.approx(0.1 * math.sqrt(2))
    assert found.metrics["best/test/map@r"].mean == pytest.approx(0.35)
    assert (found.score.n, found.candidates, found.selection_key) == (2, 3, KEY)


def test_lower_may_be_better():
    assert summaries(results([0.5], [0.4], [0.6]), "lower")[0].candidate == 1


def test_a_tie_goes_to_the_earlier():
    assert [summaries(results([0.5], [0.5]), better)[0].candidate for better in ("higher", "lower")] == [0, 0]


def test_a_candidate_with_a_repeat_that_did_not_finish_ok_is_not_eligible():
    for bad in ("failed", "diverged", "pruned"):
        found = summaries(results([0.5, 0.5], [0.9, bad]), "higher")[0]
        assert (found.status, found.candidate, found.candidates) == ("complete", 0, 2), bad


def test_how_far_a_cell_has_come():
    for candidates, status, selected in (
        ([[0.5, 0.5], [0.9, "waiting"]], "partial", 0), ([["running"], ["waiting"]], "partial", None),
        ([["waiting"], ["waiting"]], "missing", None), ([["cancelled"], ["cancelled"]], "missing", None),
        ([[0.5], ["cancelled"]], "partial", 0), ([["diverged"], ["diverged"]], "diverged", None),
        ([["diverged", 0.5], ["diverged", "diverged"]], "diverged", None), ([["diverged"], ["failed"]], "failed", None),
        ([["failed", 0.4]], "failed", None), ([["diverged", "failed"]], "diverged", None),
        ([["diverged"], ["running"]], "partial", None), ([["failed"], ["cancelled"]], "failed", None),
        ([["diverged"], ["cancelled"]], "missing", None), ([[], []], "missing", None),
    ):  # fmt: skip
        found = summaries(results(*candidates), "higher")[0]
        assert (found.status, found.candidate) == (status, selected), candidates
        assert (found.score is None) == (selected is None)
        assert found.candidates == len(candidates)


def test_a_score_that_is_no_number_is_not_eligible():
    assert summaries(results([math.nan, 0.9], [0.1, 0.2]), "higher")[0].candidate == 1
    both = summaries(results([math.nan], [math.nan]), "higher")[0]
    assert (both.status, both.candidate, both.undefined) == ("failed", None, (KEY,))


def test_a_metric_that_one_repeat_lacks_has_no_mean():
    whole = results([0.5, 0.7])
    first, second = whole.trials
    cut = replace(second, values={KEY: 0.7, "best/test/map@r": math.nan})
    found = summaries(replace(whole, trials=(first, cut)), "higher")[0]
    assert set(found.metrics) == {KEY}


def test_the_selection_key_follows_the_split():
    keys = {"validation": "best/validation/map@r", "test": "best/test/map@r", "last": "last/test/map@r"}
    assert {split: selection({"select": {"metric": "map@r", "split": split}}).key for split in keys} == keys


def test_nothing_is_selected_by_a_metric_without_direction():
    for metric in ("norm_var", "nothing_of_that_name"):
        with pytest.raises(ConflictError, match=metric):
            direction(metric, sweeps.catalog())
    assert direction("recall@1", sweeps.catalog()) == "higher"
    assert direction("spread", sweeps.catalog()) == "lower"


def _of_no_query(etas: tuple[str, ...]):
    """One loss whose recall and MAP@R have no value, though its trainings finished; another has them."""
    layout = {"rows": ["loss"], "columns": [], "metrics": ["recall@1", "map@r", "nmi"]}
    found = sweeps.grid({"loss": ["triplet", "semihard"]}, sweeps.spec(tables={"main": layout}), seeds=2)
    trials = [
        replace(one, values={k: math.nan if "nmi" not in k else v for k, v in one.values.items()})
        if one.cell == 0
        else one
        for one in found.trials
    ]
    candidates = found.candidates
    for n, _ in enumerate(etas[1:], start=1):
        candidates = (*candidates, Candidate(0, n, {"eta": str(n)}))
        trials += [
            replace(one, candidate=n, trial=100 + one.repeat) for one in trials if one.cell == 0 and one.candidate == 0
        ]
    return build(replace(found, candidates=candidates, trials=tuple(trials)), "main", sweeps.catalog())


def test_a_metric_without_queries_is_marked_next_to_existing_numbers():
    table = _of_no_query(("1",))
    cells = table.panels[0].rows[0].cells
    assert [(one.text, one.mark) for one in cells[:2]] == [("–", None), ("–", None)]
    assert cells[2].statistic is not None
    assert cells[0].note == "best/test/recall@1 has no value"
    assert table.words.below == (
        "R@1 and MAP@R have no value in Triplet: no class has two test images, so that there is no query.",
    )


def test_where_nothing_can_be_selected_for_want_of_values_the_table_says_so():
    table = _of_no_query(("1", "2"))
    cells = table.panels[0].rows[0].cells
    assert {(one.text, one.mark) for one in cells} == {("–", None)}
    assert "best/validation/map@r has no value" in cells[0].note
    assert "No candidate can be selected in Triplet: MAP@R has no value in any of them." in table.words.below
    assert all(entry.symbol != "failed" for entry in table.legend)


def test_a_searched_winner_stays_it_whatever_its_reproductions_give():
    spec = sweeps.spec(search={"name": "gp", "trials": 2, "reproduce": 2})
    worse = summaries(results([0.5], [0.6, 0.1, 0.2], spec=spec), "higher")[0]
    assert (worse.candidate, worse.status, worse.score.mean) == (1, "complete", 0.6)
    assert (worse.metrics[KEY].n, worse.metrics[KEY].mean) == (3, pytest.approx(0.3))
    running = summaries(results([0.5], [0.6, 0.1, "running"], spec=spec), "higher")[0]
    assert (running.candidate, running.status, running.metrics[KEY].n) == (1, "partial", 2)
    failed = summaries(results([0.5], [0.6, 0.1, "failed"], spec=spec), "higher")[0]
    assert (failed.candidate, failed.status, failed.metrics[KEY].n) == (1, "complete", 2)


SCORE = "best/validation/map@r"


def sweep(scores: list[list[float]]) -> SweepResults:
    """One cell with a candidate a row and a repeat a column."""
    trials = tuple(
        TrialResult(at * 100 + repeat, 0, at, repeat, {"seed": str(repeat)}, TrialState.FINISHED, values={SCORE: value})
        for at, row in enumerate(scores)
        for repeat, value in enumerate(row)
    )
    candidates = tuple(Candidate(0, at, {"eta": str(at)}) for at in range(len(scores)))
    spec = {"select": {"metric": "map@r", "split": "validation"}}
    return SweepResults(7, "s", "finished", spec, (Cell(0, {"loss": "triplet"}),), candidates, trials)


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
    """Ten candidates of known worth, five repeats: the estimate, and the true loss of the best candidate."""
    random_, told, true = random.Random(5), [], []
    for _ in range(400):
        worth = [0.6 + random_.gauss(0, spread) for _ in range(10)]
        scores = [[one + random_.gauss(0, 0.02) for _ in range(5)] for one in worth]
        means = [sum(one) / 5 for one in scores]
        told.append(only(scores).optimism)
        true.append(max(means) - worth[means.index(max(means))])
    assert sum(true) / len(true) > 0.004, "the best of ten looks better than it is"
    assert sum(told) / len(told) == pytest.approx(sum(true) / len(true), abs=bound)


def test_a_note_reports_it_on_request() -> None:
    def caption(seeds: int = 2, **layout: object) -> str:
        table = {"rows": ["loss", "regularizer"], "columns": [], "metrics": ["recall@1"], **layout}
        compare = {"loss": ("triplet", "semihard"), "regularizer": ("none", "sec")}
        made = sweeps.grid(compare, sweeps.spec(tables={"main": table}), seeds=seeds)
        return " ".join(build(made, "main", sweeps.catalog()).words.below)

    lead = "How optimistic the selected candidates' MAP@R on the validation split is, by leaving each repeat out:"
    assert lead not in caption()
    asked = caption(optimism=True).partition(lead)[2]
    assert re.match(
        r" [+-]?\d+\.\d\d on the mean of 2 cells, from [+-]?\d+\.\d\d to [+-]?\d+\.\d\d; it is unknown in 2\.", asked
    )
    none = caption(1, optimism=True)
    assert "unknown (one candidate, so that none was selected from several; one repeat: with it left" in none
