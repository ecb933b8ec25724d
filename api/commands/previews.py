"""What a spec would become and cost, in words for people or as JSON for a script."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from api.commands.terminal import err, out, print_json
from orchestrator.cost.words import cost_in_words

if TYPE_CHECKING:
    from orchestrator.views.submissions import Preview


def show_preview(preview: "Preview", as_json: bool) -> None:
    """Print it, the cost in the last lines."""
    if as_json:
        print_json(preview)
        return
    for line in (*preview.said, *cost_in_words(preview.cost)):
        out.print(line)
    show_notes(preview.notes)
    show_warnings(preview.warnings)


def show_notes(notes: Sequence[str]) -> None:
    """Say on stderr what a subset of a spec leaves out."""
    for note in notes:
        err.print(f"note: {note}")


def show_warnings(warnings: Sequence[str]) -> None:
    """Say on stderr what will have to wait."""
    for warning in warnings:
        err.print(f"warning: {warning}", style="yellow")
