"""A subset of every preset, for each label of each axis: exactly its trials, and tables and figures that lay out."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.plan.check import check
from orchestrator.plan.grid import expand
from orchestrator.plan.yaml import parse
from orchestrator.publish.figures import drawing
from orchestrator.publish.figures.sketch import Sources
from orchestrator.publish.formats import render
from orchestrator.publish.tables import build
from orchestrator.spec.spec import Spec
from orchestrator.views.outcomes import SweepOutcomes
from tests.publish.presets import SWEEPS, catalog

Trial = tuple[dict[str, str], str]

PRESETS = sorted(SWEEPS.glob("*.yaml"))
NO_DATA = Sources(lambda *_: {}, lambda *_: ({}, {}))


def outcomes(spec: Spec) -> SweepOutcomes:
    """A sweep of the spec before anything ran."""
    plan = expand(spec, catalog())
    dumped = spec.model_dump(mode="json")
    return SweepOutcomes(1, spec.name, "queued", dumped, tuple(plan.cells), tuple(plan.candidates), ())


def trials(spec: Spec) -> list[Trial]:
    """The labels and the fingerprint of each trial; of an adaptive search one of each cell."""
    plan = expand(spec, catalog())
    if spec.search.adaptive:
        found = zip(plan.cells, plan.outlines(), strict=True)
        return [(dict(cell.labels), recipe.fingerprint) for cell, (_, recipe) in found]
    cells = {one.index: one.labels for one in plan.cells}
    candidates = {(one.cell, one.index): one.labels for one in plan.candidates}
    return [
        ({**cells[one.cell], **candidates[one.cell, one.candidate], **one.repeat_labels}, one.fingerprint)
        for one in plan.trials()
    ]


def parts(whole: list[Trial]) -> Iterator[tuple[str, str, str, list[Trial]]]:
    """Each way to name one label, and the trials of it; not those that leave none."""
    for axis, label in dict.fromkeys(item for labels, _ in whole for item in labels.items()):
        for key in ("only", "without"):
            expected = [one for one in whole if (one[0].get(axis) == label) == (key == "only")]
            if expected:
                yield key, axis, label, expected


def lay_out(spec: Spec, whole: Spec) -> None:
    """Draw every table and figure of a subset, also as the paper prints it."""
    it = outcomes(spec)
    for name, table in spec.tables.items():
        built = build.build(it, name, catalog())
        assert built.panels
        assert all(panel.rows and panel.columns for panel in built.panels)
        assert render(built, "latex").content
        if table.published:
            build.build(it, name, catalog(), numbers="published")
    for name in spec.figures:
        drawing.draw(it, name, catalog(), NO_DATA)
    assert set(spec.tables) <= set(whole.tables)


@pytest.mark.parametrize("path", PRESETS, ids=lambda path: path.stem)
def test_a_subset_of_a_preset_is_that_and_lays_out(path: Path) -> None:
    document: Any = parse(path.read_bytes())
    full = check(document, catalog())
    whole = trials(full)
    for key, axis, label, expected in parts(whole):
        notes: list[str] = []
        spec = check(document | {key: {axis: [label]}}, catalog(), notes)
        assert trials(spec) == expected, (key, axis, label)
        told = ("difference of recall@1 to regularizer none", "is left out: nothing that it draws is taken")
        assert all(any(one in note for one in told) for note in notes), notes
        if axis in full.compare:
            lay_out(spec, full)
