from copy import deepcopy
from typing import Any

import jsonschema
import pytest

from orchestrator.plan.check import check
from orchestrator.plan.grid import expand
from orchestrator.plan.schema import json_schema
from orchestrator.plan.yaml import parse
from tests.plan.conftest import DESIGN, DIGITS
from workers.catalog import Catalog
from workers.contract import PART_FIELDS


@pytest.fixture(scope="module")
def validator() -> Any:
    schema = json_schema()
    jsonschema.Draft7Validator.check_schema(schema)
    return jsonschema.Draft7Validator(schema)


def test_every_form_of_the_grammar_satisfies_the_schema(validator: Any) -> None:
    cases: list[tuple[str, Any]] = [
        ("compare", {"loss": ["triplet", {"name": "triplet", "margin": 0.2}, {"margin": 0.3}]}),
        ("compare", {"Method": [{"label": "A", "patch": {"loss": "triplet", "iterations": 5}}]}),
        ("tune", {"optimizer.lr": {"values": [1e-3], "when": {"loss": "triplet"}}}),
        ("repeat", {"validation.fold": [0, 1]}),
        ("rules", [{"when": {"loss": ["triplet"]}, "patch": {"optimizer": {"lr": 0.1}}}]),
        ("tables", {"t": {"rows": ["loss"], "bold": "none", "metrics": ["nmi", {"metric": "f1", "decimals": 1}]}}),
        ("tables", {"t": {"panels": [{"dataset": ["digits"]}]}}),
        ("tables", {"t": {"metrics": [{"metric": "nmi", "when": {"dataset": "x"}}]}}),
        ("tables", {"t": {"metrics": [{"metric": "nmi", "delta": {"loss": "y"}, "signed": True}]}}),
        ("tables", {"t": {"labels": {"loss": {"triplet": 1e-3}}, "titles": {"loss": None}, "std": {"decimals": 3}}}),
        ("tables", {"t": {"published": "SEC-T3", "missing": "-", "diverged": "degenerate"}}),
        ("compare", {"backbone": [{"name": "frozen", "of": {"name": "resnet18", "pretrained": True}}]}),
        ("compare", {"backbone.of": ["resnet18", {"label": "50", "patch": {"backbone.of": {"name": "resnet50"}}}]}),
        ("slot", {"cpus": 1, "gpus": 0.5}),
        ("search", "grid"),
    ]
    assert [one for one in cases if not validator.is_valid({**parse(DESIGN), one[0]: one[1]})] == []


def test_wrong_specs_do_not(validator: Any) -> None:
    cases: list[tuple[str, Any]] = [
        ("version", 2), ("name", ""), ("prune", True), ("recipe.losss", "triplet"), ("recipe.backbone", "resnet"),
        ("recipe.backbone", {"name": "small_cnn", "wdith": 3}),
        ("recipe.backbone", {"name": "small_cnn", "width": "wide"}), ("recipe.backbone", {"name": "frozen"}),
        ("recipe.backbone", {"name": "frozen", "of": "resnet"}),
        ("recipe.backbone", {"name": "frozen", "of": {"name": "frozen", "of": "resnet18"}}),
        ("recipe.backbone", {"name": "frozen", "of": {"name": "resnet18", "wdith": 3}}), ("recipe.iterations", 0),
        ("recipe.select", {"metric": "nmi"}), ("compare.loss", []), ("compare.loss", ["proxy_ancor"]),
        ("compare.los", ["triplet"]), ("tune.regularizer.eta", {"low": 0.1}), ("rules", [{"patch": {"iterations": 1}}]),
        ("select", {"split": "train"}), ("slot", {"gpu": 1}), ("search", {"name": "tpee"}),
        ("tables", {"a b": {"metrics": ["nmi"]}}), ("tables", {"a": {"row": ["loss"]}}),
    ]  # fmt: skip
    for path, value in cases:
        document = deepcopy(parse(DESIGN))
        block, dot, field = path.partition(".")
        if dot:
            document[block][field] = value
        else:
            document[block] = value
        assert not validator.is_valid(document), (path, value)


def test_every_part_is_offered(catalog: Catalog) -> None:
    definitions = json_schema(catalog)["definitions"]
    for kind in PART_FIELDS:
        assert definitions[f"value-{kind}"]["anyOf"][0] == {"enum": catalog.names(kind)}


def test_the_demo_is_that_of_the_readme(catalog: Catalog) -> None:
    spec = check(parse(DIGITS.read_bytes()), catalog)
    plan = expand(spec, catalog)
    assert (len(plan.cells), len(plan.candidates), plan.trial_count) == (16, 40, 200)
    assert {tuple(cell.labels) for cell in plan.cells} == {("loss", "regularizer")}
    etas = [[one.labels["regularizer.eta"] for one in plan.candidates if one.cell == cell] for cell in (1, 2, 3)]
    assert etas == [["0.01", "0.001", "0.0001"], ["0.25", "0.5", "1.0"], ["0.1", "0.5", "1.0"]]
    table = spec.tables["main"]
    assert (table.rows, table.columns) == (["loss", "regularizer"], ["dataset"])
    names = [getattr(column, "metric", column) for column in table.metrics]
    assert names == ["nmi", "recall@1", "map@r", "norm_var", "s_mu"], "and what regularizers act on"
    recipes = [trial.recipe for trial in plan.trials()]
    assert {recipe.evaluate_every == recipe.iterations for recipe in recipes} == {True}, "the last weights"
    assert {recipe.select.split for recipe in recipes} == {"validation"}, "which chooses eta"
    assert b"# yaml-language-server: $schema=" in DIGITS.read_bytes()
