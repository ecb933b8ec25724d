"""Bodies that mean harm, by what is wrong with each."""

from benchmarks.hostile_bodies import axes, keys, layouts, texts  # each adds its own
from benchmarks.hostile_bodies.body import BODIES

__all__ = ["BODIES", "axes", "keys", "layouts", "texts"]
