"""Lives of worlds: one by its seed, and the shortest story of one that breaks."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields, replace
from typing import Final

import yaml

from orchestrator.conduct.expansion import PIECE
from tests.simulation.ground import Ground
from tests.simulation.installation import HARSH, QUIET, USUAL, Installation, Trouble
from tests.simulation.transactions import Blow
from tests.simulation.world import BrokenWorldError, World

SIZES = (1, 1, 2, 1, 3, 1, 4)
"""Wishes of each of the two clients: small worlds are many, since their stories are short."""


@dataclass(frozen=True, slots=True)
class Life:
    """What makes a world: the same always comes to the same end."""

    seed: int
    wishes: int
    """What each of the two clients asks for."""
    trouble: Trouble = USUAL
    joined: bool = False
    """Whether its slots join by files."""
    clients: tuple[str, ...] = ("ann", "bob")
    piece: int = PIECE
    """Trials of a sweep that are written at once when it is expanded."""
    blow: Blow | None = None
    """What befalls one operation on the database, whatever else happens."""

    @classmethod
    def of(cls, seed: int) -> "Life":
        """The one that a seed stands for."""
        return cls(seed, SIZES[seed % len(SIZES)], HARSH, joined=seed % 15 == 2, piece=1 if seed % 13 == 6 else PIECE)


@dataclass(frozen=True, slots=True)
class Break:
    """How a world broke: whatever was raised that its own processes did not catch, and what came before."""

    life: Life
    error: Exception
    story: list[str]

    def __str__(self) -> str:
        return "\n".join([*self.story, f"{type(self.error).__name__}: {self.error}", f"{self.life}"])


def live(ground: Ground, life: Life, without: AbstractContextManager[object] | None = None) -> Break | None:
    """Live it, `without` a safeguard; none: all invariants held to the end."""
    return lived(ground, life, without)[1]


def lived(
    ground: Ground, life: Life, without: AbstractContextManager[object] | None = None
) -> tuple[Installation, Break | None]:
    """The same, with what there was in the end."""
    world = World(life.seed)
    installation = Installation(world, ground, joined=life.joined, piece=life.piece)
    installation.transactions.blow = life.blow
    try:
        with without or nullcontext(), installation.laws():
            installation.live(life.clients, life.wishes, life.trouble)
    except Exception as error:
        return installation, Break(life, error, world.story)
    for tried, (text, found) in installation.shown.items():
        wanted = undisturbed(ground, tried, text)
        if found != wanted:
            message = f"the table is {found!r}, in a world without trouble {wanted!r}"
            return installation, Break(life, BrokenWorldError(message), world.story)
    return installation, None


def undisturbed(ground: Ground, tried: str, text: str) -> bytes:
    """The table of a grid where one client submits its spec and nothing strikes; lived once for all worlds."""
    if tried not in ground.tables:
        world = World(1)
        installation = Installation(world, ground)
        installation.first = yaml.safe_load(text)["name"], text.encode()
        with installation.laws():
            installation.live(("calm",), 1, QUIET)
        ((_, ground.tables[tried]),) = installation.shown.values()
    return ground.tables[tried]


def shortest(ground: Ground, broken: Break) -> Break:
    """The shortest story that is found by leaving out kinds of faults, and wishes, one after the other."""
    for kind in fields(Trouble):
        calmer = replace(broken.life, trouble=replace(broken.life.trouble, **{kind.name: 0.0}))
        broken = live(ground, calmer) or broken
    for wishes in range(1, broken.life.wishes):
        shorter = live(ground, replace(broken.life, wishes=wishes))
        if shorter is not None:
            return shorter
    return broken


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
