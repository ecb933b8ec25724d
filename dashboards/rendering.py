"""Templates of the pages, and their filters for times, numbers, progress and problems."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from itertools import groupby
from typing import Any, Final
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from orchestrator.views.accounts import caller
from orchestrator.views.evidence import ResolutionView
from orchestrator.views.pages import DAY, Sections, duration, size
from orchestrator.views.states import SWEEP_ENDED, TRIAL_ENDED, SweepState, TrialState
from orchestrator.views.sweeps import GridCandidate, GridCell, GridTrial, SweepSummary, SweepView, TrialProblem

MOST: Final = 100
"""How many problems a sweep's view contains at most."""
_NUMBERS: Final = re.compile(r"0x[0-9a-fA-F]+|\d+(?:\.\d+)?")
FIRST: Final = 5
"""How many trials of one problem are shown; the others are folded."""


ACTIVE: Final = frozenset({*SweepState, *TrialState}) - SWEEP_ENDED - TRIAL_ENDED
"""States of sweeps and trials that have not ended."""
KINDS: Final = ("finished", "diverged", "failed", "cancelled", "pruned", "running", "waiting")
"""Kinds of trials in the order of a bar. A diverged trial is finished too."""
MOST_SQUARES: Final = 2_000
_MOST_LABELS: Final = 12
"""The labels of an axis in a form."""


NO_NUMBER: Final = "not a number"
_MINIMAL: Final = Sections()
_SECTIONS: Final[ContextVar[Sections]] = ContextVar("sections", default=_MINIMAL)


@contextmanager
def navigating(sections: Sections) -> Iterator[None]:
    """Set the optional sections of the navigation for pages that are rendered in this context."""
    before = _SECTIONS.set(sections)
    try:
        yield
    finally:
        _SECTIONS.reset(before)


def render(template: str, **shown: Any) -> str:
    """Render a template."""
    known = {"now": datetime.now(UTC), "who": caller(), "sections": _SECTIONS.get()}
    return _environment().get_template(template).render(**known, **shown)


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("dashboards"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters.update(
        ago=ago, exact=exact, seconds_since=seconds_since,
        length_of_time=duration, number=number, share=share, short_axis=short_axis,
        indented=indented, size=size, counted=counted, squares=squares,
        eligible=eligible, segments=segments, by_kind=by_kind,
        quoted=lambda text: quote(text, safe=""), slot_resources=slot_resources, waits=waits, plain=plain,
        groups=groups, group_kinds=group_kinds, upper_first=upper_first,
        breakable=breakable, abridged=abridged,
    )  # fmt: skip
    made.globals.update(static=_address, kinds=KINDS, most_problems=MOST, most_named=FIRST)
    return made


def ago(moment: datetime, now: datetime) -> str:
    """A time relative to now: `5 min ago`, or the date after a month."""
    seconds = (now - moment).total_seconds()
    if seconds < 10:  # negative if another machine's clock is ahead
        return "just now"
    return f"{duration(seconds, parts=1)} ago" if seconds < 31 * DAY else f"{moment:%Y-%m-%d}"


def exact(moment: datetime) -> str:
    """A time as text: `2026-05-01 12:30:05 UTC`."""
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def seconds_since(later: datetime, earlier: datetime) -> float:
    """Seconds between two times, at least 0."""
    return max(0.0, (later - earlier).total_seconds())


def number(value: float | None) -> str:
    """A metric with four decimals, or with four digits if it is very small or large."""
    if value is None or value != value:  # noqa: PLR0124 - only NaN differs from itself
        return NO_NUMBER
    shown = f"{value:.4f}" if value == 0 or 1e-3 <= abs(value) < 1e4 else f"{value:.3e}"
    return shown.replace("-", "−", 1) if value < 0 else shown


def share(score: float | None) -> str:
    """A score as a number, or a dash for `None`."""
    return "–" if score is None else number(score)


def short_axis(axis: str) -> str:
    """The last step of an axis's path: `eta` for `regularizer.eta`."""
    return axis.rpartition(".")[2] or axis


def indented(value: Any) -> str:
    """A value as indented JSON."""
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)


def counted(count: int, noun: str) -> str:
    """A number with its noun: `1 trial`, `1,200 trials`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def squares(trials: Iterable[GridTrial]) -> Markup:
    """The trials of a candidate as HTML squares, each a link to its trial."""
    made = []
    for trial in trials:
        kind = _kind(trial)
        text = f"trial {trial.trial}, repeat {trial.repeat + 1}: {kind}"
        made.append(
            f'<a class="sq {kind}" href="/trials/{trial.trial}" title="{text}"><span class="unseen">{text}</span></a>'
        )
    return Markup("".join(made))  # noqa: S704


def _kind(trial: GridTrial) -> str:
    return "diverged" if trial.diverged else str(trial.state)


def eligible(candidate: GridCandidate) -> bool:
    """Whether a candidate may still be selected: no trial failed, diverged, or was cancelled or pruned."""
    return all(_kind(trial) in {"finished", "running", "waiting"} for trial in candidate.trials)


@dataclass(frozen=True, slots=True)
class Segment:
    """The trials of one kind in a bar of width 100, by their steps."""

    kind: str
    count: int
    start: float
    width: float


def segments(sweep: SweepSummary) -> list[Segment]:
    """The bar of a sweep's progress: the steps of its trials by kind, of a running trial only the done steps."""
    shares = sweep.steps.shares
    whole = sum(shares.values()) or 1
    made, start = [], 0.0
    for kind in KINDS:
        count = shares.get(kind, 0)
        width = 100 * count / whole
        if count:
            made.append(Segment(kind, count, round(start, 3), round(width, 3)))
        start += width
    return made


def by_kind(sweep: SweepSummary) -> dict[str, int]:
    """The number of a sweep's trials of each kind; trials that are not in the database yet are waiting."""
    counts = sweep.counts
    waiting = counts.waiting + max(0, sweep.total - counts.total)
    found = counts.model_dump() | {"finished": counts.finished - counts.diverged, "waiting": waiting}
    return {name: found[name] for name in KINDS if found[name] > 0}


def slot_resources(slot: Mapping[str, Any]) -> str:
    """The resources of a slot: `4 CPUs, 0.5 GPU, 16 GB, 1 a100`."""
    gpus, memory = slot.get("gpus"), slot.get("memory_gb")
    amounts = [_amount(slot["cpus"], "CPU")] if "cpus" in slot else []
    if gpus == "auto":
        amounts.append("GPU where there is one")
    elif gpus:
        amounts.append(_amount(gpus, "GPU"))
    if memory is not None:
        amounts.append(f"{memory:g} GB")
    return ", ".join([*amounts, *(f"{amount:g} {name}" for name, amount in (slot.get("resources") or {}).items())])


def _amount(amount: float, noun: str) -> str:
    return f"{amount:.3g} {noun}{'s' if amount > 1 else ''}"


def waits(sweep: SweepSummary) -> str:
    """How many trials of a sweep wait, and for what; empty if none waits."""
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
            sentence = f"{number} for a slot: {sweep.counts.running:,} train now"
        case _:
            sentence = f"{number} for a slot: none of this sweep trains now"
    return f"{sentence}, and some for more than that (below)." if sweep.notice else f"{sentence}."


def plain(value: Any) -> str:
    """A value of a recipe or a provenance in one line."""
    match value:
        case str():
            return value
        case None:
            return "none"
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:g}"
        case _:
            return json.dumps(value, ensure_ascii=False, default=str)


def groups(cells: Iterable[GridCell]) -> list[tuple[str, list[GridCell]]]:
    """Neighbouring cells of a grid with the same label on their first axis, with that label."""
    labelled = groupby(cells, lambda cell: next(iter(cell.labels.values()), "the only cell"))
    return [(label, list(group)) for label, group in labelled]


def group_kinds(cells: Iterable[GridCell]) -> dict[str, int]:
    """The number of trials of some cells by kind."""
    found = Counter(_kind(trial) for cell in cells for candidate in cell.candidates for trial in candidate.trials)
    return {kind: found[kind] for kind in KINDS if found[kind]}


def upper_first(text: str) -> str:
    """A text with an upper-case first letter."""
    return text[:1].upper() + text[1:]


def breakable(path: str) -> Markup:
    """A name such as `best/validation/map@r`, with line breaks allowed after `/`, `.` and `_`."""
    return Markup("").join(Markup("{}<wbr>").format(step) for step in re.split(r"(?<=[/._])", path))


def abridged(labels: Sequence[str]) -> str:
    """Labels with commas between them, of many the first and the last: `0, 1, 2, ... 8, 9 (100)`."""
    if len(labels) <= _MOST_LABELS:
        return ", ".join(labels)
    return f"{', '.join(labels[: _MOST_LABELS - 2])}, … {', '.join(labels[-2:])} ({len(labels)})"


def _address(name: str) -> str:
    """The address of a static file, which changes with its content."""
    return f"/static/{name}?v={hashlib.sha256(_static_files()[name]).hexdigest()[:12]}"


@cache
def _static_files() -> dict[str, bytes]:
    # Read by listing, so that a name from an address never becomes a path.
    return {file.name: file.read_bytes() for file in (files("dashboards") / "static").iterdir() if file.is_file()}


@dataclass(frozen=True, slots=True)
class ProblemGroup:
    """A problem and the trials that have it."""

    kind: str
    message: str
    """The first line of the message of the first trial."""
    trials: list[TrialProblem] = field(default_factory=list)


def gathered(problems: Iterable[TrialProblem]) -> list[ProblemGroup]:
    """Failed and diverged trials grouped by problem, the most frequent first.

    Failures come before divergences; messages that differ only in numbers are one problem.
    """
    found: dict[tuple[str, str], ProblemGroup] = {}
    for problem in problems:
        kind = "diverged" if problem.state == "finished" else problem.state.value
        first = problem.message.partition("\n")[0]
        found.setdefault((kind, _NUMBERS.sub("0", first)), ProblemGroup(kind, first)).trials.append(problem)
    return sorted(found.values(), key=lambda group: (group.kind == "diverged", -len(group.trials)))


def can_retry(sweep: SweepSummary) -> bool:
    """Whether trials failed or were cancelled, or the sweep ended before it had trials."""
    again = sweep.counts.failed + sweep.counts.cancelled + sweep.counts.evaluations_failed
    unborn = sweep.counts.total == 0 and sweep.state in {"failed", "cancelled"}
    return unborn or (again > 0 and sweep.state != "queued")


def can_resolve(sweep: SweepView, resolution: ResolutionView | None) -> bool:
    """Whether seeds can be added to the comparisons of a table, and no resolution is under way."""
    searched = (sweep.spec.get("search") or {}).get("name", "grid") != "grid"
    repeated = bool(sweep.tables) and bool(sweep.spec.get("repeat")) and not searched
    return repeated and sweep.state != "queued" and (resolution is None or resolution.state == "ended")


@dataclass(frozen=True, slots=True)
class Drawn:
    """The cells of a grid that a page draws, and how many cells and trials it leaves out."""

    cells: list[GridCell]
    cells_left: int
    trials_left: int


def drawn(grid: Iterable[GridCell], cells: int, trials: int) -> Drawn:
    """The first cells of a grid of `cells` and `trials`; a cell with too many squares is cut between its candidates."""
    shown: list[GridCell] = []
    squares = 0
    for cell in grid:
        candidates = []
        for candidate in cell.candidates:
            if squares + len(candidate.trials) <= MOST_SQUARES:
                squares += len(candidate.trials)
                candidates.append(candidate)
        if candidates or not cell.candidates:
            shown.append(replace(cell, candidates=candidates))
    return Drawn(shown, max(0, cells - len(shown)), max(0, trials - squares))


def static(name: str) -> bytes | None:
    """A style sheet, script or icon; `None` if there is no such file."""
    return _static_files().get(name)
