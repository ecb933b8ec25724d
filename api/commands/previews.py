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
    most = "" if preview.exact else "at most "
    out.print(f"{preview.name}: {preview.cells} cells, {most}{preview.candidates} candidates, {preview.trials} trials")
    if preview.evaluated:
        others = [f"{preview.evaluated} evaluated from kept weights"]
        trained = preview.trials - preview.evaluated - preview.cached
        others += [f"{trained} trained"] if trained else []
        others += [f"{preview.cached} trained already"] if preview.cached else []
        out.print(f"{preview.trials} trials: {', '.join(others)}")
        show_rest(preview)
        return
    reused = preview.trainings - preview.cost.trainings
    of_trials = f" for {preview.cached} trials" if preview.cached > reused else ""
    counts = f"{preview.cost.trainings} to be trained, {reused} trained already{of_trials}"
    out.print(f"{most}{preview.trainings} different trainings: {counts}")
    show_rest(preview)


def show_rest(preview: "Preview") -> None:
    """Print the cost, what is left out and what will have to wait."""
    for line in cost_in_words(preview.cost):
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
