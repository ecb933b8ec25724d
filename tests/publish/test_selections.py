"""A table by both selections: which candidate each shows, how much selection on test flatters, and what is said."""

import csv
import io
import json
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.publish.formats import render
from orchestrator.publish.tables.build import build_own
from orchestrator.publish.tables.table_data import Table
from orchestrator.views.outcomes import SweepOutcomes
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


def test_a_difference_is_of_unrounded_means_and_never_bold() -> None:
    row = built(outcomes()).panels[0].rows[0]
    assert row.cells[6].statistic is not None
    assert row.cells[6].statistic.mean == pytest.approx(0.06)
    assert row.cells[6].std is None
    assert not any(cell.bold for one in built(outcomes()).panels[0].rows for cell in one.cells[6:8])


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
