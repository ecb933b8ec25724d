"""A small sweep whose n-th operation on the database fails, or kills its process, for any n; then it goes on anew."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from tests.simulation.ground import Ground
from tests.simulation.installation import QUIET
from tests.simulation.lives import Break, Life, live, lived
from tests.simulation.transactions import Blow

SMALL: Final = Life(seed=1, wishes=1, trouble=QUIET, clients=("ann",))
"""A world in which one client submits one sweep, and nothing else happens."""
_NEVER: Final = 10**9


def count(ground: Ground) -> int:
    """How many operations there are where none fails."""
    installation, broken = lived(ground, struck(_NEVER, deadly=False))
    assert broken is None, broken
    return installation.transactions.operations


def struck(number: int, *, deadly: bool) -> Life:
    """The small world with one operation that fails."""
    return replace(SMALL, blow=Blow(number, deadly))


def breaks(ground: Ground, first: int = 1, step: int = 1) -> Iterator[Break]:
    """Strike every `step`-th operation in turn, both ways; what breaks."""
    for number in range(first, count(ground) + 1, step):
        for deadly in (False, True):
            broken = live(ground, struck(number, deadly=deadly))
            if broken is not None:
                yield broken
