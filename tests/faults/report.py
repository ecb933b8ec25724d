"""`python -m tests.faults.report`: the figures that the fault tests kept, as the table of docs/reliability.md."""

import json
import os
import sys
from collections import defaultdict
from pathlib import Path
from statistics import median
from typing import Any

from tests.faults.conftest import NOTES
from tests.faults.installation import ROOT

PAGE = ROOT / "docs" / "reliability.md"
BEGIN, END = "<!-- faults: begin -->", "<!-- faults: end -->"
HEAD = "| fault | times | trials | lost | run twice | steps repeated | recovery in s: median, most |"
RULE = "|---|--:|--:|--:|--:|--:|--:|"


def line(fault: str, noted: list[dict[str, Any]]) -> str:
    """One row: sums over the injections of a fault, and how long no message reached the database."""
    sums = [sum(one[key] for one in noted) for key in ("trials", "lost", "twice", "repeated")]
    seconds = [one["seconds"] for one in noted if one.get("seconds") is not None]
    waited = f"{median(seconds):.1f}, {max(seconds):.1f}" if seconds else ""
    return f"| {fault} | {len(noted)} | " + " | ".join(map(str, sums)) + f" | {waited} |"


def table(notes: Path) -> str:
    """The table of all notes, in the order in which the faults came first, and their sums."""
    by_fault: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for raw in notes.read_text().splitlines():
        one = json.loads(raw)
        by_fault[one["fault"]].append(one)
    every = [one for noted in by_fault.values() for one in noted]
    rows = [line(fault, noted) for fault, noted in by_fault.items()]
    total = line("**all**", [{**one, "seconds": None} for one in every])
    return "\n".join([HEAD, RULE, *rows, total, "", f"Measured on {os.cpu_count()} cores."])


def main() -> int:
    """Put the table into the page."""
    before, found, rest = PAGE.read_text().partition(BEGIN)
    _, closed, after = rest.partition(END)
    if not (found and closed):
        print(f"{PAGE} lacks {BEGIN} or {END}", file=sys.stderr)
        return 1
    PAGE.write_text(f"{before}{BEGIN}\n{table(NOTES)}\n{END}{after}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
