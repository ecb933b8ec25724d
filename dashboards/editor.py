"""The page on which a sweep is submitted: an editor, what the spec would become, and the presets."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from dashboards.gallery import Shelf
from dashboards.rendering import render
from workers.catalog import Catalog
from workers.contract import KINDS, Recipe


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
