"""What changed between two tables: the cells, by what, and whether by more than noise."""

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from orchestrator.publish.table_diff import TableSource, diff, render
from orchestrator.views.errors import NotFoundError
from orchestrator.views.evidence import CellDiff, RunFacts, TableDiff
from orchestrator.views.runs import SweepResults, TrialResult
from orchestrator.views.states import TrialState
from tests.publish import sweeps

LAYOUT = {"rows": ["loss"], "columns": [], "metrics": ["recall@1"]}
KEYS = ("best/test/recall@1", "best/validation/map@r")
Change = Callable[[TrialResult], TrialResult]


def results(change: Change = lambda one: one, seeds: int = 5, tune: bool = False) -> SweepResults:
    """Two losses over some seeds; if something is tuned also `sec`, with three candidates."""
    compare = {"loss": ("triplet", "semihard"), **({"regularizer": ("sec",)} if tune else {})}
    made = sweeps.grid(compare, sweeps.spec(tables={"main": LAYOUT}), seeds=seeds)
    # The draws of `grid` depend on how many seeds there are.
    random_ = {cell.index: random.Random(f"{cell.index}") for cell in made.cells}
    drawn = [replace(one, values={key: 0.6 + random_[one.cell].gauss(0, 0.01) for key in KEYS}) for one in made.trials]
    return replace(made, trials=tuple(change(one) for one in drawn))


def moved(by: float, cell: int = 0, spread: float = 0.0) -> Change:
    """Adds to the numbers of one cell, a little otherwise in each run."""
    random_ = random.Random(3)
    return lambda one: one if one.cell != cell else replace(
        one, values={key: value + by + random_.gauss(0, spread) for key, value in one.values.items()}
    )  # fmt: skip


def source(given: SweepResults, title: str = "then", **facts: object) -> TableSource:
    def told(one: TrialResult) -> RunFacts:
        recipe = {"seed": one.repeat, "loss": {"name": "triplet", "margin": 0.2}, "pins": {"versions": {"loss": 1}}}
        return RunFacts(
            **{"recipe": recipe, "commit": "aaa", "data_hash": "sha256:0a", "versions": {"torch": "2.6"}} | facts
        )  # type: ignore[arg-type]

    by_trial = {one.trial: told(one) for one in given.trials}
    return TableSource(title, given, sweeps.catalog(), lambda trials: {one: by_trial[one] for one in trials})


def between(before: SweepResults, after: SweepResults, **facts: object) -> TableDiff:
    return diff(source(before), source(after, "now", **facts), "main")


def only(view: TableDiff) -> CellDiff:
    (cell,) = view.cells
    return cell


def test_the_same_has_no_difference() -> None:
    view = between(results(), results())
    assert (view.cells, view.unchanged) == ([], 2)
    assert "0 numbers of table main changed" in render(view, "text").content.decode()


def test_runs_trained_again_are_paired_by_seed() -> None:
    cell = only(between(results(), results(moved(0.02, spread=0.003)), commit="bbb"))
    assert (cell.labels, cell.change, cell.significance) == ({"loss": "triplet"}, "changed", "more than noise")
    assert [one.message for one in cell.causes] == ["commit aaa → bbb"]
    assert cell.why == "paired t-test of 5 runs of the same repeats"
    assert only(between(results(), results(moved(0.0, spread=0.003)))).significance == "within noise"
    same = only(between(results(), results(moved(0.02))))
    assert (same.significance, same.why) == ("cannot tell", "the difference is the same in every run")
    assert same.causes[0].kind == "retrained"


def test_each_cause_is_named() -> None:
    def causes(**facts: object) -> list[tuple[str, str]]:
        cell = only(between(results(), results(moved(0.02, spread=0.003)), **facts))
        return [(one.kind, one.message) for one in cell.causes]

    recipe = {"seed": 0, "loss": {"name": "triplet", "margin": 0.5}, "pins": {"versions": {"loss": 2}}}
    assert causes(recipe=recipe) == [("recipe", "loss.margin 0.2 → 0.5"), ("versions", "of parts: loss 1 → 2")]
    assert causes(data_hash="sha256:ff") == [("data", "data set 0a → ff")]
    assert causes(versions={"torch": "2.11"}) == [("versions", "torch 2.6 → 2.11")]


def test_added_seeds_stand_against_those_that_stayed() -> None:
    view = between(results(seeds=3), results(seeds=5))
    cell = view.cells[0]
    assert [(one.kind, one.message) for one in cell.causes] == [("seeds", "2 added: seed 3, seed 4")]
    assert cell.why == "Welch's t-test of 3 runs against 2 new ones"
    assert (cell.before and cell.before.n, cell.after and cell.after.n) == (3, 5)
    assert view.cells[0].p is not None
    fewer = between(results(seeds=5), results(seeds=3)).cells[0]
    assert (fewer.why, fewer.p) == ("Welch's t-test of 2 runs against 3 that stayed", cell.p)
    assert between(results(seeds=2), results(seeds=3)).cells[0].why == "2 runs against 1 run: two of each are needed"


def test_trainings_that_share_a_number_by_chance_are_two() -> None:
    def change(one: TrialResult) -> TrialResult:
        moved_by = 0.01 * (one.repeat + 1)
        test, validation = (one.values[key] for key in KEYS)
        kept = test if one.repeat == 1 else test + moved_by  # the second run's number is what it was
        return one if one.cell else replace(one, values={KEYS[0]: kept, KEYS[1]: validation + moved_by})

    cell = only(between(results(seeds=5), results(change, seeds=5)))
    assert cell.why == "paired t-test of 5 runs of the same repeats"
    again = lambda one: replace(one, values={**one.values, KEYS[1]: 0.1})  # noqa: E731
    assert between(results(), results(again)).cells == [], "of what is printed nothing moved"


def test_a_metric_of_two_splits_is_two_numbers() -> None:
    def shown(train: float) -> SweepResults:
        layout = {**LAYOUT, "metrics": [{"metric": "norm_mean", "split": "train"}, "norm_mean"]}
        made = results(lambda one: replace(
            one, values={**one.values, "best/train/norm_mean": train, "best/test/norm_mean": 3.0}
        ))  # fmt: skip
        return replace(made, spec={**made.spec, "tables": {"main": layout}})

    view = between(shown(7.0), shown(8.0))
    assert (len(view.cells), view.unchanged) == (2, 2), "of both losses the norms of the training set alone"


def test_another_candidate_is_named_with_its_labels() -> None:
    def favour(candidate: int) -> Change:
        return lambda one: replace(
            one, values={k: v + (one.candidate == candidate) / 10 for k, v in one.values.items()}
        )

    cell = between(results(favour(0), tune=True), results(favour(2), tune=True)).cells[0]
    assert [(one.kind, one.message) for one in cell.causes] == [
        ("selected candidate", "regularizer.eta 0.25 → regularizer.eta 1")
    ]


def test_cells_come_and_go() -> None:
    then = results()
    fewer = replace(then, cells=then.cells[:1], trials=tuple(one for one in then.trials if one.cell == 0), candidates=then.candidates[:1])  # fmt: skip  # noqa: E501
    appeared, gone = only(between(fewer, then)), only(between(then, fewer))
    assert (appeared.change, appeared.before, gone.change, gone.after) == ("appeared", None, "gone", None)
    assert appeared.significance == "cannot tell"
    with pytest.raises(NotFoundError):
        diff(source(then), source(then), "mian")


def test_a_cell_that_lost_its_number_is_not_gone() -> None:
    for state, change in (("finished", "diverged"), ("failed", "failed"), ("waiting", "pending")):
        lost = {"values": {}, "diverged": state == "finished", "state": TrialState(state)}
        after = results(lambda one, lost=lost: one if one.cell else replace(one, **lost))  # type: ignore[misc]
        view = between(results(), after)
        assert between(after, after).cells == []
        assert (only(view).labels, only(view).change, only(view).difference) == ({"loss": "triplet"}, change, None)
        assert f", {change}" in render(view, "text").content.decode()


def test_runs_that_do_not_vary_are_not_tested() -> None:
    def flat(value: float) -> SweepResults:
        return results(lambda one: one if one.cell else replace(one, values=dict.fromkeys(KEYS, value)), seeds=2)

    assert only(between(flat(0.5), flat(0.6))).why == "no spread between runs"


def test_every_format_tells_it() -> None:
    view = between(results(), results(moved(0.02, spread=0.003)), commit="bbb")
    text = render(view, "text").content.decode()
    assert "code: commit aaa → bbb" in text
    assert "1 number of table main changed, 1 by more than noise; 1 are as they were" in text
    assert TableDiff.model_validate_json(render(view, "json").content) == view
    with pytest.raises(NotFoundError, match="no format of a difference"):
        render(view, "pdf")
