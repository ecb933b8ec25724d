"""A table by both selections: which candidate each shows, how much selection on test flatters, and what is said."""

import csv
import io
import json
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.publish.formats import render
from orchestrator.publish.tables.build import build_own
from orchestrator.publish.tables.table_data import Heading, Table
from orchestrator.views.runs import SweepOutcomes
from orchestrator.views.states import TrialState
from tests.publish import sweeps

TABLE: dict[str, Any] = {
    "rows": ["loss"], "columns": ["regularizer"],
    "metrics": ["map@r", {"metric": "recall@1", "unit": "fraction", "decimals": 3}],
    "selections": ["validation", "test"], "flattery": True, "show_tuned": True, "std": False,
}  # fmt: skip


def outcomes(**layout: Any) -> SweepOutcomes:
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


def built(given: SweepOutcomes, **show: Any) -> Table:
    return build_own(given, "main", sweeps.catalog(), **show)


def test_each_metric_stands_under_each_selection_and_then_the_difference() -> None:
    panel = built(outcomes()).panels[0]
    assert panel.groups[0] == (Heading("L2", 8), Heading("SEC", 8))
    once = (Heading("Selected on validation", 3), Heading("Selected on test", 3), Heading("Test − validation", 2))
    assert panel.groups[1] == once + once
    assert [column.title for column in panel.columns[:8]] == [
        "η", "MAP@R", "R@1", "η", "MAP@R", "R@1", "MAP@R", "R@1",
    ]  # fmt: skip
    assert [column.key for column in panel.columns[:8]] == [
        "", "best/test/map@r", "best/test/recall@1", "", "best_test/test/map@r", "best_test/test/recall@1",
        "best_test/test/map@r", "best_test/test/recall@1",
    ]  # fmt: skip


def test_each_selection_shows_its_own_candidate_and_its_own_checkpoint() -> None:
    table = built(outcomes())
    texts = [cell.text for cell in table.panels[0].rows[0].cells[:8]]
    assert texts == ["0.01", "40.10", "0.700", "0.0001", "46.10", "0.730", "+6.00", "+0.030"]
    assert (table.summaries[0].candidate, table.tested[0].candidate) == (0, 2)
    assert table.tested[0].selection_key == "best_test/test/map@r"


def test_a_difference_is_of_unrounded_means_and_never_bold() -> None:
    row = built(outcomes()).panels[0].rows[0]
    assert row.cells[6].statistic is not None
    assert row.cells[6].statistic.mean == pytest.approx(0.06)
    assert row.cells[6].std is None
    assert not any(cell.bold for one in built(outcomes()).panels[0].rows for cell in one.cells[6:8])


def test_the_best_is_bold_by_each_selection() -> None:
    given = outcomes(bold=["regularizer"])
    better = [
        replace(one, values={**one.values, "best_test/test/map@r": 0.9}) if one.cell == 2 else one  # semihard with L2
        for one in given.trials
    ]
    first, second = built(replace(given, trials=tuple(better))).panels[0].rows
    assert [cell.bold for cell in (first.cells[1], second.cells[1])] == [True, True], "equal on validation"
    assert [cell.bold for cell in (first.cells[4], second.cells[4])] == [False, True]


def test_the_caption_says_what_the_columns_are() -> None:
    found = built(outcomes()).caption
    assert (
        "Best checkpoint of each training and best candidate of each cell chosen by MAP@R on the validation split. "
        "Under “Selected on test” both are chosen by MAP@R on the TEST split, so these numbers are optimistic. "
        "“Test − validation” is how much that flatters; both come from the same trainings on the same classes. "
        "Selection budget: 3 candidates in every cell, with other learning rates where a cell had fewer."
    ) in found
    alone = built(outcomes(selections=["test"], flattery=False)).caption
    assert "Best checkpoint and candidate chosen by MAP@R on the TEST split" in alone
    assert "validation" not in alone
    assert "TEST" not in built(outcomes(selections=[], flattery=False)).caption


def test_what_is_missing_or_diverged_says_so() -> None:
    given = outcomes()
    trials = [
        replace(one, diverged=True, values={}) if one.cell == 0
        else replace(one, state=TrialState.RUNNING, values={}) if one.cell == 1
        else replace(one, values={k: v for k, v in one.values.items() if not k.startswith("best_test/")})
        for one in given.trials
    ]  # fmt: skip
    first, second = built(replace(given, trials=tuple(trials))).panels[0].rows
    assert [cell.text for cell in first.cells] == [
        "", "diverged", "diverged", "", "diverged", "diverged", "diverged", "diverged",
        "", "…", "…", "", "…", "…", "…", "…",
    ]  # fmt: skip
    assert [cell.text for cell in second.cells[:8]] == [
        "0.01", "40.10", "0.700", "", "failed", "failed", "failed", "failed",
    ]  # fmt: skip


def test_differences_to_another_cell_are_of_the_same_selection() -> None:
    given = outcomes(metrics=["map@r", {"metric": "map@r", "delta": {"regularizer": "l2"}}], show_tuned=False)
    trials = [
        replace(one, values={**one.values, "best_test/test/map@r": 0.9}) if one.cell % 2 else one
        for one in given.trials
    ]
    cells = built(replace(given, trials=tuple(trials))).panels[0].rows[0].cells[5:]
    assert [cell.text for cell in cells] == ["40.10", "0.00", "90.00", "43.90", "+49.90"]


def test_data_formats_tell_them_apart() -> None:
    table = built(outcomes())
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
