"""The formats a table is written in, one file each; the file name is the format's name."""

import importlib
import pkgutil
from typing import Protocol, cast

from orchestrator.publish.tables.table_data import Table
from orchestrator.views.errors import NotFoundError
from orchestrator.views.pages import Rendered
from workers.catalog import unknown


class TableFormat(Protocol):
    """What a module of this folder offers."""

    media_type: str
    suffix: str

    def render(self, table: Table) -> bytes:
        """The table as a file's content."""


def names() -> list[str]:
    """The formats there are."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def render(table: Table, format_name: str) -> Rendered:
    """The table as a file; NotFoundError names the formats there are."""
    if format_name not in names():
        raise NotFoundError(unknown("table format", format_name, names()))
    chosen = cast(TableFormat, importlib.import_module(f"{__name__}.{format_name}"))
    return Rendered(
        content=chosen.render(table), media_type=chosen.media_type, filename=f"{table.file_stem}{chosen.suffix}"
    )
