"""What the papers printed: their results tables as data, under our names."""

from orchestrator.publish.published.library import PublishedTable, load, names
from orchestrator.publish.published.number import Number

__all__ = ["Number", "PublishedTable", "load", "names"]
