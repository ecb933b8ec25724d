"""A subset of a preset, by the last label of each axis: exactly its trials, and tables and figures that lay out."""

import pytest

from orchestrator.plan.check import check
from orchestrator.plan.grid import expand
from orchestrator.plan.yaml import parse
from orchestrator.publish.figures import drawing
from orchestrator.publish.figures.sketch import Sources
from orchestrator.publish.formats import render
from orchestrator.publish.tables import build
from orchestrator.spec.spec import Spec
from orchestrator.views.runs import SweepOutcomes
from tests.publish.presets import SWEEPS, catalog

NO_DATA = Sources(lambda *_: {}, lambda *_: ({}, {}))


def trials(spec: Spec) -> list[tuple[dict[str, str], str]]:
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


def lay_out(spec: Spec) -> None:
    """Draw every table and figure of a subset before anything ran, also as the paper prints it."""
    plan = expand(spec, catalog())
    dumped = spec.model_dump(mode="json")
    outcomes = SweepOutcomes(1, spec.name, "queued", dumped, tuple(plan.cells), tuple(plan.candidates), ())
    for name, table in spec.tables.items():
        built = build.build(outcomes, name, catalog())
        assert built.panels
        assert all(panel.rows and panel.columns for panel in built.panels)
        assert render(built, "latex").content
        if table.published:
            build.build(outcomes, name, catalog(), numbers="published")
    for name in spec.figures:
        drawing.draw(outcomes, name, catalog(), NO_DATA)


@pytest.mark.parametrize("name", ["mlrc", "sec_t3", "sec_f5", "svmax_t1", "svmax_t5", "isa_f9"])
def test_a_subset_of_a_preset_is_that_and_lays_out(name: str) -> None:
    document = parse((SWEEPS / f"{name}.yaml").read_bytes())
    full = check(document, catalog())
    whole = trials(full)
    for axis, label in {axis: label for labels, _ in whole for axis, label in labels.items()}.items():
        for key in ("only", "without"):
            expected = [one for one in whole if (one[0].get(axis) == label) == (key == "only")]
            if expected:
                notes: list[str] = []
                spec = check(document | {key: {axis: [label]}}, catalog(), notes)
                assert trials(spec) == expected, (key, axis, label)
                told = ("difference of recall@1 to regularizer none", "is left out: nothing that it draws is taken")
                assert all(any(one in note for one in told) for note in notes), notes
                assert set(spec.tables) <= set(full.tables)
                if axis in full.compare:
                    lay_out(spec)
