"""What a cell fills in the tables of its sweep does not take the whole sweep to know."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.publish.tables import cell as cells
from orchestrator.views.runs import Cell, SweepOutcomes
from tests.publish import sweeps
from workers.catalog import Catalog


def only(outcomes: SweepOutcomes, kept: Sequence[int]) -> SweepOutcomes:
    """What the store reads of some cells."""
    return replace(
        outcomes,
        cells=tuple(one for one in outcomes.cells if one.index in kept),
        candidates=tuple(one for one in outcomes.candidates if one.cell in kept),
        trials=tuple(one for one in outcomes.trials if one.cell in kept),
    )


def agree(outcomes: SweepOutcomes, which: Sequence[Cell], catalog: Catalog) -> int:
    """Compare what is said of cells with what it is if all are read; gives how many numbers these were."""
    numbers = 0
    for cell in which:
        kept = cells.needed(outcomes.spec, outcomes.cells, cell, catalog)
        if cells.alone(outcomes.spec, cell, catalog):
            assert kept == [cell.index]
        whole = cells.trace(outcomes, cell.index, (), catalog)
        assert cells.trace(only(outcomes, kept), cell.index, (), catalog) == whole
        numbers += len(whole.numbers)
    return numbers


LAYOUTS: dict[str, Mapping[str, Any]] = {
    "plain": {},
    "subtracted": {"metrics": ["map@r", {"metric": "map@r", "delta": {"regularizer": "none"}}]},
    "from another each": {
        "metrics": [
            {"metric": "map@r", "delta": {"regularizer": "none"}}, {"metric": "f1", "delta": {"loss": "triplet"}},
        ]
    },
    "numbers of two decimals": {"decimals": 2},
    "median": {"center": "median"},
    "against": {"against": {"regularizer": "none"}, "counts": "always"},
    "panels": {"rows": ["loss"], "columns": ["regularizer"], "panels": [{"regularizer": ["none", "l2"]}]},
    "where it stands": {
        "rows": ["loss"], "columns": ["regularizer", "dataset"],
        "metrics": ["map@r", {"metric": "f1", "when": {"dataset": ["digits"]}}],
    },
}  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_of_a_table_few_cells_say_what_all_say(layout: Mapping[str, Any]) -> None:
    """Some regularizers have no eta, and one loss no data set of its own."""
    main = {"rows": ["loss", "regularizer"], "columns": ["dataset"], "metrics": list(sweeps.METRICS), **layout}
    labels = {"loss": ("triplet", "semihard"), "regularizer": ("none", "l2", "sec"), "dataset": ("", "omniglot")}
    spec = sweeps.spec(compare=sweeps.axes(labels), tables={"main": main, "again": {**main, "std": True}})
    outcomes = sweeps.grid(
        labels, spec, keep=lambda one: (one["loss"] == "semihard") == (one["dataset"] == "omniglot"),
        fate=lambda one, candidate, repeat: "diverged" if one["regularizer"] == "l2" and candidate == 1 else "ok",
    )  # fmt: skip
    assert agree(outcomes, outcomes.cells, sweeps.catalog())
