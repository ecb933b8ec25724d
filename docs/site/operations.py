"""The REST interface as a page: the operations of the server's OpenAPI document, in place of a mark in the page.

The application is imported here, before autodoc imports modules as a type checker sees them, which pydantic refuses.
"""

import tempfile
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from api.main import create_app
from orchestrator.settings import Settings

MARK: Final = "<!-- operations -->"


def add(app: Any, page: str, source: list[str]) -> None:
    """Put the operations in place of the mark."""
    if MARK in source[0]:
        source[0] = source[0].replace(MARK, "\n".join(_pages(_document())))


def _document() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as home:
        nothing: Any = None  # no route is called
        return create_app(nothing, Settings(home=Path(home))).openapi()


def _pages(document: dict[str, Any]) -> Iterator[str]:
    tagged: dict[str, list[tuple[str, str, dict[str, Any]]]] = {}
    for path, item in document["paths"].items():
        for method, operation in item.items():
            tagged.setdefault(operation.get("tags", ["health"])[0], []).append((method.upper(), path, operation))
    for tag, operations in tagged.items():
        yield f"## {tag.capitalize()}\n"
        for method, path, operation in operations:
            yield f"### `{method} {path}`\n"
            yield f"**{operation['summary']}.** {operation.get('description', '')}\n"
            yield from _parameters(operation)
            yield from _answers(operation)


def _parameters(operation: dict[str, Any]) -> Iterator[str]:
    found = operation.get("parameters", [])
    if found:
        yield "| parameter | in | meaning |\n|---|---|---|"
        for one in found:
            said = " ".join(one.get("description", one["schema"].get("description", "")).split()).replace("|", "\\|")
            needed = "; required" if one.get("required") else ""
            yield f"| `{one['name']}` | {one['in']}{needed} | {said or '–'} |"
        yield ""
    if "requestBody" in operation:
        kinds = ", ".join(f"`{kind}`" for kind in operation["requestBody"]["content"])
        yield f"Body: {kinds}.\n"


def _answers(operation: dict[str, Any]) -> Iterator[str]:
    described = [
        f"{status} {answer['description'].rstrip('.')}"
        for status, answer in sorted(operation["responses"].items())
        if answer["description"] != HTTPStatus(int(status)).phrase
    ]
    yield f"Answers: {'; '.join(described)}\n"
