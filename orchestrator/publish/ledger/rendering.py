"""A paper's ledger as a file: JSON, CSV, Markdown or LaTeX."""

import csv
import io
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from orchestrator.publish.formats import markdown
from orchestrator.publish.ledger.longtable import longtable
from orchestrator.publish.ledger.printed_entry import HEADINGS, line
from orchestrator.views.errors import NotFoundError
from orchestrator.views.files import Rendered
from orchestrator.views.ledger import LedgerTable, LedgerView
from workers.catalog import unknown


def render(view: LedgerView, format_name: str) -> Rendered:
    """The ledger in a format; NotFoundError names the formats there are."""
    if format_name not in _FORMATS:
        raise NotFoundError(unknown("format of a ledger", format_name, _FORMATS))
    media_type, suffix, write = _FORMATS[format_name]
    name = f"{view.paper.lower()}-ledger{suffix}"
    return Rendered(content=write(view).encode(), media_type=media_type, filename=name)


def formats() -> list[str]:
    """The formats there are."""
    return sorted(_FORMATS)


def _json(view: LedgerView) -> str:
    return view.model_dump_json(indent=2) + "\n"


def _csv(view: LedgerView) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("table", *HEADINGS, "why", "protocol"))
    for table in view.tables:
        for entry in table.entries:
            one = entry.evidence[0] if entry.evidence else None
            differs = "; ".join(f"{d.what}: {d.here} (paper: {d.paper})" for d in one.protocol) if one else ""
            writer.writerow((table.id, *line(entry), one.why if one else "", differs))
    return out.getvalue()


def _markdown(view: LedgerView) -> str:
    return "\n\n".join(_blocks(view)) + "\n"


def _blocks(view: LedgerView) -> Iterator[str]:
    yield f"**{markdown.escape(view.paper)}**: {markdown.escape(view.citation)}."
    words = [*view.counts.by_standing]
    rows = [("table", *words), *((one.id, *map(str, one.counts.by_standing.values())) for one in view.tables)]
    rows.append(("all", *map(str, view.counts.by_standing.values())))
    yield _grid(rows)
    for table in view.tables:
        if run := [line(entry) for entry in table.entries if entry.standing != "not run"]:
            yield f"{table.id}: {markdown.escape(table.title)}"
            yield _grid([HEADINGS, *run])
            yield from _protocols(table)
    yield markdown.escape(view.said)


def _protocols(table: LedgerTable) -> Iterator[str]:
    """What differs, once for all numbers of which it does."""
    found = dict.fromkeys(
        (one.sweep, difference.what, difference.paper, difference.here)
        for entry in table.entries for one in entry.evidence[:1] if entry.standing != "not run"
        for difference in one.protocol
    )  # fmt: skip
    if found:
        lines = (f"- sweep {sweep}, {what}: {here} (paper: {paper})" for sweep, what, paper, here in found)
        yield "\n".join(markdown.escape(one) if not one.startswith("- ") else "- " + markdown.escape(one[2:])
                        for one in lines)  # fmt: skip


def _grid(rows: list[tuple[str, ...]]) -> str:
    texts = [[markdown.escape(one) for one in row] for row in rows]
    rule = ["---"] * len(rows[0])
    return "\n".join(f"| {' | '.join(row)} |" for row in (texts[0], rule, *texts[1:]))


_FORMATS: Final[Mapping[str, tuple[str, str, Callable[[LedgerView], str]]]] = {
    "json": ("application/json", ".json", _json),
    "csv": ("text/csv; charset=utf-8; header=present", ".csv", _csv),
    "markdown": ("text/markdown; charset=utf-8", ".md", _markdown),
    "latex": ("application/x-tex", ".tex", longtable),
}
