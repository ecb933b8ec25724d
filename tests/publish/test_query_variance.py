"""Test queries as a sample: intervals and verdicts that cover seeds, queries or both, and why they say nothing."""

import io
import json
import math
import random
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from orchestrator.publish.aggregate import half_interval, statistic
from orchestrator.publish.bundle import contents
from orchestrator.publish.formats import render
from orchestrator.publish.tables.build import build
from orchestrator.publish.tables.evidence import judged
from orchestrator.publish.verdicts.judge import Evidence, half_width, judge, source, spread
from orchestrator.publish.verdicts.significance import ANY, MIN_PAIRS, planned
from orchestrator.views.errors import DamagedError
from orchestrator.views.runs import QuerySums, SweepLook
from tests.publish import sweeps

KEY = "best/test/recall@1"
CLASSES = np.repeat(np.arange(20), 30).astype(np.int32)


def test_a_recall_of_65_percent_on_cub_is_known_to_1_2_points_from_its_queries_alone():
    hits = (np.arange(5924) < 0.65 * 5924).astype(float)
    each_alone = half_width(spread([hits], np.ones(5924)), "queries")  # as if every query were a class of its own
    assert each_alone == pytest.approx(0.012, abs=0.0003)
    assert each_alone == pytest.approx(1.96 * math.sqrt(0.65 * 0.35 / 5924), rel=0.001)


def test_of_classes_of_one_size_it_is_the_two_way_analysis_of_variance():
    random_ = np.random.default_rng(1)
    runs, classes, each = 4, 6, 10
    scores = random_.standard_normal((runs, classes)) + random_.standard_normal(classes)
    found = spread(scores * each, np.full(classes, each))
    by_run, by_class = scores.mean(1), scores.mean(0)
    rest = scores - by_run[:, None] - by_class + scores.mean()
    mean_square = (rest**2).sum() / ((runs - 1) * (classes - 1))
    assert found.seeds == pytest.approx(by_run.var(ddof=1) / runs)
    assert found.between == pytest.approx(by_class.var(ddof=1) / classes)
    assert found.within == pytest.approx(mean_square / (runs * classes))
    assert found.both == pytest.approx(max(found.seeds + found.between - found.within, found.between))
    assert (found.runs, found.classes, found.queries) == (4, 6, 60)


def test_degrees_of_freedom_are_those_of_what_matters():
    many = np.random.default_rng(2).standard_normal(200)
    queries = spread(np.stack([many, many + 1e-9]), np.ones(200))
    assert queries.freedom == pytest.approx(199, rel=0.01)
    seeds = spread(np.ones((3, 200)) * np.array([[0.1], [0.2], [0.4]]), np.ones(200))
    assert seeds.freedom == pytest.approx(2)
    assert half_width(seeds, "both") == pytest.approx(4.303 * math.sqrt(seeds.seeds), rel=0.001)


def test_one_run_covers_queries_and_not_both():
    found = spread([np.arange(20) * 0.1], np.ones(20))
    assert half_width(found, "queries") > 0
    assert half_width(found, "both") is None
    with pytest.raises(ValueError, match="the queries have 1 class; a spread needs at least 2"):
        spread([[3.0]], [5])


def drawn(random_, runs, seed, shared, alone):
    """Sums of scores of 100 classes by run and class, whose true mean is 0, and the classes' sizes.

    A score is what its seed, its class and its class in this run add, whose deviations are given, and noise of 0.45.
    """
    sizes = random_.integers(30, 89, 100)
    both = random_.standard_normal((runs, 100)) * np.sqrt(alone**2 + 0.45**2 / sizes)
    means = random_.standard_normal((runs, 1)) * seed + random_.standard_normal(100) * shared + both
    return means * sizes, sizes


@pytest.mark.parametrize("runs", [3, 5])
def test_intervals_of_both_hold_the_truth_where_those_of_either_do_not(runs):
    random_, held = np.random.default_rng(runs), {"seeds": 0, "both": 0}
    for _ in range(300):
        sums, sizes = drawn(random_, runs, seed=0.008, shared=0.08, alone=0.05)
        widths = {"both": half_width(spread(sums, sizes), "both")}
        widths["seeds"] = half_interval(statistic((sums.sum(1) / sizes.sum()).tolist()))
        for kind in held:
            held[kind] += abs(sums.sum() / runs / sizes.sum()) <= widths[kind]
    assert held["both"] / 300 > 0.91
    assert held["seeds"] / 300 < 0.92


def test_tables_without_a_difference_are_hardly_ever_given_one():
    """Of six comparisons, looked at after every seed from the third on."""

    def wrong(covers):
        random_ = np.random.default_rng(4)
        return sum(
            any(decided(found, runs, covers) for runs in range(MIN_PAIRS, 6))
            for found in ([drawn(random_, 5, seed=0.003, shared=0.2, alone=0.05) for _ in range(6)] for _ in range(40))
        )

    def decided(found, runs, covers):
        evidence = {}
        for place, (sums, sizes) in enumerate(found):
            queries = None if covers == "seeds" else spread(sums[:runs], sizes)
            means = (sums[:runs].sum(1) / sizes.sum()).tolist()
            evidence[place] = Evidence(means, ANY, covers=covers, spread=queries)
        return any(one.word in {"better", "worse"} for one in judge(evidence, 0.05).values())

    assert wrong("both") <= 4
    assert wrong("seeds") > 4, "what the second variance is for"


def evidence(covers, differences, found, **more):
    return Evidence(differences, **{"spending": planned(5), "covers": covers, "spread": found, **more})


def test_verdicts_that_cover_queries_need_more_than_those_of_seeds():
    sums = np.array([[3.0, 1.0, 2.0, -1.0]] * 5) + np.arange(5)[:, None] * 0.01
    found = spread(sums, np.full(4, 10.0))
    differences = list(sums.sum(1) / 40)
    words = {
        covers: judge({0: evidence(covers, differences, None if covers == "seeds" else found)}, 0.05)[0]
        for covers in ("seeds", "queries", "both")
    }
    assert [one.word for one in words.values()] == ["better", "no clear difference", "no clear difference"]
    assert (words["both"].more, words["queries"].more) == (None, None), "no seed takes away what queries add"
    assert words["both"].interval[0] < 0 < words["both"].interval[1]
    assert words["seeds"].needs == words["both"].needs
    assert words["both"].p > words["seeds"].p


def test_seeds_are_requested_only_where_they_could_decide():
    random_ = np.random.default_rng(4)
    sums = 30 + random_.standard_normal((4, 100)) + 12 * random_.standard_normal((4, 1))
    found = spread(sums, np.full(100, 100.0))
    one = judge({0: evidence("both", list(sums.sum(1) / 10_000), found, spending=ANY)}, 0.05)[0]
    assert one.word == "no clear difference"
    assert one.more
    assert one.more > 0


def test_equal_scores_are_no_variation():
    still = spread(np.full((3, 4), 2.0), np.full(4, 10.0))
    one = judge({0: evidence("queries", [0.2, 0.2, 0.2], still, spending=planned(3))}, 0.05)[0]
    assert (one.word, one.reason) == (
        "untested",
        "no variation: the difference is the same with every class of queries",
    )


def answers(recall, seed, *, classes=CLASSES, data="v1", checkpoint="best"):
    """The file of a training: hits that a class has in common, with the mean `recall`."""
    drawn = np.random.default_rng(seed)
    hard = np.random.default_rng(99).standard_normal(20)[classes % 20] * 0.8 + drawn.standard_normal(len(classes))
    hits = np.zeros(len(classes), dtype=np.float32)
    hits[np.argsort(hard)[: round(recall * len(classes))]] = 1
    return {
        "query": np.arange(len(classes), dtype=np.int32), "class": classes, "recall@1": hits,
        "checkpoint": np.array(checkpoint), "data": np.array(data),
    }  # fmt: skip


def sweep(*, seeds=5, covers="both", metrics=("recall@1", "nmi"), gain=0.2, files=None, **more):
    """`none` and `sec` on one loss, of which `sec` finds so many more; with the files of their trainings."""
    table = {"rows": ["loss", "regularizer"], "columns": [], "metrics": list(metrics), "covers": covers, **more}
    results = sweeps.grid(
        {"loss": ("triplet",), "regularizer": ("none", "sec")},
        sweeps.spec(tables={"main": table}, select={"metric": "recall@1", "split": "validation"}),
        seeds=seeds, metrics=metrics,
    )  # fmt: skip
    kept = [one for one in results.trials if one.candidate == 0]
    random_ = random.Random(3)
    trials, held = [], {}
    for at, one in enumerate(kept):
        recall = 0.5 + gain * (one.cell == 1) + random_.gauss(0, 0.01)
        held[one.trial] = answers(recall, at)
        mean = float(held[one.trial]["recall@1"].mean())
        values = {key: mean if key.endswith("recall@1") else 0.3 + 0.01 * random_.random() for key in one.values}
        trials.append(replace(one, values=values, position=at, seconds=1800.0))
    held |= files or {}

    def read(asked, name):
        found = {one: held[one] for one in asked if name == "queries" and held.get(one)}
        return found, {one: f"the training of trial {one} kept no {name}.npz" for one in asked if one not in found}

    return replace(
        results, trials=tuple(trials), queries=source(read),
        candidates=tuple(one for one in results.candidates if one.index == 0),
    )  # fmt: skip


def verdicts_of(results, covers=None):
    return judged(build(results, "main", sweeps.catalog()), results, (), covers)


def view(results, covers=None):
    return verdicts_of(results, covers).view({cell.index: cell.labels for cell in results.cells})


def recall(results, covers=None):
    return next(one for one in view(results, covers).comparisons if one.metric == KEY)


def test_a_table_covers_seeds_unless_it_says_otherwise_and_reads_no_file_then():
    def refuse(trials, split):
        raise AssertionError("nothing asks for queries")

    plain = replace(sweep(covers="seeds"), queries=refuse)
    one = recall(plain)
    assert (one.covers, one.queries, one.error_queries) == ("seeds", None, None)
    assert "covers" not in json.loads(render(build(plain, "main", sweeps.catalog()), "json").content)
    assert "query" not in verdicts_of(plain).summary()


def test_verdicts_say_what_they_cover():
    both, queries = (recall(sweep(), covers) for covers in ("both", "queries"))
    assert (both.word, both.covers, both.queries, both.classes, both.pairs) == ("better", "both", 600, 20, 5)
    assert both.summary.startswith("better (5 seeds x 600 queries of 20 classes; difference +")
    assert both.error_seeds > 0 < both.error_queries
    assert queries.covers == "queries"
    said = view(sweep()).summary
    assert "two-sided t-test paired by seed and query, crossed, queries clustered by class" in said
    assert "It covers other seeds and other test queries, of other such classes." in said
    assert "not other seeds" in view(sweep(), "queries").summary


def test_one_seed_is_enough_for_its_queries_alone():
    one = recall(sweep(seeds=1, covers="queries"))
    assert (one.word, one.pairs) == ("better", 1)
    assert one.summary.startswith("better (1 seed x 600 queries of 20 classes")
    assert recall(sweep(seeds=1)).reason == "1 seed that both have, 3 are needed"
    undecided = recall(sweep(seeds=1, covers="queries", gain=0.0))
    assert undecided.to_decide == "more test queries; seeds alone do not decide it"


def test_a_plan_of_one_seed_spends_its_share_once_however_often_it_is_extended():
    results = sweep(seeds=4, covers="queries")
    order = sorted(results.trials, key=lambda one: (one.repeat, one.cell))
    spent = []
    for seeds in range(1, 5):
        trials = tuple(replace(one, position=at) for at, one in enumerate(order[: 2 * seeds]))
        grown = replace(results, trials=trials)
        looks = [SweepLook(datetime(2026, 1, 1, tzinfo=UTC), 2 * at, 2 * at) for at in range(1, seeds)]
        found = judged(build(grown, "main", sweeps.catalog()), grown, looks)
        one = next(verdict for place, verdict in found.verdicts.items() if place[2] == KEY)
        assert one.pairs == seeds
        spent.append(one.needs)
    assert spent[0] == pytest.approx(0.8 * 0.05)
    assert sum(spent) < 0.05, "each look is a test of its own"


def test_too_few_seeds_for_an_anytime_test_are_reported_as_such():
    results = sweep(seeds=2, covers="queries", verdicts={"looks": "any"})
    assert (recall(results).word, recall(results).reason) == ("untested", "2 seeds that both have, 3 are needed")
    assert recall(sweep(seeds=3, covers="queries", verdicts={"looks": "any"})).word == "better"


def test_what_is_no_mean_over_queries_is_not_judged_by_them():
    results = sweep()
    nmi = next(one for one in view(results).comparisons if one.metric.endswith("nmi"))
    assert (nmi.word, nmi.reason) == ("untested", "nmi is no mean over queries: only seeds can be covered")


ONE = np.zeros(600, dtype=np.int32)
TROUBLES = {
    "missing": (None, "the training of trial {0} kept no queries.npz"),
    "other data": (lambda recall: answers(recall, 0, data="v2"), "were tested on other queries or another version of"),
    "other queries": (lambda recall: answers(recall, 0, classes=CLASSES[::-1].copy()), "were tested on other queries"),
    "other weights": (answers(0.5, 0, checkpoint="last"), "trial {0} kept scores per query of its last weights"),
    "another's": (answers(0.1, 0), "the scores per query of trial {0} have the mean 0.1000"),
    "no metric": ({**answers(0.5, 0), "recall@1": None}, "trial {0} is not as it should be"),
    "damaged": ({**answers(0.5, 0), "class": CLASSES[:5]}, "the array `query` has 600 entries, but `class` has 5"),
    "not whole": ({**answers(0.5, 0), "query": np.zeros((2, 3))}, "the array 'query' is float64 [2, 3]"),
    "not finite": ({**answers(0.5, 0), "recall@1": np.full(600, np.nan)}, "expected numbers [600]"),
    "no weights": (
        answers(0.5, 0, checkpoint="\x1b[2J"),
        "scores of neither the best nor the last checkpoint",
    ),
    "nested": ({**answers(0.5, 0), "recall@1": np.zeros((600, 2))}, "has the shape [600, 2]"),
}


def test_the_reason_why_queries_cannot_be_used():
    first = next(one for one in sweep().trials if one.cell == 1)
    for which, (file, expected) in TROUBLES.items():
        found = recall(sweep(files={first.trial: file(first.values[KEY]) if callable(file) else file}))
        assert (found.word, found.covers) == ("untested", "both"), which
        assert expected.format(first.trial) in found.reason, which


def test_queries_of_one_class_tell_nothing():
    plain = sweep()
    values = {one.trial: one.values[KEY] for one in plain.trials}
    alone = {trial: answers(value, trial, classes=ONE) for trial, value in values.items()}
    assert recall(sweep(files=alone)).reason == "the queries have 1 class; a spread needs at least 2"


def test_a_spread_behind_a_number_covers_what_the_table_says():
    def cells(covers, **more):
        return json.loads(render(build(sweep(covers=covers, **more), "main", sweeps.catalog()), "json").content)

    widths, captions = {}, {}
    for covers in ("seeds", "queries", "both"):
        found = cells(covers, spread="ci95")
        widths[covers] = float(found["panels"][0]["rows"][0]["cells"][0]["std_text"])
        captions[covers] = " ".join([found["caption"], *found["notes"]])
    assert widths["both"] > max(widths["seeds"], widths["queries"]) * 0.99
    assert "half the 95 % Student-t interval over 5 seeds" in captions["seeds"]
    assert "over other test queries (clustered by class), of these trainings over 5 seeds" in captions["queries"]
    assert (
        "over other seeds and other test queries (crossed, queries clustered by class) over 5 seeds" in captions["both"]
    )
    nmi = cells("both", spread="ci95")["panels"][0]["rows"][0]["cells"][1]
    assert nmi["std_text"] is None
    assert nmi["note"].endswith("; no spread: nmi is no mean over queries: only seeds can be covered")
    assert "No spread: nmi is no mean over queries: only seeds can be covered." in captions["both"]
    assert "No spread" not in captions["seeds"]
    assert cells("both", spread="se")["panels"][0]["rows"][0]["cells"][0]["queries"]["classes"] == 20
    alone = cells("queries", spread="ci95", seeds=1)
    assert alone["panels"][0]["rows"][0]["cells"][0]["std_text"] is not None
    assert "of a single run (seed 0) ± half the 95 %" in alone["caption"]


def test_a_bundle_holds_the_request_and_gives_the_same_words():
    results = sweep(files={})
    recorded = contents.RecordedSums(results.queries)
    assert recorded.file() is None
    first = view(replace(results, queries=recorded))
    again = view(replace(results, queries=contents.source(recorded.file())))
    assert again.model_dump_json() == first.model_dump_json()
    missing = sweep(files={results.trials[0].trial: None})
    recorded = contents.RecordedSums(missing.queries)
    told = recall(replace(missing, queries=recorded))
    assert recall(replace(missing, queries=contents.source(recorded.file()))) == told
    assert recall(replace(missing, queries=contents.source(None))).reason == "scores per query are not at hand here"


def test_a_bundle_with_impossible_sums_is_refused():
    for counts, sums in (([1.0, 2.0], {"recall@1": np.array([1.0])}), ([1.0, math.nan], {}), ([0.0], {})):
        wrong = QuerySums("a", "best", np.array(counts), sums)
        recorded = contents.RecordedSums(lambda trials, split, wrong=wrong: ({1: wrong}, {}))
        recorded([1], "test")
        with pytest.raises(DamagedError, match="scores per query of trial 1"):
            contents.source(recorded.file())
    with pytest.raises(DamagedError):
        contents.source(io.BytesIO(b"no parquet").getvalue())
