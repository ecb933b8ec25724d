"""Patches: reading what is posted at a path of the recipe, and applying it."""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from orchestrator.spec.patch import Patch, Sources
from orchestrator.spec.recipe import ELSEWHERE, FIELDS, PARTS
from workers.catalog import BATCH, Problem, load, meant, meant_of_parts, shown


def path_problem(path: str) -> str | None:
    """Why `path` is no path of a recipe; None where it is one."""
    field, dot, option = path.partition(".")
    if field in ELSEWHERE:
        return ELSEWHERE[field]
    if field not in FIELDS:
        right = _of_parts().get(field) or meant(field, FIELDS)
        return f"a recipe has no field {shown(field)}; {right}"
    if dot and field not in PARTS:
        return f"{shown(field)} is a plain value and has nothing within it"
    if dot and (not option or "." in option):
        return f"{shown(path)} is no path; one within a part has one dot, such as 'loss.alpha'"
    if option == "name":
        return f"write '{field}' for the part that '{path}' would name"
    return None


def read_patch(posted: Mapping[str, Any], source: str, problems: list[Problem]) -> tuple[Patch, Sources]:
    """A posted patch written out, and where each of its paths stands; notes what is wrong."""
    patch: Patch = {}
    sources: Sources = {}
    decided: set[str] = set()
    for path, value in posted.items():
        values, places = read_value(path, value, f"{source}.{path}", problems)
        deciding = set(_set_by(values))
        for twice in sorted(deciding & decided):
            problems.append(Problem(places.get(twice, f"{source}.{path}"), f"'{twice}' is set twice in this patch"))
        decided |= deciding
        patch |= values
        sources |= places
    return patch, sources


def read_value(path: str, value: Any, source: str, problems: list[Problem]) -> tuple[Patch, Sources]:
    """The patch that a value posted at `path` is: a name or a mapping with `name` replaces a part, others merge."""
    if wrong := path_problem(path):
        problems.append(Problem(source, wrong))
        return {}, {}
    if path not in PARTS:
        return {path: value}, {path: source}
    if isinstance(value, str):
        return {path: {"name": value}}, {path: source}
    if not isinstance(value, Mapping) or not value:
        expected = f"expected the name of a {path}, or a mapping with its `name`"
        problems.append(Problem(source, f"{expected}; found {shown(value)}"))
        return {}, {}
    places = {f"{path}.{option}": f"{source}.{option}" for option in value if option != "name"}
    if "name" not in value:
        return {f"{path}.{option}": given for option, given in value.items()}, places
    return {path: dict(value)}, {path: source} | places


def clash(patches: Sequence[Patch]) -> tuple[str, int, int] | None:
    """A path that two patches of one rank set, and their positions."""
    setters: dict[str, int] = {}
    for position, patch in enumerate(patches):
        for path in _set_by(patch):
            if setters.setdefault(path, position) != position:
                return path, setters[path], position
    return None


def _set_by(patch: Patch) -> Iterable[str]:
    """Each path that a patch decides: a part that it replaces, and every option that it gives."""
    for path, value in patch.items():
        yield path
        if path in PARTS and isinstance(value, dict):
            yield from (f"{path}.{option}" for option in value if option != "name")


@lru_cache(maxsize=1)
def _of_parts() -> dict[str, str]:
    """What would be right for the name of a hyper-parameter where a field of the recipe is expected."""
    catalog = load()
    names = {*BATCH, *(one.name for entry in catalog.entries for one in entry.parameters)}
    return {name: right for name in names if (right := meant_of_parts(name, catalog))}
