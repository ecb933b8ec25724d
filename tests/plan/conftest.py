"""What the tests of the plan share: the real catalog, and a spec to vary."""

from collections.abc import Callable, Iterable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from orchestrator.plan.check import check
from orchestrator.plan.read import spec_document
from orchestrator.publish import papers
from orchestrator.spec.spec import Spec
from orchestrator.views.errors import InvalidSpecError
from tests.plan.hostile_bodies import RECIPE
from workers.catalog import Catalog, load

PUBLISHED = papers.printed_lines()
DIGITS = Path(__file__).parents[2] / "sweeps" / "digits.yaml"

DESIGN = b"""
version: 1
name: sec-on-digits
recipe:                                   # held fixed
  task: retrieval
  dataset: digits
  backbone: {name: small_cnn, width: 32}
  embedding: 64
  sampler: {name: balanced, classes: 4, per_class: 8}
  optimizer: {name: adam, lr: 1.0e-3}
  iterations: 300
  validation: {name: class_holdout, folds: 3, fold: 0}
compare:                                  # one cell per combination
  loss: [triplet, semihard, normalized_npair, multi_similarity]
  regularizer: [none, l2, sec, svmax]
tune:                                     # the best one is shown
  regularizer.eta:
    - {values: [1.0e-2, 1.0e-3, 1.0e-4], when: {regularizer: l2}}
    - {values: [0.25, 0.5, 1.0], when: {regularizer: [sec, svmax]}}
repeat: {seed: [0, 1, 2]}                 # mean +- std
select: {metric: map@r, split: validation}
slot: {cpus: 1, gpus: auto}
tables:
  main: {rows: [loss, regularizer], columns: [dataset], metrics: [nmi, f1, recall@1, map@r, norm_var]}
"""

Small = Callable[..., dict[str, Any]]
Checked = Callable[[Any], Spec]
Told = Callable[[Any], list[tuple[str, str]]]
Cases = Iterable[tuple[Any, str, str]]
Missed = Callable[..., list[Any]]


@pytest.fixture(scope="session")
def catalog() -> Catalog:
    return load()


@pytest.fixture
def design() -> Any:
    """The example of design.md, section 4."""
    return spec_document(DESIGN).value


@pytest.fixture
def small() -> Small:
    """A small sound document: `small(compare={...}, **{"recipe.iterations": 3})` changes it."""

    def build(**changes: Any) -> dict[str, Any]:
        document: dict[str, Any] = {"version": 1, "name": "small", "recipe": deepcopy(RECIPE)}
        for key, value in changes.items():
            block, dot, field = key.partition(".")
            if dot:
                document.setdefault(block, {})[field] = value
            else:
                document[block] = value
        return document

    return build


@pytest.fixture
def checked(catalog: Catalog) -> Checked:
    return lambda document: check(document, catalog, published=PUBLISHED)


@pytest.fixture
def told(catalog: Catalog) -> Told:
    """The problems that a document has, as (path, message)."""

    def problems(document: Any) -> list[tuple[str, str]]:
        try:
            check(document, catalog, published=PUBLISHED)
        except InvalidSpecError as refused:
            return [(problem.path, problem.message) for problem in refused.problems]
        return []

    return problems


@pytest.fixture
def missed(told: Told) -> Missed:
    """The cases (document, path, message) without a problem at that path whose message begins so."""

    def other(cases: Cases, alone: bool = True) -> list[Any]:
        wrong = []
        for document, place, message in cases:
            found = told(document)
            right = [path == place and said.startswith(message) for path, said in found]
            if not any(right) or (alone and len(right) > 1):
                wrong.append((place, message, found))
        return wrong

    return other
