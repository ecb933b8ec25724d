"""Each safeguard is taken out in turn: the world of its seed then breaks, which with it does not."""

import warnings
from typing import Final

import pytest

from tests.simulation.ground import Ground
from tests.simulation.lives import Life, live
from tests.simulation.safeguards import SAFEGUARDS

BUDGET: Final = 1_000
"""How many worlds are searched at most, half a second each, where that of the named seed no longer breaks."""
WISHES: Final = 4


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.soak] * one.soak) for name, one in SAFEGUARDS.items()]
)
def test_without_a_safeguard_a_world_breaks(name: str, ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """A change of the product's transactions makes another world of every seed, so further seeds are searched."""
    monkeypatch.setattr("tests.simulation.installation.MOST_TURNS", 2_000)  # it need not be waited for long
    safeguard = SAFEGUARDS[name]
    for seed in (safeguard.seed, *range(BUDGET)):
        life = Life(seed, WISHES, safeguard.trouble, safeguard.joined)
        if live(ground, life, safeguard.out()) is not None:
            assert live(ground, life) is None, "it breaks with the safeguard, too"
            if seed != safeguard.seed:
                warnings.warn(f"{name}: name seed {seed} in safeguards.py", stacklevel=1)
            return
    pytest.fail(f"{BUDGET} worlds live on without it")
