"""Verdicts of a whole table: who is compared with whom, what counts as a look, and what formats say of it."""

import json
import random
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime

from orchestrator.publish.formats import render
from orchestrator.publish.tables.build import build_own
from orchestrator.publish.tables.evidence import judged
from orchestrator.publish.verdicts.rounds import Limits, Question, Stock, next_round
from orchestrator.publish.verdicts.significance import ANY, planned
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
    outcomes = sweeps.grid(
        {"loss": losses, "regularizer": REGULARIZERS},
        sweeps.spec(tables={"main": {**table, **asked}}, select={"metric": "recall@1", "split": "validation"}),
        seeds=seeds, metrics=METRICS,
    )  # fmt: skip
    labels = {cell.index: cell.labels for cell in outcomes.cells}
    random_ = random.Random(11)

    def moved(at, trial):
        its = labels[trial.cell]
        shift = BETTER.get((its["loss"], its["regularizer"]), 0.0) + random_.gauss(0, noise) + 0.01 * trial.repeat
        values = dict.fromkeys(trial.values, 0.5 + shift)
        return replace(trial, values=values, position=at, seconds=1800.0)

    kept = (one for one in outcomes.trials if one.candidate == 0)
    candidates = tuple(one for one in outcomes.candidates if one.index == 0)
    return replace(outcomes, trials=tuple(moved(at, one) for at, one in enumerate(kept)), candidates=candidates)


def verdicts_of(outcomes, looks=()):
    return judged(build_own(outcomes, "main", sweeps.catalog()), outcomes, looks)


def view(outcomes, looks=()):
    return verdicts_of(outcomes, looks).view({cell.index: cell.labels for cell in outcomes.cells})


def words(outcomes, looks=(), metric="recall@1"):
    return {
        (one.labels["loss"], one.labels["regularizer"]): one.word
        for one in view(outcomes, looks).comparisons
        if one.metric.endswith(metric)
    }


def look(position, finished=1):
    return SweepLook(datetime(2026, 1, 1, tzinfo=UTC), position, finished)


def changed(outcomes, which, **values):
    return replace(outcomes, trials=tuple(replace(t, **values) if which(t) else t for t in outcomes.trials))


def test_each_regularizer_is_judged_against_none_within_its_loss_by_default():
    outcomes = sweep(seeds=8)
    assert words(outcomes)[("triplet", "sec")] == "better"
    assert words(outcomes)[("triplet", "svmax")] == "worse"
    assert words(outcomes, metric="spread")[("triplet", "sec")] == "worse", "lower is better of this metric"
    assert set(words(outcomes)) == {(loss, one) for loss in ("triplet", "semihard") for one in ("sec", "svmax")}
    assert len(view(outcomes).comparisons) == 8, "every metric counts among those that share the level"
    assert view(outcomes).against == {"regularizer": "none"}


def test_where_there_is_no_none_nothing_is_judged():
    outcomes = sweep()
    cells = tuple(replace(c, labels={**c.labels, "regularizer": c.labels["regularizer"] + "2"}) for c in outcomes.cells)
    found = verdicts_of(replace(outcomes, cells=cells))
    assert found.shown(marks=False) is found.table
    assert found.said() == "Nothing is judged: no cell has a baseline."


def test_a_table_says_which_cells_by_which_metric_margin_and_level():
    pair = {"of": {"loss": "triplet", "regularizer": "sec"}, "against": {"loss": "semihard", "regularizer": "svmax"}}
    (one,) = view(sweep(**pair, metrics=["recall@1"])).comparisons
    assert (one.labels, one.baseline) == ({"loss": "triplet", "regularizer": "sec"}, 5)
    close = words(sweep(seeds=12, noise=0.001, margin=0.5))
    assert close["semihard", "sec"] == close["semihard", "svmax"] == "equivalent", "half a point"
    assert words(sweep(seeds=12, noise=0.001, margin=8))["triplet", "sec"] == "equivalent"
    strict = view(sweep(level=0.001)).comparisons
    assert {one.needs for one in strict if one.word == "unresolved"} < {one.needs for one in strict} | {None}
    assert all(one.needs < 0.001 for one in strict if one.needs)


def test_a_plan_that_was_not_extended_is_looked_at_once():
    found = verdicts_of(sweep(seeds=6))
    assert {one.evidence.spending for one in found.pairs.values()} == {planned(6)}
    assert {one.stages for one in found.pairs.values()} == {1}
    assert "fixed plan, one look, 0.04 of it spent" in found.said()
    assert "at most 0.05 for a wrong one among 8 comparisons (Holm)" in found.said()


def test_an_extension_after_a_trial_had_finished_is_a_look():
    outcomes = sweep(seeds=7)
    order = sorted(outcomes.trials, key=lambda one: (one.repeat >= 4, one.repeat >= 6, one.position))
    outcomes = replace(outcomes, trials=tuple(replace(one, position=at) for at, one in enumerate(order)))
    looks = [look(24), look(36)]
    found = verdicts_of(outcomes, looks)
    assert {one.evidence.spending for one in found.pairs.values()} == {planned(4)}
    assert {one.stages for one in found.pairs.values()} == {3}
    spent = 0.05 * planned(4).spent(7)
    assert f"since seeds were added after a look, 3 looks on record, {spent:.2g} of it spent" in found.said()
    larger = verdicts_of(outcomes, [look(24, finished=0), look(36)])
    assert {one.evidence.spending for one in larger.pairs.values()} == {planned(6)}, "nothing could be seen at 4"
    later = verdicts_of(changed(outcomes, lambda t: t.repeat >= 4, reused=True), looks)
    assert {one.evidence.spending for one in later.pairs.values()} == {planned(4)}, "the first look spent as planned"
    # What runs after an extension hides nothing: the sequential verdict holds at any time.
    running = changed(outcomes, lambda t: t.repeat == 6, state=TrialState.RUNNING, values={})
    assert {one.pairs for one in view(running, looks).comparisons} == {6}


def test_trials_that_ended_before_the_sweep_count_as_looked_at_at_any_time():
    found = verdicts_of(changed(sweep(), lambda t: t.repeat < 2, reused=True), [])
    assert {one.evidence.spending for one in found.pairs.values()} == {ANY}
    assert "valid after looks at any time, 0.025 of it spent" in found.said()


def test_before_a_plan_has_ended_only_looks_at_any_time_are_told():
    partial = {"state": TrialState.RUNNING, "values": {}}
    going = changed(replace(sweep(), state="running"), lambda t: t.repeat >= 4, **partial)
    assert {one.said for one in view(going).comparisons} == {"untested: not finished: 4 of 5 planned seeds"}
    searched = replace(going, candidates=tuple(replace(c, index=n) for c in going.candidates for n in (0, 1)))
    said = "untested: not finished: its candidates are still to be chosen"
    assert {one.said for one in view(searched).comparisons} == {said}
    early = changed(replace(sweep(looks="any"), state="running"), lambda t: t.repeat >= 4, **partial)
    assert {one.pairs for one in view(early).comparisons} == {4}
    assert words(early)["triplet", "sec"] != "untested"


def test_a_plan_that_was_cut_short_has_no_look_put_by():
    cut = changed(sweep(), lambda t: t.repeat >= 3, state=TrialState.CANCELLED, values={})
    reasons = {one.reason for one in view(cut).comparisons}
    assert reasons == {"its plan of 5 seeds was cut short: 3 were trained"}


def test_bad_input_gets_a_clear_word():
    def reason(outcomes, place=("triplet", "sec")):
        (one,) = [c for c in view(outcomes).comparisons if tuple(c.labels.values()) == place and "recall" in c.metric]
        assert (one.word, one.p, one.interval) == ("untested", None, None)
        return one.reason

    outcomes = sweep()
    gone = {"diverged": True, "values": {}}
    assert reason(changed(outcomes, lambda t: t.cell == 1, **gone)) == "it diverged"
    assert reason(changed(outcomes, lambda t: t.cell == 0, **gone)) == "the baseline diverged"
    failed = changed(outcomes, lambda t: t.cell == 1, state=TrialState.FAILED, values={})
    assert reason(failed) == "it failed"
    without = replace(
        outcomes,
        cells=tuple(one for one in outcomes.cells if one.index != 0),
        candidates=tuple(one for one in outcomes.candidates if one.cell != 0),
        trials=tuple(one for one in outcomes.trials if one.cell != 0),
    )
    assert reason(without) == "the sweep has no cell with regularizer none to compare it with"
    assert reason(sweep(seeds=1)) == "1 seed that both have, 3 are needed"
    nan = {**dict.fromkeys(outcomes.trials[0].values, 0.5), "best/test/recall@1": float("nan")}
    assert reason(changed(outcomes, lambda t: t.cell == 1 and t.repeat > 1, values=nan)).startswith("2 seeds")
    same = changed(outcomes, lambda t: True, values=dict.fromkeys(outcomes.trials[0].values, 0.5))
    assert reason(same) == "no variation: the difference is the same with every seed"


def test_of_unequal_seeds_those_count_that_both_have():
    outcomes = sweep(seeds=6)
    fewer = replace(outcomes, trials=tuple(one for one in outcomes.trials if one.cell or one.repeat != 2))
    pairs = Counter(one.pairs for one in view(fewer).comparisons)
    assert pairs == {5: 4, 6: 4}


def test_what_is_unresolved_says_seeds_and_hours():
    (one,) = [c for c in view(sweep(noise=0.06)).comparisons if c.labels == {"loss": "triplet", "regularizer": "sec"}
              and "recall" in c.metric]  # fmt: skip
    assert (one.word, one.more_hours) == ("unresolved", one.more_seeds), "two trainings of half an hour for a seed"
    assert one.said == f"unresolved: about {one.more_seeds} more seeds, {one.more_hours:.2g} hours"


def test_words_stand_in_html_and_json_and_marks_in_print_where_asked_for():
    outcomes = sweep(seeds=8)
    found = verdicts_of(outcomes)
    plain = found.table
    wordy = found.shown(marks=False)
    html = render(wordy, "html").content.decode()
    assert '<span class="verdict better" title="better (8 seeds, p = ' in html
    (first,) = [cell for row in json.loads(render(wordy, "json").content)["panels"][0]["rows"]
                for cell in row["cells"][:1] if row["labels"] == {"loss": "triplet", "regularizer": "sec"}]  # fmt: skip
    assert first["verdict"]["word"] == "better"
    assert first["verdict"]["p"] < first["verdict"]["needs"]
    assert "Verdicts against regularizer none" in wordy.caption
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
