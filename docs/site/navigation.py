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
    "Reproduce": ("papers", "claims"),
    "Run": ("slots", "pages", "deploy", "data", "storage", "security", "operating"),
    "Know": ("bundle", "reliability"),
    "Extend": ("add-a-part",),
    "Reference": ("api", "reference/rest", "reference/python"),
    "Background": ("results", "decisions/index"),
}
FOLDERS: Final = ("decisions",)
"""Whose pages stand below an index of their own."""


def add(app: Sphinx, page: str, source: list[str]) -> None:
    """Append to the first page, and to that of a folder, what the sidebar lists below it; links stay in the site."""
    source[0] = _inside(Path(page).parent, source[0])
    source[0] = re.sub(rf"\]\(({'|'.join(FOLDERS)})/\)", r"](\1/index.md)", source[0])
    there = {path.relative_to(app.srcdir).with_suffix("").as_posix() for path in Path(app.srcdir).rglob("*.md")}
    if page == "index":
        listed = {name for names in ORDER.values() for name in names}
        others = sorted(name for name in there - listed - {"index"} if name.partition("/")[0] not in FOLDERS)
        source[0] += "".join(_tree(caption, names) for caption, names in [*ORDER.items(), ("Further", others)] if names)
    elif page in {f"{folder}/index" for folder in FOLDERS}:
        folder = page.partition("/")[0]
        below = sorted(name.partition("/")[2] for name in there - {page} if name.startswith(f"{folder}/"))
        source[0] += _tree("", below)


def _inside(folder: Path, text: str) -> str:
    """The text with links out of the documentation, such as to source files, as the words that they stand on."""

    def kept(link: re.Match[str]) -> str:
        outside = os.path.normpath(folder / link[2]).startswith("..")
        return link[1] if outside else link[0]

    return re.sub(r"(?<!!)\[([^]]+)\]\((\.\./[^)\s]+)\)", kept, text)


def _tree(caption: str, names: Any) -> str:
    option = f":caption: {caption}\n:hidden:\n" if caption else ":maxdepth: 1\n"
    return "\n\n```{toctree}\n" + option + "\n" + "\n".join(names) + "\n```\n"
