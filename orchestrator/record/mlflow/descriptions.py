"""What MLflow's pages say of a sweep and its runs in words: Markdown with links back to our own pages."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from orchestrator.record.mlflow.mirror_states import CellRun, SweepRun, TrialRun
from orchestrator.record.tracker import Exhibit

DESCRIPTION_TAG = "mlflow.note.content"
_MOST = 4_800  # characters, of 5,000 that a tag may have


def of_sweep(sweep: SweepRun, exhibit: Exhibit, url: str) -> str:
    """What the sweep is, what its tables say, and where it is."""
    where = f"[Sweep {sweep.id}, {plain(sweep.name)}]({url}/sweeps/{sweep.id}) with its tables and figures."
    return _joined([where, sweep.description, *exhibit.captions])


def of_cell(cell: CellRun, url: str) -> str:
    """Which cell it is, and what was chosen in it."""
    sweep = cell.sweep
    where = f"[Cell {cell.index}]({url}/sweeps/{sweep.id}/cells/{cell.index}) of {_sweep(sweep, url)}."
    if cell.summary is None:
        return _joined([where, "Its trials have not all ended; its numbers come then."])
    chosen = ", ".join(f"{axis} = {label}" for axis, label in cell.summary["labels"].items()) or "the only one"
    number = cell.summary["candidates"]
    of = f"{number} candidates" if number != 1 else "1 candidate"
    what = f"Chosen of {of} by {cell.summary['selection_key']}: {chosen}; {cell.summary['status']}."
    if cell.summary["candidate"] is None:
        what = f"Nothing was chosen of {of}: {cell.summary['status']}."
    return _joined([where, plain(what), "Its numbers are means over the seeds, `std` their deviation."])


def of_trial(trial: TrialRun, url: str) -> str:
    """Which trial it is, whose training it shows, and what of that training no parameter says."""
    cell = trial.cell
    where = (
        f"[Trial {trial.id}]({url}/trials/{trial.id}) of "
        f"[cell {cell.index}]({url}/sweeps/{cell.sweep.id}/cells/{cell.index}) of {_sweep(cell.sweep, url)}."
    )
    reused = ""
    if trial.reused and trial.source is not None:
        run = f"; its curves are in run {trial.source_run}" if trial.source_run else ""
        reused = f"Reuses the training of [trial {trial.source}]({url}/trials/{trial.source}){run}."
    facts = [("training", trial.training), ("attempts", str(trial.attempts)), *_flat(trial.recipe.get("pins") or {})]
    if asked := trial.recipe.get("metrics"):
        facts.append(("further metrics", ", ".join(asked)))
    facts += _flat(trial.provenance)
    table = "\n".join(["| | |", "|---|---|", *(f"| {plain(name)} | {plain(value)} |" for name, value in facts)])
    return _joined([where, reused, table])


def plain(text: str) -> str:
    """A text that Markdown takes as it stands, on one line."""
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", " ".join(text.split()))


def _sweep(sweep: SweepRun, url: str) -> str:
    return f"[sweep {sweep.id}, {plain(sweep.name)}]({url}/sweeps/{sweep.id})"


def _flat(value: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, str]]:
    for key, item in value.items():
        if isinstance(item, Mapping):
            yield from _flat(item, f"{path}{key}.")
        elif item is not None:
            yield f"{path}{key}", str(item)


def _joined(paragraphs: list[str]) -> str:
    return "\n\n".join(paragraph for paragraph in paragraphs if paragraph)[:_MOST]
