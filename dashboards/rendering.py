"""How a page becomes HTML: the templates, and how they write times, numbers, progress and problems."""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any, Final
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from orchestrator.views.accounts import caller
from orchestrator.views.evidence import ResolutionView
from orchestrator.views.pages import DAY, duration
from orchestrator.views.states import SWEEP_ENDED, TRIAL_ENDED, SweepState, TrialState
from orchestrator.views.sweeps import GridCandidate, GridCell, GridTrial, SweepSummary, SweepView, TrialProblem

MOST: Final = 100
"""As many problems as a sweep is given with: when there are that many, there may be more."""
_NUMBERS: Final = re.compile(r"0x[0-9a-fA-F]+|\d+(?:\.\d+)?")
FIRST: Final = 5
"""Trials of one problem that are named at once; the others are folded."""


@dataclass(frozen=True, slots=True)
class ProblemGroup:
    """One cause and the trials that ended by it."""

    kind: str
    message: str
    """The first line of what the first of them said."""
    trials: list[TrialProblem] = field(default_factory=list)

    @property
    def first(self) -> list[TrialProblem]:
        """The trials that are named at once."""
        return self.trials[:FIRST]

    @property
    def others(self) -> list[TrialProblem]:
        """The trials that are folded."""
        return self.trials[FIRST:]


def gathered(problems: Iterable[TrialProblem]) -> list[ProblemGroup]:
    """Failures before divergences, the most frequent first; messages that differ in numbers alone have one cause."""
    found: dict[tuple[str, str], ProblemGroup] = {}
    for one in problems:
        kind = "diverged" if one.state == "finished" else one.state.value
        first = one.message.partition("\n")[0]
        found.setdefault((kind, _NUMBERS.sub("0", first)), ProblemGroup(kind, first)).trials.append(one)
    return sorted(found.values(), key=lambda problem: (problem.kind == "diverged", -len(problem.trials)))


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


NO_NUMBER: Final = "not a number"


def utc(moment: datetime) -> datetime:
    """The moment in UTC; one without a zone is in UTC already."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def exact(moment: datetime) -> str:
    """`2026-05-01 12:30:05 UTC`."""
    return f"{utc(moment):%Y-%m-%d %H:%M:%S} UTC"


def machine(moment: datetime) -> str:
    """The moment as a `<time>` element's `datetime` wants it."""
    return f"{utc(moment):%Y-%m-%dT%H:%M:%SZ}"


def ago(moment: datetime, now: datetime) -> str:
    """`5 min ago`; the date where that was more than a month ago."""
    seconds = (utc(now) - utc(moment)).total_seconds()
    if seconds < 10:  # or in the future, by another machine's clock
        return "just now"
    return f"{duration(seconds, parts=1)} ago" if seconds < 31 * DAY else f"{utc(moment):%Y-%m-%d}"


def seconds_since(later: datetime, earlier: datetime) -> float:
    """Seconds between two moments, never fewer than none."""
    return max(0.0, (utc(later) - utc(earlier)).total_seconds())


def number(value: float | None) -> str:
    """A metric as a fraction: four decimals, or four digits where it is very small or large."""
    if value is None or value != value:  # noqa: PLR0124 - only NaN differs from itself
        return NO_NUMBER
    shown = f"{value:.4f}" if value == 0 or 1e-3 <= abs(value) < 1e4 else f"{value:.3e}"
    return shown.replace("-", "−", 1) if value < 0 else shown


def share(score: float | None) -> str:
    """A score in a candidate's row: four decimals, a dash where there is none."""
    return "–" if score is None else number(score)


def short_axis(axis: str) -> str:
    """The last step of an axis's path: `eta` for `regularizer.eta`."""
    return axis.rpartition(".")[2] or axis


def plain(value: Any) -> str:
    """A value of a recipe or a provenance in one line."""
    match value:
        case str():
            return value
        case None:
            return "none"
        case bool():
            return "yes" if value else "no"
        case float() | int():
            return f"{value:g}" if isinstance(value, float) else str(value)
        case _:
            return json.dumps(value, ensure_ascii=False, default=str)


def size(count: int) -> str:
    """Bytes in their largest unit: `340 B`, `12 KiB`, `1.4 MiB`."""
    if count < 1024:
        return f"{count} B"
    if count < 1024**2:
        return f"{count / 1024:.0f} KiB"
    return f"{count / 1024**2:.1f} MiB" if count < 1024**3 else f"{count / 1024**3:.1f} GiB"


def indented(value: Any) -> str:
    """JSON for reading."""
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)


def counted(count: int, noun: str) -> str:
    """`1 trial`, `1,200 trials`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def held(slot: Mapping[str, Any]) -> str:
    """The resources of a slot: `4 CPUs, 0.5 GPU, 16 GB, 1 a100`."""
    gpus, memory = slot.get("gpus"), slot.get("memory_gb")
    said = [_amount(slot["cpus"], "CPU")] if "cpus" in slot else []
    if gpus == "auto":
        said.append("GPU where there is one")
    elif gpus:
        said.append(_amount(gpus, "GPU"))
    if memory is not None:
        said.append(f"{memory:g} GB")
    return ", ".join([*said, *(f"{amount:g} {name}" for name, amount in (slot.get("resources") or {}).items())])


def upper_first(text: str) -> str:
    """A sentence as it begins a line."""
    return text[:1].upper() + text[1:]


def breakable(path: str) -> Markup:
    """A name such as `best/validation/map@r` that a narrow column breaks after a mark, and never within a word."""
    return Markup("").join(Markup("{}<wbr>").format(one) for one in re.split(r"(?<=[/._])", path))


def _amount(amount: float, noun: str) -> str:
    return f"{amount:.3g} {noun}{'s' if amount > 1 else ''}"


def render(template: str, now: datetime | None, **shown: Any) -> str:
    """The template with what it shows and `who` asks; `now`: of which moment relative times are, none: of this one."""
    return _environment().get_template(template).render(now=now or datetime.now(UTC), who=caller(), **shown)


def static(name: str) -> bytes | None:
    """A style sheet, script or icon; none where there is no such file."""
    return _static_files().get(name)


@cache
def _static_files() -> dict[str, bytes]:
    # Read once and by listing: a name from an address never becomes a path.
    return {one.name: one.read_bytes() for one in (files("dashboards") / "static").iterdir() if one.is_file()}


def _address(name: str) -> str:
    """Where a static file is, under an address that changes with its content."""
    return f"/static/{name}?v={hashlib.sha256(_static_files()[name]).hexdigest()[:12]}"


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
        ago=ago, exact=exact, machine=machine, seconds_since=seconds_since,
        length_of_time=duration, number=number, share=share, short_axis=short_axis,
        indented=indented, size=size, counted=counted, squares=squares,
        eligible=eligible, segments=segments, by_kind=by_kind,
        quoted=lambda text: quote(text, safe=""), held=held, waits=waits, plain=plain,
        groups=groups, group_kinds=group_kinds, upper_first=upper_first,
        breakable=breakable,
    )  # fmt: skip
    made.globals.update(static=_address, kinds=KINDS, most_problems=MOST)
    return made
