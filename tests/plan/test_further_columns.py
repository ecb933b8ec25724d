"""Metrics are added to the text of a spec: to its recipe, and to its tables."""

from typing import Any

import pytest
import yaml

from orchestrator.plan.edit import with_metrics
from orchestrator.views.errors import InvalidSpecError
from tests.plan.conftest import Checked, Small


def read(small: dict[str, Any], checked: Checked) -> dict[str, Any]:
    return checked(small).model_dump(mode="json")


def test_a_metric_becomes_a_column_of_every_table(small: Small, checked: Checked) -> None:
    spec = small(tables={"main": {"rows": ["loss"], "columns": [], "metrics": ["map@r"]}, "whole": {}})
    text = b"# why\n" + yaml.safe_dump(spec, sort_keys=False).encode()
    found = with_metrics(text, read(spec, checked), ["nmi_sec", "recall@16", "nmi_sec"])
    assert found.startswith(b"# why\n")
    document = yaml.safe_load(found)
    assert document["recipe"]["metrics"] == ["nmi_sec", "recall@16"]
    assert document["tables"]["main"]["metrics"] == ["map@r", "nmi_sec", "recall@16"]
    assert document["tables"]["whole"]["metrics"][-2:] == ["nmi_sec", "recall@16"]
    assert "map@r" in document["tables"]["whole"]["metrics"]
    assert read(document, checked)["tables"]["main"]["metrics"] == ["map@r", "nmi_sec", "recall@16"]
    again = with_metrics(found, read(document, checked), ["nmi_sec"])
    assert yaml.safe_load(again) == document


def test_a_column_that_is_there_stays_alone(small: Small, checked: Checked) -> None:
    column = {"metric": "recall@1", "decimals": 1}
    spec = small(tables={"main": {"rows": ["loss"], "columns": [], "metrics": [column]}})
    found = with_metrics(yaml.safe_dump(spec).encode(), read(spec, checked), ["recall@1"])
    assert yaml.safe_load(found)["tables"]["main"]["metrics"] == [column]


def test_a_column_of_another_split_or_of_a_difference_is_another_column(small: Small, checked: Checked) -> None:
    columns = [{"metric": "map@r", "split": "validation"}, {"metric": "nmi", "delta": {"loss": "triplet"}}]
    compare = {"loss": ["triplet", "semihard"]}
    spec = small(compare=compare, tables={"main": {"rows": [], "columns": ["loss"], "metrics": columns}})
    found = with_metrics(yaml.safe_dump(spec).encode(), read(spec, checked), ["map@r", "nmi"])
    document = yaml.safe_load(found)
    assert document["tables"]["main"]["metrics"] == [*columns, "map@r", "nmi"]
    read(document, checked)


def test_a_sweep_without_tables_is_refused(small: Small) -> None:
    with pytest.raises(InvalidSpecError, match="has no table"):
        with_metrics(yaml.safe_dump(small()).encode(), {"tables": {}}, ["nmi_sec"])
