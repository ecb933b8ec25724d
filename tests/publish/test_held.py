"""The labels of a cell that its sweep does not vary: what its recipe holds there."""

from typing import Any

import pytest

from orchestrator.plan import grid
from orchestrator.plan.check import check
from orchestrator.plan.yaml import parse
from orchestrator.publish.papers import held_labels, load
from orchestrator.publish.tables.build import build_own
from orchestrator.publish.tables.table_data import Table
from orchestrator.views.errors import InvalidSpecError
from orchestrator.views.runs import NO_SWEEP, SweepOutcomes
from workers import catalog

SPEC = """
version: 1
name: held
recipe:
  dataset: cars196
  backbone: {name: bn_inception}
  loss: {name: semihard}
  sampler: {name: balanced, classes: 4, per_class: 4}
  iterations: 10
  validation: {name: class_holdout, folds: 4, fold: 0}
"""
PARTS = catalog.load()


def labels_of(more: str, table: str = "REB-T2") -> list[dict[str, str]]:
    """What is found for each cell of the spec."""
    spec = check(parse((SPEC + more).encode()), PARTS)
    plain: dict[str, Any] = spec.model_dump(mode="json")
    return [dict(held_labels(plain, cell.labels, load(table), PARTS)) for cell in grid.expand(spec, PARTS).cells]


def test_labels_come_from_axes_patches_rules_defaults_and_the_recipe():
    (found,) = labels_of("")
    assert found == {"dataset": "cars196", "loss": "semihard", "regularizer": "none", "regularizer.eta": ""}
    assert load("REB-T2").find(found, "recall@1").printed == "80.17"
    none, half, one = labels_of(
        "compare: {regularizer: [none, sec], regularizer.eta: [{values: [0.5, 1.0], when: {regularizer: sec}}]}\n"
    )
    assert (none["regularizer.eta"], half["regularizer.eta"], one["regularizer.eta"]) == ("", "0.5", "1.0")
    assert load("REB-T2").find(half, "nmi").printed == "72.67"
    assert load("REB-T2").find(one, "nmi") is None
    sec = "{label: SEC, patch: {regularizer: {name: sec, eta: 1.0}}}"
    method = f"compare: {{method: [{{label: plain, patch: {{regularizer: none}}}}, {sec}]}}\n"
    plain, ruled = labels_of(f"{method}rules: [{{when: {{method: SEC}}, patch: {{regularizer.eta: 0.5}}}}]\n")
    assert (plain["regularizer"], plain["regularizer.eta"]) == ("none", "")
    assert (ruled["regularizer"], ruled["regularizer.eta"]) == ("sec", "0.5")
    (default,) = labels_of("compare: {loss: [semihard], regularizer: [svmax], optimizer.lr: [0.01]}\n", "SVMax-T1")
    assert default["regularizer.eta"] == "1.0"


def test_an_axis_that_is_tuned_is_left_open():
    (found,) = labels_of("compare: {regularizer: [l2]}\ntune: {regularizer.eta: [0.1, 0.01]}\n")
    assert "regularizer.eta" not in found
    assert load("REB-T2").find(found, "nmi") is None  # four weights are printed, and none is chosen for us


POSTED = """
version: 1
name: held
recipe:
  dataset: digits
  backbone: {name: small_cnn, width: 8}
  loss: triplet
  sampler: {name: balanced, classes: 4, per_class: 4}
  iterations: 10
  channels_last: true
  validation: {name: class_holdout, folds: 3, fold: 0}
compare: {loss: [triplet, semihard]}
"""


def shown(table: str) -> Table:
    """A table as it is once the spec was checked and stored."""
    spec = check(parse(f"{POSTED}tables: {{main: {table}}}".encode()), PARTS)
    cells = tuple(grid.expand(spec, PARTS).cells)
    stored: dict[str, Any] = spec.model_dump(mode="json")
    return build_own(SweepOutcomes(NO_SWEEP, "held", "queued", stored, cells, (), ()), "main", PARTS)


def texts(table: str) -> list[tuple[str, ...]]:
    """The headings of each of its rows."""
    return [row.texts for panel in shown(table).panels for row in panel.rows]


def test_a_held_boolean_has_one_label_in_rows_and_templates():
    assert [row[0] for row in texts("{rows: [channels_last, loss]}")] == ["true", "true"]
    with pytest.raises(InvalidSpecError, match="axis 'channels_last' has no alternative 'True'"):
        shown("{rows: [channels_last, loss], labels: {channels_last: {'True': fast}}}")
    called = "{channels_last: {'true': fast}, loss: {triplet: 'Triplet, {channels_last}'}}"
    assert texts(f"{{rows: [loss, channels_last], labels: {called}}}")[0] == ("Triplet, fast", "fast")
