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
    out.print(_evaluated(preview) if preview.evaluated else f"{most}{_trained(preview)}")
    for line in cost_in_words(preview.cost):
        out.print(line)
    show_notes(preview.notes)
    show_warnings(preview.warnings)


def _evaluated(preview: "Preview") -> str:
    counts = [f"{preview.evaluated} evaluated from kept weights"]
    trained = preview.trials - preview.evaluated - preview.cached
    counts += [f"{trained} trained"] if trained else []
    counts += [f"{preview.cached} trained already"] if preview.cached else []
    return f"{preview.trials} trials: {', '.join(counts)}"


def _trained(preview: "Preview") -> str:
    reused = preview.trainings - preview.cost.trainings
    of_trials = f" for {preview.cached} trials" if preview.cached > reused else ""
    counts = f"{preview.cost.trainings} to be trained, {reused} trained already{of_trials}"
    return f"{preview.trainings} different trainings: {counts}"


def show_notes(notes: Sequence[str]) -> None:
    """Say on stderr what a subset of a spec leaves out."""
    for note in notes:
        err.print(f"note: {note}")


def show_warnings(warnings: Sequence[str]) -> None:
    """Say on stderr what will have to wait."""
    for warning in warnings:
        err.print(f"warning: {warning}", style="yellow")
