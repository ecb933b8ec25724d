"""A published table for itself, without any sweep: as a view, and as a file."""

from collections.abc import Iterator, Sequence
from typing import Final

from orchestrator.publish import papers
from orchestrator.publish.formats.markdown import escape
from orchestrator.publish.labels import axis_title
from orchestrator.publish.papers import Number, PublishedTable
from orchestrator.views.errors import NotFoundError
from orchestrator.views.evidence import PublishedNumber, PublishedSummary, PublishedView
from orchestrator.views.pages import Rendered
from orchestrator.views.runs import Labels

FORMATS: Final = {
    "markdown": "text/markdown; charset=utf-8",
    "csv": "text/csv; charset=utf-8; header=present",
    "json": "application/json",
}
"""What a published table is written as; other formats need a layout."""

_Line = tuple[Labels, Labels]
"""The labels of a printed row and data set, and what was tuned there."""


def summary(table: PublishedTable) -> PublishedSummary:
    """A published table in a list."""
    return PublishedSummary(
        id=table.id,
        paper=table.paper,
        title=table.title,
        axes=list(table.axes),
        metrics=list(table.metrics),
        count=len(table.numbers),
    )


def view(table: PublishedTable) -> PublishedView:
    """A published table whole."""
    return PublishedView(
        **summary(table).model_dump(),
        citation=table.citation,
        note=table.remarks,
        conflicts=dict(table.conflicts),
        numbers=[
            PublishedNumber(
                labels=dict(one.labels),
                tuned=dict(one.tuned),
                metric=one.metric,
                printed=one.printed,
                value=one.value,
                std=one.std,
                bold=one.bold if table.bold_known else None,
                unit=one.unit,
                std_unit=one.std_unit,
                source=one.source or None,
            )
            for one in table.numbers
        ],
    )


def render(table: PublishedTable, format_name: str) -> Rendered:
    """A published table as a file; NotFoundError names the formats there are."""
    if format_name not in FORMATS:
        raise NotFoundError(
            f"no format named '{format_name}' without a layout; formats: {', '.join(FORMATS)}; "
            "the others need a spec with a table, whose layout is taken"
        )
    match format_name:
        case "markdown":
            text, suffix = "\n\n".join(_blocks(table)) + "\n", ".md"
        case "csv":
            text, suffix = papers.text(table.id), ".csv"
        case _:
            text, suffix = view(table).model_dump_json(indent=2) + "\n", ".json"
    name = f"{table.id.lower()}{suffix}"
    return Rendered(content=text.encode(), media_type=FORMATS[format_name], filename=name)


def _blocks(table: PublishedTable) -> Iterator[str]:
    lines = _lines(table.numbers)
    shared = {
        axis: labels.pop() for axis in table.axes if len(labels := {line[0].get(axis, "") for line in lines}) == 1
    }
    varied = [axis for axis in table.axes if axis not in shared]
    yield f"**{table.id}**: {escape(table.title)}. {escape(table.citation)}."
    if held := [f"{axis_title(axis)}: {label}" for axis, label in shared.items() if label]:
        yield escape("; ".join(held)) + "."
    yield "\n".join(_grid(table, lines, varied))
    if not table.bold_known:
        yield "Which numbers are bold in print is not known."
    if table.remarks:
        yield escape(table.remarks)
    if sources := list(dict.fromkeys(one.source for one in table.numbers if one.source)):
        yield "\n".join(f"Quoted from {escape(source)}: {_quoted(table, source, varied)}." for source in sources)
    if table.conflicts:
        yield "\n".join(f"- {name}: {escape(said)}" for name, said in table.conflicts.items())


def _lines(numbers: Sequence[Number]) -> list[_Line]:
    found: list[_Line] = []
    for one in numbers:
        if (one.labels, one.tuned) not in found:
            found.append((one.labels, one.tuned))
    return found


def _grid(table: PublishedTable, lines: Sequence[_Line], axes: Sequence[str]) -> Iterator[str]:
    """A line each, under headings: the axes that vary, what was tuned, the metrics."""
    tuned = list(dict.fromkeys(axis for _, chosen in lines for axis in chosen))
    cells = {(repr(one.labels), repr(one.tuned), one.metric): one for one in table.numbers}
    titles = [*(axis_title(axis) for axis in axes), *(f"{axis_title(axis)} chosen" for axis in tuned), *table.metrics]
    rows = [[escape(title) for title in titles]]
    for labels, chosen in lines:
        numbers = (cells.get((repr(labels), repr(chosen), metric)) for metric in table.metrics)
        row = [*(escape(labels.get(axis, "")) for axis in axes), *(escape(chosen.get(axis, "")) for axis in tuned)]
        rows.append([*row, *(_cell(number) for number in numbers)])
    first = len(axes) + len(tuned)
    widths = [max(3, *(len(row[c]) for row in rows)) for c in range(len(titles))]
    yield _row(rows[0], widths, first)
    yield f"| {' | '.join('-' * w if c < first else '-' * (w - 1) + ':' for c, w in enumerate(widths))} |"
    yield from (_row(row, widths, first) for row in rows[1:])


def _row(cells: Sequence[str], widths: Sequence[int], first: int) -> str:
    padded = (one.ljust(w) if c < first else one.rjust(w) for c, (one, w) in enumerate(zip(cells, widths, strict=True)))
    return f"| {' | '.join(padded)} |"


def _cell(number: Number | None) -> str:
    if number is None:
        return ""
    text = escape(number.printed)
    return f"**{text}**" if number.bold else text


def _quoted(table: PublishedTable, source: str, varied: Sequence[str]) -> str:
    """The rows that come from a source, whatever the data set."""
    axes = [axis for axis in varied if axis != "dataset"]
    rows = (" / ".join(one.labels.get(axis, "") for axis in axes) for one in table.numbers if one.source == source)
    return escape(", ".join(dict.fromkeys(rows)))
