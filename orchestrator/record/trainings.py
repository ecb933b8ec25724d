"""Trainings, each unique by its fingerprint, and who shares them."""

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
from orchestrator.views.runs import AskedEvaluation, PlannedTrial
from orchestrator.views.states import TRIAL_ACTIVE, TRIAL_STEPS, TrialState, before
from workers.catalog import asked_of, computed_alike, stamp
from workers.contract import KEPT_FILES

_CHUNK: Final = 500


def closed_to(connection: sa.Connection, project: int) -> frozenset[int]:
    """The projects whose trainings are not for a project's sweeps: all that are closed, but for itself."""
    closed = sa.select(projects.c.id).where(projects.c.open.is_(False), projects.c.id != project)
    return frozenset(connection.execute(closed).scalars())


def reachable(closed: Collection[int]) -> list[sa.ColumnElement[bool]]:
    """What holds of a training that some trial outside of the closed projects has."""
    if not closed:
        return []
    has = sa.or_(trial.c.training_id == training.c.id, trial.c.evaluation_id == training.c.id)
    others = sa.and_(sweep.c.id == trial.c.sweep_id, sweep.c.project_id.not_in(closed))
    return [sa.exists().where(has, others)]


def sources(connection: sa.Connection, planned: Iterable[PlannedTrial], closed: Collection[int] = ()) -> dict[str, int]:
    """By fingerprint the training, if there is one, by whose kept weights its further metrics can be evaluated.

    What only `closed` projects have is passed over.
    """
    wanted = {one.fingerprint: one for one in planned if one.further is not None and one.recipe.metrics}
    by_fingerprint: dict[str, int] = {}
    for chunk in chunked(wanted.values(), _CHUNK):
        bases = _finished(connection, {one.further.base for one in chunk if one.further}, closed)
        for wish in chunk:
            rows = bases.get(wish.further.base, ()) if wish.further else ()
            source = next((row.id for row in rows if suits(row, wish)), None)
            if source is not None:
                by_fingerprint[wish.fingerprint] = source
    return by_fingerprint


def out_of_reach(connection: sa.Connection, planned: Iterable[PlannedTrial], closed: Collection[int] = ()) -> list[str]:
    """What has to be trained for, though a training that differs by further metrics alone has finished: keys."""
    asked = [one.further for one in planned if one.further is not None and one.further.out_of_reach]
    found: dict[str, None] = {}
    for chunk in chunked(asked, _CHUNK):
        bases = _finished(connection, {one.base for one in chunk}, closed)
        for one in chunk:
            known = {name for row in bases.get(one.base, ()) for name in asked_of(row.recipe)}
            if one.base in bases:
                found |= {key: None for name, keys in one.out_of_reach.items() if name not in known for key in keys}
    return list(found)


def _finished(
    connection: sa.Connection, bases: Iterable[str], closed: Collection[int] = ()
) -> dict[str, list[sa.Row[Any]]]:
    """Trainings that finished ok, by base, those with the most metrics first; none that is an evaluation itself."""
    columns: list[sa.ColumnElement[Any]] = [training.c.id, training.c.base, training.c.recipe, training.c.source]
    columns += [training.c.state, training.c.diverged, training.c.result["artifacts"].label("artifacts")]
    query = sa.select(*columns).where(training.c.base.in_(list(bases)), *reachable(closed))
    query = query.where(~sa.exists().where(collected.c.training_id == training.c.id))
    found: dict[str, list[sa.Row[Any]]] = {}
    for row in connection.execute(query.order_by(training.c.id)):
        # Not asked of the database: SQLite would begin by one of these, which nearly all trainings of a year have.
        if row.source is None and row.state == TrialState.FINISHED and row.diverged is False:
            found.setdefault(row.base, []).append(row)
    return {base: sorted(rows, key=lambda row: -len(asked_of(row.recipe))) for base, rows in found.items()}


def suits(source: sa.Row[Any], planned: PlannedTrial) -> bool:
    """Whether what a training kept tells all that a planned one would show, but for `last/...` where it kept the best.

    `source` has its recipe and its artifacts. Raises nothing.
    """
    known, asked = asked_of(source.recipe), planned.recipe.metrics
    if kept_file(source.recipe) not in (source.artifacts or ()):
        return False
    if planned.further is None or not set(known) <= set(asked):
        return False
    if any(name in planned.further.out_of_reach for name in asked if name not in known):
        return False
    return computed_alike(known, source.recipe, planned.document or planned.recipe.model_dump(mode="json"))


def kept_file(recipe: Mapping[str, Any]) -> str:
    """The file that a training keeps by its recipe; where nothing was ever the best it kept the other one."""
    return KEPT_FILES[(recipe.get("select") or {}).get("split") == "last"]


def evaluation_of(connection: sa.Connection, source: int, recipe: Mapping[str, Any]) -> AskedEvaluation:
    """What is evaluated for a training of `recipe`, of which its source knows a part."""
    columns = (training.c.uid, training.c.recipe, sa.func.max(attempt.c.number).label("number"))
    finished = sa.and_(attempt.c.training_id == training.c.id, attempt.c.state == "finished")
    query = sa.select(*columns).outerjoin(attempt, finished).where(training.c.id == source)
    row = connection.execute(query.group_by(training.c.id)).one()
    names = tuple(name for name in asked_of(recipe) if name not in asked_of(row.recipe))
    return AskedEvaluation(f"{row.uid}/{row.number}/{kept_file(row.recipe)}", names)


def with_source(connection: sa.Connection, training_id: int) -> list[int]:
    """A training, after the one whose weights it evaluates: who tells what became of it tells of both."""
    source = connection.execute(sa.select(training.c.source).where(training.c.id == training_id)).scalar()
    return [training_id] if source is None else [source, training_id]


_WAITING, _MOVING, _NEW = trial.alias(), trial.alias(), training.alias()
"""Made once: an alias has a column for each of the table, and every report of a training asks who wants it."""
EVALUATION_FAILED: Final = (TrialState.FAILED, TrialState.CANCELLED)
"""Of a training that finished trials are to move to: nothing comes of it until somebody asks once more."""


def wanted(training_id: sa.ColumnElement[int] | int) -> sa.ColumnElement[bool]:
    """Whether anybody wants a training."""
    return sa.or_(wanted_by_active(training_id), wanted_as_evaluation(training_id))


def wanted_by_active(training_id: sa.ColumnElement[int] | int) -> sa.ColumnElement[bool]:
    """Whether a trial waits for a training or runs with it."""
    return sa.exists().where(_WAITING.c.training_id == training_id, _WAITING.c.state.in_(TRIAL_ACTIVE))


def wanted_as_evaluation(training_id: sa.ColumnElement[int] | int) -> sa.ColumnElement[bool]:
    """Whether a trial is to move to a training once that has finished."""
    return sa.exists().where(_MOVING.c.evaluation_id == training_id)


def evaluation_left() -> sa.ColumnElement[bool]:
    """Of a trial: whether it has finished and a further metric of it is still to be evaluated."""
    return _evaluation_is(TRIAL_ACTIVE)


def evaluation_failed() -> sa.ColumnElement[bool]:
    """Of a trial: whether the evaluation of a further metric of it failed, or was cancelled with another sweep's."""
    return _evaluation_is(EVALUATION_FAILED)


def _evaluation_is(states: Collection[TrialState]) -> sa.ColumnElement[bool]:
    its = sa.exists().where(_NEW.c.id == trial.c.evaluation_id, _NEW.c.state.in_(states))
    return sa.and_(trial.c.evaluation_id.is_not(None), trial.c.state == TrialState.FINISHED, its)


AT_ONCE: Final = 500
"""Trainings that one transaction plans anew."""
MOST_MEASURED: Final = 20
"""Trainings of one shape whose length is taken."""


_OF_SHAPE: Final = (
    sa.select(training.c.id, training.c.recipe, training.c.seconds, training.c.step, training.c.total_steps)
    .where(training.c.shape == sa.bindparam("key"), training.c.seconds.is_not(None))
    .order_by(training.c.id.desc())
)


@dataclass(frozen=True, slots=True)
class Outdated:
    """A training that waits or runs and was planned under older versions."""

    id: int
    stamp: str
    recipe: Mapping[str, Any]
    evaluated: bool = False  # no trial waits for it: finished ones are to take its metrics


class TrainingReader(Access):
    """Reads which trainings there are, and how long they took."""

    def durations(self, shapes: Collection[str]) -> dict[str, list[Duration]]:
        """By shape, how long the latest trainings took that finished ok; a shape that never did is absent."""
        if not shapes:
            return {}
        with self._database.reading() as connection:
            latest = {row.id: (one, row) for one in shapes for row in _of_shape(connection, one)}
            devices = _devices(connection, latest)
        found: dict[str, list[Duration]] = {}
        for id_, (one, row) in latest.items():
            device, name = devices[id_]
            if device is not None:
                found.setdefault(one, []).append(Duration(row.seconds, _trained(row), device, name or ""))
        return found

    def known(self, fingerprints: Iterable[str], project: int) -> set[str]:
        """Those of the fingerprints whose training has finished, and is for sweeps of a project."""
        found: set[str] = set()
        with self._database.reading() as connection:
            within = reachable(closed_to(connection, project))
            for chunk in chunked(dict.fromkeys(fingerprints), 1_000):
                query = sa.select(training.c.fingerprint, training.c.state)
                rows = connection.execute(query.where(training.c.fingerprint.in_(chunk), *within))
                # Not asked of the database: SQLite would begin by the state, with a year of finished trainings.
                found.update(row.fingerprint for row in rows if row.state == TrialState.FINISHED)
        return found

    def trained(self, fingerprints: Collection[str], project: int) -> tuple[datetime, datetime] | None:
        """When the first and the last of these trainings ended that are for sweeps of a project."""
        times: list[datetime] = []
        with self._database.reading() as connection:
            within = reachable(closed_to(connection, project))
            for chunk in chunked(fingerprints, 1_000):
                query = sa.select(training.c.state, training.c.ended)
                rows = connection.execute(query.where(training.c.fingerprint.in_(chunk), *within))
                # As in `known`, SQLite would begin by the state.
                times += [row.ended for row in rows if row.state == TrialState.FINISHED and row.ended is not None]
        return (min(times), max(times)) if times else None

    def evaluable(self, planned: Collection[PlannedTrial], project: int) -> tuple[set[str], list[str]]:
        """The fingerprints of those that kept weights can stand for, and the keys for which others are trained.

        For sweeps of a project: what only other closed ones have is passed over.
        """
        with self._database.reading() as connection:
            closed = closed_to(connection, project)
            found = set(sources(connection, planned, closed))
            left = [one for one in planned if one.fingerprint not in found]
            return found, out_of_reach(connection, left, closed)

    def stamps(self) -> list[str]:
        """The stamps that trainings have."""
        with self._database.reading() as connection:
            return list(connection.execute(sa.select(training.c.stamp).distinct()).scalars())

    def outdated(self, stamps: Collection[str], waiting_only: Collection[str] = ()) -> list[Outdated]:
        """A few of the trainings with such a stamp that wait or run for some trial, oldest first.

        Those with one of the stamps `waiting_only` only while they wait.
        """
        if not stamps:
            return []
        columns = (training.c.id, training.c.stamp, training.c.recipe)
        query = (
            sa.select(*columns, (~wanted_by_active(training.c.id)).label("evaluated"))
            .where(training.c.state.in_(TRIAL_ACTIVE), training.c.stamp.in_(list(stamps)), wanted(training.c.id))
            .where(sa.or_(training.c.state == TrialState.WAITING, training.c.stamp.not_in(list(waiting_only))))
            .order_by(training.c.id)
            .limit(AT_ONCE)
        )
        with self._database.reading() as connection:
            return [Outdated(row.id, row.stamp, row.recipe, row.evaluated) for row in connection.execute(query)]


def _trained(row: sa.Row[Any]) -> float:
    """The iterations or epochs that a training did, which its patience may have ended early."""
    share = row.step / row.total_steps if 0 < row.step <= row.total_steps else 1.0
    return units(row.recipe) * share


def _of_shape(connection: sa.Connection, shape: str) -> Sequence[Any]:
    """The latest trainings of a shape, the latest first."""
    return connection.execute(_OF_SHAPE.limit(MOST_MEASURED), {"key": shape_key(shape)}).all()


def _devices(connection: sa.Connection, ids: Collection[int]) -> dict[int, tuple[str | None, str | None]]:
    """The kind and the name of the device that each training names."""
    facts = training.c.result["provenance"]
    columns = (facts[key].as_string().label(key) for key in ("device", "device_name"))
    query = sa.select(training.c.id, *columns)
    rows = (row for chunk in chunked(ids, 200) for row in connection.execute(query.where(training.c.id.in_(chunk))))
    return {row.id: (row.device, row.device_name) for row in rows}


_WRITE_CHUNK: Final = 1_000
"""Trainings a statement: far below the 32,766 parameters that SQLite takes."""
_ENDED_WITHOUT_RESULT: Final = frozenset({TrialState.FAILED, TrialState.CANCELLED, TrialState.PRUNED})


@dataclass(frozen=True, slots=True)
class Known:
    """A training that trials can point to."""

    id: int
    state: TrialState
    diverged: bool
    generation: int
    reachable: bool = True
    """Whether a sweep of the project that asks may have it."""


class Shared:
    """Finds or makes trainings within one transaction; a `fresh` one reuses only what was made within it.

    They are for sweeps of the project `whose`: what only others' closed projects have is trained anew. A fresh one of a
    sweep reuses what trials of that have, whichever transaction made it.
    """

    def __init__(self, connection: sa.Connection, fresh: bool, whose: int, sweep: int | None = None) -> None:
        self._connection, self._fresh, self._sweep = connection, fresh, sweep
        self._closed = closed_to(connection, whose)
        self._before = _newest(connection) if fresh else 0
        self._trainings: dict[str, Known] = {}  # by fingerprint: those of the chunk that is asked for

    def find(self, chunk: Sequence[PlannedTrial]) -> dict[str, Known]:
        """The training of each fingerprint; one that ended without a result waits again, a missing one is made."""
        wanted = {one.fingerprint: one for one in chunk}
        known = self._find(list(wanted), *reachable(self._closed))
        if self._fresh and self._sweep is not None:
            own = self._own(list(known))
            self._trainings = {key: one for key, one in own.items() if one.state not in _ENDED_WITHOUT_RESULT}
            self._wait_again({key: one for key, one in own.items() if key not in self._trainings})
        elif self._fresh:
            self._trainings = {key: one for key, one in known.items() if one.id > self._before}
        else:
            self._trainings = {key: one for key, one in known.items() if one.state not in _ENDED_WITHOUT_RESULT}
            again = {key: one for key, one in known.items() if one.state in _ENDED_WITHOUT_RESULT}
            self._wait_again(again)
            self._evaluate_in_place(sources(self._connection, [wanted[key] for key in again], self._closed))
            self._train_without_source()
        missing = [one for key, one in wanted.items() if key not in self._trainings]
        if self._closed and missing:  # what is out of reach counts too: a generation is there once
            known = self._find([one.fingerprint for one in missing])
        self._make(missing, known, {} if self._fresh else sources(self._connection, missing, self._closed))
        return self._trainings

    def _find(self, fingerprints: list[str], *within: sa.ColumnElement[bool]) -> dict[str, Known]:
        """The training to use for each known fingerprint: a finished one if there is one, else the latest."""
        table = training
        columns = (table.c.fingerprint, table.c.id, table.c.state, table.c.diverged, table.c.generation)
        query = sa.select(*columns).where(table.c.fingerprint.in_(fingerprints), *within)
        query = query.order_by(table.c.generation)
        # A fresh sweep needs the latest generation to count on from, and so does what is out of reach.
        counted = self._fresh or (bool(self._closed) and not within)
        by_fingerprint: dict[str, Known] = {}
        for row in self._connection.execute(query):
            latest = Known(row.id, TrialState(row.state), row.diverged, row.generation)
            kept = by_fingerprint.get(row.fingerprint)
            if counted or kept is None or kept.state is not TrialState.FINISHED or kept.state is latest.state:
                by_fingerprint[row.fingerprint] = latest
        return by_fingerprint

    def _own(self, fingerprints: list[str]) -> dict[str, Known]:
        """Those that trials of the sweep have."""
        columns = (training.c.fingerprint, training.c.id, training.c.state, training.c.diverged, training.c.generation)
        # Not filtered by the sweep, by whose hundred thousand trials SQLite might begin.
        query = sa.select(*columns, trial.c.sweep_id).join(trial, trial.c.training_id == training.c.id)
        rows = self._connection.execute(query.where(training.c.fingerprint.in_(fingerprints)))
        return {
            row.fingerprint: Known(row.id, TrialState(row.state), row.diverged, row.generation)
            for row in rows
            if row.sweep_id == self._sweep
        }

    def _wait_again(self, trainings: dict[str, Known]) -> None:
        table = training
        for chunk in chunked(trainings.values(), _WRITE_CHUNK):
            self._connection.execute(
                sa.update(table)
                .where(table.c.id.in_([one.id for one in chunk]))
                .where(table.c.state.in_(before(TRIAL_STEPS, TrialState.WAITING)))
                .values(state=TrialState.WAITING, error=None, trace=None, ended=None)
            )
        for key, one in trainings.items():
            self._trainings[key] = Known(one.id, TrialState.WAITING, False, one.generation)

    def _evaluate_in_place(self, of: Mapping[str, int]) -> None:
        """What would have trained when it was first asked for is evaluated, where a source has finished since."""
        for key, source in of.items():
            mine = sa.update(training).where(training.c.id == self._trainings[key].id, training.c.source.is_(None))
            self._connection.execute(mine.values(source=source))

    def _train_without_source(self) -> None:
        """What waits for a source that has not finished yet is trained: nobody shall wait for two in turn."""
        source = training.alias()
        done = sa.exists().where(source.c.id == training.c.source, source.c.state == TrialState.FINISHED)
        waits = (training.c.source.is_not(None), training.c.state == TrialState.WAITING, ~done)
        for chunk in chunked(self._trainings.values(), _WRITE_CHUNK):
            mine = training.c.id.in_([one.id for one in chunk])
            self._connection.execute(sa.update(training).where(mine, *waits).values(source=None))

    def _make(self, missing: list[PlannedTrial], found: dict[str, Known], of: Mapping[str, int]) -> None:
        if not missing:
            return
        table = training
        generations = [found[one.fingerprint].generation + 1 if one.fingerprint in found else 1 for one in missing]
        rows = [
            row_of(one, generation, of.get(one.fingerprint))
            for one, generation in zip(missing, generations, strict=True)
        ]
        self._connection.execute(sa.insert(table), rows)
        generation_of = {row["uid"]: row["generation"] for row in rows}
        made = sa.select(table.c.id, table.c.uid, table.c.fingerprint).where(table.c.uid.in_(list(generation_of)))
        for row in self._connection.execute(made):
            known = Known(row.id, TrialState.WAITING, False, generation_of[row.uid])
            self._trainings[row.fingerprint] = known


def row_of(one: PlannedTrial, generation: int, source: int | None) -> dict[str, Any]:
    """A new training that waits; with a `source`, to evaluate what that has kept."""
    recipe = one.document or one.recipe.model_dump(mode="json")
    return {
        "uid": str(uuid.uuid4()), "fingerprint": one.fingerprint, "generation": generation,
        "recipe": recipe, "state": TrialState.WAITING, "stamp": stamp(recipe), "source": source,
        "base": one.further.base if one.further else "", "need": one.need.key if one.need else None,
        # Of epochs the first report tells.
        "total_steps": one.recipe.iterations * models(one.recipe) if one.recipe.iterations else 0,
    }  # fmt: skip


def project_of(connection: sa.Connection, number: int) -> int:
    """The project of a sweep."""
    return int(connection.execute(sa.select(sweep.c.project_id).where(sweep.c.id == number)).scalar_one())


def project_of_training(connection: sa.Connection, number: int) -> int:
    """The project whose sweeps a training is for: `main` where an open one has a trial of it."""
    has = sa.or_(trial.c.training_id == number, trial.c.evaluation_id == number)
    query = sa.select(project.c.id, project.c.open).join(sweep, sweep.c.project_id == project.c.id)
    rows = connection.execute(query.join(trial, trial.c.sweep_id == sweep.c.id).where(has).distinct()).all()
    closed = [row.id for row in rows if not row.open]
    return MAIN if len(closed) < len(rows) or not closed else min(closed)


def _newest(connection: sa.Connection) -> int:
    return connection.execute(sa.select(sa.func.max(training.c.id))).scalar_one() or 0
