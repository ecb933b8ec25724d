"""A published table without a sweep: as a view and as a file."""

from collections.abc import Iterator, Sequence
from typing import Final

from orchestrator.publish.formats.markdown import escape, grid
from orchestrator.publish.labels import axis_title
from orchestrator.publish.papers import PublishedTable
from orchestrator.views.errors import NotFoundError
from orchestrator.views.evidence import PublishedNumber, PublishedSummary, PublishedView
from orchestrator.views.pages import Rendered
from orchestrator.views.runs import Labels

FORMATS: Final = {
    "markdown": "text/markdown; charset=utf-8",
    "csv": "text/csv; charset=utf-8; header=present",
    "json": "application/json",
}
"""The formats of a published table with their media types; other formats need a layout."""


def summary(table: PublishedTable) -> PublishedSummary:
    """The list entry of a published table."""
    return PublishedSummary(**vars(table), count=len(table.numbers))


def view(table: PublishedTable) -> PublishedView:
    """A published table with all its numbers, as the API returns it."""
    return PublishedView(**vars(table) | {"count": len(table.numbers), "note": table.annotations})


def render(table: PublishedTable, format_name: str) -> Rendered:
    """Writes a published table as a file; the NotFoundError for an unknown format lists the formats."""
    if format_name not in FORMATS:
        raise NotFoundError(
            f"no format '{format_name}' for a published table without a spec; formats: {', '.join(FORMATS)}; "
            "the others need a spec with a table, whose layout is taken"
        )
    match format_name:
        case "markdown":
            text, suffix = "\n\n".join(_blocks(table)) + "\n", ".md"
        case "csv":
            text, suffix = table.csv, ".csv"
        case _:
            text, suffix = view(table).model_dump_json(indent=2) + "\n", ".json"
    name = f"{table.id.lower()}{suffix}"
    return Rendered(content=text.encode(), media_type=FORMATS[format_name], filename=name)


def _blocks(table: PublishedTable) -> Iterator[str]:
    # The labels of each printed row and data set, and what was tuned there.
    lines = list({repr((one.labels, one.tuned)): (one.labels, one.tuned) for one in table.numbers}.values())
    shared = {
        axis: labels.pop() for axis in table.axes if len(labels := {line[0].get(axis, "") for line in lines}) == 1
    }
    varied = [axis for axis in table.axes if axis not in shared]
    yield f"**{table.id}**: {escape(table.title)}. {escape(table.citation)}."
    if held := [f"{axis_title(axis)}: {label}" for axis, label in shared.items() if label]:
        yield escape("; ".join(held)) + "."
    yield _grid(table, lines, varied)
    if any(number.bold is None for number in table.numbers):
        yield "Which numbers are bold in print is not known."
    if table.annotations:
        yield escape(table.annotations)
    if sources := list(dict.fromkeys(number.source for number in table.numbers if number.source)):
        yield "\n".join(f"Quoted from {escape(source)}: {_quoted(table, source, varied)}." for source in sources)
    if table.conflicts:
        yield "\n".join(f"- {name}: {escape(message)}" for name, message in table.conflicts.items())


def _grid(table: PublishedTable, lines: Sequence[tuple[Labels, Labels]], axes: Sequence[str]) -> str:
    """The lines under headings: the axes that vary, what was tuned, the metrics."""
    tuned = list(dict.fromkeys(axis for _, chosen in lines for axis in chosen))
    cells = {(repr(number.labels), repr(number.tuned), number.metric): number for number in table.numbers}
    titles = [*(axis_title(axis) for axis in axes), *(f"{axis_title(axis)} chosen" for axis in tuned), *table.metrics]
    rows = [[escape(title) for title in titles]]
    for labels, chosen in lines:
        numbers = (cells.get((repr(labels), repr(chosen), metric)) for metric in table.metrics)
        row = [*(escape(labels.get(axis, "")) for axis in axes), *(escape(chosen.get(axis, "")) for axis in tuned)]
        rows.append([*row, *map(_cell, numbers)])
    return grid(rows, [True] * (len(axes) + len(tuned)) + [False] * len(table.metrics))


def _cell(number: PublishedNumber | None) -> str:
    if number is None:
        return ""
    text = escape(number.printed)
    return f"**{text}**" if number.bold else text


def _quoted(table: PublishedTable, source: str, varied: Sequence[str]) -> str:
    """The rows that come from a source, whatever the data set."""
    axes = [axis for axis in varied if axis != "dataset"]
    rows = (
        " / ".join(number.labels.get(axis, "") for axis in axes) for number in table.numbers if number.source == source
    )
    return escape(", ".join(dict.fromkeys(rows)))
