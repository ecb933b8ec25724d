"""Which training stands for a fingerprint: one that is known, else a new row."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from orchestrator.cost.estimate import models
from orchestrator.record.database import chunked
from orchestrator.record.reads.sources import closed_to, reachable, sources
from orchestrator.record.schema import MAIN, project, sweep, training, trial
from orchestrator.views.runs import PlannedTrial
from orchestrator.views.states import TRIAL_STEPS, TrialState, before
from workers.catalog import stamp

_CHUNK: Final = 1_000
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
        for chunk in chunked(trainings.values(), _CHUNK):
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
        for chunk in chunked(self._trainings.values(), _CHUNK):
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
