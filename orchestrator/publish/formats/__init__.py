"""The formats a table is written in, one file each; the file name is the format's name.

A file has `media_type`, `suffix`, and `render`, which takes a `Table` and returns the content of a file.
"""

import importlib
import pkgutil
from typing import Any

from orchestrator.publish.tables.table_data import Table
from orchestrator.views.errors import NotFoundError
from orchestrator.views.pages import Rendered
from workers.catalog import unknown


def names() -> list[str]:
    """The names of the formats in which a table can be written."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def render(table: Table, format_name: str) -> Rendered:
    """Writes a table as a file of the named format; the NotFoundError for an unknown format lists the formats."""
    if format_name not in names():
        raise NotFoundError(unknown("table format", format_name, names()))
    chosen: Any = importlib.import_module(f"{__name__}.{format_name}")
    return Rendered(
        content=chosen.render(table), media_type=chosen.media_type, filename=f"{table.file_stem}{chosen.suffix}"
    )
