"""Bodies that mean harm, by what is wrong with each."""

from tests.plan.hostile_bodies import axes, keys, layouts, texts  # each adds its own
from tests.plan.hostile_bodies.body import BODIES

__all__ = ["BODIES", "axes", "keys", "layouts", "texts"]
