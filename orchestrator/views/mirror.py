"""How far MLflow shows what the database says."""

from pydantic import BaseModel


class MirrorView(BaseModel):
    """What MLflow is still to be told of a sweep, or of all."""

    waiting: int
    """Runs that it does not show as they are."""
    error: str | None = None
    """Why one of them could not be told when it was tried last."""
