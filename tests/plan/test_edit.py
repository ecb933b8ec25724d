"""Values set in the text of a spec: only the named values change."""

import json
from typing import Any

import pytest
import yaml

from orchestrator.plan.edit import edited, with_alternatives, with_metrics, with_seeds
from orchestrator.plan.read import spec_document
from orchestrator.views.errors import ConflictError, InvalidSpecError
from orchestrator.views.sweeps import AxisGroup
from tests.plan.conftest import DIGITS, Checked, Small

TEXT = b"""# a table
version: 1
recipe:            # held fixed
  dataset: digits  # bundled
  backbone: {name: mlp, width: 8}
  loss:
    name: triplet
    margin: 1.0    # on the squared distance

  # behind a blank line
  iterations: 10
tune:
  regularizer.eta: [0.5, 1.0]  # two
rules:
  - {when: {loss: triplet}, patch: {iterations: 5}}
  - when: {loss: semihard}
    patch: {iterations: 6}
empty:
flow: {}
text: |
  several
  lines

last: 1  # the end"""


def changed(*assignments: str, text: bytes = TEXT) -> Any:
    return spec_document(edited(text, assignments)).value


def lines(*assignments: str, text: bytes = TEXT) -> tuple[list[str], list[str]]:
    """The lines that an edit takes away and those that it brings."""
    before, after = (one.decode().splitlines() for one in (text, edited(text, assignments)))
    return [line for line in before if line not in after], [line for line in after if line not in before]


def test_one_line_changes_and_its_comment_stays() -> None:
    cases: list[tuple[str, str | None, str]] = [
        ("version=2", "version: 1", "version: 2"),
        ("recipe.dataset=omniglot", "  dataset: digits  # bundled", '  dataset: "omniglot"  # bundled'),
        ("recipe.backbone.width=16", "  backbone: {name: mlp, width: 8}", "  backbone: {name: mlp, width: 16}"),
        ("recipe.backbone.depth=3", "  backbone: {name: mlp, width: 8}", '  backbone: {name: mlp, width: 8, depth: 3}'),
        ("recipe.loss.name=sec", "    name: triplet", '    name: "sec"'),
        ("recipe.seed=3", None, "  seed: 3"),
        ("recipe.dataset.side=3", None, "  dataset.side: 3"),
        ("tune.regularizer.eta[1]=2", "  regularizer.eta: [0.5, 1.0]  # two", "  regularizer.eta: [0.5, 2]  # two"),
        ("rules[1].patch.iterations=9", "    patch: {iterations: 6}", "    patch: {iterations: 9}"),
        ("select.split=test", None, 'select: {"split": "test"}'),
        ("empty=[1]", "empty:", "empty: [1]"),
        ("empty.a.b=1", "empty:", 'empty: {"a.b": 1}'),
        ("flow.a=1", "flow: {}", 'flow: {"a": 1}'),
        ("flow.café=1", "flow: {}", 'flow: {"café": 1}'),
        ("last= ~ ", "last: 1  # the end", "last: null  # the end"),
    ]  # fmt: skip
    found = {assignment: lines(assignment) for assignment, _, _ in cases}
    assert found == {assignment: ([gone] if gone else [], [come]) for assignment, gone, come in cases}


def test_a_block_is_replaced_and_what_follows_stays() -> None:
    gone, come = lines("recipe.loss={name: semihard, margin: 0.2}")
    assert gone == ["    name: triplet", "    margin: 1.0    # on the squared distance"]
    assert come == ['    {"name": "semihard", "margin": 0.2}    # on the squared distance']
    assert changed("text=short")["text"] == "short"
    assert changed("text=short")["last"] == 1


def test_all_of_a_kind_go_in_order() -> None:
    found = changed("select.split=test", "select.metric=map@r", "select.split=last")
    assert found["select"] == {"split": "last", "metric": "map@r"}
    assert edited(TEXT, []) == TEXT


def test_values_are_yaml_1_2() -> None:
    found = changed("a=1e-3", "b=no", "c=null", "d=[0, 1]", "e='x: y'", "f={name: none}")
    assert [found[key] for key in "abcdef"] == [0.001, "no", None, [0, 1], "x: y", {"name": "none"}]


def test_an_axis_keeps_the_dot_of_its_name() -> None:
    assert changed("repeat.seed=[4]", "compare.optimizer.lr=[0.1]")["compare"] == {"optimizer.lr": [0.1]}
    assert changed("tune.optimizer.lr=[0.1]")["tune"] == {"regularizer.eta": [0.5, 1.0], "optimizer.lr": [0.1]}


def test_what_stands_behind_an_alias_is_written_out() -> None:
    text = b"one: &it {a: 1}\nother: *it\n"
    assert changed("other.a=2", text=text) == {"one": {"a": 1}, "other": {"a": 2}}
    assert changed("one=3", text=text) == {"one": 3, "other": {"a": 1}}


def test_json_stays_json() -> None:
    text = json.dumps({"recipe": {"dataset": "digits"}, "name": "x"}, indent=2).encode()
    assert json.loads(edited(text, ["recipe.seed=1", "recipe.dataset=mnist"])) == {
        "recipe": {"dataset": "mnist", "seed": 1}, "name": "x",
    }  # fmt: skip


def test_what_means_nothing_is_refused() -> None:
    cases = [
        ("recipe.seed", "expected PATH=VALUE"), ("=3", "expected PATH=VALUE"), ("recipe.seed=", "expected PATH=VALUE"),
        ("recipe.seed=[", "the value is no YAML"), ("version.a=1", "version is 1, which has no fields"),
        ("rules[2].patch=1", "rules is a list of 2 items; expected a position in it"),
        ("rules.patch=1", "rules is a list of 2"), ("[0]=1", "is not a path"),
    ]  # fmt: skip
    for assignment, message in cases:
        with pytest.raises(InvalidSpecError) as refused:
            edited(TEXT, [assignment])
        assert refused.value.problems[0].path == f"--set {assignment}"
        assert message in refused.value.problems[0].message


def test_the_paper_habit_of_the_demo_keeps_every_comment() -> None:
    found = edited(DIGITS.read_bytes(), ["recipe.validation=none", "select.split=test"]).decode()
    assert found.count("#") == DIGITS.read_text().count("#")
    assert spec_document(found.encode()).value["select"] == {"metric": "map@r", "split": "test"}


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


def test_seeds_are_added_only_where_the_spec_repeats_by_seeds(small: Small, checked: Checked) -> None:
    with pytest.raises(ConflictError, match="no repeat axis sets the seed"):
        with_seeds(b"", checked(small()), {}, {})


def test_a_sweep_without_tables_is_refused(small: Small) -> None:
    with pytest.raises(InvalidSpecError, match="has no table"):
        with_metrics(yaml.safe_dump(small()).encode(), {"tables": {}}, ["nmi_sec"])


def test_alternatives_are_appended_where_the_spec_lists_them_and_comments_stay() -> None:
    text = b"""compare:
  loss: [triplet,  # the baseline
  ]
tune:
  regularizer.eta:
    - {values: [0.1], when: {regularizer: l2}}
    - values:
      - 0.5  # as in the paper
      when: {regularizer: sec}
repeat:
  seed:
  - 0
  - 1  # two

last: 1
"""
    added = {
        AxisGroup("compare", "loss", 0): "{name: triplet, margin: 2}, semihard",
        AxisGroup("tune", "regularizer.eta", 0): "0.2",
        AxisGroup("tune", "regularizer.eta", 1): "1.0",
        AxisGroup("repeat", "seed", 0): "2, 3",
    }
    assert (
        with_alternatives(text, added).decode()
        == """compare:
  loss: [triplet, {"name": "triplet", "margin": 2}, "semihard",  # the baseline
  ]
tune:
  regularizer.eta:
    - {values: [0.1, 0.2], when: {regularizer: l2}}
    - values:
      - 0.5  # as in the paper
      - 1.0
      when: {regularizer: sec}
repeat:
  seed:
  - 0
  - 1  # two
  - 2
  - 3

last: 1
"""
    )
    for group, given, message in (
        (AxisGroup("compare", "lost", 0), "sec", "lists no alternatives here"),
        (AxisGroup("repeat", "seed", 1), "2", "lists no alternatives here"),
        (AxisGroup("repeat", "seed", 0), "2]\nlast: [", "no YAML"),
        (AxisGroup("repeat", "seed", 0), "2, " * 101, "at most 100"),
    ):
        with pytest.raises(InvalidSpecError, match=message):
            with_alternatives(text, {group: given})
    with pytest.raises(InvalidSpecError, match="subset by loss"):
        with_alternatives(text + b"only: {loss: triplet}\n", {AxisGroup("compare", "loss", 0): "sec"})
