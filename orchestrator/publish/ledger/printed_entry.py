"""A line of a ledger in print: what it is of, the paper's number, the own one, their difference, and how it stands."""

from typing import Final

from orchestrator.publish.labels import axis_title
from orchestrator.views.ledger import LedgerEntry

HEADINGS: Final = ("row", "metric", "paper", "own", "runs", "difference", "standing", "sweep")


def line(entry: LedgerEntry) -> tuple[str, ...]:
    """One entry under `HEADINGS`, in the paper's unit; empty where there is no own number."""
    place = ", ".join(f"{axis_title(axis)} {label}" for axis, label in entry.labels.items())
    one = entry.evidence[0] if entry.evidence else None
    own, difference = entry.own_and_difference
    runs = "" if one is None or not one.n else str(one.n)
    sweep = "" if one is None else f"{one.sweep}/{one.cell}"
    return place, entry.metric, entry.printed, own, runs, difference, entry.standing, sweep
