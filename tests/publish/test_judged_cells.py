"""Verdicts of a whole table: who is compared with whom, what counts as a look, and what formats say of it."""

import json
import random
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime

from orchestrator.publish.formats import render
from orchestrator.publish.tables.build import build
from orchestrator.publish.tables.evidence import judged
from orchestrator.publish.verdicts.rounds import Question, Stock, next_round
from orchestrator.publish.verdicts.significance import ANY, planned
from orchestrator.views.evidence import ResolutionBudget
from orchestrator.views.runs import SweepLook
from orchestrator.views.states import TrialState
from tests.publish import sweeps

REGULARIZERS = ("none", "sec", "svmax")
METRICS = ("recall@1", "spread")
BETTER = {("triplet", "sec"): 0.05, ("triplet", "svmax"): -0.05, ("semihard", "sec"): 0.0005}


def sweep(*, seeds=5, noise=0.004, losses=("triplet", "semihard"), **verdicts):
    """Two losses and three regularizers whose runs follow the seed, each moved by what `BETTER` says."""
    table = {"rows": ["loss", "regularizer"], "columns": [], "metrics": list(METRICS)}
    asked = {"verdicts": verdicts} if verdicts else {}
    results = sweeps.grid(
        {"loss": losses, "regularizer": REGULARIZERS},
        sweeps.spec(tables={"main": {**table, **asked}}, select={"metric": "recall@1", "split": "validation"}),
        seeds=seeds, metrics=METRICS,
    )  # fmt: skip
    labels = {cell.index: cell.labels for cell in results.cells}
    random_ = random.Random(11)

    def moved(at, trial):
        its = labels[trial.cell]
        shift = BETTER.get((its["loss"], its["regularizer"]), 0.0) + random_.gauss(0, noise) + 0.01 * trial.repeat
        values = dict.fromkeys(trial.values, 0.5 + shift)
        return replace(trial, values=values, position=at, seconds=1800.0)

    kept = (one for one in results.trials if one.candidate == 0)
    candidates = tuple(one for one in results.candidates if one.index == 0)
    return replace(results, trials=tuple(moved(at, one) for at, one in enumerate(kept)), candidates=candidates)


def verdicts_of(results, looks=()):
    return judged(build(results, "main", sweeps.catalog()), results, looks)


def view(results, looks=()):
    return verdicts_of(results, looks).view({cell.index: cell.labels for cell in results.cells})


def words(results, looks=(), metric="recall@1"):
    return {
        (one.labels["loss"], one.labels["regularizer"]): one.word
        for one in view(results, looks).comparisons
        if one.metric.endswith(metric)
    }


def look(position, finished=1):
    return SweepLook(datetime(2026, 1, 1, tzinfo=UTC), position, finished)


def changed(results, which, **values):
    return replace(results, trials=tuple(replace(t, **values) if which(t) else t for t in results.trials))


def test_each_regularizer_is_judged_against_none_within_its_loss_by_default():
    results = sweep(seeds=8)
    assert words(results)[("triplet", "sec")] == "better"
    assert words(results)[("triplet", "svmax")] == "worse"
    assert words(results, metric="spread")[("triplet", "sec")] == "worse", "lower is better of this metric"
    assert set(words(results)) == {(loss, one) for loss in ("triplet", "semihard") for one in ("sec", "svmax")}
    assert len(view(results).comparisons) == 8, "every metric counts among those that share the level"
    assert view(results).against == {"regularizer": "none"}


def test_where_there_is_no_none_nothing_is_judged():
    results = sweep()
    cells = tuple(replace(c, labels={**c.labels, "regularizer": c.labels["regularizer"] + "2"}) for c in results.cells)
    found = verdicts_of(replace(results, cells=cells))
    assert found.shown(marks=False) is found.table
    assert found.summary() == "Nothing is judged: no cell has a baseline."


def test_a_table_says_which_cells_by_which_metric_margin_and_level():
    pair = {"of": {"loss": "triplet", "regularizer": "sec"}, "against": {"loss": "semihard", "regularizer": "svmax"}}
    (one,) = view(sweep(**pair, metrics=["recall@1"])).comparisons
    assert (one.labels, one.baseline) == ({"loss": "triplet", "regularizer": "sec"}, 5)
    close = words(sweep(seeds=12, noise=0.001, margin=0.5))
    assert close["semihard", "sec"] == close["semihard", "svmax"] == "equivalent", "half a point"
    assert close["triplet", "sec"] == "better", "five points"
    wide = view(sweep(seeds=12, noise=0.001, margin=8))
    assert {one.word for one in wide.comparisons} == {"equivalent"}
    assert "Equivalent: surely closer than 8 in the unit of the column." in wide.summary
    strict = view(sweep(level=0.001)).comparisons
    assert {one.needs for one in strict if one.word == "no clear difference"} < {one.needs for one in strict} | {None}
    assert all(one.needs < 0.001 for one in strict if one.needs)


def test_a_plan_that_was_not_extended_is_looked_at_once():
    found = verdicts_of(sweep(seeds=6))
    assert {one.evidence.spending for one in found.pairs.values()} == {planned(6)}
    assert {one.stages for one in found.pairs.values()} == {1}
    assert "fixed plan, one look, 0.04 of it spent" in found.summary()
    assert "at most 0.05 for a wrong one among 8 comparisons (Holm)" in found.summary()


def test_an_extension_after_a_trial_had_finished_is_a_look():
    results = sweep(seeds=7)
    order = sorted(results.trials, key=lambda one: (one.repeat >= 4, one.repeat >= 6, one.position))
    results = replace(results, trials=tuple(replace(one, position=at) for at, one in enumerate(order)))
    looks = [look(24), look(36)]
    found = verdicts_of(results, looks)
    assert {one.evidence.spending for one in found.pairs.values()} == {planned(4)}
    assert {one.stages for one in found.pairs.values()} == {3}
    spent = 0.05 * planned(4).spent(7)
    assert f"since seeds were added after a look, 3 looks on record, {spent:.2g} of it spent" in found.summary()
    larger = verdicts_of(results, [look(24, finished=0), look(36)])
    assert {one.evidence.spending for one in larger.pairs.values()} == {planned(6)}, "nothing could be seen at 4"
    later = verdicts_of(changed(results, lambda t: t.repeat >= 4, reused=True), looks)
    assert {one.evidence.spending for one in later.pairs.values()} == {planned(4)}, "the first look spent as planned"
    # What runs after an extension hides nothing: the sequential verdict holds at any time.
    running = changed(results, lambda t: t.repeat == 6, state=TrialState.RUNNING, values={})
    assert {one.pairs for one in view(running, looks).comparisons} == {6}


def test_trials_that_ended_before_the_sweep_count_as_looked_at_at_any_time():
    found = verdicts_of(changed(sweep(), lambda t: t.repeat < 2, reused=True), [])
    assert {one.evidence.spending for one in found.pairs.values()} == {ANY}
    assert "valid after looks at any time, 0.025 of it spent" in found.summary()


def test_before_a_plan_has_ended_only_anytime_tests_are_reported():
    partial = {"state": TrialState.RUNNING, "values": {}}
    going = changed(replace(sweep(), state="running"), lambda t: t.repeat >= 4, **partial)
    assert {one.summary for one in view(going).comparisons} == {"untested: not finished: 4 of 5 planned seeds"}
    searched = replace(going, candidates=tuple(replace(c, index=n) for c in going.candidates for n in (0, 1)))
    message = "untested: not finished: its candidates are still to be chosen"
    assert {one.summary for one in view(searched).comparisons} == {message}
    early = changed(replace(sweep(looks="any"), state="running"), lambda t: t.repeat >= 4, **partial)
    assert {one.pairs for one in view(early).comparisons} == {4}
    assert words(early)["triplet", "sec"] != "untested"


def test_a_plan_that_was_cut_short_has_no_look_put_by():
    cut = changed(sweep(), lambda t: t.repeat >= 3, state=TrialState.CANCELLED, values={})
    reasons = {one.reason for one in view(cut).comparisons}
    assert reasons == {"its plan of 5 seeds was cut short: 3 were trained"}


def test_bad_input_gets_a_clear_word():
    def reason(results, place=("triplet", "sec")):
        (one,) = [c for c in view(results).comparisons if tuple(c.labels.values()) == place and "recall" in c.metric]
        assert (one.word, one.p, one.interval) == ("untested", None, None)
        return one.reason

    results = sweep()
    gone = {"diverged": True, "values": {}}
    assert reason(changed(results, lambda t: t.cell == 1, **gone)) == "it diverged"
    assert reason(changed(results, lambda t: t.cell == 0, **gone)) == "the baseline diverged"
    failed = changed(results, lambda t: t.cell == 1, state=TrialState.FAILED, values={})
    assert reason(failed) == "it failed"
    without = replace(
        results,
        cells=tuple(one for one in results.cells if one.index != 0),
        candidates=tuple(one for one in results.candidates if one.cell != 0),
        trials=tuple(one for one in results.trials if one.cell != 0),
    )
    assert reason(without) == "the sweep has no cell with regularizer none to compare it with"
    assert reason(sweep(seeds=1)) == "1 seed that both have, 3 are needed"
    nan = {**dict.fromkeys(results.trials[0].values, 0.5), "best/test/recall@1": float("nan")}
    assert reason(changed(results, lambda t: t.cell == 1 and t.repeat > 1, values=nan)).startswith("2 seeds")
    same = changed(results, lambda t: True, values=dict.fromkeys(results.trials[0].values, 0.5))
    assert reason(same) == "no variation: the difference is the same with every seed"


def test_of_unequal_seeds_those_count_that_both_have():
    results = sweep(seeds=6)
    fewer = replace(results, trials=tuple(one for one in results.trials if one.cell or one.repeat != 2))
    pairs = Counter(one.pairs for one in view(fewer).comparisons)
    assert pairs == {5: 4, 6: 4}


def test_an_open_comparison_says_seeds_and_hours():
    (one,) = [c for c in view(sweep(noise=0.06)).comparisons if c.labels == {"loss": "triplet", "regularizer": "sec"}
              and "recall" in c.metric]  # fmt: skip
    assert one.more_hours == one.more_seeds, "two trainings of half an hour for a seed"
    assert one.to_decide == f"about {one.more_seeds} more seeds, {one.more_hours:.2g} hours"
    assert one.summary.startswith("no clear difference (5 seeds; difference +")


def test_the_best_cell_is_of_the_first_column_not_of_another_data_set():
    results = sweep(seeds=8, losses=("triplet", "normalized_npair"))
    table = {"rows": ["regularizer"], "columns": ["loss"], "metrics": ["recall@1"]}
    results = replace(results, spec={**results.spec, "tables": {"main": table}})
    other = changed(results, lambda t: t.cell >= 3, values=dict.fromkeys(results.trials[0].values, 0.9))
    labels = {cell.index: cell.labels for cell in other.cells}
    assert labels[3]["loss"] == "normalized_npair"
    found = verdicts_of(other).answer(labels)
    assert found.startswith("Best by R@1: triplet · sec, "), found
    assert found.endswith(" comparisons)."), found


def test_verdicts_are_words_in_html_and_json_and_optional_marks_in_print():
    results = sweep(seeds=8)
    found = verdicts_of(results)
    plain = found.table
    wordy = found.shown(marks=False)
    html = render(wordy, "html").content.decode()
    assert '<span class="verdict better" title="better (8 seeds; difference +' in html
    (first,) = [cell for row in json.loads(render(wordy, "json").content)["panels"][0]["rows"]
                for cell in row["cells"][:1] if row["labels"] == {"loss": "triplet", "regularizer": "sec"}]  # fmt: skip
    assert first["verdict"]["word"] == "better"
    assert first["verdict"]["p"] < first["verdict"]["needs"]
    assert "Verdicts against regularizer none" in wordy.words.folded[-1]
    for name in ("latex", "markdown", "csv"):
        body = render(plain, name).content
        assert b"Verdicts" not in body
    marked = render(found.shown(marks=True), "latex").content.decode()
    assert "better than the baseline" in marked
    assert "Verdicts against" in marked


PLAN = frozenset(range(5))


def stock(hours: float | None = 1.0) -> Stock:
    return Stock(range(5), {0: PLAN, 1: PLAN, 2: PLAN}, {0: 1.0, 1: hours, 2: 1.0})


def questions() -> list[Question[str]]:
    return [Question("first", 1, 0, 5, 4), Question("second", 2, 0, 5, 6)]


def test_half_of_each_need_is_trained_and_the_baseline_is_shared() -> None:
    found = next_round(questions(), stock(), ResolutionBudget())
    assert found.seeds == {0: [5, 6, 7], 1: [5, 6], 2: [5, 6, 7]}
    assert (found.hours, found.left_out) == (8.0, {})


def test_a_costly_question_takes_no_seeds_from_a_cheap_question() -> None:
    asked = [Question("first", 1, 0, 5, 4), Question("second", 2, 0, 5, 40, lambda _: 0.02)]
    found = next_round(asked, stock(), ResolutionBudget(hours=10.0))
    assert found.seeds == {0: [5, 6], 1: [5, 6]}
    assert found.left_out == {"second": "needs about 40 seeds; the 2 of the budget decide it with a probability of 2 %"}


def test_hours_bound_nothing_whose_duration_is_not_known() -> None:
    found = next_round(questions(), stock(hours=None), ResolutionBudget(hours=100.0))
    assert found.seeds == {0: [5, 6, 7], 2: [5, 6, 7]}
    assert list(found.left_out) == ["first"]
    assert "is not known" in found.left_out["first"]
    assert next_round(questions(), stock(hours=None), ResolutionBudget(seeds=9)).left_out == {}


def test_pairs_come_in_the_order_of_the_seeds_whatever_was_seen() -> None:
    """By which a comparison's t is that of the sequence whose boundary holds."""
    held = {0: PLAN | {5, 6, 7}, 1: PLAN, 2: PLAN | {5}}
    found = next_round(questions(), Stock(range(8), held, {0: 1.0, 1: 1.0, 2: 1.0}), ResolutionBudget())
    for cell in (1, 2):
        both = (held[cell] | set(found.seeds[cell])) & (held[0] | set(found.seeds.get(0, ())))
        assert both == set(range(len(both)))


def test_cells_may_begin_with_unequal_seeds() -> None:
    uneven = Stock(range(5), {0: PLAN, 1: frozenset({0, 1, 4})}, {0: 1.0, 1: 1.0})
    found = next_round([Question("only", 1, 0, 3, 2)], uneven, ResolutionBudget(seeds=1))
    assert found.seeds == {1: [2]}, "the baseline has seed 2 already"
