from typing import Any

from orchestrator.plan.axes import AxisReader
from orchestrator.spec.axes import Axis
from workers.catalog import Problem

KNOWN = {"loss": {"triplet": None, "proxy_anchor": None}, "regularizer.eta": {"0.1": None, "1.0": None}}


def read(axis: str, posted: Any) -> tuple[Axis, list[tuple[str, str]]]:
    problems: list[Problem] = []
    found = AxisReader(axis, f"tune.{axis}", KNOWN, problems).read(posted)
    return found, [(problem.path, problem.message) for problem in problems]


def labels(axis: str, *values: Any) -> list[str]:
    found, problems = read(axis, list(values))
    assert problems == []
    return [choice.label for group in found for choice in group.choices]


def test_labels_are_values_as_text_and_of_an_inline_part_what_sets_it_apart() -> None:
    assert labels("backbone.bias", True, False, None) == ["true", "false", "null"]
    assert labels("schedule.at", [100, 200], [150]) == ["[100, 200]", "[150]"]
    assert labels("loss", {"name": "pa", "alpha": 16}, "triplet") == ["pa", "triplet"]
    assert labels("loss", "pa", {"name": "pa", "alpha": 16}) == ["pa", "pa alpha=16"]
    pairs = [{"name": "pa", "alpha": alpha, "margin": 0.1} for alpha in (16, 32)]
    assert labels("loss", *pairs) == ["pa alpha=16", "pa alpha=32"]


def test_says_what_is_wrong_and_where() -> None:
    cases: list[tuple[str, Any, str, str]] = [
        ("loss", [], "", "the list is empty"),
        ("loss", "triplet", "", "expected a list of alternatives, such as [triplet]"),
        ("los", ["triplet"], "", "a recipe has no field 'los'; did you mean 'loss'? (An axis of another name needs"),
        ("iterations.x", [1], "", "'iterations' is a plain value and has nothing within it"),
        ("loss.a.b", [1], "", "'loss.a.b' is no path"),
        ("loss.name", ["triplet"], "", "write 'loss' for the part that 'loss.name' would name"),
        ("select.metric", ["nmi"], "", "`select` stands at the top of the spec"),
        ("loss", ["triplet", "triplet"], "[1]", "'triplet' stands twice; first at tune.loss[0]"),
        ("loss.alpha", [1, 1.0], "[1]", "'1.0' changes nothing else than tune.loss.alpha[0] does"),
        ("loss.alpha", {"low": 1, "high": 2}, "", "search 'grid' needs values; a range (`low`, `high`) is for"),
        ("loss.alpha", [{"low": 1, "high": 2, "log": True}], "[0]", "search 'grid' needs values"),
        ("loss.alpha", [{"values": [1]}, 3], "[1]", "an alternative next to groups"),
        ("loss.alpha", [{"values": []}], "[0].values", "expected a list of at least one alternative, found []"),
        ("loss.alpha", [{"values": [1], "wen": {}}], "[0].wen", "there is no key 'wen' here; did you mean 'when'?"),
        ("loss.alpha", [{"values": [1], "when": {}}], "[0].when", "expected a mapping from an axis to"),
        ("loss.alpha", [{"values": [1], "when": {"los": "x"}}], "[0].when", "no axis 'los' is applied before this"),
        (
            "loss.alpha", [{"values": [1], "when": {"loss": ["triplett"]}}], "[0].when.loss",
            "axis 'loss' has no alternative 'triplett'; did you mean 'triplet'?",
        ),
        ("loss", [None], "[0]", "expected the name of a loss, or a mapping with its `name`; found null"),
        ("loss", [3], "[0]", "expected the name of a loss"),
        ("iterations", [{"a": 1}], "[0]", "expected a value, or an alternative with `label` and `patch`"),
        ("loss", [{"label": "x"}], "[0].patch", "expected a mapping from paths to values, found null"),
        ("loss", [{"patch": {"loss": "x"}}], "[0].label", "expected a text that names the alternative"),
        ("loss", [{"label": " ", "patch": {"loss": "x"}}], "[0].label", "expected a label of 1 to 100 printable"),
        ("loss", [{"label": "a", "patch": {"los": "x"}}], "[0].patch.los", "a recipe has no field 'los'; did you"),
        (
            "loss", [{"label": "a", "name": "x"}], "[0]",
            "a part has no `label`; write {label: a, patch: {loss: {name: x",
        ),
        (
            "loss", [{"label": "a", "patch": {"loss": {"name": "x", "b": 1}, "loss.b": 2}}], "[0].patch.loss.b",
            "'loss.b' is set twice in this patch",
        ),
    ]  # fmt: skip
    found = [(f"tune.{axis}{path}", message, read(axis, posted)[1]) for axis, posted, path, message in cases]
    assert [one for one in found if [(one[0], one[1])] != [(at, said[: len(one[1])]) for at, said in one[2]]] == []


def test_groups_that_meet_share_no_label() -> None:
    apart = [{"values": [1], "when": {"loss": "triplet"}}, {"values": [1], "when": {"loss": "proxy_anchor"}}]
    assert read("regularizer.eta", apart)[1] == []
    _, problems = read("regularizer.eta", [apart[0], {"values": [1]}])
    assert problems == [
        (
            "tune.regularizer.eta[1].values[0]",
            "'1' stands in tune.regularizer.eta[0] too, and both groups can apply in one cell",
        )
    ]
