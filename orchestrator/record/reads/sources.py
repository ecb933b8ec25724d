"""Sources: the finished trainings whose kept weights tell further metrics, and what is evaluated of them."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

import sqlalchemy as sa

from orchestrator.record.database import chunked
from orchestrator.record.schema import attempt, collected, sweep, training, trial
from orchestrator.record.schema import project as projects
from orchestrator.views.runs import AskedEvaluation, PlannedTrial
from orchestrator.views.states import TrialState
from workers.catalog import asked_of, computed_alike
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
