"""How far a sweep is: the segments of its bar, and the kinds of squares in its grid."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from markupsafe import Markup

from orchestrator.views.evidence import ResolutionView
from orchestrator.views.states import SWEEP_ENDED, TRIAL_ENDED, SweepState, TrialState
from orchestrator.views.sweeps import GridCandidate, GridCell, GridTrial, SweepSummary, SweepView

ACTIVE: Final = frozenset({*SweepState, *TrialState}) - SWEEP_ENDED - TRIAL_ENDED
"""States of sweeps and trials that something else follows by itself."""
KINDS: Final = ("finished", "diverged", "failed", "cancelled", "pruned", "running", "waiting")
"""Kinds of trials in the order of a bar: what ended, what runs, what waits. A diverged one is finished, too."""
MOST_SQUARES: Final = 2_000


@dataclass(frozen=True, slots=True)
class Segment:
    """The steps of trials of one kind in a bar of width 100."""

    kind: str
    count: int
    start: float
    width: float


@dataclass(frozen=True, slots=True)
class Drawn:
    """The cells of a grid that a page draws, and how much it leaves out."""

    cells: list[GridCell]
    cells_left: int
    trials_left: int


def kind(trial: GridTrial) -> str:
    """A square's kind."""
    return "diverged" if trial.diverged else str(trial.state)


def squares(trials: Iterable[GridTrial]) -> Markup:
    """Write a candidate's squares as HTML, each a link to its trial."""
    made = []
    for trial in trials:
        its = kind(trial)
        text = f"trial {trial.trial}, repeat {trial.repeat + 1}: {its}"
        made.append(
            f'<a class="sq {its}" href="/trials/{trial.trial}" title="{text}"><span class="unseen">{text}</span></a>'
        )
    return Markup("".join(made))  # noqa: S704


def eligible(candidate: GridCandidate) -> bool:
    """Whether the candidate may still be selected: no repeat of it ended other than ok."""
    return all(kind(trial) in {"finished", "running", "waiting"} for trial in candidate.trials)


def by_kind(sweep: SweepSummary) -> dict[str, int]:
    """How many trials of each kind that occurs; those whose rows are not written yet wait."""
    counts = sweep.counts
    waiting = counts.waiting + max(0, sweep.total - counts.total)
    found = counts.model_dump() | {"finished": counts.finished - counts.diverged, "waiting": waiting}
    return {name: found[name] for name in KINDS if found[name] > 0}


def segments(sweep: SweepSummary) -> list[Segment]:
    """The sweep's bar: by how many steps its trials of each kind have, of those that run only what is done."""
    shares = sweep.steps.shares
    whole = sum(shares.values()) or 1
    made, start = [], 0.0
    for name in KINDS:
        count = shares.get(name, 0)
        width = 100 * count / whole
        if count:
            made.append(Segment(name, count, round(start, 3), round(width, 3)))
        start += width
    return made


def can_cancel(sweep: SweepSummary) -> bool:
    """Whether there is something to stop."""
    return sweep.state in ACTIVE


def can_retry(sweep: SweepSummary) -> bool:
    """Whether trials failed or were cancelled, or the sweep ended before it had any."""
    again = sweep.counts.failed + sweep.counts.cancelled + sweep.counts.evaluations_failed
    unborn = sweep.counts.total == 0 and sweep.state in {"failed", "cancelled"}
    return unborn or (again > 0 and sweep.state != "queued")


def can_resolve(sweep: SweepView, resolution: ResolutionView | None) -> bool:
    """Whether seeds can be added to what a table compares, and nobody does so already."""
    searched = (sweep.spec.get("search") or {}).get("name", "grid") != "grid"
    repeated = bool(sweep.tables) and bool(sweep.spec.get("repeat")) and not searched
    return repeated and sweep.state != "queued" and (resolution is None or resolution.state == "ended")


def drawn(grid: Iterable[GridCell], most: int = MOST_SQUARES, *, cells: int = 0, trials: int = 0) -> Drawn:
    """The first cells, up to `most` squares; a cell that alone has more is cut between its candidates.

    Of a grid that has only the first ones, `cells` and `trials` say how many there are in all.
    """
    shown: list[GridCell] = []
    squares = cells_left = trials_left = 0
    for cell in grid:
        candidates = []
        for candidate in cell.candidates:
            if squares + len(candidate.trials) > most:
                trials_left += len(candidate.trials)
                continue
            squares += len(candidate.trials)
            candidates.append(candidate)
        if candidates or not cell.candidates:
            shown.append(replace(cell, candidates=candidates))
        else:
            cells_left += 1
    if cells:
        cells_left, trials_left = max(0, cells - len(shown)), max(0, trials - squares)
    return Drawn(shown, cells_left, trials_left)


def groups(cells: Iterable[GridCell]) -> list[tuple[str, list[GridCell]]]:
    """The cells under the label of their first axis, in their order; what follows one another is one group."""
    found: list[tuple[str, list[GridCell]]] = []
    for cell in cells:
        label = next(iter(cell.labels.values()), "the only cell")
        if not found or found[-1][0] != label:
            found.append((label, []))
        found[-1][1].append(cell)
    return found


def group_kinds(cells: Iterable[GridCell]) -> dict[str, int]:
    """The trials of some cells by kind."""
    counted = dict.fromkeys(KINDS, 0)
    for cell in cells:
        for candidate in cell.candidates:
            for trial in candidate.trials:
                counted[kind(trial)] += 1
    return {name: number for name, number in counted.items() if number}


def waits(sweep: SweepSummary) -> str:
    """How many trials wait and for what; empty where none does."""
    waiting = by_kind(sweep).get("waiting", 0)
    if not waiting or sweep.state not in ACTIVE:
        return ""
    number = f"{waiting:,} trial waits" if waiting == 1 else f"{waiting:,} trials wait"
    match sweep.state:
        case SweepState.QUEUED:
            return f"{number} until the conductor comes to the sweep: those of higher priority come first."
        case SweepState.PAUSED:
            return f"{number} until the sweep is resumed: it is paused."
        case _ if sweep.counts.running:
            said = f"{number} for a slot: {sweep.counts.running:,} train now"
        case _:
            said = f"{number} for a slot: none of this sweep trains now"
    return f"{said}, and some for more than that (below)." if sweep.notice else f"{said}."
