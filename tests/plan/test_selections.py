"""What a table that shows both selections needs of its spec."""

from typing import Any

import jsonschema
import pytest

from orchestrator.plan.check import check
from orchestrator.plan.schema import json_schema
from tests.plan.conftest import Small, Told
from workers.catalog import Catalog

BOTH = ["validation", "test"]


def table(small: Small, **given: Any) -> dict[str, Any]:
    select = given.pop("select", {"beside": "test"})
    return small(select=select, tables={"main": {"metrics": ["map@r"], **given}})


def test_both_selections_and_what_lies_between_them(small: Small, catalog: Catalog) -> None:
    document = table(small, selections=BOTH, flattery=True)
    jsonschema.Draft7Validator(json_schema()).validate(document)
    found = check(document, catalog)
    assert (found.tables["main"].selections, found.tables["main"].flattery) == (BOTH, True)
    assert found.select.beside == "test"
    plain = check(small(), catalog)
    assert (plain.tables["main"].selections, plain.tables["main"].flattery) == ([], False)
    assert plain.select.model_dump() == {"metric": "map@r", "split": "validation"}


@pytest.mark.parametrize(
    ("given", "path", "said"),
    [
        ({"selections": BOTH, "select": {}}, "selections", "needs `select: {beside: test}`: trainings keep what"),
        ({"selections": ["test"], "select": {}}, "selections", "needs `select: {beside: test}`: trainings keep what"),
        ({"selections": ["test", "test"]}, "selections", "expected each split once, found 'test', 'test'"),
        ({"selections": ["train"]}, "selections", "expected a list of 'validation' and 'test'"),
        ({"selections": "test"}, "selections", "expected a list, found 'test'"),
        ({"flattery": True}, "flattery", "compares the two of `selections: [validation, test]`; add that"),
        ({"selections": ["test"], "flattery": True}, "flattery", "compares the two of"),
        ({"selections": BOTH, "flattery": 1}, "flattery", "expected true or false, found 1"),
        (
            {"selections": BOTH, "metrics": ["nmi", {"metric": "norm_var", "split": "train"}]},
            "metrics[1].split",
            "both `selections` have test metrics only, found 'train'",
        ),
    ],
)
def test_what_is_wrong_is_said(small: Small, told: Told, given: dict[str, Any], path: str, said: str) -> None:
    ((where, message),) = told(table(small, **given))
    assert where == f"tables.main.{path}"
    assert message.startswith(said)
