"""How far sweeps are, how fast trainings are, and when they will end."""

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal, NamedTuple

import sqlalchemy as sa

from orchestrator.cost.estimate import shape_key, shape_of
from orchestrator.cost.time_left import Pending, Timed, TimeLeft, time_left
from orchestrator.host.cache import Cache
from orchestrator.record.database import Database, chunked
from orchestrator.record.schema import attempt, metric, training, trial
from orchestrator.record.trials import is_expanded
from orchestrator.views.states import SWEEP_ENDED, SweepState, TrialState
from orchestrator.views.sweeps import Counts, StepCount

MOST_WEIGHED: Final = 20_000
"""Trials of a sweep that has ended whose steps are read; of a greater one each trial counts the same."""


@dataclass(slots=True)
class Steps:
    """Those of the trials in one state (a diverged one counts as a state of its own)."""

    trials: int = 0
    planned: int = 0
    """Of those of which it is known."""
    trained: int = 0
    """Of the same, at most what is planned."""
    unknown: int = 0
    """Trials whose length nothing has told yet."""


@dataclass(slots=True)
class StepTally:
    """A sweep's steps by kind of trial."""

    kinds: dict[str, Steps] = field(default_factory=lambda: defaultdict(Steps))

    @property
    def mean(self) -> float | None:
        """The steps of a trial, as far as lengths are known."""
        known = sum(one.trials - one.unknown for one in self.kinds.values())
        return sum(one.planned for one in self.kinds.values()) / known if known else None

    def expected_share(self) -> float:
        """The share of their steps that trials come to: early stopping and patience end some before."""
        ended = [self.kinds[kind] for kind in ("finished", "pruned") if kind in self.kinds]
        planned, trained = sum(one.planned for one in ended), sum(one.trained for one in ended)
        return trained / planned if planned and trained and sum(one.trials for one in ended) >= LEAST_ENDED else 1.0


LEAST_ENDED: Final = 3
"""Trials that have ended before it is told from them how early others end."""


def _sums() -> sa.Select[Any]:
    planned = training.c.total_steps
    trained = sa.case((training.c.step < planned, training.c.step), else_=planned)
    sums = (sa.func.count().label("n"), sa.func.sum(planned).label("planned"), sa.func.sum(trained).label("trained"))
    unknown = sa.func.sum(sa.case((planned == 0, 1), else_=0)).label("unknown")
    return (
        sa.select(trial.c.sweep_id, trial.c.state, trial.c.diverged, *sums, unknown)
        .join(training, training.c.id == trial.c.training_id)
        .where(trial.c.sweep_id.in_(sa.bindparam("sweeps", expanding=True)))
        .group_by(trial.c.sweep_id, trial.c.state, trial.c.diverged)
    )


_SUMS: Final = _sums()  # made once: pages ask it every few seconds


def tallies(connection: sa.Connection, sweeps: Sequence[int]) -> dict[int, StepTally]:
    """By sweep the steps of its trials by their kind."""
    by_sweep = {sweep: StepTally() for sweep in sweeps}
    for row in connection.execute(_SUMS, {"sweeps": sweeps}) if sweeps else ():
        kind = "diverged" if row.diverged and row.state == TrialState.FINISHED else row.state
        steps = by_sweep[row.sweep_id].kinds[kind]
        steps.trials += row.n
        steps.planned += int(row.planned or 0)
        steps.trained += int(row.trained or 0)
        steps.unknown += int(row.unknown or 0)
    return by_sweep


def counted(found: StepTally, total: int) -> StepCount:
    """The steps of a sweep of `total` planned trials; of those without a row yet as many as the others have."""
    rows = sum(steps.trials for steps in found.kinds.values())
    mean = found.mean
    if not mean:
        return _by_trials({kind: steps.trials for kind, steps in found.kinds.items()}, total)
    shares: dict[str, float] = defaultdict(float)
    for kind, steps in found.kinds.items():
        whole = steps.planned + steps.unknown * mean
        match kind:
            case "pruned":
                shares[kind] += steps.trained
            case "running" | "waiting":  # one whose machine was lost goes on from its checkpoint
                shares["running"] += steps.trained
                shares["waiting"] += whole - steps.trained
            case _:
                shares[kind] += whole
    shares["waiting"] += max(0, total - rows) * mean
    return _count("steps", shares)


def _by_trials(trials: Mapping[str, int], total: int) -> StepCount:
    """Every trial counted the same: those that run have not done anything yet."""
    rows = sum(trials.values())
    waiting = sum(trials.get(kind, 0) for kind in ("running", "waiting")) + max(0, total - rows)
    ended = {kind: number for kind, number in trials.items() if kind not in ("running", "waiting")}
    return _count("trials", ended | {"waiting": waiting})


def _count(unit: Literal["steps", "trials"], shares: Mapping[str, float]) -> StepCount:
    whole = {kind: round(number) for kind, number in shares.items() if round(number)}
    total, done = sum(whole.values()), sum(whole.get(kind, 0) for kind in DONE)
    percent = 100 * done // total if total else 0
    if whole.get("running"):  # all of its steps may be trained, but what comes after the last one is not done
        percent = min(99, percent)
    return StepCount(unit=unit, total=total, done=done, percent=percent, shares=whole)


DONE: Final = ("finished", "diverged", "pruned", "running")
"""Kinds of trials whose trained steps are done: a diverged one came to its end, a failed or cancelled one never did."""


class StepCounter:
    """Counts, and remembers what nothing changes any more."""

    def __init__(self) -> None:
        self._ended: dict[int, tuple[str, StepCount]] = {}

    def of_ended(self, connection: sa.Connection, sweep: int, total: int, counts: Counts) -> StepCount:
        """The steps of a sweep that has ended."""
        key = f"{total} {counts.model_dump_json()}"
        known = self._ended.get(sweep)
        if known is None or known[0] != key:
            known = (key, _of_ended(connection, sweep, total, counts))
            self._ended.pop(sweep, None)
            self._ended[sweep] = known
            while len(self._ended) > _ENDED_KEPT:
                self._ended.pop(next(iter(self._ended)), None)
        return known[1]


_ENDED_KEPT: Final = 1_024  # sweeps


def _of_ended(connection: sa.Connection, sweep: int, total: int, counts: Counts) -> StepCount:
    if counts.total <= MOST_WEIGHED:
        return counted(tallies(connection, [sweep])[sweep], total)
    trials = {state.value: getattr(counts, state) for state in TrialState}
    trials |= {"finished": counts.finished - counts.diverged, "diverged": counts.diverged}
    return _by_trials(trials, total)


PRIOR_SHARE: Final = 0.5
PRIOR_SPREAD: Final = 0.35
"""What is thought of a candidate before any was judged: something between the first look and the end. It counts as one
candidate beside those that were."""


@dataclass(frozen=True, slots=True)
class ExpectedShare:
    """The share that trainings come to on the average, and its relative deviation."""

    mean: float
    doubt: float


def expected_share(shares: Sequence[float], waiting: int) -> ExpectedShare:
    """By the shares that judged candidates came to, for so many candidates that wait."""
    number = len(shares) + 1
    mean = (math.fsum(shares) + PRIOR_SHARE) / number
    off = math.fsum((one - mean) ** 2 for one in shares) + (PRIOR_SHARE - mean) ** 2 + PRIOR_SPREAD**2
    # What is not known of the mean, and what those that wait differ from it by chance.
    return ExpectedShare(mean, math.sqrt(off / number * (1 / number + 1 / max(1, waiting))) / mean)


def early_ends(connection: sa.Connection, sweep: int, unborn: int) -> ExpectedShare:
    """That of a sweep of which so many trials have no row yet.

    The first candidate of a cell is left out: nothing was there to be worse than, so that it came to its end, and it
    says nothing of those behind it.
    """
    ended = trial.c.state.in_((TrialState.FINISHED, TrialState.PRUNED))
    trained = sa.case((training.c.step < training.c.total_steps, training.c.step), else_=training.c.total_steps)
    columns = (
        trial.c.cell,
        trial.c.candidate,
        sa.func.count().label("n"),
        sa.func.sum(sa.case((ended, 1), else_=0)).label("ended"),
        sa.func.sum(sa.case((trial.c.state == TrialState.WAITING, 1), else_=0)).label("waiting"),
        sa.func.sum(sa.case((ended, trained), else_=0)).label("trained"),
        sa.func.sum(sa.case((ended, training.c.total_steps), else_=0)).label("planned"),
    )
    query = (
        sa.select(*columns)
        .join(training, training.c.id == trial.c.training_id)
        .where(trial.c.sweep_id == sweep, ~trial.c.reused)
        .group_by(trial.c.cell, trial.c.candidate)
        .order_by(trial.c.cell, sa.func.min(trial.c.position))
    )
    shares, waits, last, repeats = list[float](), 0, -1, 1
    for row in connection.execute(query):
        repeats = max(repeats, row.n)
        waits += row.waiting > 0
        if row.ended and row.planned and row.cell == last:
            shares.append(row.trained / row.planned)
        last = row.cell
    return expected_share(shares, waits + math.ceil(unborn / repeats))


MOST_TIMED: Final = 200
"""Trainings, the last in the order of the plan, by whose length the time that is left is told."""
LEAST_WINDOW: Final = 30.0
"""Seconds, at least, over which it is measured how many train at once."""
_KINDS_KEPT: Final = 20_000  # kinds of cells


# The queries are made once: a list of sweeps asks each of them for every one that runs.
_SWEEP: Final = trial.c.sweep_id == sa.bindparam("sweep")
_ENDED: Final = (
    sa.select(trial.c.cell, training.c.step, training.c.seconds, attempt.c.started, attempt.c.ended, attempt.c.holder)
    .join(training, training.c.id == trial.c.training_id)
    .join(attempt, attempt.c.training_id == training.c.id)
    .where(_SWEEP, ~trial.c.reused, training.c.source.is_(None), attempt.c.ended.is_not(None))
    .where(trial.c.state == sa.bindparam("state"), attempt.c.state == sa.bindparam("ending"))
    .order_by(trial.c.position.desc())
    .limit(MOST_TIMED)
)


def _trains() -> sa.Select[Any]:
    """What trains, with the first number that its attempt told."""
    columns = (trial.c.cell, training.c.id, training.c.step, training.c.total_steps, attempt.c.started)
    of_attempt = sa.select(metric.c.id).where(metric.c.attempt_id == attempt.c.id)
    first = of_attempt.order_by(metric.c.key, metric.c.step).limit(1).scalar_subquery()
    told = metric.alias()
    return (
        sa.select(*columns, attempt.c.resumed_from, told.c.step.label("from_step"), told.c.at)
        .join(training, training.c.id == trial.c.training_id)
        .join(attempt, sa.and_(attempt.c.training_id == training.c.id, attempt.c.state == "running"))
        .outerjoin(told, told.c.id == first)
        .where(_SWEEP, trial.c.state == TrialState.RUNNING, training.c.source.is_(None))
    )


def _waits() -> sa.Select[Any]:
    """By cell what waits, each training once."""
    columns = (sa.func.min(trial.c.cell).label("cell"), training.c.step, training.c.total_steps)
    each = (
        sa.select(*columns)
        .select_from(trial)
        .join(training, training.c.id == trial.c.training_id)
        .where(_SWEEP, trial.c.state == TrialState.WAITING, training.c.source.is_(None))
        .group_by(training.c.id, training.c.step, training.c.total_steps)
        .subquery()
    )
    unknown = sa.func.sum(sa.case((each.c.total_steps == 0, 1), else_=0)).label("unknown")
    left = sa.func.sum(sa.case((each.c.total_steps == 0, 0), else_=each.c.total_steps - each.c.step)).label("left")
    return sa.select(each.c.cell, sa.func.count().label("n"), unknown, left).group_by(each.c.cell)


_TRAINS: Final = _trains()
_WAITS: Final = _waits()


@dataclass(frozen=True, slots=True)
class Stretch:
    """A time in which a slot was held by a training of the sweep, and what it did meanwhile."""

    cell: int
    began: datetime
    ended: datetime
    steps: float
    seconds: float
    whole: bool


class Pace:
    """Tells the time left; it remembers which cells take as long a step, which never changes."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[int, int], str] = {}

    def left(
        self, connection: sa.Connection, sweep: int, found: StepTally, total: int, *, prunes: bool = False
    ) -> TimeLeft | None:
        """That of a sweep of `total` planned trials, with early stopping or without; none where nothing was timed."""
        now, mean = datetime.now(UTC), found.mean or 0.0
        unborn = max(0, total - sum(one.trials for one in found.kinds.values()))
        early = early_ends(connection, sweep, unborn) if prunes else ExpectedShare(found.expected_share(), 0.0)
        share = early.mean
        going, begun = _running(connection, sweep, now, mean)
        stretches = [*_timed(connection, sweep), *begun]
        if not stretches:
            return None
        waiting = _waiting(connection, sweep, mean)
        cells = {cell for cell, _ in going} | {cell for cell, _, _ in waiting} | {one.cell for one in stretches}
        kinds = self._of_cells(connection, sweep, cells)
        pending = [Pending(kinds[cell], number, steps * share) for cell, number, steps in waiting]
        if unborn:  # of a search: what it will propose is taken to be like what it has
            pending.append(Pending(kinds[stretches[-1].cell], unborn, unborn * mean * share))
        timed = [Timed(kinds[one.cell], one.steps, one.seconds, one.whole) for one in stretches if one.steps > 0]
        running = [(kinds[cell], steps * share) for cell, steps in going]
        return time_left(running, pending, timed, _at_once(stretches, len(going), now), early.doubt)

    def _of_cells(self, connection: sa.Connection, sweep: int, cells: Collection[int]) -> dict[int, str]:
        """What the trainings of a cell have in common with all whose steps take as long, by its first trial."""
        missing = [cell for cell in cells if (sweep, cell) not in self._kinds]
        for chunk in chunked(missing, 500):
            first = sa.select(sa.func.min(trial.c.id)).where(trial.c.sweep_id == sweep, trial.c.cell.in_(chunk))
            query = sa.select(trial.c.cell, training.c.recipe).join(training, training.c.id == trial.c.training_id)
            for row in connection.execute(query.where(trial.c.id.in_(first.group_by(trial.c.cell)))):
                self._kinds[sweep, row.cell] = shape_key(shape_of(row.recipe))
        found = {cell: self._kinds[sweep, cell] for cell in cells}
        while len(self._kinds) > _KINDS_KEPT:
            self._kinds.pop(next(iter(self._kinds)), None)
        return found


def _timed(connection: sa.Connection, sweep: int) -> list[Stretch]:
    """The last trainings of the sweep that finished or were pruned, by the clock of their attempt where it was one.

    Of the first one on a slot the training's own time counts: the slot had to be made, and its libraries to be loaded.
    """
    rows = [
        (state is TrialState.FINISHED, row)
        for state, ending in ((TrialState.FINISHED, "finished"), (TrialState.PRUNED, "stopped"))
        for row in connection.execute(_ENDED, {"sweep": sweep, "state": state, "ending": ending})
    ]
    stretches, known = [], set[str | None]()
    for whole, row in sorted(rows, key=lambda one: one[1].started):
        held = (row.ended - row.started).total_seconds()
        seconds = max(held, row.seconds or 0.0)  # over all its attempts
        if row.holder not in known and row.seconds:
            seconds = row.seconds
        known.add(row.holder)
        stretches.append(Stretch(row.cell, row.started, row.ended, float(row.step), seconds, whole))
    return stretches


def _running(
    connection: sa.Connection, sweep: int, now: datetime, mean: float
) -> tuple[list[tuple[int, float]], list[Stretch]]:
    """The cell and the steps left of each training that runs, and what it has done since it first told a number.

    One that has not told its length yet has the `mean`, here as among those that wait.
    """
    told = connection.execute(_TRAINS, {"sweep": sweep})
    rows: dict[int, Any] = {row.id: row for row in told}  # two trials may share a training
    going = [(row.cell, max(0.0, (row.total_steps or mean) - row.step)) for row in rows.values()]
    begun = []
    for row in rows.values():
        # Before it told a number its slot was made, or another attempt did these steps.
        before = (row.step if row.resumed_from else 0) if row.at is None else row.from_step
        steps = max(0.0, float(row.step - before))
        begun.append(Stretch(row.cell, row.started, now, steps, (now - (row.at or row.started)).total_seconds(), False))
    return going, begun


def _waiting(connection: sa.Connection, sweep: int, mean: float) -> list[tuple[int, int, float]]:
    """By cell the number of trainings that wait and the steps that they have to go."""
    rows = connection.execute(_WAITS, {"sweep": sweep})
    return [(row.cell, row.n, float(row.left) + int(row.unknown) * mean) for row in rows]


def _at_once(stretches: Sequence[Stretch], running: int, now: datetime) -> float:
    """How many train at once on the average of the last few trainings' length; a gap between two counts as idle."""
    lengths = [(one.ended - one.began).total_seconds() for one in stretches]
    first = min(one.began for one in stretches)
    window = min(max(LEAST_WINDOW, 4 * sum(lengths) / len(lengths)), max(1.0, (now - first).total_seconds()))
    since = now - timedelta(seconds=window)
    busy = sum(max(0.0, (one.ended - max(one.began, since)).total_seconds()) for one in stretches)
    least = max(1, running)  # less than half of it was measured while the sweep had no turn
    return busy / window if busy / window >= least / 2 else float(least)


_SWEEPS_KEPT: Final = 256  # sweeps
LARGE: Final = 1_000
"""Trials of a sweep from which on what is computed of all of them is expensive."""


class Headway(NamedTuple):
    """How far one is."""

    steps: StepCount
    left: TimeLeft | None


class Headways:
    """Those of a database; safe to share between threads."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._steps, self._pace = StepCounter(), Pace()
        self._cache: Cache[tuple[int, str, int], Headway] = Cache(_SWEEPS_KEPT)

    def of(
        self, connection: sa.Connection, rows: Sequence[sa.Row[Any]], counts: Mapping[int, Counts]
    ) -> dict[int, Headway]:
        """By id those of sweeps, whose `rows` have their id, state, start, total and spec.

        Of a large one that goes on it is a recent one.
        """
        headways = {row.id: Headway(counted(StepTally(), row.total), None) for row in rows if not is_expanded(row)}
        rows = [row for row in rows if row.id not in headways]
        ended = {row.id for row in rows if row.state in SWEEP_ENDED}
        tallied = tallies(connection, [row.id for row in rows if row.id not in ended and row.total < LARGE])
        for row in rows:
            if row.id in ended:
                headways[row.id] = Headway(self._steps.of_ended(connection, row.id, row.total, counts[row.id]), None)
            elif row.id in tallied:
                headways[row.id] = self._reckoned(connection, row, tallied[row.id])
            else:
                headways[row.id] = self._recently(connection, row)
        return headways

    def _recently(self, connection: sa.Connection, row: sa.Row[Any]) -> Headway:
        def reckoned(connection: sa.Connection = connection) -> Headway:
            return self._reckoned(connection, row, tallies(connection, [row.id])[row.id])

        def beside() -> Headway:
            with self._database.reading() as own:
                return reckoned(own)

        return self._cache.get((row.id, row.state, row.total), reckoned, beside)

    def _reckoned(self, connection: sa.Connection, row: sa.Row[Any], steps: StepTally) -> Headway:
        left = None
        begun = any(kind in steps.kinds for kind in DONE)
        if row.state == SweepState.RUNNING and begun:  # of a paused one nobody knows when the others will go on
            left = self._pace.left(connection, row.id, steps, row.total, prunes=bool(row.spec.get("prune")))
        return Headway(counted(steps, row.total), left)
