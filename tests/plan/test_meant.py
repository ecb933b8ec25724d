"""A name that is usual elsewhere is answered with what it is called here, and one mistake is one problem."""

import copy
from typing import Any

import pytest

from orchestrator.plan.check import check
from orchestrator.views.errors import InvalidSpecError
from workers.catalog import Catalog

SPEC: dict[str, Any] = {
    "version": 1, "name": "x",
    "recipe": {
        "dataset": "digits", "backbone": "mlp", "loss": "triplet", "regularizer": "sec", "sampler": "balanced",
        "iterations": 10,
    },
    "select": {"metric": "map@r", "split": "last"},
}  # fmt: skip


def told(catalog: Catalog, **changes: Any) -> list[str]:
    spec = copy.deepcopy(SPEC)
    for key, value in changes.items():
        spec[key] = {**spec.get(key, {}), **value}
    with pytest.raises(InvalidSpecError) as caught:
        check(spec, catalog)
    return [str(problem) for problem in caught.value.problems]


def test_a_name_that_is_usual_elsewhere_is_answered_with_ours(catalog: Catalog) -> None:
    table = {"rows": ["loss"], "metrics": ["R@1"]}
    cases: list[tuple[dict[str, Any], str]] = [
        ({"tables": {"main": table}}, "no metric named 'R@1'; did you mean 'recall@1'?"),
        ({"recipe": {"metrics": ["Recall@4"]}}, "no metric named 'Recall@4'; did you mean 'recall@4'?"),
        ({"recipe": {"batch_size": 32}}, "the batch is `sampler.classes` x `sampler.per_class`"),
        ({"tune": {"batch_size": [32, 64]}}, "the batch is `sampler.classes` x `sampler.per_class`"),
        ({"recipe": {"sampler": {"name": "balanced", "batch_size": 8}}}, "the batch is `classes` x `per_class`"),
        ({"tune": {"eta": [0.1, 1]}}, "did you mean 'regularizer.eta'?"),
        ({"tune": {"lr": [0.1, 1]}}, "did you mean 'optimizer.lr'?"),
        ({"recipe": {"dataset": "image_folder"}}, "is missing; dataset 'image_folder' needs `folder`, a text"),
    ]
    missed = [(case, found) for case, said in cases if said not in " ".join(found := told(catalog, **case))]
    assert missed == []
