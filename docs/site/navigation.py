"""The order of the site's pages; a page that stands nowhere here is listed at the end, so that none is lost."""

import os
import re
from pathlib import Path
from typing import Any, Final

from sphinx.application import Sphinx

ORDER: Final = {
    "Begin": ("tutorial", "presets"),
    "Write": (
        "spec",
        "adaptive-search",
        "tables",
        "statistics",
        "figures",
    ),
    "Reproduce": ("papers", "your-paper", "claims"),
    "Run": ("slots", "pages", "deploy", "data", "storage", "security", "operating"),
    "Know": ("bundle", "reliability"),
    "Extend": ("add-a-part",),
    "Reference": ("api", "reference/rest", "reference/python"),
    "Background": ("results", "decisions"),
}


def add(app: Sphinx, page: str, source: list[str]) -> None:
    """Append the sidebar's entries to the first page; links out of the documentation become plain words."""
    source[0] = _inside(Path(page).parent, source[0])
    there = {path.relative_to(app.srcdir).with_suffix("").as_posix() for path in Path(app.srcdir).rglob("*.md")}
    if page == "index":
        listed = {name for names in ORDER.values() for name in names}
        others = sorted(there - listed - {"index"})
        source[0] += "".join(_tree(caption, names) for caption, names in [*ORDER.items(), ("Further", others)] if names)


def _inside(folder: Path, text: str) -> str:
    """The text with links out of the documentation, such as to source files, as the words that they stand on."""

    def kept(link: re.Match[str]) -> str:
        outside = os.path.normpath(folder / link[2]).startswith("..")
        return link[1] if outside else link[0]

    return re.sub(r"(?<!!)\[([^]]+)\]\((\.\./[^)\s]+)\)", kept, text)


def _tree(caption: str, names: Any) -> str:
    return f"\n\n```{{toctree}}\n:caption: {caption}\n:hidden:\n\n" + "\n".join(names) + "\n```\n"
