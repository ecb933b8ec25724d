from collections.abc import Callable
from typing import Any

import pytest

Small = Callable[..., dict[str, Any]]
Told = Callable[[Any], list[tuple[str, str]]]
AXES = {"loss": ["triplet", "semihard"], "regularizer": ["none", "l2"], "dataset": ["digits"]}


def with_table(small: Small, **table: Any) -> dict[str, Any]:
    return small(compare=AXES, tables={"main": {"rows": ["loss", "regularizer"], "metrics": ["nmi"]} | table})


def test_without_tables_there_is_a_default_one(small: Small, checked: Any) -> None:
    table = checked(small(compare=AXES)).tables["main"]
    assert (table.rows, table.columns) == (["loss", "regularizer"], ["dataset"])
    assert "recall@1" in table.metrics
    assert "nmi" in table.metrics
    assert "norm_var" not in table.metrics
    assert checked(small()).tables["main"].rows == []


def test_metrics_may_have_their_own_form(small: Small, checked: Any) -> None:
    column = {"metric": "recall@1", "label": "R@1", "unit": "fraction", "decimals": 3}
    table = checked(with_table(small, metrics=["nmi", column])).tables["main"]
    assert table.metrics[0] == "nmi"
    assert table.metrics[1].model_dump() == column


def test_fields_held_fixed_may_head_rows_and_columns(small: Small, checked: Any) -> None:
    document = small(tables={"t": {"rows": ["loss", "optimizer"], "columns": ["dataset", "sampler.classes"]}})
    assert checked(document).tables["t"].columns == ["dataset", "sampler.classes"]


def test_an_axis_with_one_alternative_may_be_left_out(small: Small, checked: Any) -> None:
    assert checked(with_table(small)).tables["main"].columns == []


@pytest.mark.parametrize(
    ("table", "path", "message"),
    [
        ({"row": []}, ".row", "there is no key 'row' here; did you mean 'rows'?"),
        ({"rows": "loss"}, ".rows", "expected a list, found 'loss'"),
        ({"rows": ["loss"]}, "", "the compare axis 'regularizer' stands neither in rows nor in columns"),
        ({"columns": ["loss"]}, ".columns[0]", "'loss' stands twice"),
        ({"columns": ["seed"]}, ".columns[0]", "there is no compare axis 'seed'; expected one of"),
        ({"columns": ["datset"]}, ".columns[0]", "there is no compare axis 'datset'; did you mean 'dataset'?"),
        ({"columns": ["embeding"]}, ".columns[0]", "there is no compare axis 'embeding'; expected one of 'loss'"),
        ({"metrics": []}, ".metrics", "expected a list of at least one metric, found []"),
        ({"metrics": ["nmi", "nmi"]}, ".metrics[1]", "'nmi' stands twice"),
        ({"metrics": ["recall"]}, ".metrics[0]", ""),
        ({"metrics": ["recall@16"]}, ".metrics[0]", "dataset 'digits' does not compute 'recall@16'; did you mean"),
        ({"metrics": ["nmj"]}, ".metrics[0]", "no metric named 'nmj'; did you mean 'nmi'?"),
        ({"metrics": [3]}, ".metrics[0]", "expected a metric, or a mapping with `metric`; found 3"),
        ({"metrics": [{"label": "x"}]}, ".metrics[0].metric", "is missing"),
        ({"metrics": [{"metric": "nmi", "unit": "cm"}]}, ".metrics[0].unit", "expected 'percent', 'fraction' or"),
        ({"decimals": 7}, ".decimals", "expected at most 6, found 7"),
        ({"bold": ["los"]}, ".bold[0]", "'los' is neither in rows nor in columns; did you mean 'loss'?"),
        ({"bold": "loss"}, ".bold", "expected 'none' or a list of axes"),
        ({"panels": [{"loss": ["triplet"]}]}, ".panels[0].loss", "'loss' is no compare axis in the columns"),
        (
            {"rows": ["loss"], "columns": ["regularizer"], "panels": [{"regularizer": ["non"]}]},
            ".panels[0].regularizer",
            "axis 'regularizer' has no alternative 'non'; did you mean 'none'?",
        ),
    ],
)
def test_says_what_is_wrong_and_where(table: Any, path: str, message: str, small: Small, told: Told) -> None:
    ((found, said),) = told(with_table(small, **table))
    assert found == f"tables.main{path}"
    assert said.startswith(message)


def test_tune_and_repeat_axes_are_no_rows(small: Small, told: Told) -> None:
    document = small(
        compare={"loss": ["triplet"]},
        tune={"embedding": [8, 16]},
        repeat={"seed": [0, 1]},
        tables={"t": {"rows": ["loss", "embedding"], "columns": ["seed"], "metrics": ["nmi"]}},
    )
    assert told(document) == [
        ("tables.t.rows[1]", "'embedding' is a tune axis; rows and columns are compare axes: 'loss'"),
        ("tables.t.columns[0]", "'seed' is a repeat axis; rows and columns are compare axes: 'loss'"),
    ]


def test_names_of_tables_fit_addresses_and_files(small: Small, told: Told) -> None:
    ((path, message),) = told(small(tables={"a/b": {"metrics": ["nmi"]}}))
    assert path == "tables.a/b"
    assert message.startswith("expected a name of 1 to 64 letters")
