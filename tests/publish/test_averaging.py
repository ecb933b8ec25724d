"""What stands for the runs of a cell: mean, median or best, their spread, and how many they are."""

import json
import statistics
from dataclasses import replace

import pytest

from orchestrator.publish.aggregate import half_interval, standard_error
from orchestrator.publish.formats import render
from orchestrator.publish.tables.build import build_own
from tests.publish import sweeps

KEY = "best/test/recall@1"


def table_of(outcomes, **layout):
    layout = {"rows": ["loss", "regularizer"], "columns": [], "metrics": ["recall@1", "norm_var"], **layout}
    return build_own(replace(outcomes, spec={**outcomes.spec, "tables": {"main": layout}}), "main", sweeps.catalog())


def outcomes(seeds=5):
    return sweeps.grid({"loss": ("triplet", "semihard"), "regularizer": ("none", "sec")}, sweeps.spec(), seeds=seeds)


def runs(table, cell):
    summary = table.summaries[cell]
    return [
        one.values[KEY] for one in outcomes().trials if (one.cell, one.candidate) == (summary.cell, summary.candidate)
    ]


def first(table):
    return table.panels[0].rows[0].cells[0]


def reproduced(more, partly=None):
    """The winner of each cell is trained again with `more` seeds; that of the first cell with `partly`."""
    spec = sweeps.spec(search={"name": "tpe", "trials": 3, "reproduce": more})
    found = sweeps.grid({"loss": ("triplet", "semihard"), "regularizer": ("none", "sec")}, spec, seeds=1)
    winners = {one.cell: one.candidate for one in table_of(found).summaries.values()}
    trials = list(found.trials)
    for one in found.trials:
        if winners[one.cell] == one.candidate:
            count = partly if partly is not None and one.cell == 0 else more
            again = ({key: value + 0.001 * n for key, value in one.values.items()} for n in range(1, count + 1))
            trials += [
                replace(one, repeat=n, repeat_labels={"seed": str(n)}, values=values)
                for n, values in enumerate(again, 1)
            ]
    return replace(found, trials=tuple(trials))


class TestSpread:
    def test_the_caption_names_the_spread(self):
        deviation = "mean ± standard deviation over 5 seeds (0, 1, 2, 3, 4)."
        words = {
            "std": deviation, "se": deviation.replace("deviation", "error"),
            "none": "mean over 5 seeds (0, 1, 2, 3, 4).",
            "ci95": "mean ± half the 95 % Student-t interval over 5 seeds (0, 1, 2, 3, 4).",
        }  # fmt: skip
        for spread, said in words.items():
            table = table_of(outcomes(), spread=spread)
            found = first(table).statistic
            sizes = {"std": found.std, "se": standard_error(found), "ci95": half_interval(found)}
            assert first(table).std == (f"{100 * sizes[spread]:.2f}" if spread in sizes else None)
            assert f"Test metrics, {said}" in table.caption
            assert table.std == (spread != "none")

    def test_its_form_is_that_of_std(self):
        table = table_of(outcomes(), spread="se", std={"decimals": 4, "unit": "fraction"})
        assert first(table).std == f"{standard_error(first(table).statistic):.4f}"
        assert first(table_of(outcomes(), spread="se", std=False)).std is None


class TestCenter:
    def test_the_median(self):
        table = table_of(outcomes(), center="median")
        cell = first(table)
        assert cell.center == statistics.median(runs(table, cell.cell))
        assert cell.text == f"{100 * cell.center:.2f}"
        assert cell.statistic.mean == pytest.approx(statistics.fmean(runs(table, cell.cell)))
        assert cell.std is None
        assert "Test metrics, median over 5 seeds" in table.caption
        assert "Bold: best median per loss." in table.caption
        assert first(table_of(outcomes(), center="median", spread="std")).std is not None
        header, line = render(table, "csv").content.decode().splitlines()[:2]
        assert float(dict(zip(header.split(","), line.split(","), strict=True))["median"]) == cell.center
        found = json.loads(render(table, "json").content)
        assert (found["center"], found["spread"]) == ("median", "none")
        assert found["panels"][0]["rows"][0]["cells"][0]["center"] == cell.center

    def test_the_best_is_said_loudly(self):
        table = table_of(outcomes(), center="best")
        assert first(table).center == max(runs(table, first(table).cell))
        assert "Each number is the BEST of several runs and not their mean, so it is optimistic." in table.caption
        variance = table.panels[0].rows[0].cells[1]  # of which none is better than another
        assert variance.center == variance.statistic.mean
        assert "BEST" not in table_of(outcomes(1), center="best").caption

    def test_differences_follow(self):
        metrics = ["recall@1", {"metric": "recall@1", "delta": {"regularizer": "none"}, "signed": True}]
        table = table_of(outcomes(), center="best", metrics=metrics)
        base, own = (row.cells for row in table.panels[0].rows[:2])
        assert own[1].center == own[0].center - base[0].center
        assert own[1].note == "above regularizer = none, from unrounded best values"


class TestCounts:
    def fewer(self):
        found = outcomes(3)
        return replace(found, trials=tuple(one for one in found.trials if not (one.cell == 0 and one.repeat == 2)))

    def test_a_cell_of_another_number_of_runs_says_so(self):
        table = table_of(self.fewer())
        rows = table.panels[0].rows
        assert [one.count for one in rows[0].cells] == [2, 2]
        assert not any(cell.count for row in rows[1:] for cell in row.cells)
        assert [(one.symbol, one.meaning) for one in table.legend] == [("(n)", "of n runs, not 3")]
        assert "(2) |" in render(table, "markdown").content.decode()
        assert table_of(outcomes()).legend == ()

    def test_all_of_them_on_request_or_none(self):
        table = table_of(self.fewer(), counts="always")
        assert {cell.count for row in table.panels[0].rows for cell in row.cells} == {2, 3}
        assert table.legend[0].meaning == "of n runs"
        assert table_of(self.fewer(), counts="never").legend == ()


class TestReproduced:
    def test_without_a_choice_of_candidates_too(self):
        spec = sweeps.spec(search={"name": "tpe", "trials": 3, "reproduce": 4})
        found = sweeps.grid({"loss": ("triplet", "semihard")}, spec, seeds=5)  # a trial and four reproductions
        assert "over the best trial + 4 reproductions." in table_of(found, rows=["loss"]).caption
        several = sweeps.grid({"loss": ("triplet",), "regularizer": ("none",)}, spec, seeds=7)
        assert "over the best candidate's 3 trials + 4 reproductions." in table_of(several).caption

    def test_the_spread_is_over_all_runs_and_the_caption_says_so(self):
        table = table_of(reproduced(10), spread="ci95")
        assert first(table).statistic.n == 11
        assert first(table).std == f"{100 * half_interval(first(table).statistic):.2f}"
        said = "mean ± half the 95 % Student-t interval over the best trial + 10 reproductions."
        assert said in table.caption

    def test_so_where_some_are_still_to_come(self):
        table = table_of(reproduced(10, partly=1))
        said = "over the best trial + 1 to 10 reproductions: n = 11 in 3 cells; n = 2 in Triplet / None."
        assert said in table.caption
        assert first(table).count == 2
