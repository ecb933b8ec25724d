"""The states and their transitions as Mermaid diagrams, made from `orchestrator/views/states.py`."""

from collections.abc import Iterator, Mapping
from enum import StrEnum

from orchestrator.views.states import SWEEP_ENDED, SWEEP_STEPS, TRIAL_ENDED, TRIAL_STEPS, SweepState, TrialState


def diagrams() -> str:
    """The section `States` of docs/slots.md."""
    sweeps = "\n".join(_diagram(SWEEP_STEPS, SweepState.QUEUED, SWEEP_ENDED))
    trials = "\n".join(_diagram(TRIAL_STEPS, TrialState.WAITING, TRIAL_ENDED))
    return (
        f"### States\n\nA sweep:\n\n```mermaid\n{sweeps}\n```\n\n"
        f"A trial, and the training to which it points:\n\n```mermaid\n{trials}\n```\n"
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


if __name__ == "__main__":
    print(diagrams())
