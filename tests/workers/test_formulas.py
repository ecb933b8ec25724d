"""What the catalog says of losses and regularizers: a formula that browsers can draw, and ranges that hold."""

import ast
import inspect
import re
from typing import Any
from xml.etree import ElementTree

import pytest

from workers import catalog as catalogs
from workers.catalog import Entry, Parameter
from workers.catalog.bounds import stated
from workers.registry import find

pytest.importorskip("latex2mathml", reason="only workers are installed here")
from dashboards.catalog import mathml

CATALOG = catalogs.load()
PARTS = [*CATALOG.of("loss"), *CATALOG.of("regularizer")]
GIVEN: dict[str, Any] = {"dim": 8, "classes": 5, "images": 40}
"""What a loss asks of the trainer."""


def named(entry: Entry) -> str:
    return f"{entry.kind} {entry.name}"


@pytest.mark.parametrize("entry", PARTS, ids=named)
def test_every_formula_becomes_mathml(entry: Entry) -> None:
    assert entry.formula
    tree = ElementTree.fromstring(mathml(entry.formula))
    assert tree.tag.endswith("math")
    drawn = "".join(tree.itertext())
    assert "\\" not in drawn, "a command that nobody knows is drawn as it is written"
    assert not [node for node in tree.iter() if node.tag.endswith("merror")]


@pytest.mark.parametrize("entry", PARTS, ids=named)
def test_every_formula_names_the_hyper_parameters_that_it_has(entry: Entry) -> None:
    """Those with a symbol of their own in the papers; the others are explained in words."""
    symbols = {"alpha": r"\\alpha", "beta": r"\\beta", "delta": r"\\delta", "rho": r"\\rho", "nu": r"\\nu"}
    symbols |= {"temperature": "T", "margin": r"(?<![a-zA-Z])m"}
    wanted = {one.name: symbols[one.name] for one in entry.parameters if one.name in symbols}
    formula = entry.formula or ""
    assert [name for name, sign in wanted.items() if not re.search(rf"{sign}(?![a-zA-Z])", formula)] == []


@pytest.mark.parametrize("entry", PARTS, ids=named)
def test_the_range_of_every_number_is_known(entry: Entry) -> None:
    assert [one.name for one in entry.parameters if one.type in {"int", "float"} and not one.bounds] == []


def beyond(parameter: Parameter) -> list[float]:
    """Values that the words exclude: the nearest ones on each side."""
    step = 1 if parameter.type == "int" else 1e-6
    words = parameter.bounds.replace("π/2", "1.5707964").replace("π", "3.1415927")
    signs = {"above": 0, "at least": -step, "below": 0, "at most": step}
    return [
        float(number) + signs[word] for word, number in re.findall(r"(above|at least|below|at most) ([\d.]+)", words)
    ]


CASES = [(entry, one) for entry in PARTS for one in entry.parameters if one.bounds]


@pytest.mark.parametrize(("entry", "parameter"), CASES, ids=lambda one: getattr(one, "name", ""))
def test_what_a_range_excludes_is_refused(entry: Entry, parameter: Parameter) -> None:
    part = find(entry.kind, entry.name)
    asked = {name: GIVEN[name] for name in inspect.signature(part).parameters if name in GIVEN}
    values = beyond(parameter) or [float("inf")]
    for value in values:
        with pytest.raises(ValueError, match=parameter.name):
            part(**asked, **{parameter.name: int(value) if parameter.type == "int" else value})


def test_ranges_are_read_from_loops_and_chains_and_from_nothing_else() -> None:
    source = """
def __init__(self, *, a: float = 1.0, b: float = 1.0, c: int = 2, d: float = 0.0, e: float = 1.0) -> None:
    for name, value in {"a": a, "b": b}.items():
        if not 0 < value <= 2.5:
            raise ValueError(name)
    if c > 3:
        raise ValueError("c")
    if d is not None and not -1 <= d < math.inf:
        raise ValueError("d")
    at_least("part", 4, e=e, other=a)
"""
    (function,) = ast.parse(source).body
    assert isinstance(function, ast.FunctionDef)
    both = "above 0, at most 2.5"
    assert stated(function) == {"a": both, "b": both, "d": "at least -1", "e": "at least 4"}


@pytest.mark.parametrize("test", ["'a' in a", "0 != a", "2 > a > 1", "0 < a in b", "0 < a == b", "a is None"])
def test_another_comparison_says_nothing_of_a_range(test: str) -> None:
    """A researcher's own part may compare as it likes: its catalog is read all the same."""
    (function,) = ast.parse(
        f"def __init__(self, *, a: float = 1.0):\n    if not {test}:\n        raise ValueError"
    ).body
    assert isinstance(function, ast.FunctionDef)
    assert stated(function) == {}


@pytest.mark.parametrize(
    "around",
    [
        "if True:",
        "for _ in 'x':",
        "with open('x'):",
        "try:\n        ...\n    finally:",
        "try:\n        ...\n    except ValueError:",
    ],
)
def test_a_range_is_read_within_any_block(around: str) -> None:
    refusal = "if not 0 < a <= 2:\n            raise ValueError"
    (function,) = ast.parse(f"def __init__(self, *, a: float = 1.0):\n    {around}\n        {refusal}").body
    assert isinstance(function, ast.FunctionDef)
    assert stated(function) == {"a": "above 0, at most 2"}
