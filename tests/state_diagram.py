"""The states and which follows which, as Mermaid diagrams drawn from `lifecycle`."""

import sys
from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path

from orchestrator.views.lifecycle import SWEEP_ENDED, SWEEP_STEPS, TRIAL_ENDED, TRIAL_STEPS, SweepState, TrialState

HEADER = """\
# States

Made from `orchestrator/views/lifecycle.py` by `python -m tests.state_diagram --write docs/states.md`; a
test compares. Every change of a state in the database names the state that it leaves.
"""


def diagrams() -> str:
    """The page with both diagrams."""
    sweeps = "\n".join(_diagram(SWEEP_STEPS, SweepState.QUEUED, SWEEP_ENDED))
    trials = "\n".join(_diagram(TRIAL_STEPS, TrialState.WAITING, TRIAL_ENDED))
    return (
        f"{HEADER}\n## A sweep\n\n```mermaid\n{sweeps}\n```\n\n"
        f"## A trial, and the training that it points to\n\n```mermaid\n{trials}\n```\n"
    )


def _diagram(
    steps: Mapping[SweepState, frozenset[SweepState]] | Mapping[TrialState, frozenset[TrialState]],
    first: StrEnum,
    ended: frozenset[SweepState] | frozenset[TrialState],
) -> Iterator[str]:
    yield "stateDiagram-v2"
    yield f"    [*] --> {first}"
    for state, following in steps.items():
        for then in (one for one in steps if one in following):
            yield f"    {state} --> {then}"
    for state in steps:
        if state in ended:
            yield f"    {state} --> [*]"


def main(arguments: list[str]) -> None:
    """Print the page, or write it to the file after `--write`."""
    if arguments[:1] == ["--write"]:
        Path(arguments[1]).write_text(diagrams(), encoding="utf-8")
    else:
        sys.stdout.write(diagrams())


if __name__ == "__main__":
    main(sys.argv[1:])
