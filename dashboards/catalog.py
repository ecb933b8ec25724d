"""Pages of the catalog, files of the guide, and the editor for specs with its gallery of presets."""

import base64
import hashlib
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Final

import yaml
from latex2mathml.converter import convert
from markupsafe import Markup

from dashboards.rendering import plain, render
from orchestrator.views.operations import DataFinding
from orchestrator.views.sweeps import PartUse
from workers.catalog import Catalog, Entry, Problem
from workers.contract import KINDS, Recipe

HEADINGS: Final = {
    "loss": "Losses", "regularizer": "Regularizers", "metric": "Metrics", "dataset": "Data sets",
    "backbone": "Backbones", "head": "Heads", "sampler": "Samplers", "optimizer": "Optimizers",
    "schedule": "Schedules of the learning rate", "eta_schedule": "Schedules of eta", "task": "Tasks",
    "pml_loss": "Losses of pytorch-metric-learning", "pml_miner": "Miners of pytorch-metric-learning",
    "pml_distance": "Distances of pytorch-metric-learning", "pml_reducer": "Reducers of pytorch-metric-learning",
    "pml_regularizer": "Regularizers of pytorch-metric-learning",
}  # fmt: skip
"""The headings of the kinds, in the order of the page."""
_WITHIN: Final = {
    "pml_loss": "of", "pml_miner": "of: ..., miner", "pml_distance": "of: ..., distance",
    "pml_reducer": "of: ..., reducer", "pml_regularizer": "of: ..., embedding_regularizer",
}  # fmt: skip
"""Where parts of pytorch-metric-learning stand within loss pml."""
USES: Final = 200
"""How many of the newest sweeps are searched for a part."""


def catalog_page(catalog: Catalog) -> str:
    """Every part, by kind."""
    groups = [(kind, heading, parts) for kind, heading in HEADINGS.items() if (parts := catalog.of(kind))]
    return render("catalog.html", groups=groups, first=lambda entry: next(iter(_paragraphs(entry.doc)), ""))


def part_page(entry: Entry, uses: Sequence[PartUse], found: Sequence[DataFinding] = ()) -> str:
    """One part, with the recent sweeps that used it, and what the nodes have of its files."""
    return render(
        "part.html", part=entry, heading=HEADINGS.get(entry.kind, entry.kind), uses=uses, looked=USES,
        formula=mathml(entry.formula) if entry.formula else None, paragraphs=_paragraphs(entry.doc),
        facts=[(name.replace("_", " "), _in_words(value)) for name, value in entry.facts.items()],
        example=_example(entry), found=found,
    )  # fmt: skip


@cache
def mathml(latex: str) -> Markup:
    """A LaTeX formula as MathML, which browsers draw; raises the library's error for invalid LaTeX."""
    return Markup(convert(latex, display="block"))  # noqa: S704 - the library escapes text


def _paragraphs(doc: str) -> list[Markup]:
    """The paragraphs of a docstring, with text in backticks as code."""
    paragraphs = (re.split(r"`([^`]+)`", " ".join(text.split())) for text in doc.split("\n\n") if text.strip())
    return [
        Markup("").join(Markup("<code>{}</code>").format(piece) if at % 2 else piece for at, piece in enumerate(pieces))
        for pieces in paragraphs
    ]


def _in_words(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_in_words, value)) or "none"
    if isinstance(value, dict):
        return "; ".join(f"{name}: {_in_words(inner)}" for name, inner in value.items()) or "none"
    return plain(value)


def _example(entry: Entry) -> str:
    """The part in a spec, with its hyper-parameters at their defaults."""
    if entry.kind == "metric":
        return f"metrics: [{entry.name}]"
    options = [f"{option.name}: ..." for option in entry.parameters if option.required]
    options += [
        f"{option.name}: {_yaml(option.default)}"
        for option in entry.parameters
        if not option.required and option.default is not None
    ]
    part = f"{{name: {entry.name}, {', '.join(options)}}}" if options else entry.name
    within = _WITHIN.get(entry.kind)
    return f"loss: {{name: pml, {within}: {part}}}" if within else f"{entry.kind}: {part}"


def _yaml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"[{', '.join(map(_yaml, value))}]" if isinstance(value, list) else str(value)


FIELDS: Final = ("What", "Needs", "Size", "Time")
_PAPERS: Final = {"sec": "SEC", "reb": "SEC, author response", "svmax": "SVMax", "isa": "Proxy-ISA"}
BEGIN: Final = "To begin with"
QUICK: Final = "Quick twins: minutes on digits or small faces"
OWN: Final = "Your papers"


@dataclass(frozen=True, slots=True)
class GalleryPreset:
    """A spec from the folder of presets."""

    name: str
    group: str
    text: str
    comment: Mapping[str, str]
    """The fields of the comment at its top, by `FIELDS`."""
    data: tuple[str, ...]
    """The data sets that its trainings read."""


Shelves = Mapping[str, Sequence[tuple[GalleryPreset, Sequence[tuple[str, str]]]]]
"""Presets by heading, each with the state of its data sets."""


def preset(name: str, own: Path | None) -> GalleryPreset | None:
    """The preset with a name such as `quick/sec_t3`, or `own/NAME` for a spec in `sweeps` of the folder `own`."""
    return ({**_presets(), **_own_presets(own)}).get(name)


def shelves(found: Sequence[DataFinding], catalog: Catalog) -> Shelves:
    """All presets by group; each data set is `here`, `missing`, `not looked at yet`, or `comes along`."""
    groups: dict[str, list[tuple[GalleryPreset, list[tuple[str, str]]]]] = {}
    for known in [*_own_presets(catalog.folder).values(), *_presets().values()]:
        data = [(name, _state(name, found, catalog)) for name in known.data]
        groups.setdefault(known.group, []).append((known, data))
    return {group: groups[group] for group in (OWN, BEGIN, *_PAPERS.values(), QUICK) if group in groups}


def _state(dataset: str, found: Sequence[DataFinding], catalog: Catalog) -> str:
    entry = catalog.get("dataset", dataset)
    if entry is not None and "root" not in entry.inputs:  # part of a library, such as scikit-learn's digits
        return "comes along"
    states = {finding.state for finding in found if re.match(rf"(dataset )?'?{re.escape(dataset)}\b", finding.data)}
    if "ok" in states:
        return "here"
    return "missing" if states & {"missing", "wrong"} else "not looked at yet"


@cache
def _presets() -> dict[str, GalleryPreset]:
    presets = {preset.name: preset for preset in _read(files("dashboards") / "presets")}
    return dict(sorted(presets.items()))


def _own_presets(folder: Path | None) -> dict[str, GalleryPreset]:
    """The specs in the folder of own parts, read anew, so that an edited spec is shown."""
    return {found.name: found for found in _read(folder / "sweeps", "own/")} if folder else {}


def _read(folder: Traversable, below: str = "") -> Iterator[GalleryPreset]:
    for place in folder.iterdir() if folder.is_dir() else ():
        if place.is_dir():
            yield from _read(place, f"{below}{place.name}/")
        elif place.name.endswith(".yaml"):
            text = place.read_bytes().decode("utf-8", "replace")
            name = f"{below}{place.name.removesuffix('.yaml')}"
            document = None
            with suppress(yaml.YAMLError):  # the editor shows where the text is wrong
                document = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - both are safe
            first = name.partition("/")[0]
            group = {"own": OWN, "quick": QUICK}.get(first) or _PAPERS.get(name.partition("_")[0], BEGIN)
            yield GalleryPreset(name, group, text, _comment(text), tuple(sorted(set(_datasets(document)))))


def _comment(text: str) -> dict[str, str]:
    """The fields of the comment at the top: `# What:  ...`, with its further lines."""
    fields: dict[str, str] = {}
    field = ""
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        begun = re.match(r"# (\w+):(?:\s+(.*))?$", line)
        if begun:
            field = begun[1]
            fields[field] = begun[2] or ""
        elif field:
            fields[field] += f" {line.lstrip('# ')}"
    return {name: fields[name] for name in FIELDS if name in fields}


def _datasets(node: Any, inside: bool = False) -> Iterator[str]:
    """The data sets that the recipe, an axis or a patch names."""
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


@dataclass(frozen=True, slots=True)
class Draft:
    """The spec in the editor, and its problems if it was refused."""

    text: str
    origin: str
    """Where the text comes from, in words."""
    problems: Sequence[Problem] = ()
    priority: int = 0
    project: str = ""
    key: str = field(default_factory=lambda: uuid.uuid4().hex)
    """The idempotency key, so that it is submitted once however often it is sent."""


def editor_page(draft: Draft, shelves: Shelves, projects: Sequence[str] = ("main",)) -> str:
    """The editor and the gallery; `projects` are those to which the caller may submit."""
    chosen = draft.project if draft.project in projects else "main"
    return render("submit.html", draft=draft, shelves=shelves, projects=projects, chosen=chosen)


def words(catalog: Catalog, schema: dict[str, Any]) -> dict[str, Any]:
    """The completions of the editor: parts with their options, and the keys of a spec, by place."""
    parts = {
        kind: [
            {
                "name": part.name,
                "label": part.label,
                "options": [{"name": option.name, "default": option.default} for option in part.parameters],
            }
            for part in catalog.of(kind)
        ]
        for kind in KINDS
    }
    fields = schema["properties"].items()
    return {
        "parts": parts,
        "spec": [{"name": name, "label": field.get("description", "")} for name, field in fields],
        "recipe": sorted({*Recipe.model_fields} - {"pins", "select", "version"}),
        "table": sorted(schema["definitions"]["TableSpec"]["properties"]),
        "validation": ["none", "class_holdout", "cross_validation", "image_holdout"],
    }


GUIDE_FOLDER: Final = Path(__file__).parent / "guide"
ABSENT: Final = (
    "the guide was not built where this is installed: `make guide` builds it in a clone of the repository, as "
    "`make check` and `make wheel` do; the same pages are the Markdown files of its docs/"
)
_INLINE: Final = re.compile(rb"<script>(.*?)</script>", re.DOTALL)


def guide_is_built() -> bool:
    """Whether the guide was built."""
    return (GUIDE_FOLDER / "index.html").is_file()


def script_hashes(page: bytes) -> list[str]:
    """The hashes of the scripts in a page, as a Content-Security-Policy allows them."""
    digests = (hashlib.sha256(script).digest() for script in _INLINE.findall(page))
    return [f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests]
