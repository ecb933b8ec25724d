"""What stands for the runs of a cell: mean, median or best, their spread, and the numbers of both selections."""

import csv
import io
import json
import statistics
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.publish.aggregate import half_interval, standard_error
from orchestrator.publish.formats import render
from orchestrator.publish.tables.build import build_own
from orchestrator.publish.tables.table_data import Table
from orchestrator.views.runs import SweepOutcomes
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


def test_a_spread_is_what_its_formula_gives():
    for spread, formula in {"std": lambda one: one.std, "se": standard_error, "ci95": half_interval}.items():
        cell = first(table_of(outcomes(), spread=spread))
        assert cell.std == f"{100 * formula(cell.statistic):.2f}", spread


def test_the_median():
    table = table_of(outcomes(), center="median")
    cell = first(table)
    assert cell.center == statistics.median(runs(table, cell.cell))
    assert cell.text == f"{100 * cell.center:.2f}"
    assert cell.statistic.mean == pytest.approx(statistics.fmean(runs(table, cell.cell)))
    assert cell.std is None
    header, line = render(table, "csv").content.decode().splitlines()[:2]
    assert float(dict(zip(header.split(","), line.split(","), strict=True))["median"]) == cell.center
    found = json.loads(render(table, "json").content)
    assert (found["center"], found["spread"]) == ("median", "none")
    assert found["panels"][0]["rows"][0]["cells"][0]["center"] == cell.center


def test_the_best():
    table = table_of(outcomes(), center="best")
    assert first(table).center == max(runs(table, first(table).cell))
    variance = table.panels[0].rows[0].cells[1]  # of which none is better than another
    assert variance.center == variance.statistic.mean


TABLE: dict[str, Any] = {
    "rows": ["loss"], "columns": ["regularizer"],
    "metrics": ["map@r", {"metric": "recall@1", "unit": "fraction", "decimals": 3}],
    "selections": ["validation", "test"], "flattery": True, "show_tuned": True, "std": False,
}  # fmt: skip


def selected(**layout: Any) -> SweepOutcomes:
    """Cells in which the last candidate is best on test, and the first on validation."""
    table = {**TABLE, **layout}
    select = {"metric": "map@r", "split": "validation", "beside": "test", "budget": 3}
    made = sweeps.grid(
        {"loss": sweeps.LOSSES[:2], "regularizer": ("l2", "sec")}, sweeps.spec(tables={"main": table}, select=select)
    )
    trials = []
    for one in made.trials:
        n, seed = one.candidate, one.repeat / 1000
        values = {
            "best/validation/map@r": 0.5 - n / 100, "best/test/map@r": 0.4 + n / 100 + seed,
            "best/test/recall@1": 0.7 - n / 100, "best_test/test/map@r": 0.42 + n / 50 + seed,
            "best_test/test/recall@1": 0.71 + n / 100,
        }  # fmt: skip
        trials.append(replace(one, values=values))
    return replace(made, trials=tuple(trials))


def built_by_both(given: SweepOutcomes, **show: Any) -> Table:
    return build_own(given, "main", sweeps.catalog(), **show)


def test_a_difference_is_of_unrounded_means_and_never_bold() -> None:
    row = built_by_both(selected()).panels[0].rows[0]
    assert row.cells[6].statistic is not None
    assert row.cells[6].statistic.mean == pytest.approx(0.06)
    assert row.cells[6].std is None
    assert not any(cell.bold for one in built_by_both(selected()).panels[0].rows for cell in one.cells[6:8])


def test_data_formats_tell_them_apart() -> None:
    table = built_by_both(selected())
    rows = list(csv.DictReader(io.StringIO(render(table, "csv").content.decode())))
    first = [(one["metric"], one["key"], one["regularizer.eta"], one["printed"]) for one in rows[:6:2]]
    assert first == [
        ("map@r", "best/test/map@r", "0.01", "40.10"),
        ("map@r", "best_test/test/map@r", "0.0001", "46.10"),
        ("flattery:map@r", "best_test/test/map@r", "0.01", "+6.00"),
    ]
    found = json.loads(render(table, "json").content)
    assert [one.get("selection") for one in found["panels"][0]["columns"][:8:3]] == ["validation", "test", None]
    assert found["panels"][0]["columns"][6]["kind"] == "flattery"
    assert [one["candidate"] for one in found["cells_by_test"]] == [2, 2, 2, 2]
