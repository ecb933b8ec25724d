"""Finds and shares trainings, each unique by its fingerprint, between the trials of sweeps."""

import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa

from orchestrator.cost.estimate import Duration, models, shape_key, units
from orchestrator.record.database import Access, chunked
from orchestrator.record.schema import MAIN, attempt, collected, project, sweep, training, trial
from orchestrator.record.schema import project as projects
from orchestrator.views.runs import PlannedTrial, RequestedEvaluation
from orchestrator.views.states import TRIAL_ACTIVE, TRIAL_STEPS, TrialState, before
from workers.catalog import computed_alike, further_of_recipe, stamp
from workers.contract import KEPT_FILES

_CHUNK: Final = 500


def closed_to(connection: sa.Connection, project: int) -> frozenset[int]:
    """The projects whose trainings the sweeps of a project must not reuse: all other closed projects."""
    closed = sa.select(projects.c.id).where(projects.c.open.is_(False), projects.c.id != project)
    return frozenset(connection.scalars(closed))


def reachable(closed: Collection[int]) -> list[sa.ColumnElement[bool]]:
    """The SQL condition that a training has a trial outside of the closed projects, and so may be reused."""
    if not closed:
        return []
    has = sa.or_(trial.c.training_id == training.c.id, trial.c.evaluation_id == training.c.id)
    others = sa.and_(sweep.c.id == trial.c.sweep_id, sweep.c.project_id.not_in(closed))
    return [sa.exists().where(has, others)]


def sources(connection: sa.Connection, planned: Iterable[PlannedTrial], closed: Collection[int] = ()) -> dict[str, int]:
    """The finished trainings whose kept weights can be evaluated instead of training, by the planned fingerprint.

    For trainings that differ only by further metrics. Trainings that only `closed` projects have are not used.
    """
    needed = {plan.fingerprint: (plan, plan.further) for plan in planned if plan.further and plan.further.names}
    by_fingerprint: dict[str, int] = {}
    for chunk in chunked(needed.values(), _CHUNK):
        bases = _finished(connection, {further.base for _, further in chunk}, closed)
        for plan, further in chunk:
            source = next((row.id for row in bases.get(further.base, ()) if _suits(row, plan)), None)
            if source is not None:
                by_fingerprint[plan.fingerprint] = source
    return by_fingerprint


def out_of_reach(connection: sa.Connection, planned: Iterable[PlannedTrial], closed: Collection[int] = ()) -> list[str]:
    """The result keys that need a new training, although one differs only by further metrics and has finished.

    Their metrics cannot be computed from kept weights.
    """
    unreachable = [plan.further for plan in planned if plan.further is not None and plan.further.out_of_reach]
    found: dict[str, None] = {}
    for chunk in chunked(unreachable, _CHUNK):
        bases = _finished(connection, {further.base for further in chunk}, closed)
        for further in (further for further in chunk if further.base in bases):
            known = {name for row in bases[further.base] for name in further_of_recipe(row.recipe)}
            found |= {key: None for name, keys in further.out_of_reach.items() if name not in known for key in keys}
    return list(found)


def _finished(
    connection: sa.Connection, bases: Iterable[str], closed: Collection[int] = ()
) -> dict[str, list[sa.Row[Any]]]:
    """By base, the trainings that finished and did not diverge, without evaluations; those with most metrics first."""
    columns: list[sa.ColumnElement[Any]] = [training.c.id, training.c.base, training.c.recipe, training.c.source]
    columns += [training.c.state, training.c.diverged, training.c.result["artifacts"].label("artifacts")]
    query = sa.select(*columns).where(training.c.base.in_(list(bases)), *reachable(closed))
    query = query.where(~sa.exists().where(collected.c.training_id == training.c.id))
    found: dict[str, list[sa.Row[Any]]] = {}
    for row in connection.execute(query.order_by(training.c.id)):
        # Not in the query: SQLite would use an index on one of these, which nearly all trainings match.
        if row.source is None and row.state == TrialState.FINISHED and row.diverged is False:
            found.setdefault(row.base, []).append(row)
    return {base: sorted(rows, key=lambda row: -len(further_of_recipe(row.recipe))) for base, rows in found.items()}


def _suits(source: sa.Row[Any], planned: PlannedTrial) -> bool:
    """Whether the weights that a training kept give all metrics of a planned training, but `last/...` of the best."""
    if planned.further is None or _kept_file(source.recipe) not in (source.artifacts or ()):
        return False
    known, requested = further_of_recipe(source.recipe), planned.further.names
    if not set(known) <= set(requested):
        return False
    if any(name in planned.further.out_of_reach for name in requested if name not in known):
        return False
    return computed_alike(known, source.recipe, planned.document or planned.recipe.model_dump(mode="json"))


def _kept_file(recipe: Mapping[str, Any]) -> str:
    """The file of weights that a training keeps by its recipe."""
    return KEPT_FILES[(recipe.get("select") or {}).get("split") == "last"]


def evaluation_of(connection: sa.Connection, source: int, recipe: Mapping[str, Any]) -> RequestedEvaluation:
    """The evaluation of kept weights that adds to a source the metrics and figures that `recipe` has in addition."""
    columns = (training.c.uid, training.c.recipe, sa.func.max(attempt.c.number).label("number"))
    finished = sa.and_(attempt.c.training_id == training.c.id, attempt.c.state == "finished")
    query = sa.select(*columns).outerjoin(attempt, finished).where(training.c.id == source)
    row = connection.execute(query.group_by(training.c.id)).one()
    names = tuple(name for name in further_of_recipe(recipe) if name not in further_of_recipe(row.recipe))
    return RequestedEvaluation(f"{row.uid}/{row.number}/{_kept_file(row.recipe)}", names)


def with_source(connection: sa.Connection, training_id: int) -> list[int]:
    """The ids of a training and, before it, of the training whose weights it evaluates."""
    source = connection.scalar(sa.select(training.c.source).where(training.c.id == training_id))
    return [training_id] if source is None else [source, training_id]


_WAITING, _MOVING, _NEW = trial.alias(), trial.alias(), training.alias()
EVALUATION_FAILED: Final = (TrialState.FAILED, TrialState.CANCELLED)
"""The states of an evaluation that waits only after a retry."""
WAITING_AGAIN: Final = {"state": TrialState.WAITING, "error": None, "trace": None, "ended": None}
"""The values of a training that waits again."""


def needed(training_id: sa.ColumnElement[int] | int) -> sa.ColumnElement[bool]:
    """The SQL condition that a trial needs the result of a training."""
    return sa.or_(needed_by_active(training_id), needed_as_evaluation(training_id))


def needed_by_active(training_id: sa.ColumnElement[int] | int) -> sa.ColumnElement[bool]:
    """The SQL condition that an active trial waits for a training or runs with it."""
    return sa.exists().where(_WAITING.c.training_id == training_id, _WAITING.c.state.in_(TRIAL_ACTIVE))


def needed_as_evaluation(training_id: sa.ColumnElement[int] | int) -> sa.ColumnElement[bool]:
    """The SQL condition that a finished trial takes over a training's further metrics once it has finished."""
    return sa.exists().where(_MOVING.c.evaluation_id == training_id)


def evaluation_left() -> sa.ColumnElement[bool]:
    """The SQL condition that a trial has finished but the evaluation of its further metrics has not."""
    return _evaluation_is(TRIAL_ACTIVE)


def evaluation_failed() -> sa.ColumnElement[bool]:
    """The SQL condition that a trial has finished but the evaluation of its further metrics failed or was cancelled."""
    return _evaluation_is(EVALUATION_FAILED)


def _evaluation_is(states: Collection[TrialState]) -> sa.ColumnElement[bool]:
    its = sa.exists().where(_NEW.c.id == trial.c.evaluation_id, _NEW.c.state.in_(states))
    return sa.and_(trial.c.evaluation_id.is_not(None), trial.c.state == TrialState.FINISHED, its)


AT_ONCE: Final = 500
"""Trainings that one transaction plans anew."""
_MOST_MEASURED: Final = 20
"""Trainings of one shape that are read for its duration."""


@dataclass(frozen=True, slots=True)
class Outdated:
    """A training that waits or runs and was planned with older versions of parts."""

    id: int
    stamp: str
    recipe: Mapping[str, Any]
    evaluated: bool = False  # only finished trials want it, for its further metrics


class TrainingReader(Access):
    """Reads which trainings exist, and how long they took."""

    def durations(self, shapes: Collection[str]) -> dict[str, list[Duration]]:
        """The durations of the latest finished trainings of each shape, for estimates."""
        facts = training.c.result["provenance"]
        devices = [facts[key].as_string().label(key) for key in ("device", "device_name")]
        columns = (training.c.recipe, training.c.seconds, training.c.step, training.c.total_steps)
        latest = sa.select(training.c.id).order_by(training.c.id.desc()).limit(_MOST_MEASURED)
        found: dict[str, list[Duration]] = {}
        with self._database.reading() as connection:
            for shape in shapes:
                its = latest.where(training.c.shape == shape_key(shape), training.c.seconds.is_not(None)).subquery()
                query = sa.select(*columns, *devices).join(its, its.c.id == training.c.id)
                for row in connection.execute(query.order_by(training.c.id.desc())):
                    if row.device is None:
                        continue
                    # Patience may have ended it early.
                    share = row.step / row.total_steps if 0 < row.step <= row.total_steps else 1.0
                    duration = Duration(row.seconds, units(row.recipe) * share, row.device, row.device_name or "")
                    found.setdefault(shape, []).append(duration)
        return found

    def known(self, fingerprints: Iterable[str], project: int) -> set[str]:
        """Those fingerprints that have a finished training that sweeps of the project may reuse."""
        return {row.fingerprint for row in self._finished(dict.fromkeys(fingerprints), project)}

    def trained(self, fingerprints: Collection[str], project: int) -> tuple[datetime, datetime] | None:
        """When the first and the last of the trainings ended that sweeps of the project may reuse."""
        times = [row.ended for row in self._finished(fingerprints, project) if row.ended is not None]
        return (min(times), max(times)) if times else None

    def _finished(self, fingerprints: Iterable[str], project: int) -> list[Any]:
        columns = (training.c.fingerprint, training.c.state, training.c.ended)
        rows: list[Any] = []
        with self._database.reading() as connection:
            within = reachable(closed_to(connection, project))
            for chunk in chunked(fingerprints, 1_000):
                query = sa.select(*columns).where(training.c.fingerprint.in_(chunk), *within)
                # Not in the query: SQLite would use the index on the state, with a year of finished trainings.
                rows += [row for row in connection.execute(query) if row.state == TrialState.FINISHED]
        return rows

    def evaluable(self, planned: Collection[PlannedTrial], project: int) -> tuple[set[str], list[str]]:
        """The fingerprints that are evaluated from kept weights instead of trained, and the keys that prevent it.

        The keys are those for which the other fingerprints are trained. Trainings that only other closed projects have
        are not used.
        """
        with self._database.reading() as connection:
            closed = closed_to(connection, project)
            found = set(sources(connection, planned, closed))
            left = [plan for plan in planned if plan.fingerprint not in found]
            return found, out_of_reach(connection, left, closed)

    def stamps(self) -> list[str]:
        """The distinct stamps of versions with which trainings were planned."""
        return [row.stamp for row in self._rows(sa.select(training.c.stamp).distinct())]

    def outdated(self, stamps: Collection[str], waiting_only: Collection[str] = ()) -> list[Outdated]:
        """The oldest trainings with one of the version stamps that wait or run for a trial.

        Those with a stamp of `waiting_only` are returned only if they wait.
        """
        if not stamps:
            return []
        columns = (training.c.id, training.c.stamp, training.c.recipe)
        query = (
            sa.select(*columns, (~needed_by_active(training.c.id)).label("evaluated"))
            .where(training.c.state.in_(TRIAL_ACTIVE), training.c.stamp.in_(list(stamps)), needed(training.c.id))
            .where(sa.or_(training.c.state == TrialState.WAITING, training.c.stamp.not_in(list(waiting_only))))
            .order_by(training.c.id)
            .limit(AT_ONCE)
        )
        return [Outdated(row.id, row.stamp, row.recipe, row.evaluated) for row in self._rows(query)]


ENDED_WITHOUT_RESULT: Final = frozenset({TrialState.FAILED, TrialState.CANCELLED, TrialState.PRUNED})


@dataclass(frozen=True, slots=True)
class Known:
    """A stored training that trials can point to."""

    id: int
    state: TrialState
    diverged: bool
    generation: int
    reachable: bool = True
    """Whether sweeps of the present project may use it."""


KNOWN: Final = (
    training.c.fingerprint, training.c.id, training.c.state, training.c.diverged, training.c.generation,
)  # fmt: skip


def known_of(row: Any) -> Known:
    """The stored training of a row with the columns `KNOWN`."""
    return Known(row.id, TrialState(row.state), row.diverged, row.generation)


class Shared:
    """Finds or makes trainings within one transaction, for sweeps of the project `whose`.

    Trainings that only other closed projects have are trained anew. If `fresh`, only trainings made in this transaction
    are reused, or those that trials of `sweep` have.
    """

    def __init__(self, connection: sa.Connection, fresh: bool, whose: int, sweep: int | None = None) -> None:
        self._connection, self._fresh, self._sweep = connection, fresh, sweep
        self._closed = closed_to(connection, whose)
        newest = sa.select(sa.func.coalesce(sa.func.max(training.c.id), 0))
        self._before = connection.execute(newest).scalar_one() if fresh else 0
        self._trainings: dict[str, Known] = {}  # by fingerprint, of the present chunk

    def find(self, chunk: Sequence[PlannedTrial]) -> dict[str, Known]:
        """The training of each planned fingerprint.

        One that ended without a result waits again; a missing one is created.
        """
        needed = {plan.fingerprint: plan for plan in chunk}
        known = self._find(list(needed), *reachable(self._closed))
        if self._fresh and self._sweep is None:
            self._trainings = {key: found for key, found in known.items() if found.id > self._before}
        else:
            usable = self._own(list(known)) if self._fresh else known
            again = {key: found for key, found in usable.items() if found.state in ENDED_WITHOUT_RESULT}
            self._trainings = {key: found for key, found in usable.items() if key not in again}
            self._wait_again(again)
        if not self._fresh:
            self._evaluate_in_place(sources(self._connection, [needed[key] for key in again], self._closed))
            self._train_without_source()
        missing = [plan for key, plan in needed.items() if key not in self._trainings]
        if self._closed and missing:  # unreachable trainings count too: a generation is unique
            known = self._find([plan.fingerprint for plan in missing])
        self._make(missing, known, {} if self._fresh else sources(self._connection, missing, self._closed))
        return self._trainings

    def _find(self, fingerprints: list[str], *within: sa.ColumnElement[bool]) -> dict[str, Known]:
        """The training to use for each known fingerprint: a finished one, or else the latest."""
        query = sa.select(*KNOWN).where(training.c.fingerprint.in_(fingerprints), *within)
        # A fresh sweep needs the latest generation to make the next, and so do unreachable trainings.
        counted = self._fresh or (bool(self._closed) and not within)
        by_fingerprint: dict[str, Known] = {}
        for row in self._connection.execute(query.order_by(training.c.generation)):
            latest = known_of(row)
            kept = by_fingerprint.get(row.fingerprint)
            if counted or kept is None or kept.state is not TrialState.FINISHED or kept.state is latest.state:
                by_fingerprint[row.fingerprint] = latest
        return by_fingerprint

    def _own(self, fingerprints: list[str]) -> dict[str, Known]:
        """The trainings that trials of the sweep have."""
        # Not filtered by the sweep: SQLite might scan its hundred thousand trials.
        query = sa.select(*KNOWN, trial.c.sweep_id).join(trial, trial.c.training_id == training.c.id)
        rows = self._connection.execute(query.where(training.c.fingerprint.in_(fingerprints)))
        return {row.fingerprint: known_of(row) for row in rows if row.sweep_id == self._sweep}

    def _wait_again(self, trainings: dict[str, Known]) -> None:
        ended = training.c.state.in_(before(TRIAL_STEPS, TrialState.WAITING))
        for chunk in chunked(trainings.values(), _CHUNK):
            mine = training.c.id.in_([found.id for found in chunk])
            self._connection.execute(sa.update(training).where(mine, ended).values(WAITING_AGAIN))
        for key, found in trainings.items():
            self._trainings[key] = Known(found.id, TrialState.WAITING, False, found.generation)

    def _evaluate_in_place(self, of: Mapping[str, int]) -> None:
        """Let trainings evaluate a source that has finished since they were planned."""
        for key, source in of.items():
            mine = sa.update(training).where(training.c.id == self._trainings[key].id, training.c.source.is_(None))
            self._connection.execute(mine.values(source=source))

    def _train_without_source(self) -> None:
        """Let trainings train whose source has not finished, so that nothing waits for two trainings in turn."""
        source = training.alias()
        done = sa.exists().where(source.c.id == training.c.source, source.c.state == TrialState.FINISHED)
        waits = (training.c.source.is_not(None), training.c.state == TrialState.WAITING, ~done)
        for chunk in chunked(self._trainings.values(), _CHUNK):
            mine = training.c.id.in_([found.id for found in chunk])
            self._connection.execute(sa.update(training).where(mine, *waits).values(source=None))

    def _make(self, missing: list[PlannedTrial], found: dict[str, Known], of: Mapping[str, int]) -> None:
        if not missing:
            return
        rows = []
        for plan in missing:
            latest = found.get(plan.fingerprint)
            rows.append(row_of(plan, latest.generation + 1 if latest else 1, of.get(plan.fingerprint)))
        self._connection.execute(sa.insert(training), rows)
        made = sa.select(*KNOWN).where(training.c.uid.in_([row["uid"] for row in rows]))
        self._trainings |= {row.fingerprint: known_of(row) for row in self._connection.execute(made)}


def row_of(plan: PlannedTrial, generation: int, source: int | None) -> dict[str, Any]:
    """The values of a new waiting training; with a `source`, it evaluates the weights of that training."""
    recipe = plan.document or plan.recipe.model_dump(mode="json")
    return {
        "uid": str(uuid.uuid4()), "fingerprint": plan.fingerprint, "generation": generation,
        "recipe": recipe, "state": TrialState.WAITING, "stamp": stamp(recipe), "source": source,
        "base": plan.further.base if plan.further else "", "need": plan.need.key if plan.need else None,
        # For epochs, the first report has the number of steps.
        "total_steps": plan.recipe.iterations * models(plan.recipe) if plan.recipe.iterations else 0,
    }  # fmt: skip


def project_of(connection: sa.Connection, number: int) -> int:
    """The number of the project that a sweep belongs to."""
    return int(connection.execute(sa.select(sweep.c.project_id).where(sweep.c.id == number)).scalar_one())


def project_of_training(connection: sa.Connection, number: int) -> int:
    """The project whose sweeps may use a training: `main` if an open project has a trial of it."""
    has = sa.or_(trial.c.training_id == number, trial.c.evaluation_id == number)
    query = sa.select(project.c.id, project.c.open).join(sweep, sweep.c.project_id == project.c.id)
    rows = connection.execute(query.join(trial, trial.c.sweep_id == sweep.c.id).where(has).distinct()).all()
    closed = [row.id for row in rows if not row.open]
    return MAIN if len(closed) < len(rows) or not closed else min(closed)
