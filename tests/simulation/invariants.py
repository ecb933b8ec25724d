"""What holds after every write, and what holds once a world has come to rest."""

from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from orchestrator.conduct.search import Searches, _replay
from orchestrator.plan import grid
from orchestrator.record import schema
from orchestrator.record.mlflow.content import _STATUS, single
from orchestrator.spec.spec import Spec
from orchestrator.views.states import SWEEP_ENDED, SweepState, TrialState
from tests.record.invariants import check
from tests.simulation.training import expected, raises
from tests.simulation.world import BrokenWorldError

if TYPE_CHECKING:
    from tests.simulation.installation import Installation

EVERY = 25
"""Writes between two looks at the whole database."""
_BEGUN = "SELECT id, training_id FROM attempt WHERE id > ? ORDER BY id"
_WANTING = (
    "SELECT sweep.state FROM trial JOIN sweep ON sweep.id = trial.sweep_id"
    " WHERE trial.training_id = ? AND trial.state = 'running'"
)
_CLAIMED_BY = (
    "SELECT DISTINCT sweep.actor, sweep.priority FROM trial JOIN sweep ON sweep.id = trial.sweep_id"
    " WHERE trial.training_id = ? AND trial.state = 'running' AND sweep.state = 'running'"
)
_HELD = (
    "SELECT sweep.actor, count(DISTINCT trial.training_id) AS held FROM trial JOIN sweep ON sweep.id = trial.sweep_id"
    " WHERE trial.state = 'running' AND sweep.state IN ('running', 'paused') GROUP BY sweep.actor"
)
_WAITS = (
    "SELECT DISTINCT sweep.actor FROM trial JOIN sweep ON sweep.id = trial.sweep_id"
    " JOIN training ON training.id = trial.training_id"
    " WHERE trial.state = 'waiting' AND training.state = 'waiting' AND sweep.state = 'running'"
    " AND sweep.priority >= ? AND NOT EXISTS (SELECT 1 FROM attempt WHERE attempt.training_id = training.id)"
)
_SWEEPS = "SELECT id, state FROM sweep"


def holds(what: bool, said: str) -> None:
    """Raise BrokenWorldError where something does not hold."""
    if not what:
        raise BrokenWorldError(said)


class Invariants:
    """Looks from outside of the world, at what is committed."""

    def __init__(self, installation: "Installation") -> None:
        self._here, self._store = installation, installation.store
        self._outside = installation.ground.outside
        self._writes = self._attempts = 0
        self._cancelled: set[int] = set()

    def look(self) -> None:
        """After a write: who was claimed, and at times all rows."""
        self._writes += 1
        if self._writes % EVERY == 0:
            self._whole()
        self._claimed()
        self._ended()

    def at_rest(self) -> None:
        """Nothing is lost, nothing is there twice, and the numbers are those of an undisturbed world."""
        self._whole()
        with self._store.database.reading() as connection:
            self._results(connection)
            self._submitted(connection)
            self._searched(connection)
            self._cleared(connection)
            self._mirrored(connection)
            orphans = connection.execute(sa.text("SELECT count(*) FROM attempt WHERE state = 'running'")).scalar_one()
            holds(orphans == 0, f"{orphans} attempts run for ever")

    def _whole(self) -> None:
        try:
            check(self._store)
        except AssertionError as error:
            raise BrokenWorldError(f"trials and trainings disagree: {str(error).splitlines()[:1]}") from error

    def _claimed(self) -> None:
        """Each attempt that begins belongs to an active sweep."""
        for row in self._outside.execute(_BEGUN, (self._attempts,)).fetchall():
            self._attempts = row["id"]
            self._fair(row["training_id"])
            states = [one["state"] for one in self._outside.execute(_WANTING, (row["training_id"],))]
            holds("running" in states, f"training {row['training_id']} begins, which no sweep that goes on wants")

    def _fair(self, training: int) -> None:
        """Whoever is given a slot held no more than anybody of the same rank for whom a first attempt waits."""
        mine = self._outside.execute(_CLAIMED_BY, (training,)).fetchall()
        rank, owners = max((row["priority"] for row in mine), default=0), {row["actor"] for row in mine}
        held = {row["actor"]: row["held"] for row in self._outside.execute(_HELD)}
        fewest = min((held.get(owner, 0) for owner in owners), default=0)
        for row in self._outside.execute(_WAITS, (rank,)).fetchall():
            before = held.get(row["actor"], 0)
            fair = row["actor"] in owners or fewest - 1 <= before
            holds(fair, f"{owners} hold {fewest} slots, {row['actor']} {before} and waits for another")

    def _ended(self) -> None:
        """Cancelled trials stay cancelled, unless a client requests them again."""
        for row in self._outside.execute(_SWEEPS).fetchall():
            if row["state"] == "cancelled":
                self._cancelled.add(row["id"])
            elif row["id"] in self._cancelled:
                asked = any(row["id"] in one.revived for one in self._here.clients)
                holds(asked, f"sweep {row['id']} was cancelled, and is {row['state']}")

    def _results(self, connection: sa.Connection) -> None:
        training, attempt = schema.training, schema.attempt
        ended = sa.select(sa.func.count()).where(attempt.c.training_id == training.c.id, attempt.c.state == "finished")
        for row in connection.execute(sa.select(training, ended.scalar_subquery().label("accepted"))).all():
            holds(row.generation == 1, f"training {row.id} was planned again though there was one")
            if row.state == TrialState.FAILED:
                self._failed(connection, row)
            if row.state != TrialState.FINISHED:
                continue
            holds(row.accepted == 1, f"training {row.id} has {row.accepted} accepted results")
            found, wanted = (row.metrics or {}).get("best/validation/map@r"), expected(row.recipe)
            holds(row.diverged or found == wanted, f"training {row.id} has {found}, expected {wanted}")
            curve = (row.result or {}).get("curves", {}).get("validation/map@r", [])
            holds(row.diverged or len(curve) == 3, f"training {row.id} has the curve {curve}")

        twice = [training for training, count in self._here.cluster.results.items() if count > 1]
        forgetful = self._here.shelf is not None and self._here.shelf.lied  # then nobody knows that there was a result
        holds(forgetful or not twice, f"trained again though there was a result: {twice}")

        busy = [one.process.name for one in self._here.cluster.actors.values() if one.busy]
        holds(not busy, f"{busy} train what nobody waits for")

    def _failed(self, connection: sa.Connection, row: sa.Row[Any]) -> None:
        """Only what raises fails, and what has lost its slots three times in a row."""
        query = sa.select(schema.attempt.c.cause).where(schema.attempt.c.training_id == row.id)
        cause = connection.execute(query.order_by(schema.attempt.c.number.desc())).scalars().first()
        right = raises(row.recipe) if cause == "recipe" else cause == "infrastructure"
        holds(right, f"training {row.id} failed by {cause}: {row.error}")

    def _submitted(self, connection: sa.Connection) -> None:
        there = list(connection.execute(sa.select(schema.sweep.c.name)).scalars())
        holds(len(there) == len(set(there)), f"a sweep is there twice: {sorted(there)}")
        deleted = connection.execute(
            sa.select(sa.func.count()).where(
                schema.request.c.kind == "delete", schema.request.c.outcome.startswith("deleted")
            )
        ).scalar_one()
        accepted = set().union(*(one.accepted for one in self._here.clients))
        holds(len(accepted - set(there)) <= deleted, f"lost: {sorted(accepted - set(there))}")
        for row in connection.execute(sa.select(schema.sweep)).all():
            holds(row.state in SWEEP_ENDED, f"sweep {row.id} is {row.state}")
            holds(row.error is None, f"sweep {row.id} failed as a whole: {row.error}")
            if row.state == SweepState.FINISHED and "prune" not in row.text and "search" not in row.text:
                self._shown(row)

    def _shown(self, sweep: sa.Row[Any]) -> None:
        """Its table is that of every other sweep that tried the same; of an undisturbed one, see `lives`."""
        tried = repr((sweep.spec["tune"], sweep.spec["repeat"]))
        found = self._here.tables(sweep.id)
        _, wanted = self._here.shown.setdefault(tried, (sweep.text, found))
        holds(found == wanted, f"the table of sweep {sweep.id} is {found!r}, elsewhere {wanted!r}")

    def _searched(self, connection: sa.Connection) -> None:
        """The tried values of a search are those that its sampler suggests if it is replayed in the recorded order."""
        searches = Searches(self._store, self._here.store.writer(0), self._here.ground.catalog)
        for row in connection.execute(sa.select(schema.sweep).where(schema.sweep.c.text.contains("search:"))).all():
            spec = Spec.model_validate(row.spec)
            study = searches._study(spec, grid.space(spec, 0))
            recorded = self._store.searches.suggestions(row.id, 0)
            holds(_replay(study, recorded), f"sweep {row.id} has tried what its search does not suggest: {recorded}")

    def _cleared(self, connection: sa.Connection) -> None:
        """The store keeps nothing of trainings that were deleted, but for what it did not take or nobody could stop."""
        shelf = self._here.shelf
        if shelf is None or shelf.kept_back:
            return
        known = set(connection.execute(sa.select(schema.training.c.uid)).scalars())
        left = {key.partition("/")[0] for key in shelf.stored()} - known - self._here.cluster.unheard
        holds(not left, f"the store keeps what was deleted: {sorted(left)}")

    def _mirrored(self, connection: sa.Connection) -> None:
        """The tracker shows each trial that ever ran once, with its number and its curve."""
        shown = {(one.experiment, one.key): one for one in self._here.tracking.runs.values()}
        holds(len(shown) == len(self._here.tracking.runs), "the tracker shows a run twice")
        trial, training, sweep = schema.trial, schema.training, schema.sweep
        query = sa.select(
            trial.c.uid, trial.c.state, trial.c.reused, training.c.id, training.c.metrics, sweep.c.mlflow_experiment
        )
        query = query.join(training, training.c.id == trial.c.training_id).join(sweep, sweep.c.id == trial.c.sweep_id)
        rows, experiments = connection.execute(query).all(), set[str]()
        for row in rows:
            experiments.add(row.mlflow_experiment)
            run = shown.get((row.mlflow_experiment, row.uid))
            if run is not None and row.state != TrialState.FINISHED:
                holds(
                    run.status == _STATUS[row.state], f"the tracker shows a trial that is {row.state} as {run.status}"
                )
            if row.state != TrialState.FINISHED:
                continue
            holds(run is not None, f"the tracker does not show trial {row.uid}")
            self._same(connection, run, row)
        known = {(row.mlflow_experiment, row.uid) for row in rows}
        foreign = [one for one in shown if one[0] in experiments and "/" not in one[1] and one not in known]
        holds(not foreign, f"the tracker shows {foreign}, of which the database knows nothing")

    def _same(self, connection: sa.Connection, run: Any, row: sa.Row[Any]) -> None:
        holds(run.status == "FINISHED", f"the tracker shows a finished trial as {run.status}")
        finals = {single(name): value for name, value in (row.metrics or {}).items() if value is not None}
        told = {name: run.metrics.get(name) for name in finals}
        holds(told == finals, f"the tracker shows {told}, expected {finals}")
        if row.reused:
            return  # its curve is that of the trial that it was trained for
        points = schema.metric.join(schema.attempt)
        query = sa.select(schema.metric.c.key, schema.metric.c.step).select_from(points)
        expected = {tuple(one) for one in connection.execute(query.where(schema.attempt.c.training_id == row.id))}
        holds(expected <= set(run.points), f"the tracker lacks {sorted(expected - set(run.points))[:3]}")
