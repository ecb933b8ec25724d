"""Worlds that a seed draws: the product's own code above its ports, in one thread, with faults at every transaction."""
