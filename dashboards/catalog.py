"""The pages of the catalog: all parts by kind, and one part with its formula, hyper-parameters and sweeps."""

import re
from collections.abc import Sequence
from functools import cache
from typing import Any, Final

from latex2mathml.converter import convert
from markupsafe import Markup

from dashboards.rendering import render
from dashboards.wording import plain
from orchestrator.views.operations import DataFinding
from orchestrator.views.sweeps import PartUse
from workers.catalog import Catalog, Entry

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
