"""Losses and regularizers have formulas that browsers can draw."""

import re
from xml.etree import ElementTree

import pytest

from workers import catalog as catalogs

pytest.importorskip("latex2mathml", reason="only workers are installed here")
from dashboards.catalog import mathml

CATALOG = catalogs.load()
PARTS = [*CATALOG.of("loss"), *CATALOG.of("regularizer")]
# Hyper-parameters with a symbol of their own in the papers; the others are explained in words.
SYMBOLS = {"alpha": r"\\alpha", "beta": r"\\beta", "delta": r"\\delta", "rho": r"\\rho", "nu": r"\\nu",
           "temperature": "T", "margin": r"(?<![a-zA-Z])m"}  # fmt: skip


def test_every_formula_becomes_mathml_and_names_its_hyper_parameters() -> None:
    for entry in PARTS:
        assert entry.formula, entry.name
        tree = ElementTree.fromstring(mathml(entry.formula))
        assert tree.tag.endswith("math")
        assert "\\" not in "".join(tree.itertext()), "an unknown command is drawn as it is written"
        assert not [node for node in tree.iter() if node.tag.endswith("merror")]
        wanted = {one.name: SYMBOLS[one.name] for one in entry.parameters if one.name in SYMBOLS}
        missed = [name for name, sign in wanted.items() if not re.search(rf"{sign}(?![a-zA-Z])", entry.formula)]
        assert missed == [], entry.name
