"""The posted form is defined once: what passes the check is what tables and figures show."""

from typing import Any

import pytest

from orchestrator.plan import grid
from orchestrator.plan.check import check
from orchestrator.plan.yaml import parse
from orchestrator.publish.figures.drawing import parse as parse_figure
from orchestrator.publish.tables.build import build_own
from orchestrator.publish.tables.layout import parse as parse_table
from orchestrator.publish.tables.table_data import Table
from orchestrator.views.errors import InvalidSpecError
from orchestrator.views.outcomes import NO_SWEEP, SweepOutcomes
from workers import catalog

PARTS = catalog.load()
SPEC = """
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
    spec = check(parse(f"{SPEC}tables: {{main: {table}}}".encode()), PARTS)
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


def test_a_column_stands_where_its_when_says():
    columns = "[{metric: nmi, when: {channels_last: true}}, recall@1]"
    (panel,) = shown(f"{{rows: [loss], columns: [channels_last], metrics: {columns}}}").panels
    assert [column.name for column in panel.columns] == ["nmi", "recall@1"]


def test_what_another_release_stored_is_read_as_it_is():
    column = {"metric": "nmi", "split": "attic", "label": "N" * 300, "glow": True}
    stored = {"rows": ["loss"] * 50, "metrics": [column, "recall@1"], "std": {"unit": "percent", "hue": 3}, "glow": {}}
    table = parse_table({"tables": {"main": stored | {"diverged": "", "against": {}, "decimals": 9}}}, "main")
    assert (len(table.rows), table.decimals, table.diverged) == (50, 9, "")
    assert [(one.key("best"), one.label) for one in table.metric_columns] == [
        ("best/attic/nmi", "N" * 300), ("best/test/recall@1", None),
    ]  # fmt: skip
    assert table.deviation.unit == "percent"
    figure = parse_figure({"figures": {"a": {"kind": "violin", "metric": "nmi", "title": "T" * 300, "hue": 3}}}, "a")
    assert (figure.kind, figure.metrics, figure.facets) == ("violin", ["nmi"], [])


def test_what_is_posted_is_held_to_todays_form():
    with pytest.raises(InvalidSpecError) as refused:
        shown("{rows: [loss], metrics: [{metric: nmi, split: attic, glow: true}], decimals: 9, diverged: ''}")
    found = [problem.path for problem in refused.value.problems]
    assert found == [
        f"tables.main.{field}" for field in ("metrics[0].split", "metrics[0].glow", "decimals", "diverged")
    ]
