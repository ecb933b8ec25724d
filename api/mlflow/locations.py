"""Where the artifacts of runs and models are: only what MLflow keeps itself is handed out.

An experiment's location is fixed when it is made and every run inherits it, so that looking once before MLflow reads is
enough. Experiments of earlier releases, or of a store that something else wrote to, may name any folder.
"""

import re
from typing import Final

from api.mlflow.upstream import Upstream

_KEPT: Final = re.compile(r"mlflow-artifacts:/(?!/)[\w.@=-]+(?:/[\w.@=-]+)*/?", re.ASCII)


class Locations:
    """Asks MLflow."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream

    async def of_run(self, run: str) -> str | None:
        """Where a run's artifacts are; None where there is no such run."""
        found = await self._upstream.read("/api/2.0/mlflow/runs/get", {"run_id": run})
        return str(found["run"]["info"].get("artifact_uri", "")) if found else None

    async def of_model(self, model: str) -> str | None:
        """Where a logged model's artifacts are; None where there is no such model."""
        found = await self._upstream.read(f"/api/2.0/mlflow/logged-models/{model}", {})
        return str(found["model"]["info"].get("artifact_uri", "")) if found else None

    @staticmethod
    def is_kept_here(location: str) -> bool:
        """Whether a location lies in the one folder that MLflow was given for artifacts."""
        return bool(_KEPT.fullmatch(location)) and ".." not in location.split("/")
