"""How a slot of a Ray that we start shares its cores with other programs of the machine."""

from typing import Final

NICENESS: Final = "RAY_worker_niceness"
"""The variable by which Ray is told."""
SLOT_NICENESS: Final = "5"
"""Ray's own 15 leaves a slot 3 % of a core on which another program computes; with 5 it has a quarter, and pages and
the conductor, which need little, still come first."""
