"""What the outside sees of the nodes' data roots, as JSON."""

from datetime import datetime
from typing import Literal

from pydantic import BaseModel


class DataFinding(BaseModel):
    """What a node's data root was found to have of what a training needs."""

    host: str
    node: str
    """What tells it from others of that name: Ray's identifier."""
    data: str
    """A data set, with those hyper-parameters that decide on its files, and weights."""
    state: Literal["ok", "missing", "wrong", "unknown"]
    said: str
    """Where was looked, what was found and how to get it; where it is there, what was passed over and why."""
    looked: datetime
