"""The room that quotas leave: how many slots a user's and a project's sweeps may still take at once."""

from collections import Counter

import sqlalchemy as sa

from orchestrator.record.schema import attempt
from orchestrator.views.accounts import QuotaLimits

_HELD = (
    sa.select(attempt.c.owner_id, attempt.c.project_id, sa.func.count().label("n"))
    .where(attempt.c.state == "running")
    .group_by(attempt.c.owner_id, attempt.c.project_id)
)


class SlotRoom:
    """The slots of one moment; where there are no quotas nothing is asked, but for `every`."""

    def __init__(self, connection: sa.Connection, limits: QuotaLimits, *, every: bool = False) -> None:
        self._limits = limits
        self.users, self.projects = Counter[int | None](), Counter[int | None]()
        """Slots that are held, by number of their owner and their project."""
        if every or limits.users or limits.projects:
            for row in connection.execute(_HELD):
                self.take(row.owner_id, row.project_id, row.n)

    def left(self, owner: int | None, project: int, most: int) -> int:
        """How many more slots sweeps of this owner and this project may take; `most` where nothing limits them."""
        pairs = ((owner, self._limits.users, self.users), (project, self._limits.projects, self.projects))
        for number, limits, held in pairs:
            if number is not None and number in limits:
                most = min(most, limits[number] - held[number])
        return most

    def take(self, owner: int | None, project: int | None, slots: int) -> None:
        """Count further slots as held."""
        self.users[owner] += slots
        self.projects[project] += slots
