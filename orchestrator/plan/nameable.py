"""What tables and figures of a spec may name: the data sets, metrics and test sets that its trainings have."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from orchestrator.plan.problems import DocumentPlace
from orchestrator.spec.axes import Patch
from orchestrator.spec.spec import Spec
from workers.catalog import Catalog, Entry, Problem, metric_entry, not_computed, shown


def missing(metric: str, dataset: str, spec: Spec, catalog: Catalog) -> str | None:
    """Why no training on `dataset` computes `metric`; none where one does, or nothing declares any.

    The data set is empty where the task takes none.
    """
    known = declared(dataset, spec, catalog)
    if not known or metric in known or metric in _added(dataset, spec):
        return None
    owner = f"dataset {dataset!r}" if dataset else f"task {tasks(spec, catalog)[0].name!r}"
    return not_computed(owner, metric, known)


def declared(dataset: str, spec: Spec, catalog: Catalog) -> list[str]:
    """The metrics of trainings on a data set, by all tasks of the sweep."""
    found = (name for task in tasks(spec, catalog) for name in catalog.metrics(dataset or None, task.name))
    return list(dict.fromkeys(found))


def tasks(spec: Spec, catalog: Catalog) -> list[Entry]:
    """The tasks of a sweep that exist: those that its axes and rules set, or that of its base recipe."""
    base, *others = (_name(patch.get("task")) for patch in spec.patches())
    set_ = dict.fromkeys(name for name in others if name)
    entries = (catalog.get("task", name) for name in set_ or [base])
    return [entry for entry in entries if entry is not None]


def stated(of: Iterable[Entry], fact: str) -> list[str]:
    """What tasks state: `curves` of a training itself, metrics `watched` on the way or of `trained` images."""
    return list(dict.fromkeys(name for task in of for name in task.stated(fact)))


def at_the_end(metric: str, of: Sequence[Entry], catalog: Catalog) -> bool:
    """Whether no training of these tasks has a score by a metric on its way."""
    return bool(of) and all(catalog.at_the_end(metric, task) for task in of)


def test_sets(spec: Spec, catalog: Catalog) -> list[str]:
    """The test sets beside `test` that the data sets of a sweep are asked for, or have where nobody says which."""
    found: dict[str, None] = {}
    for patch in spec.patches():
        asked, dataset = patch.get("dataset.tests"), patch.get("dataset")
        if isinstance(dataset, dict):
            entry = catalog.get("dataset", _name(dataset))
            parameter = entry.parameter("tests") if entry else None
            asked = dataset.get("tests", parameter.default if parameter else None)
        found |= dict.fromkeys(name for name in asked if isinstance(name, str)) if isinstance(asked, list) else {}
    return [*found]


def _added(dataset: str, spec: Spec) -> Iterator[str]:
    """What recipes add, by a patch that names this data set or none."""
    for patch in spec.patches():
        added = patch.get("metrics")
        if _names(patch) in (None, dataset) or patch is spec.recipe:
            yield from (one for one in added if isinstance(one, str)) if isinstance(added, list) else ()


def _names(patch: Patch) -> str | None:
    """The data set that a patch sets."""
    return _name(patch["dataset"]) if isinstance(patch.get("dataset"), dict) else None


def _name(part: Any) -> str:
    return str(part.get("name", "")) if isinstance(part, dict) else ""


NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


@dataclass(frozen=True, slots=True)
class Nameable:
    """What tables and figures may name beside the axes of their spec."""

    datasets: Sequence[str]
    """All data sets that the sweep trains on."""
    catalog: Catalog
    published: Collection[str] | None = None
    """The printed tables that are known, perhaps with the labels of their lines; none: whoever reads cannot say."""


def entries(
    block: Literal["tables", "figures"], posted: Any, most: int, problems: list[Problem]
) -> Iterator[tuple[str, Any, DocumentPlace]]:
    """Each entry by its name, with its place; notes what is wrong with the block and with names."""
    if posted is None:
        return
    if not isinstance(posted, Mapping):
        problems.append(Problem(block, f"expected a mapping from names to {block}, found {shown(posted)}"))
        return
    if len(posted) > most:
        problems.append(Problem(block, f"there are {len(posted):,} {block}; at most {most} are allowed"))
        return
    for name, given in posted.items():
        place = DocumentPlace(f"{block}.{name}", problems)
        if not NAME.fullmatch(name):
            place.note("", "expected a name of 1 to 64 letters, digits, '-' and '_'")
        yield name, given, place


def default_metrics(spec: Spec, nameable: Nameable) -> list[str]:
    """The metrics of trainings on all these data sets: those of which one value is better than another."""
    computed = [declared(dataset, spec, nameable.catalog) for dataset in nameable.datasets]
    if not computed:
        return []
    shared = [metric for metric in computed[0] if all(metric in other for other in computed[1:])]
    entries = {metric: metric_entry(metric, nameable.catalog) for metric in shared}
    return [metric for metric, entry in entries.items() if entry and entry.facts.get("better") != "none"]
