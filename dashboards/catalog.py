"""Pages of the catalog, the presets, the guide, and the form that submits a spec."""

import base64
import hashlib
import mimetypes
import re
from collections.abc import Iterator, Mapping, Sequence
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
from workers.catalog import Catalog, Entry
from workers.contract import KINDS, Recipe

HEADINGS: Final = {
    "loss": "Losses", "regularizer": "Regularizers", "metric": "Metrics", "dataset": "Data sets",
    "backbone": "Backbones", "head": "Heads", "sampler": "Samplers", "optimizer": "Optimizers",
    "schedule": "Schedules of the learning rate", "eta_schedule": "Schedules of eta", "task": "Tasks",
}  # fmt: skip
"""The kinds in the order of what people look up, with their headings."""
USES: Final = 200
"""The newest sweeps that are looked at for a part."""


def catalog_page(catalog: Catalog) -> str:
    """Every part, by kind."""
    groups = [(kind, heading, catalog.of(kind)) for kind, heading in HEADINGS.items()]
    return render("catalog.html", None, groups=[one for one in groups if one[2]], first=_first)


def part_page(entry: Entry, uses: Sequence[PartUse], found: Sequence[DataFinding] = ()) -> str:
    """One part, with the sweeps among the newest that used it, and what nodes have of its files."""
    return render(
        "part.html", None, part=entry, heading=HEADINGS.get(entry.kind, entry.kind), uses=uses, looked=USES,
        formula=mathml(entry.formula) if entry.formula else None, paragraphs=_paragraphs(entry.doc),
        facts=[(name.replace("_", " "), _said(value)) for name, value in entry.facts.items()],
        example=_example(entry), found=found,
    )  # fmt: skip


@cache
def mathml(latex: str) -> Markup:
    """A formula as MathML, which browsers draw by themselves; raises the library's error for what is no LaTeX."""
    return Markup(convert(latex, display="block"))  # noqa: S704 - the library escapes what is no markup of its own


def _first(entry: Entry) -> Markup:
    """The first paragraph of what a part says of itself."""
    paragraphs = _paragraphs(entry.doc)
    return paragraphs[0] if paragraphs else Markup("")


def _paragraphs(doc: str) -> list[Markup]:
    """The docstring's paragraphs, what stands in backticks as code."""
    return [_coded(" ".join(one.split())) for one in doc.split("\n\n") if one.strip()]


def _coded(text: str) -> Markup:
    pieces = re.split(r"`([^`]+)`", text)
    return Markup("").join(
        Markup("<code>{}</code>").format(piece) if place % 2 else piece for place, piece in enumerate(pieces)
    )


def _said(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_said, value)) or "none"
    if isinstance(value, dict):
        return "; ".join(f"{name}: {_said(one)}" for name, one in value.items()) or "none"
    return plain(value)


def _example(entry: Entry) -> str:
    """How a spec names it, with its hyper-parameters at their defaults."""
    given = [
        f"{one.name}: {_yaml(one.default)}" for one in entry.parameters if not one.required and one.default is not None
    ]
    asked = [f"{one.name}: ..." for one in entry.parameters if one.required]
    inside = ", ".join([f"name: {entry.name}", *asked, *given])
    if entry.kind == "metric":
        return f"metrics: [{entry.name}]"
    return f"{entry.kind}: {{{inside}}}" if asked or given else f"{entry.kind}: {entry.name}"


def _yaml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"[{', '.join(map(_yaml, value))}]" if isinstance(value, list) else str(value)


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


@dataclass(frozen=True, slots=True)
class Draft:
    """What stands in the editor, and what is wrong with it, where it was refused."""

    text: str
    key: str
    """Submits once, however often it is sent."""
    origin: str = ""
    """Where the text comes from, in words."""
    problems: Sequence[tuple[int | None, str, str]] = field(default=())
    """The line, path and message of each."""
    priority: int = 0
    project: str = ""
    """To which it is to belong."""


def editor_page(draft: Draft, shelves: Sequence[Shelf], projects: Sequence[str] = ("main",)) -> str:
    """The editor with a text in it, and the gallery; `projects` are those to which who asks may submit."""
    chosen = draft.project if draft.project in projects else "main"
    return render("submit.html", None, draft=draft, shelves=shelves, projects=projects, chosen=chosen)


def words(catalog: Catalog, schema: dict[str, Any]) -> dict[str, Any]:
    """What the editor completes: parts with hyper-parameters and defaults, and the keys of a spec, by place."""
    parts = {
        kind: [
            {
                "name": one.name,
                "label": one.label,
                "options": [{"name": option.name, "default": option.default} for option in one.parameters],
            }
            for one in catalog.of(kind)
        ]
        for kind in KINDS
    }
    tables = next(iter(schema["properties"]["tables"]["patternProperties"].values()))
    return {
        "parts": parts,
        "spec": [{"name": name, "label": one.get("description", "")} for name, one in schema["properties"].items()],
        "recipe": sorted({*Recipe.model_fields} - {"pins", "select", "version"}),
        "table": sorted(tables["properties"]),
        "validation": ["none", "class_holdout", "cross_validation", "image_holdout"],
    }


GUIDE_FOLDER: Final = Path(__file__).parent / "guide"
ABSENT: Final = (
    "the guide was not built where this is installed: `make guide` builds it in a clone of the repository, as "
    "`make check` and `make wheel` do; the same pages are the Markdown files of its docs/"
)
_INLINE: Final = re.compile(rb"<script>(.*?)</script>", re.DOTALL)


@dataclass(frozen=True, slots=True)
class GuideFile:
    """A file of the site."""

    content: bytes
    media_type: str
    scripts: tuple[str, ...]
    """The hashes of the scripts that stand in a page, by which a Content-Security-Policy allows them and no other."""


def guide_is_built(folder: Path | None = None) -> bool:
    """Whether there is a guide."""
    return ((folder or GUIDE_FOLDER) / "index.html").is_file()


def guide_file(address: str, folder: Path | None = None) -> GuideFile | None:
    """The file at an address below the guide's; a folder's is its `index.html`. None where there is none."""
    root = (folder or GUIDE_FOLDER).resolve()
    if "\0" in address:
        return None
    try:
        place = (root / address).resolve()
        if place.is_dir():
            place /= "index.html"
        if not place.is_relative_to(root) or not place.is_file():
            return None
        content = place.read_bytes()
    except OSError:  # a name that is longer than a file system takes
        return None
    media_type = mimetypes.guess_type(place.name)[0] or "application/octet-stream"
    page = media_type == "text/html"
    if media_type.startswith("text/"):
        media_type += "; charset=utf-8"
    return GuideFile(content, media_type, tuple(_hash(script) for script in _INLINE.findall(content)) if page else ())


def _hash(script: bytes) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(script).digest()).decode()}"
