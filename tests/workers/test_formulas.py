"""Losses and regularizers have formulas that browsers can draw."""

import re
from xml.etree import ElementTree

import pytest

from workers import catalog as catalogs
from workers.catalog import Entry

pytest.importorskip("latex2mathml", reason="only workers are installed here")
from dashboards.catalog import mathml

CATALOG = catalogs.load()
PARTS = [*CATALOG.of("loss"), *CATALOG.of("regularizer")]


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
