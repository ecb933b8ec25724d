"""Addresses of a sweep's runs in MLflow, for a person's browser."""

from dataclasses import dataclass
from typing import Final

from orchestrator.views.callers import caller

VIEW: Final = "metricsweep"
"""The name of the view of its runs that an experiment keeps for us."""


@dataclass(frozen=True, slots=True)
class Links:
    """Builds addresses as MLflow 3's interface routes them; none where no server is known."""

    server: str

    def to(self, experiment: str | None, run: str | None = None) -> str | None:
        """The page of an experiment, or of a run in it."""
        if not self.server or experiment is None:
            return None
        if self.server.startswith("/") and not caller().opens_mlflow:  # our gate would refuse it
            return None
        page = f"{self.server.rstrip('/')}/#/experiments/{experiment}/runs"
        return f"{page}/{run}" if run else page

    def to_view(self, experiment: str | None) -> str | None:
        """The classic page of an experiment's runs under the view that it keeps for us."""
        page = self.to(experiment)
        return page and f"{page}?workflowType=machine_learning&viewStateShareKey={VIEW}"
