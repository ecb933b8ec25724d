"""What a cell fills in the tables of its sweep does not take the whole sweep to know."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.publish.aggregate import selection
from orchestrator.publish.tables import cell as cells
from orchestrator.publish.tables.layout import parse
from orchestrator.views.runs import Cell, SweepOutcomes, TrialOutcome
from orchestrator.views.states import TrialState
from tests.publish import presets, sweeps
from workers.catalog import Catalog
from workers.contract import BEST_TEST

SHOWN = 6
"""Cells of a preset that are looked at."""


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


def trained(outcomes: SweepOutcomes, catalog: Catalog) -> SweepOutcomes:
    """A sweep of two seeds, each of whose trials has drawn numbers or an end without any."""
    drawn, trials = random.Random(5), []
    layouts = [parse(outcomes.spec, name) for name in outcomes.spec.get("tables") or {}]
    checkpoints = {(outcomes.spec.get("select") or {}).get("checkpoint") or "best", BEST_TEST, "last"}
    keys = {column.key(at) for one in layouts for column in one.metric_columns for at in checkpoints}
    select = selection(outcomes.spec)
    keys |= {select.key, select.beside_key}
    for one in outcomes.candidates:
        for repeat in (0, 1):
            fate = drawn.random()
            state = TrialState.FAILED if fate < 0.05 else TrialState.WAITING if fate < 0.1 else TrialState.FINISHED
            values = {key: drawn.random() for key in sorted(keys)} if state is TrialState.FINISHED else {}
            number = len(trials)
            trials.append(
                TrialOutcome(
                    number + 1, one.cell, one.index, repeat, {"seed": str(repeat)}, state,
                    diverged=bool(values) and fate > 0.95, values=values, position=number,
                )
            )  # fmt: skip
    return replace(outcomes, trials=tuple(trials))


@pytest.mark.parametrize("stem", ["sec_t3", "sec_t4", "svmax_t1", "svmax_t5", "isa_t2", "mlrc"])
def test_a_cell_of_a_preset_is_the_same_with_few_cells_read(stem: str) -> None:
    outcomes = trained(presets.outcomes(stem), presets.catalog())
    which = random.Random(1).sample(outcomes.cells, min(SHOWN, len(outcomes.cells)))
    agree(outcomes, which, presets.catalog())


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
