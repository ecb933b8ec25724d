"""Writes of which trainings the weights go: before a file does, so that nobody counts on what may be gone."""

from collections.abc import Collection
from datetime import UTC, datetime

import sqlalchemy as sa

from orchestrator.record.database import FencedAccess
from orchestrator.record.reads.collectable import collectable, revivals
from orchestrator.record.schema import collected
from orchestrator.views.errors import ConflictError
from orchestrator.views.operations import CollectionPolicy


class CollectionWriter(FencedAccess):
    """Each step may be done a second time after a crash."""

    def begin(self, sweep: int, policy: CollectionPolicy, kept: Collection[int], request: int) -> int:
        """Record that the weights of what the policy takes go; how many trainings. Raises ConflictError."""
        with self._database.writing() as connection:
            if revivals(connection, sweep):
                raise ConflictError(f"an extension or a retry of sweep {sweep} waits, which may need its weights")
            going = collectable(connection, sweep, policy, kept)
            if going:
                now = datetime.now(UTC)
                rows = [
                    {"training_id": one.id, "request": request, "at": now, "reason": policy.reason} for one in going
                ]
                connection.execute(sa.insert(collected), rows)
            return len(going)

    def count(self, training: int, files: int, size: int) -> None:
        """Record what a training had, before any of it goes."""
        with self._database.writing() as connection:
            row = sa.update(collected).where(collected.c.training_id == training, collected.c.files.is_(None))
            connection.execute(row.values(files=files, bytes=size))

    def removed(self, trainings: Collection[int]) -> None:
        """Record that the files of some trainings are gone."""
        with self._database.writing() as connection:
            rows = sa.update(collected).where(collected.c.training_id.in_(trainings), collected.c.removed.is_(None))
            connection.execute(rows.values(removed=datetime.now(UTC)))
