"""What a spec would become and cost, in words for people or as JSON for a script."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from api.commands.terminal import err, out, print_json

if TYPE_CHECKING:
    from orchestrator.views import Cost, Preview


def show_preview(preview: "Preview", as_json: bool) -> None:
    """Print it, the cost in the last line."""
    if as_json:
        print_json(preview)
        return
    most = "" if preview.exact else "at most "
    out.print(f"{preview.name}: {preview.cells} cells, {most}{preview.candidates} candidates, {preview.trials} trials")
    out.print(f"{most}{preview.trainings} different trainings; {preview.cached} trials are trained already")
    out.print(f"cost: {cost_in_words(preview.cost)}")
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


def cost_in_words(cost: "Cost") -> str:
    """`about 12 GPU hours for 132 of 528 trainings, ...`; what was not measured is unknown."""
    if not cost.trainings:
        return "nothing is left to train"
    models = "" if cost.models == cost.trainings else f" ({cost.models} models)"
    kinds = (("GPU", cost.gpu_hours), ("CPU", cost.cpu_hours))
    hours = " and ".join(f"{_amount(found)} {kind} hours" for kind, found in kinds if found is not None)
    if not hours:
        return f"unknown for {cost.trainings} trainings{models}, since none of the same shape was measured"
    whole = cost.measured == cost.trainings
    part = f"{cost.trainings}" if whole else f"{cost.measured} of {cost.trainings}"
    rest = "" if whole else "; the others are unknown"
    return f"about {hours} for {part} trainings{models}, as measured on {', '.join(cost.devices)}{rest}"


def _amount(hours: float) -> str:
    return f"{hours:,.0f}" if hours >= 10 else f"{hours:.2g}"
