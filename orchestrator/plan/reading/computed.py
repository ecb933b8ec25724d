"""Which metrics the trainings of a sweep compute: those that a data set declares, and those that recipes add."""

from collections.abc import Iterator

from orchestrator.spec.patch import Patch
from orchestrator.spec.spec import Spec
from workers.catalog import Catalog, not_computed


def missing(metric: str, dataset: str, spec: Spec, catalog: Catalog) -> str | None:
    """Why no training on `dataset` computes `metric`; none where one does, or the data set declares none."""
    declared = catalog.metrics(dataset)
    if not declared or metric in declared or metric in _added(dataset, spec):
        return None
    return not_computed(f"dataset {dataset!r}", metric, declared)


def _added(dataset: str, spec: Spec) -> Iterator[str]:
    """What recipes add, by a patch that names this data set or none."""
    for patch in spec.patches():
        added = patch.get("metrics")
        if _names(patch) in (None, dataset) or patch is spec.recipe:
            yield from (one for one in added if isinstance(one, str)) if isinstance(added, list) else ()


def _names(patch: Patch) -> str | None:
    """The data set that a patch sets."""
    part = patch.get("dataset")
    return str(part.get("name", "")) if isinstance(part, dict) else None
