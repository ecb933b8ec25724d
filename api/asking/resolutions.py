"""Resolutions from Python: have the comparisons of a table decided, within a budget."""

from api.asking.asked import Asked, asked
from api.connection import ServerConnection
from orchestrator.views.resolutions import ResolutionBudget, ResolutionView


class SweepResolutions:
    """Those of the sweeps of one server; see docs/statistics.md."""

    def __init__(self, connection: ServerConnection) -> None:
        self._connection = connection

    def ask(self, sweep: int, budget: ResolutionBudget, table: str | None = None) -> Asked:
        """Ask that seeds be trained that decide the comparisons of a table, by default the sweep's first."""
        return asked(self._connection, f"/v1/sweeps/{sweep}/resolve", _query(budget, table))

    def plan(self, sweep: int, budget: ResolutionBudget, table: str | None = None) -> ResolutionView:
        """What that would begin with; nothing is asked for."""
        path = f"/v1/sweeps/{sweep}/resolution/plan"
        return self._connection.ask(ResolutionView, "GET", path, _query(budget, table))

    def get(self, sweep: int) -> ResolutionView:
        """What became of the last one."""
        return self._connection.ask(ResolutionView, "GET", f"/v1/sweeps/{sweep}/resolution")

    def halt(self, sweep: int) -> Asked:
        """Ask that no further round follow."""
        return asked(self._connection, f"/v1/sweeps/{sweep}/halt")


def _query(budget: ResolutionBudget, table: str | None) -> dict[str, str | float | None]:
    return {"table": table, **budget.model_dump(exclude_none=True)}
