"""What trials, trainings and attempts agree on, whatever happens in whatever order."""

import sqlalchemy as sa

from orchestrator.record import schema
from orchestrator.record.store import Store

ACTIVE = {"waiting", "running"}


def check(store: Store) -> None:
    with store.database.reading() as connection:
        trials = connection.execute(
            sa.select(schema.trial, schema.training.c.state.label("training_state"), schema.sweep.c.state.label("of"))
            .join(schema.training, schema.training.c.id == schema.trial.c.training_id)
            .join(schema.sweep, schema.sweep.c.id == schema.trial.c.sweep_id)
        ).all()
        trainings = {row.id: row for row in connection.execute(sa.select(schema.training))}
        running = [
            row.training_id
            for row in connection.execute(sa.select(schema.attempt).where(schema.attempt.c.state == "running"))
        ]
        settled = connection.execute(sa.select(schema.cell).where(schema.cell.c.settled.is_not(None))).all()
    still_open = {(row.sweep_id, row.cell) for row in trials if row.state in ACTIVE}
    assert not still_open & {(row.sweep_id, row.cell) for row in settled}
    assert len(running) == len(set(running))
    assert set(running) == {one.id for one in trainings.values() if one.state == "running"}
    for row in trials:
        if row.state in ACTIVE or row.state == "finished":
            assert row.training_state == row.state, row
        if row.state in ACTIVE:
            assert row.of in {"queued", "running", "paused"}  # queued: not all of its trials are written
            assert row.ended is None
        else:
            assert row.ended is not None
        assert row.started is not None or row.state in {"waiting", "cancelled", "failed", "pruned"}
    expected = {row.training_id for row in trials if row.state in ACTIVE}
    assert {one.id for one in trainings.values() if one.state == "waiting"} <= expected
