"""The presets as a gallery: what each trains, what it needs and takes, as the first lines of its file say."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, Final

import yaml

from orchestrator.views.operations import DataFinding
from workers.catalog import Catalog

FIELDS: Final = ("What", "Needs", "Size", "Time")
PAPERS: Final = {"sec": "SEC", "reb": "SEC, author response", "svmax": "SVMax", "isa": "Proxy-ISA"}
BEGIN: Final = "To begin with"
QUICK: Final = "Quick twins: minutes on digits or small faces"


@dataclass(frozen=True, slots=True)
class GalleryPreset:
    """A spec that is ready to be submitted."""

    name: str
    group: str
    text: str
    said: Mapping[str, str]
    """What the comment at its top says, by `FIELDS`."""
    data: tuple[str, ...]
    """The data sets that its trainings read."""


@dataclass(frozen=True, slots=True)
class Shelf:
    """Presets of one paper, each with what the nodes have of its data."""

    heading: str
    presets: Sequence[tuple[GalleryPreset, Sequence[tuple[str, str]]]]


def preset(name: str) -> GalleryPreset | None:
    """The preset of that name, such as `quick/sec_t3`."""
    return _presets().get(name)


def shelves(found: Sequence[DataFinding], catalog: Catalog) -> list[Shelf]:
    """All presets by group; each data set is `here`, `missing`, `not looked at yet`, or `comes along`."""
    groups: dict[str, list[tuple[GalleryPreset, list[tuple[str, str]]]]] = {}
    for one in _presets().values():
        known = [(name, _state(name, found, catalog)) for name in one.data]
        groups.setdefault(one.group, []).append((one, known))
    order = [BEGIN, *PAPERS.values(), QUICK]
    return [Shelf(name, groups[name]) for name in order if name in groups]


def _state(dataset: str, found: Sequence[DataFinding], catalog: Catalog) -> str:
    entry = catalog.get("dataset", dataset)
    if entry is not None and "root" not in entry.asks:  # with a library, such as scikit-learn's digits
        return "comes along"
    states = {one.state for one in found if re.match(rf"(dataset )?'?{re.escape(dataset)}\b", one.data)}
    if "ok" in states:
        return "here"
    return "missing" if states & {"missing", "wrong"} else "not looked at yet"


@cache
def _presets() -> dict[str, GalleryPreset]:
    top = files("dashboards") / "presets"
    return {one.name: one for one in sorted(_read(top), key=lambda one: one.name)}


def _read(folder: Traversable, below: str = "") -> Iterator[GalleryPreset]:
    for place in folder.iterdir() if folder.is_dir() else ():
        if place.is_dir():
            yield from _read(place, f"{below}{place.name}/")
        elif place.name.endswith(".yaml"):
            text = place.read_text(encoding="utf-8")
            name = f"{below}{place.name.removesuffix('.yaml')}"
            document = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - both are safe
            yield GalleryPreset(name, _group(name), text, _comment(text), tuple(sorted(set(_datasets(document)))))


def _group(name: str) -> str:
    paper = name.partition("_")[0]
    return QUICK if name.startswith("quick/") else PAPERS.get(paper, BEGIN)


def _comment(text: str) -> dict[str, str]:
    """`# What:  ...` and the lines below it that are indented further."""
    said: dict[str, str] = {}
    field = ""
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        begun = re.match(r"# (\w+):(?:\s+(.*))?$", line)
        if begun:
            field = begun[1]
            said[field] = begun[2] or ""
        elif field:
            said[field] += f" {line.lstrip('# ')}"
    return {name: said[name] for name in FIELDS if name in said}


def _datasets(node: Any, inside: bool = False) -> Iterator[str]:
    """What stands at `dataset`, in the recipe, on an axis or in a patch."""
    if isinstance(node, Mapping):
        if inside and isinstance(node.get("name"), str):
            yield node["name"]
        for key, value in node.items():
            if key == "dataset" and isinstance(value, str):
                yield value
            elif key not in {"when", "only", "without", "tables", "figures"}:
                yield from _datasets(value, key == "dataset" or (inside and key in {"values", "patch"}))
    elif isinstance(node, list):
        for item in node:
            if inside and isinstance(item, str):
                yield item
            else:
                yield from _datasets(item, inside)
