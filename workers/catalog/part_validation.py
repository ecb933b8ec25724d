"""What is wrong with one part of a recipe as it was written, and the part as it was chosen."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from workers.catalog.chosen import Chosen
from workers.catalog.inner_parts import filled, holders
from workers.catalog.inventory import Catalog
from workers.catalog.needs import PATHS, below_root, need_of
from workers.catalog.parameter import Parameter
from workers.catalog.signature import Entry
from workers.catalog.wording import Problem, listed, meant, shown, unknown
from workers.contract import DEFAULT_TASK, PART_FIELDS, Part

BATCH: Final = ("batch_size", "batchsize", "batch")
"""What the size of a batch is called elsewhere; here it is the sampler's."""


def meant_of_parts(name: str, catalog: Catalog) -> str | None:
    """What would be right for a field of the recipe that is a hyper-parameter of parts; None where it is none."""
    if name in BATCH:
        return "the batch is `sampler.classes` x `sampler.per_class`, or `sampler.batch` of sampler 'shuffle'"
    kinds = [kind for kind in PART_FIELDS if any(one.parameter(name) for one in catalog.of(kind))]
    return f"did you mean {' or '.join(repr(f'{kind}.{name}') for kind in kinds)}?" if kinds else None


def part_problems(kind: str, value: Any, catalog: Catalog, path: str = "") -> Iterator[Problem]:
    """What is wrong with one part as it was written: a name, or a mapping with `name` and hyper-parameters.

    It stands at `path` of the recipe; where none is given, at its kind.
    """
    path = path or kind
    name, options = _read(value)
    if not isinstance(name, str):
        expected = f"a name, or a mapping with `name`: {listed(catalog.names(kind))}"
        yield Problem(path=path, message=f"expected {expected}; found {shown(value)}")
        return
    entry = catalog.get(kind, name)
    if entry is None:
        yield Problem(path=path, message=unknown(kind, name, catalog.names(kind)))
        return
    for option, given in options.items():
        parameter = entry.parameter(option)
        try:
            if parameter is None:
                known = [parameter.name for parameter in entry.parameters]
                suggestion = meant(option, sorted(known)) if known else "it has none"
                if kind == "sampler" and option in BATCH and entry.parameter("per_class"):
                    suggestion = "the batch is `classes` x `per_class`"
                raise ValueError(f"{kind} {name!r} has no hyper-parameter {shown(option)}; {suggestion}")
            value = parameter.cast(given)
            if option in PATHS and "root" in entry.asks and not entry.own and isinstance(value, str):
                _require_below_root(value)
        except ValueError as error:
            yield Problem(path=f"{path}.{option}", message=str(error))
            continue
        if parameter.type == "part" and given is not None:
            yield from _inner_problems(entry, parameter, given, catalog)
    for parameter in entry.parameters:
        if parameter.required and parameter.name not in options:
            message = f"is missing; {kind} {name!r} needs `{parameter.name}`, {parameter.expected}"
            yield Problem(path=f"{path}.{parameter.name}", message=message)


def _require_below_root(path: str) -> None:
    if not below_root(path):
        right = "such as 'birds/images'; the data root is METRICSWEEP_DATA, or HOME/data"
        raise ValueError(f"expected a path below the data root, {right}; found {shown(path)}")


def _inner_problems(entry: Entry, holder: Parameter, given: Any, catalog: Catalog) -> Iterator[Problem]:
    """What is wrong with a part that another one holds, which holds none itself."""
    name, _ = _read(given)
    path, within = f"{entry.kind}.{holder.name}", catalog.get(holder.kind, name)
    if within and holders(within):
        fitting = listed(one.name for one in catalog.of(holder.kind) if not holders(one))
        yield Problem(path=path, message=f"{within.kind} {name!r} holds a part itself; expected one of {fitting}")
        return
    yield from part_problems(holder.kind, given, catalog, path)


def meant_task(value: Any, catalog: Catalog) -> Entry:
    """The task that is named, whatever is wrong with its hyper-parameters; the default where there is no such one."""
    name, _ = _read(value)
    named = catalog.get("task", name) if isinstance(name, str) else None
    return named or chosen_part("task", DEFAULT_TASK, catalog).entry


def _read(value: Any) -> tuple[Any, dict[str, Any]]:
    """The name and the hyper-parameters of a part as it was written."""
    if isinstance(value, Part):
        return value.name, value.options
    if isinstance(value, Mapping):
        return value.get("name"), {str(option): given for option, given in value.items() if option != "name"}
    return value, {}


def chosen_part(kind: str, value: Any, catalog: Catalog) -> Chosen:
    """A part without problems, with its defaults."""
    name, options = _read(value)
    entry = catalog.get(kind, name)
    if entry is None:
        raise LookupError(f"{kind} {name!r} has problems")
    return _counted(Chosen(entry, filled(entry, options, catalog)), catalog)


def _counted(chosen: Chosen, catalog: Catalog) -> Chosen:
    """A data set that states no counts has those that were found in its files."""
    if chosen.entry.kind != "dataset" or not catalog.counts or "classes" in chosen.entry.facts:
        return chosen
    need = need_of(Part.model_validate({"name": chosen.entry.name, **chosen.options}), None, catalog)
    found = catalog.counts.get(need.key) if need is not None else None
    if not found:
        return chosen
    facts = {name: {split: one[name] for split, one in found.items()} for name in ("classes", "images")}
    return replace(chosen, entry=chosen.entry.model_copy(update={"facts": {**chosen.entry.facts, **facts}}))
